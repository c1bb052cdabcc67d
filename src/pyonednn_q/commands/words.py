"""Conversion of words of the command line to values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.shown import shown

__all__ = [
    "choice",
    "dims_of",
    "listed",
    "new_file",
    "pattern",
    "percent",
    "positive",
    "reading_of",
    "single",
    "within",
]

T = TypeVar("T")
_DIMS = re.compile(r"(?P<name>.+)=(?P<lengths>\d{1,12}(?:x\d{1,12})*)?", re.DOTALL)
_MOST_DIMS = 32


def single(kind: Callable[[str], T]) -> Callable[[str], T]:
    """Return a converter of one word; what `kind` refuses is an error of usage."""

    def convert(text: str) -> T:
        try:
            return kind(text)
        except ArgumentError as error:  # argparse names the option
            message = f"got {error.got}; wanted {error.wanted}"
            raise argparse.ArgumentTypeError(message) from None
        except Error as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def listed(kind: Callable[[str], T]) -> Callable[[str], tuple[T, ...]]:
    """Return a converter of words joined by commas; what `kind` refuses is an error of usage."""
    one = single(kind)

    def convert(text: str) -> tuple[T, ...]:
        return tuple(dict.fromkeys(one(part) for part in text.split(",")))

    return convert


def positive(text: str) -> int:
    """Return a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is no whole number from 1"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def percent(text: str) -> float:
    """Return a part of 1 from a number of per cent, from 0 and below 100."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 100:
        message = f"{text!r} is no number from 0 and below 100"
        raise argparse.ArgumentTypeError(message)
    return number / 100


def choice(argument: str, allowed: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that refuses what is not allowed."""

    def convert(text: str) -> str:
        # Here, as `doctor` parses its arguments where NumPy does not load.
        from pyonednn_q.argument import one_of

        return one_of(argument, text, allowed)

    return convert


def pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        message = f"{text!r} is no regular expression: {error}"
        raise argparse.ArgumentTypeError(message) from None


def within(numbers: range) -> Callable[[str], int]:
    """Return a converter of whole numbers from a range."""

    def whole(text: str) -> int:
        if not text.isdecimal() or int(text) not in numbers:
            message = f"{text!r} is no whole number from {numbers[0]} to {numbers[-1]}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return whole


def new_file(text: str) -> Path:
    """Return the path of a file to be written; `refuse_others` wants its folder to be there."""
    return Path(text)


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


def reading_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return how a model is read: keywords of `models.model_file.read`."""
    return {
        "dims": dims_of(options.dims),
        "exact_rounding": options.exact_rounding,
        "saturation": options.saturation,
    }
