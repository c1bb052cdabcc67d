"""Shapes: what operators made ready for the shapes of their sources, bounded over all of them.

A primitive for one more shape takes most of a megabyte, nearly all of it generated code. So all
operators of a process together keep a number of them and of bytes; the shapes used longest ago go.
The last shape of an operator stays with it, for its calls come here no more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar
from weakref import ref

from pyonednn_q.argument import whole

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ShapeStatistics:
    """Counts of what operators keep for the shapes of their sources.

    Attributes
    ----------
    held, held_bytes : int
        Shapes over all operators, and about how many bytes they take: scratch memory, maps, and
        512 KiB of generated code for each primitive, whose true size the library does not tell.
    limit, limit_bytes : int
        Largest number of shapes, and of bytes. The last shape of each operator stays in any case.
    dropped : int
        Shapes that went because others came.
    """

    held: int
    held_bytes: int
    limit: int
    limit_bytes: int
    dropped: int


class _Kept(Generic[Key, Value]):
    """A value of one operator, for one shape."""

    __slots__ = ("__weakref__", "key", "nbytes", "number", "owner", "value")

    def __init__(self, owner: Shapes[Key, Value], key: Key, value: Value, nbytes: int) -> None:
        self.owner, self.key = ref(owner), key
        self.value, self.nbytes = value, nbytes
        self.number = next(_NUMBERS)


class Shapes(Generic[Key, Value]):
    """Primitives that one operator keeps, by shape; they go with the operator.

    No lock is taken: a finalizer or a signal handler may come here at any time. Every change is one
    of a dict, which is whole; and who has got a value keeps it alive as long as it is used.
    """

    __slots__ = ("__weakref__", "_kept", "_last")

    def __init__(self) -> None:
        self._kept: dict[Key, _Kept[Key, Value]] = {}
        self._last: _Kept[Key, Value] | None = None

    def get(self, key: Key) -> Value | None:
        """Return the entry of a shape, which is now the last that was used, or ``None``."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept is not self._last:
            self._use(kept)
        return kept.value

    def add(self, key: Key, value: Value, nbytes: int) -> Value:
        """Keep a value of about that many bytes; return it, or what somebody else kept first."""
        kept = self._kept.setdefault(key, _Kept(self, key, value, nbytes))
        _ORDER[kept.number] = ref(kept)
        self._use(kept)
        _shrink()
        return kept.value

    @property
    def last(self) -> Value | None:
        """Entry that was used last, or ``None``."""
        last = self._last
        return None if last is None else last.value

    def clear(self) -> None:
        """Let go of everything."""
        self._last = None
        self._kept.clear()

    def __iter__(self) -> Iterator[Key]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[type[Shapes[Key, Value]], tuple[()]]:
        # A copy starts with nothing: what is kept belongs to one operator of one process.
        return type(self), ()

    def drop(self, kept: _Kept[Key, Value]) -> bool:
        """Let go of one, unless it was the last that was used; tell whether it went."""
        return kept is not self._last and self._kept.pop(kept.key, None) is kept

    def _use(self, kept: _Kept[Key, Value]) -> None:
        for used in (self._last, kept):
            # Not one that was dropped meanwhile.
            if used is not None and _ORDER.pop(used.number, None) is not None:
                _ORDER[used.number] = ref(used)
        self._last = kept


_NUMBERS = count()
_ORDER: dict[int, ref[_Kept[Any, Any]]] = {}  # those used longest ago first; they may be gone
_limits = {"count": 1024, "nbytes": 1 << 30, "dropped": 0}


def shape_statistics() -> ShapeStatistics:
    """Return counts of what operators keep for the shapes of their sources."""
    kept, nbytes = _living()
    return ShapeStatistics(
        len(kept), nbytes, _limits["count"], _limits["nbytes"], _limits["dropped"]
    )


def limit_shapes(count: int | None = None, nbytes: int | None = None) -> None:
    """Set how many shapes all operators keep together, and how many bytes they may take.

    Parameters
    ----------
    count : int, optional
        Shapes, 1024 at first.
    nbytes : int, optional
        Bytes of all shapes together, as `shape_statistics` counts them; 1 GiB at first.

    Raises
    ------
    ArgumentError
        A limit that is no whole number, or below 0.
    """
    for name, value in (("count", count), ("nbytes", nbytes)):
        if value is not None:
            _limits[name] = whole(name, value, lo=0)
    _shrink()


def clear_shapes() -> None:
    """Let go of what operators keep, but for the last shape of each."""
    for kept in _living()[0]:
        _drop(kept)


def _living() -> tuple[list[_Kept[Any, Any]], int]:
    """Return what is kept, longest ago first, and how many bytes that takes."""
    living, nbytes = [], 0
    for number in list(_ORDER):
        one = _ORDER.get(number)
        kept = None if one is None else one()
        owner = None if kept is None else kept.owner()
        if kept is None or owner is None or owner._kept.get(kept.key) is not kept:  # noqa: SLF001
            _ORDER.pop(number, None)
        else:
            living.append(kept)
            nbytes += kept.nbytes
    return living, nbytes


def _shrink() -> None:
    living, nbytes = _living()
    excess, excess_bytes = len(living) - _limits["count"], nbytes - _limits["nbytes"]
    for kept in living:
        if excess <= 0 and excess_bytes <= 0:
            return
        if _drop(kept):
            excess -= 1
            excess_bytes -= kept.nbytes
            _limits["dropped"] += 1


def _drop(kept: _Kept[Any, Any]) -> bool:
    owner = kept.owner()
    if owner is None or not owner.drop(kept):
        return False
    _ORDER.pop(kept.number, None)
    return True
