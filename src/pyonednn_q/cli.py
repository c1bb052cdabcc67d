"""The command ``pyonednn-q``. Subcommands are imported when they are asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

_COMMANDS = {
    "doctor": "which oneDNN is used, whether it works, and what to do if not",
    "demo": "classify handwritten digits in FP32 and INT8, and compare the two",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code.

    Each one is a room with ``main(argv) -> int`` that parses its own arguments.
    """
    parser = argparse.ArgumentParser(prog="pyonednn-q", description="INT8 primitives of oneDNN")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        # Without a help option of its own, --help behind the command reaches the room.
        commands.add_parser(name, help=purpose, add_help=False)
    known, rest = parser.parse_known_args(argv)
    if known.command is None:
        parser.print_help(sys.stderr)
        return 2
    code: int = import_module(f"pyonednn_q.{known.command}").main(rest)
    return code
