"""Typed reading of what a user wrote, where every complaint names the key by its path."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.reading import told
from pyonednn_q.shown import meant, shown

__all__ = ["DescriptionTable", "at", "whole_numbers"]

Name = TypeVar("Name", bound=str)

_NONE: Mapping[str, str] = {}
_ITSELF = {"value": ""}


class DescriptionTable:
    """The keys and values of one table, each to be taken once, under its path.

    Parameters
    ----------
    value : object
        Value at the path; refused unless it is a table.
    path : str
        Path of the value, for example ``chain[2]``; empty at the top.
    """

    def __init__(self, value: object, path: str = "") -> None:
        if not isinstance(value, dict):
            # Another mapping is no table here, and "got a table" would say nothing.
            came = shown(value) if isinstance(value, Mapping) else told(value)
            raise ArgumentError(path or "description", came, "a table of keys")
        self._values: dict[object, object] = value
        self._asked: list[str] = []
        self.here = path

    def path(self, key: str) -> str:
        """Return the path of a key of this table."""
        return f"{self.here}.{key}" if self.here else key

    def get(self, key: str) -> object:
        """Return the value of a key, or ``None``."""
        if key not in self._asked:
            self._asked.append(key)
        return self._values.get(key)

    def end(self) -> None:
        """Refuse unknown keys."""
        for key in self._values:
            name = key if isinstance(key, str) else shown(key)
            if name in self._asked:
                continue
            near = difflib.get_close_matches(name, self._asked, 1)
            hint = f"did you mean {near[0]}? Keys are " if near else "one of "
            raise ArgumentError(self.path(name), "an unknown key", hint + ", ".join(self._asked))

    def table(self, key: str) -> DescriptionTable:
        """Return the table under a key, or an empty one."""
        value = self.get(key)
        return DescriptionTable({} if value is None else value, self.path(key))

    def items(self, key: str) -> list[tuple[str, object]]:
        """Return the items of the list under a key, each with its path."""
        value = self.get(key)
        if value is None:
            return []
        if type(value) is not list:  # as parsers make them
            raise ArgumentError(self.path(key), told(value), "a list")
        return [(f"{self.path(key)}[{index}]", item) for index, item in enumerate(value)]

    def text(self, key: str, default: str | None = None) -> str:
        """Return the text under a key."""
        value = self._or(key, default, "a text")
        if not isinstance(value, str):
            raise ArgumentError(self.path(key), told(value), "a text")
        return value

    def choice(self, key: str, allowed: Iterable[Name], default: Name | None = None) -> Name:
        """Return the text under a key, one of those allowed."""
        names = list(allowed)
        value = self._or(key, default, _one_of(names, None))
        if isinstance(value, str) and value in names:
            return names[names.index(value)]
        raise ArgumentError(self.path(key), told(value), _one_of(names, value))

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self._or(key, default, "true or false")
        if not isinstance(value, bool):
            raise ArgumentError(self.path(key), told(value), "true or false")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return the number under a key."""
        value = self._or(key, default, "a number")
        if not _is_number(value):
            raise ArgumentError(self.path(key), told(value), "a number")
        return _float(value, self.path(key))

    def whole(self, key: str, default: int | None = None, *, lo: int = -(2**31)) -> int:
        """Return the whole number under a key."""
        wanted = "a whole number" if lo < 0 else f"a whole number from {lo} on"
        value = self._or(key, default, wanted)
        if not _is_whole(value) or not lo <= value < 2**31:
            raise ArgumentError(self.path(key), told(value), wanted)
        return int(value)

    def dims(self, key: str, *, lo: int = 1) -> tuple[int, ...]:
        """Return the list of whole numbers under a key, none of them below `lo`."""
        return whole_numbers(self.get(key), self.path(key), lo=lo)

    def vec(self, key: str, channels: int, default: float | None = None) -> Vec:
        """Return the constant under a key: one number, one per channel, or some that repeat."""
        path = self.path(key)
        value = self._or(key, default, f"a number, or {channels} of them")
        if isinstance(value, dict):
            cycle = DescriptionTable(value, path)
            values = _numbers(cycle.get("cycle"), cycle.path("cycle"))
            cycle.end()
            if len(values) > channels:
                got = f"{len(values)} values to repeat"
                raise ShapeError(cycle.path("cycle"), got, f"at most {channels}, the channels")
            with at(path, _ITSELF):
                return Vec(np.resize(np.array(values), channels))
        values = _numbers(value if type(value) is list else [value], path)
        if len(values) not in (1, channels):
            wanted = f"1, or {channels} as there are channels"
            raise ShapeError(path, f"{len(values)} values", wanted)
        with at(path, _ITSELF):
            return Vec(values)

    def _or(self, key: str, default: object, wanted: str) -> Any:  # noqa: ANN401 - anything
        value = self.get(key)
        if value is None:
            if default is None:
                raise ArgumentError(self.path(key), "nothing", wanted)
            return default
        return value


@contextmanager
def at(path: str, names: Mapping[str, str] = _NONE) -> Iterator[None]:
    """Complain by path about what a constructor refuses.

    Parameters
    ----------
    path : str
        Path of its arguments.
    names : mapping
        Keys, by the name of the argument, where the two differ; an empty one is the path itself.
    """
    try:
        yield
    except ArgumentError as error:
        key = names.get(error.argument, error.argument)
        where = ".".join(part for part in (path, key) if part)
        raise type(error)(where, error.got, error.wanted) from error


def whole_numbers(value: object, path: str, *, lo: int) -> tuple[int, ...]:
    """Return a list of whole numbers, none of them below `lo`, each of 32 bits at most."""
    if type(value) is not list or not value:
        raise ShapeError(path, told(value), "a list of whole numbers")
    for index, item in enumerate(value):
        if not _is_whole(item) or not lo <= item < 2**31:
            where = f"{path}[{index}]"
            raise ShapeError(where, told(item), f"a whole number from {lo} on")
    return tuple(value)


def _one_of(names: Sequence[str], value: object) -> str:
    return f"one of {', '.join(names)}{meant(shown(value).strip(chr(39)), names)}"


def _is_whole(value: object) -> bool:
    kind = type(value)  # an object may lie about its class
    return issubclass(kind, int) and kind is not bool


def _is_number(value: object) -> bool:
    kind = type(value)
    return issubclass(kind, (int, float)) and kind is not bool


def _numbers(value: object, path: str) -> list[float]:
    if type(value) is not list or not value:
        raise ArgumentError(path, told(value), "a list of numbers")
    for index, item in enumerate(value):
        if not _is_number(item):
            where = path if len(value) == 1 else f"{path}[{index}]"
            raise ArgumentError(where, told(item), "a number")
    return [_float(item, path) for item in value]


def _float(value: float, path: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(path, told(value), "one that float64 can hold") from None
