"""What commands on a model take from the command line; nothing here imports what runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyonednn_q.acc import SATURATIONS
from pyonednn_q.bench.arguments import positive
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    import argparse

__all__ = [
    "add_bench",
    "add_dims",
    "add_explain",
    "add_input",
    "add_model",
    "dims_of",
    "is_model",
    "refuse",
    "refuse_without_model",
]

_DIMS = re.compile(r"(?P<name>.+)=(?P<lengths>\d{1,12}(?:x\d{1,12})*)?", re.DOTALL)
_MOST_DIMS = 32
_OF_MODELS: Mapping[str, object] = {
    "dims": [],
    "exact_rounding": False,
    "saturation": "f32",
    "input": None,
    "seed": 0,
    "callers": 1,
}


def is_model(options: argparse.Namespace) -> bool:
    """Tell whether a command that takes other things, too, was given a model's file."""
    what = getattr(options, "layer", None) or getattr(options, "what", None) or ""
    words = [what] if isinstance(what, str) else what
    return any(word.endswith(".onnx") for word in words)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the file of a model, and how it is read."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    _add_reading(parser)


def add_input(parser: argparse._ActionsContainer) -> None:
    """Add the file of a model's inputs; random ones where there is none."""
    parser.add_argument(
        "--input",
        type=Path,
        metavar="FILE",
        help="inputs by name, as numpy.savez writes them (default: random ones)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of random inputs (default: %(default)s)"
    )


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add what `explain` takes for a model only."""
    _add_reading(parser.add_argument_group("of a model, a path that ends in .onnx"))


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Add what `bench` takes for a model only."""
    group = parser.add_argument_group("of a model, a path that ends in .onnx")
    _add_reading(group)
    add_input(group)
    group.add_argument(
        "--callers",
        type=positive,
        default=1,
        metavar="N",
        help="measure N calls at once, too, each on --threads (default: one after the other)",
    )


def add_dims(parser: argparse._ActionsContainer) -> None:
    """Add the lengths that a model leaves open."""
    parser.add_argument(
        "--dims",
        action="append",
        default=[],
        metavar="NAME=LENGTHS",
        help="what the model leaves open: of a symbol, batch=1, or an input, x=1x3x8x8; repeatable",
    )


def _add_reading(parser: argparse._ActionsContainer) -> None:
    add_dims(parser)
    parser.add_argument(
        "--exact-rounding",
        action="store_true",
        help="round before a zero point is added, as ONNX does",
    )
    parser.add_argument(
        "--saturation",
        choices=SATURATIONS,
        default="f32",
        help="what becomes of layers whose weights may saturate where there is no VNNI",
    )


def dims_of(texts: list[str]) -> dict[str, Any]:
    """Return the lengths of symbols and inputs that --dims names.

    Raises
    ------
    ArgumentError
        A text that is not NAME=LENGTHS.

    Examples
    --------
    >>> dims_of(["batch=1", "x=1x3x224x224"])
    {'batch': 1, 'x': (1, 3, 224, 224)}
    """
    dims: dict[str, Any] = {}
    for text in texts:
        match = _DIMS.fullmatch(text)
        lengths = () if match is None else _lengths(match["lengths"])
        if match is None or len(lengths) > _MOST_DIMS:
            raise ArgumentError("--dims", shown(text), "NAME=LENGTHS: batch=1, x=1x3x224x224")
        dims[match["name"]] = lengths[0] if len(lengths) == 1 else lengths
    return dims


def _lengths(text: str | None) -> tuple[int, ...]:
    return tuple(int(length) for length in text.split("x")) if text else ()


def refuse_without_model(options: argparse.Namespace) -> None:
    """Refuse what only models take, where a command was given something else.

    Raises
    ------
    ArgumentError
        Naming the option.
    """
    for name, value in _OF_MODELS.items():
        if getattr(options, name, value) != value:
            wanted = "a path that ends in .onnx, or no such option"
            option = f"--{name.replace('_', '-')}"
            raise ArgumentError(option, "no model", wanted)


def refuse(options: argparse.Namespace, usual: Mapping[str, object]) -> None:
    """Refuse options that say nothing about a model.

    Parameters
    ----------
    options : Namespace
        What the parser made of the command line.
    usual : mapping of str to object
        What such options are where nobody gave them.

    Raises
    ------
    ArgumentError
        Naming the option.
    """
    for name, value in usual.items():
        if getattr(options, name) != value:
            option = f"--{name.replace('_', '-')}"
            raise ArgumentError(option, "a model", "no such option for models: see --help")
