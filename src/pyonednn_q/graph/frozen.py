"""Values that cannot be written: equality by value, copies and pickles, of arrays, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

import numpy as np

__all__ = ["Restored", "equal", "read_only", "reduced"]

Restored = tuple[Callable[..., Any], tuple[Any, ...]]


def reduced(value: Any) -> Restored:  # noqa: ANN401 - any dataclass
    """Return what pickle and copy make a frozen dataclass of again, its mappings read-only."""
    known = [getattr(value, each.name) for each in fields(value)]
    plain = [dict(each) if isinstance(each, MappingProxyType) else each for each in known]
    return _restored, (type(value), plain)


def _restored(kind: Callable[..., Any], known: list[Any]) -> Any:  # noqa: ANN401
    for each in known:
        if isinstance(each, dict):
            for array in each.values():
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
    return kind(*(MappingProxyType(each) if isinstance(each, dict) else each for each in known))


def read_only(value: Any) -> Any:  # noqa: ANN401
    """Return a read-only value: writable arrays are copied."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.setflags(write=False)
    return value


def equal(one: Any, other: Any) -> bool:  # noqa: ANN401 - dataclasses
    """Tell whether two are of one class, and all that they are compared by is equal."""
    if type(one) is not type(other):
        return False
    pairs = (
        (getattr(one, each.name), getattr(other, each.name)) for each in fields(one) if each.compare
    )
    return all(_same(*pair) for pair in pairs)


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401
    """Tell whether two values are equal, element by element; not-a-number equals itself."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        is_alike = type(one) is type(other) and one.dtype == other.dtype
        return is_alike and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124
