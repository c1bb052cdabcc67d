"""The command ``pyonednn-q``: one tree of parsers, one set of exit codes.

Exit codes are the same everywhere:

====  ==============================================================================================
code  meaning
====  ==============================================================================================
0     done, and nothing is wrong
1     done, with a finding: slower, wrong, saturating, unexplained, unusable
2     not done: a wrong argument, a file that cannot be read or written, a library that is not there
130   interrupted
141   nobody reads what is printed any more
====  ==============================================================================================
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

from pyonednn_q import __version__
from pyonednn_q.commands.option_table import add_options, refuse_others, rows_of
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.report.table import on_terminal
from pyonednn_q.shown import meant, printable, shown

if TYPE_CHECKING:
    from types import ModuleType

    from _typeshed import SupportsWrite

__all__ = ["branches", "main", "parser"]


# What a subcommand is for; its module has its name.
_COMMANDS = {
    "doctor": "which oneDNN is used, whether it works, and what to do if not",
    "explain": "how a layer, or an ONNX model, becomes attributes and post-ops of oneDNN, and why",
    "inspect": "which kernels run, in which layouts, with which copies around",
    "saturation": "which channels can saturate in 16 bits where there is no VNNI",
    "why": "which arithmetic gives another runtime's codes, and what differs from ours",
    "demo": "classify handwritten digits in FP32 and INT8, and compare the two",
    "bench": "measure INT8 against FP32: known networks, your own shapes, an ONNX model",
    "compare": "compare two runs of bench: what became slower, what faster",
    "run": "run an ONNX model on arrays",
    "quantize": "make an INT8 model of an ONNX model of floats and samples, and check it",
    "diff": "which node of an ONNX model differs from onnxruntime's first, and by which arithmetic",
    "completion": "print what makes a shell complete this command",
}

UNUSABLE = 2
# As shells tell of programs that a signal ended: SIGINT, and SIGPIPE.
INTERRUPTED, NO_READER = 130, 141
_CODES = (
    "exit codes: 0 fine, 1 a finding, 2 bad use or what cannot be read or written, "
    "130 interrupted, 141 nobody reads"
)


# What Python says of errors, arguments and sequences of names, and what is said instead.
_PYTHON: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"\[Errno -?\d+\] ", ""),
    (r"dims=\{'?([^'{}]*?)'?: \(\.\.\.\)\}", r"--dims \1=LENGTHS"),
    (r"[\[(]('[^']*'(?:, '[^']*')*),?[\])]", r"\1"),
    (r"(?<!\w)[\[(]((?:\d+|[A-Z])(?:, (?:\d+|[A-Z]))+)[\])]", lambda d: d[1].replace(", ", "x")),
)
_OF_INPUT = re.compile(r"(dims|inputs)\['(.*)'\]")
_SAYING = {"dims": ("--dims",), "inputs": ("--input", "--data")}  # what says lengths of an input


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code: see the head of this module.

    Whatever ends it ends it with a line.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    command = ""
    try:
        tree = parser(next((word for word in words if not word.startswith("-")), ""))
        options = _parsed(tree, words)
        command = options.command or ""
        if not command:
            tree.print_help(sys.stderr)
            return UNUSABLE
        code = _run(command, options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = NO_READER
    except (Error, OSError, SubprocessError) as error:  # of a child that takes too long, too
        code = UNUSABLE
        with suppress(OSError):
            line = _told(error, command)
            print(f"pyonednn-q {command}".rstrip() + f": {line}", file=sys.stderr)
    else:
        return code
    _drop_output()
    return code


def parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Parameters
    ----------
    command : str, optional
        Only this subcommand has its arguments, so that what the others need is not imported.
    """
    tree = _Parser(prog="pyonednn-q", description="INT8 primitives of oneDNN", epilog=_CODES)
    tree.add_argument("--version", action="version", version=f"pyonednn_q {__version__}")
    commands = tree.add_subparsers(dest="command", metavar="COMMAND")
    for name, purpose in _COMMANDS.items():
        branch = commands.add_parser(
            name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if command in {None, name}:
            branch.description = _module(name).__doc__
            add_options(branch, name)
    return tree


class _Parser(argparse.ArgumentParser):
    """Parser that takes full option names only, and suggests a similar word for a wrong one.

    It lets a help that cannot be written fail; argparse drops what an unbuffered stream raises.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        super().__init__(**options, allow_abbrev=False)

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        choices = None if action.choices is None else list(action.choices)
        if choices is not None and value not in choices:
            wanted = f"one of {', '.join(choices)}{meant(value, choices)}"
            raise argparse.ArgumentError(action, f"got {shown(value)}; wanted {wanted}")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stderr).write(message)


def _parsed(tree: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    try:
        options, strange = tree.parse_known_args(words)
        if strange:  # said with the usage of the subcommand
            branch = branches(tree).get(options.command, tree)
            names = [name for action in branch._actions for name in action.option_strings]  # noqa: SLF001
            said = [f"{word}{_hint(word, words, names)}" for word in strange]
            branch.error(f"unrecognized arguments: {' '.join(said)}")
    except SystemExit:
        sys.stdout.flush()  # the help, which nobody may want to read
        raise
    return options


def _hint(word: str, words: Sequence[str], names: Sequence[str]) -> str:
    """Return which option a word was meant to be, or whose value it cannot be."""
    before = words[words.index(word) - 1] if word in words else ""
    if before in names and not word.startswith("-"):
        return f" ({before} takes no value)"
    return meant(word.partition("=")[0], names)


def _told(error: Exception, command: str) -> str:
    """Return the text of an error, in the words of the command line: ``--dims N=LENGTHS``."""
    line = printable(str(error))
    if isinstance(error, ArgumentError):
        options = {row.key: row.name for row in rows_of(command)}
        named = options.get(error.argument, "")
        if (of_input := _OF_INPUT.fullmatch(error.argument)) is not None:
            saying = _SAYING[of_input[1]]
            option = next((each for each in saying if each in options.values()), "")
            named = f"{option} {of_input[2]}"
        line = named + line.removeprefix(error.argument) if named.startswith("--") else line
    for python, ours in _PYTHON:
        line = re.sub(python, ours, line)
    return line


def _run(command: str, options: argparse.Namespace) -> int:
    refuse_others(command, options)
    with on_terminal(sys.stdout.isatty()):
        code: int = _module(command).run(options)
    return code


def _module(command: str) -> ModuleType:
    return import_module(f"pyonednn_q.commands.{command}")


def branches(tree: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a tree's subcommands by name."""
    parsers: dict[str, argparse.ArgumentParser] = {}
    for action in tree._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            parsers |= action.choices
    return parsers


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
