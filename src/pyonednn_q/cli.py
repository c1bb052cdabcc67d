"""The command ``pyonednn-q``. Subcommands are imported when they are asked for."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from pyonednn_q.errors import Error

if TYPE_CHECKING:
    from pyonednn_q.primitive.isa import Facts

_COMMANDS = {
    "doctor": "which oneDNN is used, whether it works, and what to do if not",
    "explain": "how a layer becomes attributes and post-ops of oneDNN, and why",
    "why": "which arithmetic gives another runtime's codes, and what differs from ours",
    "demo": "classify handwritten digits in FP32 and INT8, and compare the two",
    "bench": "measure INT8 against FP32: known networks or your own shapes",
    "compare": "compare two runs of bench: what became slower, what faster",
}
_ROOMS = {
    "compare": "bench.compare",
    "why": "inspection.why",
}  # of commands that are not rooms of their own

# As shells tell of programs that a signal ended: SIGINT, and SIGPIPE.
INTERRUPTED, NO_READER = 130, 141
UNUSABLE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code.

    Each one is a room with ``main(argv) -> int`` that parses its own arguments. Whatever ends it
    ends it with a line: 2 where a file cannot be read or written, 130 when it is interrupted, 141
    when nobody reads what it writes.
    """
    _open_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = NO_READER
    except (Error, OSError) as error:
        code = UNUSABLE
        with suppress(OSError):
            print(f"pyonednn-q: {error}", file=sys.stderr)
    else:
        return code
    _drop_output()
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="pyonednn-q", description="INT8 primitives of oneDNN")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        # Without a help option of its own, --help behind the command reaches the room.
        commands.add_parser(name, help=purpose, add_help=False)
    try:
        known, rest = parser.parse_known_args(argv)
        if known.command is None:
            parser.print_help(sys.stderr)
            return UNUSABLE
        room = import_module(f"pyonednn_q.{_ROOMS.get(known.command, known.command)}")
        # explain and native are siblings, and those never import each other: this is above both.
        extras = {"here": _facts_here} if known.command == "explain" else {}
        code: int = room.main(rest, **extras)
    except SystemExit:
        sys.stdout.flush()  # the help, which nobody may want to read
        raise
    return code


def _open_streams() -> None:
    """Let streams that were closed lead nowhere: no file may be opened in their places."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no "·"


def _drop_output() -> None:
    """Write what can be written, and let the rest lead nowhere: Python writes it at exit, too."""
    with suppress(OSError, ValueError):
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _facts_here() -> Facts:
    from pyonednn_q.native import runtime

    return runtime.facts()
