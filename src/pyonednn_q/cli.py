"""The command ``pyonednn-q``: one tree of parsers, one set of exit codes.

Each subcommand is a module with ``add_arguments(parser)`` and ``run(options) -> int``, which is
imported when it is asked for. Exit codes are the same everywhere:

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
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

from pyonednn_q import __version__
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.models import model_arguments
from pyonednn_q.shown import meant, printable, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import SupportsWrite

    from pyonednn_q.primitive.isa import Facts

__all__ = ["main", "parser"]


# What a subcommand is for, and the module that has its arguments and runs it.
_COMMANDS = {
    "doctor": ("which oneDNN is used, whether it works, and what to do if not", "doctor"),
    "explain": (
        "how a layer, or an ONNX model, becomes attributes and post-ops of oneDNN, and why",
        "explain.main",
    ),
    "inspect": (
        "which kernels run, in which layouts, with which copies around",
        "bench.inspections",
    ),
    "saturation": (
        "which channels can saturate in 16 bits where there is no VNNI",
        "bench.verdicts",
    ),
    "why": (
        "which arithmetic gives another runtime's codes, and what differs from ours",
        "inspection.why",
    ),
    "demo": ("classify handwritten digits in FP32 and INT8, and compare the two", "demo"),
    "bench": (
        "measure INT8 against FP32: known networks, your own shapes, an ONNX model",
        "bench.command",
    ),
    "compare": ("compare two runs of bench: what became slower, what faster", "bench.compare"),
    "run": ("run an ONNX model on arrays", "models.run_model"),
    "quantize": (
        "make an INT8 model of an ONNX model of floats and samples, and check it",
        "models.quantize_model",
    ),
    "diff": (
        "which node of an ONNX model differs from onnxruntime's first, and by which arithmetic",
        "models.diff_model",
    ),
    "completion": ("print what makes a shell complete this command", ""),
}

# What takes models, too: who adds the arguments for those, and the module that runs one.
_OF_MODELS = {
    "explain": ("add_explain", "explain_model"),
    "bench": ("add_bench", "bench_model"),
}

UNUSABLE = 2
# As shells tell of programs that a signal ended: SIGINT, and SIGPIPE.
INTERRUPTED, NO_READER = 130, 141
_SHELLS = ("bash", "zsh", "tcsh")
_CODES = (
    "exit codes: 0 fine, 1 a finding, 2 bad use or what cannot be read or written, "
    "130 interrupted, 141 nobody reads"
)


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
            line = printable(str(error))
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
    for name, (purpose, module) in _COMMANDS.items():
        branch = commands.add_parser(
            name, help=purpose, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if command not in {None, name}:
            continue
        if not module:
            branch.description = _COMPLETION
            branch.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
            continue
        room = import_module(f"pyonednn_q.{module}")
        branch.description = room.__doc__
        room.add_arguments(branch)
        if name in _OF_MODELS:
            getattr(model_arguments, _OF_MODELS[name][0])(branch)
    return tree


class _Parser(argparse.ArgumentParser):
    """Takes options by their whole names, and asks what a wrong word was meant to be.

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


_COMPLETION = """\
Print a script that lets a shell complete this command (needs shtab):

  bash  source <(pyonednn-q completion bash)
  zsh   pyonednn-q completion zsh > a file _pyonednn-q in a folder of $fpath
  tcsh  pyonednn-q completion tcsh > a file to source"""


def _parsed(tree: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    try:
        options, strange = tree.parse_known_args(words)
        if strange:  # said with the usage of the subcommand
            branch = _branches(tree).get(options.command, tree)
            names = [name for action in branch._actions for name in action.option_strings]  # noqa: SLF001
            said = [f"{word}{meant(word.partition('=')[0], names)}" for word in strange]
            branch.error(f"unrecognized arguments: {' '.join(said)}")
    except SystemExit:
        sys.stdout.flush()  # the help, which nobody may want to read
        raise
    return options


def _run(command: str, options: argparse.Namespace) -> int:
    if command == "completion":
        print(_completion(options.shell))
        return 0
    if command in _OF_MODELS:
        if model_arguments.is_model(options):
            model_room = import_module(f"pyonednn_q.models.{_OF_MODELS[command][1]}")
            done: int = model_room.run(options)
            return done
        model_arguments.refuse_without_model(options)
    room = import_module(f"pyonednn_q.{_COMMANDS[command][1]}")
    # explain and native are siblings, and those never import each other: this is above both.
    extras = {"here": _facts_here} if command == "explain" else {}
    code: int = room.run(options, **extras)
    return code


def _completion(shell: str) -> str:
    if find_spec("shtab") is None:
        raise ArgumentError("completion", "no shtab", "shtab: pip install 'shtab>=1.7'")
    import shtab

    tree = parser()
    for action in _actions(tree):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE  # which shtab reads
    script: str = shtab.complete(tree, shell)
    return script


def _actions(tree: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    yield from tree._actions  # noqa: SLF001 - as shtab itself walks a parser
    for branch in _branches(tree).values():
        yield from _actions(branch)


def _branches(tree: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
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


def _facts_here() -> Facts:
    from pyonednn_q.native import runtime

    return runtime.facts()
