"""The operators behind the functional calls: made once, found again by what they were made of.

Three looks, each slower than the one before:

1. In the extension: the very same options, and weights and bias that lie where they lay and hold
   what they held. Arrays that cannot be written are not read; all others are compared.
2. The same with options that are equal.
3. The content of weights and bias, wherever they lie.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.hot import hot_function, known_calls
from pyonednn_q.ops.arrays import as_array

if TYPE_CHECKING:
    from pyonednn_q.ops.operator import Operator

__all__ = ["CacheInfo", "OperatorCache"]

Array = np.ndarray[Any, Any]
Key: TypeAlias = tuple[Hashable, ...]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What the cache of operators holds and did.

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


_CALLS = 8  # calls remembered for each operator that may be held


@dataclass(frozen=True, slots=True)
class _Made:
    """An operator and what it was made of."""

    operator: Operator
    wei: Array
    bias: Array | None


class OperatorCache:
    """Operators by what they were made of, the least recently used dropped first.

    Parameters
    ----------
    limit : int
        How many are held.

    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._made: OrderedDict[Key, _Made] = OrderedDict()
        self._options: dict[Key, dict[str, object]] = {}  # equal ones as one object
        self._calls = known_calls()
        self._find = _nothing if self._calls is None else self._calls.find
        self._guard = threading.Lock()
        self._hits = self._misses = 0

    def hot(self, make: Callable[..., Operator]) -> Callable[[Function], Function]:
        """Return a decorator: what it decorates is not entered for calls that are known.

        It takes (src, wei, bias=None, *, out=None, residual=None, operands=None, **options), and
        has to be what calling the operator ``make(wei, bias, **options)`` is. It is entered for
        calls that are new, or name operands.
        """

        def decorate(function: Function) -> Function:
            if self._calls is None:
                return function
            return cast("Function", hot_function(function, make, self._calls))

        return decorate

    def known(
        self,
        make: Callable[..., Operator],
        wei: object,
        bias: object,
        options: dict[str, object],
    ) -> Operator | None:
        """Return the operator of a call made before with these very objects, or None.

        Where it is None, `operator` answers.
        """
        return self._find(make, wei, bias, options)

    def operator(
        self,
        make: Callable[..., Operator],
        wei: object,
        bias: object,
        options: Mapping[str, object],
    ) -> Operator:
        """Return the operator ``make(wei, bias, **options)``, made now if it is new."""
        given = as_array("wei", wei)
        given_bias = None if bias is None else as_array("bias", bias)
        as_key = tuple((name, _frozen(name, value)) for name, value in options.items())
        frozen = {name: _unchanging(value) for name, value in options.items()}
        with self._guard:
            known = self._options.setdefault(as_key, frozen)
        if self._calls is not None:
            found: Operator | None = self._calls.find_as(make, given, given_bias, known, frozen)
            if found is not None:
                with self._guard:
                    self._shrink()
                return found
        return self._by_content(make, given, given_bias, as_key, known)

    def info(self) -> CacheInfo:
        """Return what the cache holds and did."""
        calls = self._calls
        found, compared = (0, 0) if calls is None else (calls.hits, calls.compared)
        return CacheInfo(self._hits + found, self._misses, len(self._made), self._limit, compared)

    def limit(self, size: int) -> None:
        """Set how many operators are held; those used longest ago go."""
        with self._guard:
            self._limit = whole("size", size, lo=0)
            self._shrink()

    def clear(self) -> None:
        """Forget all operators, and how often they were found."""
        with self._guard:
            self._made.clear()
            self._options.clear()
            self._hits = self._misses = 0
            if self._calls is not None:
                self._calls.clear()

    def _by_content(
        self,
        make: Callable[..., Operator],
        wei: Array,
        bias: Array | None,
        as_key: Key,
        options: dict[str, object],
    ) -> Operator:
        # Of a copy: what is made, and looked for from now on, is what was seen at one time.
        kept = _kept("wei", wei)
        kept_bias = None if bias is None else _kept("bias", bias)
        key = (make, _digest(kept), None if kept_bias is None else _digest(kept_bias), as_key)
        with self._guard:
            made = self._made.get(key)
            if made is not None:
                self._hits += 1
                self._made.move_to_end(key)
        if made is None:
            new = _Made(make(kept, kept_bias, **options), kept, kept_bias)
            with self._guard:
                self._misses += 1
                made = self._made.setdefault(key, new)
        with self._guard:
            self._calls.remember(make, wei, bias, options, made.operator, made.wei, made.bias)
            self._shrink()
        return made.operator

    def _shrink(self) -> None:
        excess = len(self._made) - self._limit
        if excess > 0:
            self._order()
            for _ in range(excess):
                self._made.popitem(last=False)
        if excess > 0 or max(len(self._calls or ()), len(self._options)) > _CALLS * self._limit:
            # Whoever made these calls finds the operators again by content.
            self._forget_calls()

    def _order(self) -> None:
        """Put operators in order of their last use, which the extension knows of."""
        keys = {id(made.operator): key for key, made in self._made.items()}
        for operator in self._calls.by_age() if self._calls is not None else ():
            if id(operator) in keys:
                self._made.move_to_end(keys[id(operator)])

    def _forget_calls(self) -> None:
        self._options.clear()
        if self._calls is not None:
            self._calls.forget()


def _nothing(*_: object) -> None:
    """Find nothing: without the extension nothing was ever called."""


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
        if isinstance(value, np.ndarray):
            wanted += "; the arrays of a chain's leaves go into operands={...}"
        raise ArgumentError(name or "an option named ''", type(value).__name__, wanted) from None
    return type(value), value


def _kept(name: str, array: Array) -> Array:
    """Return a copy of a tensor, whose bytes are then its content."""
    dtypes.from_numpy(array.dtype, name)
    copy: Array = array.copy(order="K")
    return copy


def _digest(array: Array) -> Key:
    # As bytes: bfloat16 has no buffer of its own.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return array.shape, array.dtype, hashlib.blake2b(data, digest_size=16).digest()
