"""The table of options of the command line: one row each, with the commands that take it.

Options of problems, layers and models are in files of their own, because these import other rooms;
`rows_of` imports only the files that a command needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyonednn_q.commands.words import new_file, within
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

__all__ = ["OF_MODELS", "OptionRow", "add_options", "is_model", "refuse_others", "rows_of"]

# The demo's digits for testing, and samples of each time.
HELD_OUT, ROUNDS = 449, 100
SHELLS = ("bash", "zsh", "tcsh")
OF_MODELS = "of a model, a path that ends in .onnx"


@dataclass(frozen=True, slots=True)
class OptionRow:
    """An option, or an argument by its place.

    Attributes
    ----------
    name : str
        ``--name`` of an option, ``name`` of an argument.
    commands : tuple of str
        Subcommands that take it.
    help : str
        One line of help: what it does.
    only : str
        ``"model"`` or ``"problem"``: a command that takes both refuses the option for the other
        one. Empty: for both.
    groups : mapping of str to str
        Heading in the help of a subcommand, by subcommand.
    how : mapping of str to object
        More keywords of argparse's `add_argument`: type, choices, default, metavar.
    """

    name: str
    commands: tuple[str, ...]
    help: str | None = None
    only: Literal["", "model", "problem"] = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name of its value among what was parsed."""
        return self.name.removeprefix("--").replace("-", "_")


_DEFAULT = "(default: %(default)s)"
FLAG = {"action": "store_true"}
_ALONE = (
    OptionRow(
        "shell", ("completion",), ", ".join(SHELLS), how={"choices": SHELLS, "metavar": "SHELL"}
    ),
    OptionRow("file", ("why",), "what numpy.savez wrote", how={"type": Path, "metavar": "FILE"}),
    OptionRow(
        "--batch",
        ("demo",),
        f"digits in a call {_DEFAULT}",
        how={"type": within(range(1, HELD_OUT + 1)), "nargs": "+", "default": [HELD_OUT, 1]},
    ),
    OptionRow(
        "--rounds",
        ("demo",),
        f"samples of each time {_DEFAULT}",
        how={"type": within(range(1, 100_001)), "default": ROUNDS},
    ),
    OptionRow(
        "--seed",
        ("demo",),
        f"seed of the fit {_DEFAULT}",
        how={"type": within(range(2**32)), "default": 0},
    ),
)
# Last in the help of each command: it means the same for all of them.
_LAST = (
    OptionRow(
        "--json",
        (
            *("doctor", "explain", "inspect", "saturation", "why", "bench", "compare"),
            *("run", "diff", "quantize"),
        ),
        "print JSON instead",
        groups={"bench": "report"},
        how=FLAG,
    ),
    OptionRow(
        "--html",
        ("explain", "inspect", "saturation", "bench", "diff", "quantize"),
        "write a page as well",
        groups={"bench": "report"},
        how={"type": new_file, "metavar": "FILE"},
    ),
)
_TABLES = {
    "explain": ("layer_options", "model_options"),
    **dict.fromkeys(("inspect", "saturation", "compare"), ("problem_options",)),
    "bench": ("problem_options", "model_options"),
    **dict.fromkeys(("run", "quantize", "diff"), ("model_options",)),
}


def rows_of(command: str) -> list[OptionRow]:
    """Return the options of a subcommand, in the order of its help."""
    rows = list(_ALONE)
    for name in _TABLES.get(command, ()):
        rows += import_module(f"pyonednn_q.commands.{name}").OPTIONS
    return [row for row in (*rows, *_LAST) if command in row.commands]


def add_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a subcommand to its parser."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for row in rows_of(command):
        heading = row.groups.get(command, "")
        if heading and heading not in groups:
            groups[heading] = parser.add_argument_group(heading)
        (groups[heading] if heading else parser).add_argument(row.name, help=row.help, **row.how)


def is_model(options: argparse.Namespace) -> bool:
    """Return whether the argument of a command is the file of a model."""
    if hasattr(options, "model"):
        return True
    what = getattr(options, "layer", None) or getattr(options, "what", None) or ""
    words = [what] if isinstance(what, str) else what
    return any(word.endswith(".onnx") for word in words)


def refuse_others(command: str, options: argparse.Namespace) -> None:
    """Refuse files in no folder, before anything is measured, and options for something else.

    The argument of a command is a model, or something else; some options are for one of them.

    Raises
    ------
    ArgumentError
        Naming the option.
    """
    has_model = is_model(options)
    for row in rows_of(command):
        path = getattr(options, row.key, None) if row.how.get("type") is new_file else None
        if path is not None and (not path.absolute().parent.is_dir() or path.is_dir()):
            raise ArgumentError(row.name, shown(str(path)), "a name in a folder that exists")
        if row.only != ("problem" if has_model else "model"):
            continue
        usual = row.how.get("default", False if row.how.get("action") == "store_true" else None)
        if getattr(options, row.key, usual) != usual:
            got = "a model" if has_model else "no model"
            other = "no such option for models: see --help"
            wanted = other if has_model else "a path that ends in .onnx, or no such option"
            raise ArgumentError(row.name, got, wanted)
