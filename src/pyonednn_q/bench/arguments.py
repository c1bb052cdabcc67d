"""How words of the command line become values."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import TypeVar

from pyonednn_q.errors import Error

__all__ = ["choice", "listed", "pattern", "percent", "positive", "single"]

T = TypeVar("T")


def single(kind: Callable[[str], T]) -> Callable[[str], T]:
    """Return a converter of one word; what `kind` refuses is an error of usage."""

    def convert(text: str) -> T:
        try:
            return kind(text)
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
