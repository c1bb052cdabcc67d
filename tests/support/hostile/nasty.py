"""Values that nobody means: what an argument may be when a program went wrong, or means harm."""

from __future__ import annotations

import array
import datetime as dt
import decimal
import enum
import fractions
import itertools
import json
import pathlib
import random
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from support import foreign
from support.changed_json import changed
from support.hostile.worse import one_of

if TYPE_CHECKING:
    from support.hostile.worse import Rng


class Angry:
    """An object each of whose special methods raises an error of its own."""

    def _no(self, *_: Any, **__: Any) -> Any:
        msg = "not today"
        raise OSError(msg)

    __repr__ = __str__ = __format__ = __bool__ = __len__ = __iter__ = __index__ = __int__ = _no
    __float__ = __array__ = __getitem__ = __contains__ = __fspath__ = __call__ = _no

    def __hash__(self) -> int:
        msg = "no hash either"
        raise RuntimeError(msg)


class Lengthy:
    """A sequence that says it is endless."""

    def __len__(self) -> int:
        return 2**62

    def __getitem__(self, index: Any) -> int:
        return 1


class Shrinking(list[Any]):
    """A list whose length is not what it says."""

    def __len__(self) -> int:
        return -1  # noqa: PLE0303


class Wordy:
    """An object whose text is a million letters."""

    def __repr__(self) -> str:
        return "x" * 10**6


class Lying:
    """An object that says that it is of another class, and is an array of objects."""

    @property
    def __class__(self) -> Any:
        return int

    @__class__.setter
    def __class__(self, _: Any) -> None: ...

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.array([None, "a"], object)


class Indexed:
    """An object that becomes any integer."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class Whole(int):
    """A subclass of int."""


class Word(str):
    """A subclass of str whose text lies."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "None"


class Number(enum.IntEnum):
    """An enumeration of numbers."""

    ONE = 1


def _deep(levels: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(levels):
        inner = [inner]
    return inner


def _itself() -> list[Any]:
    values: list[Any] = [1]
    values.append(values)
    return values


def _own_keys() -> dict[Any, Any]:
    values: dict[Any, Any] = {"a": 1}
    values["a"] = values
    return values


def _angry_array() -> Any:
    values = np.empty(1, object)
    values[0] = Angry()
    return values


_RECORD = np.dtype([("a", "u1"), ("b", "f4")])

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 2**31, 2**63, -(2**63) - 1, 10**30, 10**5000, 0.0, -0.0,
    0.5, 1e-45, 1e39, 1e308, float("nan"), float("inf"), -float("inf"), 1j, "", "u8", "f32",
    "auto", "é\0", "\ud800", "1", "x" * 100_000, b"", b"u8", b"\xff" * 100_000, (), [], {},
    set(), Ellipsis, NotImplemented, int, type, object, np.float32, slice(3), range(3),
    range(10**18), fractions.Fraction(1, 3), decimal.Decimal("1.5"), decimal.Decimal("nan"),
    dt.date(2020, 1, 1), frozenset([1]), pathlib.Path("nowhere"), types, Number.ONE,
    Whole(3), Word("u8"), Word("x" * 5000), np.float64("nan"), np.int64(2**40), np.bool_(1),
    np.str_("s8"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.complex64(1),
)  # fmt: skip


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


NASTY: tuple[Callable[[], Any], ...] = (
    *map(_always, _VALUES),
    object, Angry, Lengthy, Shrinking, Wordy, Lying, foreign.NotCallable, foreign.RaisingArray,
    lambda: Indexed(3), lambda: Indexed(-(10**40)), lambda: foreign.Producer(np.ones(3, np.int8)),
    lambda: foreign.Raising(np.ones(3), BufferError("no")), lambda: Angry, lambda: lambda x: x,
    _itself, _own_keys, lambda: _deep(70), lambda: _deep(3000), lambda: [None],
    lambda: [[1], [2, 3]], lambda: [[1, 2], 3], lambda: ["a", 1], lambda: [float("nan")],
    lambda: [10**400], lambda: {1: 2}, lambda: {"a": Angry()}, lambda: [Angry()],
    lambda: (Wordy(),), lambda: [1] * 100_000, lambda: ["x" * 10_000] * 100,
    lambda: {str(i): i for i in range(10_000)}, lambda: {1, 2, 3}, lambda: (x for x in (1, 2)),
    itertools.count, lambda: iter("abc"), lambda: map(int, "1a"), lambda: memoryview(b"abc"),
    lambda: bytearray(b"abc"), lambda: array.array("d", [1.0]), lambda: np.array(3),
    lambda: np.array(1.5), lambda: np.array(None), lambda: np.array([]), lambda: np.empty((0, 3)),
    lambda: np.array(["a", "b"]), lambda: np.array([1, None], object), _angry_array,
    lambda: np.zeros(2, _RECORD), lambda: np.zeros(3, "M8[s]"), lambda: np.array([1 + 1j]),
    lambda: np.array([np.nan, 1.0]), lambda: np.array([np.inf]), lambda: np.array([True, False]),
    lambda: np.full((2, 2), 1e300), lambda: np.ones((1,) * 32),
    lambda: np.ma.masked_array([1, 2], [False, True]), lambda: np.asmatrix([[1, 2]]),
    lambda: np.arange(3)[::-1], lambda: np.broadcast_to(np.int8(1), (2**40,)),
    lambda: np.broadcast_to(np.float32(1), (2**25, 2**20)), lambda: np.zeros(3, ">f4"),
    lambda: np.zeros((2, 3), np.longdouble), lambda: np.array([1, 2], np.int8),
    lambda: np.random.default_rng(0), lambda: np.array([2**63], np.uint64),
    lambda: np.zeros(3, "V3"),
)  # fmt: skip


def nasty(rng: Rng, good: Any = None) -> Any:
    """Return such a value, sometimes inside something harmless, or in place of a part of `good`."""
    value = one_of(rng, NASTY)()
    if type(good) is str and good.startswith("{") and rng.random() < 0.7:
        seed = int(rng.integers(2**32))
        try:
            return changed(json.loads(good), random.Random(seed))
        except (json.JSONDecodeError, RecursionError):  # a text that was made worse already
            return value
    match int(rng.integers(12)):
        case 0:
            return [value]
        case 1:
            return (value, value)
        case 2:
            return {"src": value}
        case 3:
            return _with(good, value, rng)
        case _:
            return value


def _with(good: Any, value: Any, rng: Rng) -> Any:
    """Return something like `good` of which one part is `value`."""
    if type(good) is dict and good:
        return {**good, one_of(rng, list(good)): value}
    if type(good) in (list, tuple) and good:
        parts = list(good)
        parts[int(rng.integers(len(parts)))] = value
        return type(good)(parts)
    if type(good) is np.ndarray and good.ndim and 0 < good.size < 10_000:
        if rng.random() < 0.5:
            return good[..., :-1]
        many = np.empty(good.shape, object)
        many[...] = 1
        many[(0,) * good.ndim] = Angry() if isinstance(value, np.ndarray) else value
        return many
    if type(good) is str and good:
        at = int(rng.integers(len(good)))
        return good[:at] + one_of(rng, ("", "\0", "é", "[" * 3000, "-1", '"', "}")) + good[at + 1 :]
    return value
