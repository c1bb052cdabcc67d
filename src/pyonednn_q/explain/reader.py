"""Constants in the tables of a description, and complaints that name the key by its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np
from msgspec import Meta, Struct

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.reading import converted, place

__all__ = [
    "Const",
    "Cycle",
    "DescriptionTable",
    "Dims",
    "Numbers",
    "Size",
    "Whole",
    "at",
    "constant",
    "read_table",
]

T = TypeVar("T")

Whole = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
Size = Annotated[int, Meta(ge=1, lt=2**31)]
Dims = Annotated[list[Size], Meta(min_length=1)]
Numbers = Annotated[list[float], Meta(min_length=1)]

_NONE: Mapping[str, str] = {}
_LEVELS = 4  # of tables in tables, where a key may be null
_SHAPE = re.compile(r"(dims|(stride|dilation|padding)(?=\[))(\[\d+\])*$")


class DescriptionTable(Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of keys: fields are what it may have, and what stands there."""


class Cycle(DescriptionTable):
    """Constants of the first channels, which repeat for the others."""

    cycle: Numbers


Const: TypeAlias = float | Numbers | Cycle


def read_table(value: object, kind: type[T]) -> T:
    """Return what the parsed file says; a key that is null is left out, unless no table has it.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the key by its path, what stood there, and what would do.
    """
    try:
        return converted("", _said(value, _LEVELS), kind)
    except ArgumentError as error:
        where = error.argument or "description"
        is_shape = _SHAPE.search(where) and error.got != "an unknown key"
        refused = ShapeError if is_shape else type(error)
        raise refused(where, error.got, error.wanted) from error.__cause__


def _said(value: object, levels: int) -> Any:  # noqa: ANN401 - as it came
    if type(value) is list:
        return [_said(item, levels - 1) for item in value] if levels else value
    if type(value) is not dict or not levels:
        return value
    said = (key for key, item in value.items() if item is not None or key not in _keys())
    return {key: _said(value[key], levels - 1) for key in said}


@cache
def _keys() -> frozenset[str]:
    """Return the keys of all tables."""
    tables: list[type[DescriptionTable]] = [DescriptionTable]
    for table in tables:  # grows on the way
        tables += table.__subclasses__()
    return frozenset(key for table in tables for key in table.__struct_encode_fields__)


def constant(value: object, path: str, channels: int) -> Any:  # noqa: ANN401 - as it came, or a Vec
    """Return a value; of one for each output channel, or some that repeat, a vector."""
    if not isinstance(value, (list, Cycle)):
        return value
    if isinstance(value, list):
        values = value
        if len(values) not in (1, channels):
            wanted = f"1, or {channels} as there are channels"
            raise ShapeError(path, f"{len(values)} values", wanted)
    elif len(value.cycle) > channels:
        got = f"{len(value.cycle)} values to repeat"
        raise ShapeError(place(path, "cycle"), got, f"at most {channels}, the channels")
    else:
        values = list(np.resize(np.array(value.cycle), channels))
    with at(path, {"value": ""}):
        return Vec(values)


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
        where = place(path, names.get(error.argument, error.argument))
        raise type(error)(where, error.got, error.wanted) from error
