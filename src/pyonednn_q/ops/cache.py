"""The operators behind the functional calls: made once, found again by what they were made of.

A call is known by the kind of operator, its options, and where weights and bias lie: then they are
compared with copies of what they held, unless nothing can write them. Whatever is not found so is
looked for by the content of weights and bias.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from operator import is_
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyonednn_q.argument import whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.native import runtime
from pyonednn_q.native.runtime import Lock
from pyonednn_q.ops.arrays import as_array

if TYPE_CHECKING:
    from pyonednn_q.ops.operator import Operator

Key: TypeAlias = tuple[Hashable, ...]
Make: TypeAlias = "Callable[..., Operator]"

_CALLS = 8  # calls, and ways to write options, that are remembered for each operator that may be


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Counts of the cache of operators.

    Attributes
    ----------
    hits, misses : int
        Calls that found their operator, and calls that made one.
    size, limit : int
        Operators held, and how many may be.
    compared_bytes : int
        Bytes of weights and biases that calls compared with copies, because they can be written.
        Constant ones are not compared.
    """

    hits: int
    misses: int
    size: int
    limit: int
    compared_bytes: int


@dataclass(eq=False, slots=True)
class _Options:
    """Options of a call: one object for all that are equal."""

    key: Key
    values: dict[str, object]


@dataclass(eq=False, slots=True)
class _Made:
    """An operator, and copies of what it was made of."""

    operator: Operator
    wei: Array
    bias: Array | None
    used: int = 0


class _Seen:
    """Weights or a bias of a call, where they lay."""

    __slots__ = ("constant", "copy")

    def __init__(self, array: Array, copy: Array) -> None:
        self.copy = copy
        # Kept while nothing can write it: its memory stays its own.
        self.constant = array if _is_constant(array) else None


_Call: TypeAlias = tuple[_Made, tuple[_Seen, ...]]


class OperatorCache:
    """Operators by what they were made of, the least recently used dropped first."""

    def __init__(self) -> None:
        self._limit = 256  # operators; `limit` changes it
        self._lock = Lock()
        self._clock = count()
        self.clear()

    def find(
        self, make: Make, wei: object, bias: object, options: dict[str, object]
    ) -> Operator | None:
        """Return the operator of a known call with these very options, or ``None``.

        Where it is ``None``, `operator` answers.
        """
        as_given = (*options, *map(id, options.values()))
        written = self._written.get(as_given)
        if written is None or type(wei) is not np.ndarray:
            return None
        if bias is not None and type(bias) is not np.ndarray:
            return None
        return self._known(make, wei, bias, written[0])

    def operator(
        self, make: Make, wei: object, bias: object, options: dict[str, object]
    ) -> Operator:
        """Return the operator ``make(wei, bias, **options)``, made now if it is new."""
        wei_array = as_array("wei", wei)
        bias_array = None if bias is None else as_array("bias", bias)
        key = tuple((name, _frozen(name, value)) for name, value in options.items())
        values = {name: _unchanging(value) for name, value in options.items()}
        with self._lock.held:
            known = self._options.setdefault(key, _Options(key, values))
            if all(map(is_, values.values(), options.values())):
                # By place, which is theirs while they are kept.
                as_given = (*options, *map(id, options.values()))
                self._written[as_given] = known, values
        kept = self._known(make, wei_array, bias_array, known)
        if kept is None:
            kept = self._by_content(make, wei_array, bias_array, known)
        with self._lock.held:
            self._shrink()
        return kept

    def info(self) -> CacheInfo:
        """Return counts of the cache."""
        return CacheInfo(self._hits, self._misses, len(self._made), self._limit, self._compared)

    def limit(self, size: int) -> None:
        """Set how many operators are held; those used longest ago go."""
        self._limit = whole("size", size, lo=0)
        with self._lock.held:
            self._shrink()

    def clear(self) -> None:
        """Forget all operators, and how often they were found."""
        with self._lock.held:
            self._made: dict[Key, _Made] = {}
            self._forget_calls()
            self._hits = self._misses = self._compared = 0

    def _known(
        self, make: Make, wei: Array, bias: Array | None, options: _Options
    ) -> Operator | None:
        call = self._calls.get((make, options, _place(wei), None if bias is None else _place(bias)))
        if call is None:
            return None
        entry, seen = call
        if not self._is_same(seen[0], wei):
            return None
        if bias is not None and not self._is_same(seen[1], bias):
            return None
        self._hits += 1
        entry.used = next(self._clock)
        return entry.operator

    def _is_same(self, seen: _Seen, array: Array) -> bool:
        """Tell whether an array holds what lay there when it was seen, byte by byte."""
        is_constant = _is_constant(array)
        if is_constant and seen.constant is not None:
            return True
        self._compared += array.nbytes
        same: bool = runtime.core.same_bytes(array, seen.copy)
        seen.constant = array if same and is_constant else None
        return same

    def _by_content(
        self, make: Make, wei: Array, bias: Array | None, options: _Options
    ) -> Operator:
        # Of a copy: what is made, and looked for from now on, is what was seen at one time.
        kept = _kept("wei", wei)
        kept_bias = None if bias is None else _kept("bias", bias)
        key = (make, _digest(kept), None if kept_bias is None else _digest(kept_bias), options.key)
        entry = self._made.get(key)
        if entry is None:
            new = _Made(make(kept, kept_bias, **options.values), kept, kept_bias)
            self._misses += 1
            entry = self._made.setdefault(key, new)
        else:
            self._hits += 1
        entry.used = next(self._clock)
        seen = [_Seen(wei, entry.wei)]
        place = None
        if bias is not None and entry.bias is not None:
            seen.append(_Seen(bias, entry.bias))
            place = _place(bias)
        self._calls[make, options, _place(wei), place] = entry, tuple(seen)
        return entry.operator

    def _shrink(self) -> None:
        excess = len(self._made) - self._limit
        if excess > 0:
            # A finalizer may shrink it meanwhile.
            ages = {key: getattr(self._made.get(key), "used", -1) for key in list(self._made)}
            for key in sorted(ages, key=ages.__getitem__)[:excess]:
                self._made.pop(key, None)
        known = max(len(self._calls), len(self._options), len(self._written))
        if excess > 0 or known > _CALLS * self._limit:
            # Whoever made these calls finds the operators again by content.
            self._forget_calls()

    def _forget_calls(self) -> None:
        self._calls: dict[Key, _Call] = {}
        self._options: dict[Key, _Options] = {}
        self._written: dict[Key, tuple[_Options, dict[str, object]]] = {}


