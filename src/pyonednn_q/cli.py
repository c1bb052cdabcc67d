"""The command ``pyonednn-q``. Subcommands are imported when they are asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.compose.facts import Facts

_COMMANDS = {
    "doctor": "which oneDNN is used, whether it works, and what to do if not",
    "explain": "how a layer becomes attributes and post-ops of oneDNN, and why",
    "demo": "classify handwritten digits in FP32 and INT8, and compare the two",
    "bench": "measure INT8 against FP32: known networks or your own shapes",
    "compare": "compare two runs of bench: what became slower, what faster",
}
_ROOMS = {"compare": "bench.compare"}  # of commands that are not rooms of their own


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
    room = import_module(f"pyonednn_q.{_ROOMS.get(known.command, known.command)}")
    # explain and native are siblings, and those never import each other: this is above both.
    extras = {"here": _facts_here} if known.command == "explain" else {}
    code: int = room.main(rest, **extras)
    return code


def _facts_here() -> Facts:
    from pyonednn_q.native import runtime

    return runtime.facts()