def _place(array: Array) -> Key:
    """Return where an array lies in memory, and how."""
    address = array.__array_interface__["data"][0]
    return address, array.shape, array.strides, array.dtype


def _is_constant(array: Array) -> bool:
    """Tell whether nothing can write an array's memory without asking for it.

    It and all arrays that it is a view of are read-only, and the last of them owns its memory or
    lies over bytes.
    """
    at: object = array
    while isinstance(at, np.ndarray):
        if at.flags.writeable:
            return False
        if at.base is None:
            return at.flags.owndata
        at = at.base
    return type(at) is bytes


def _unchanging(value: object) -> object:
    """Return an option as an object that stays what it is: itself, unless it has a list in it."""
    if not isinstance(value, (list, tuple)):
        return value
    items = tuple(map(_unchanging, value))
    same = isinstance(value, tuple) and all(map(is_, items, value))
    return value if same else items


def _frozen(name: str, value: object, depth: int = 4) -> Hashable:
    """Return an option as a key: equal only to the same option of the same type."""
    if isinstance(value, (list, tuple)) and depth:
        return tuple(_frozen(name, item, depth - 1) for item in value)
    try:
        hash(value)
    except Exception:  # a list in a list without end, or a caller's own __hash__
        wanted = "a number, a string, a tuple of them, or a frozen value"
        raise ArgumentError(name, type(value).__name__, wanted) from None
    return type(value), value


def _kept(name: str, array: Array) -> Array:
    """Return a copy of a tensor, whose bytes are then its content."""
    if array.dtype.hasobject or not array.dtype.itemsize:  # no bytes that are its content
        raise DTypeError(name, str(array.dtype), "an array of numbers")
    copy: Array = array.copy(order="K")
    return copy


def _digest(array: Array) -> Key:
    # As bytes: bfloat16 has no buffer of its own.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return array.shape, array.dtype, hashlib.blake2b(data, digest_size=16).digest()
