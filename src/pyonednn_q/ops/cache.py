"""The operators behind the functional calls: made once, found again by what they were made of.

Found first by identity: the same frozen values, and the same weights with the same content, which
is compared on every call, as arrays can be written. Otherwise by value, with the weights' content
in the key.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.argument import whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.native.arrays import same_content
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from pyonednn_q.ops.operator import Operator

__all__ = ["CacheInfo", "OperatorCache"]

Array = np.ndarray[Any, Any]
Key: TypeAlias = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What the cache of operators holds and did.

    Attributes
    ----------
    hits, misses : int
        Calls that found their operator, and calls that made one.
    size, limit : int
        Operators held, and how many may be.
    """

    hits: int
    misses: int
    size: int
    limit: int


@dataclass(frozen=True, slots=True)
class _Known:
    """An operator and the very objects of the call that it was made for."""

    operator: Operator
    wei: object
    bias: object
    kept: tuple[Array, Array | None]  # what they held
    objects: tuple[object, ...]  # kept alive, or another could get the same id

    def is_for(self, wei: object, bias: object) -> bool:
        kept_wei, kept_bias = self.kept
        same = wei is self.wei and isinstance(wei, np.ndarray) and same_content(wei, kept_wei)
        if not same or bias is not self.bias:
            return False
        return bias is None or (
            isinstance(bias, np.ndarray) and kept_bias is not None and same_content(bias, kept_bias)
        )


class OperatorCache:
    """Operators by what they were made of, the least recently used dropped first.

    Parameters
    ----------
    limit : int
        How many are held.
    """

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._by_value: OrderedDict[Key, Operator] = OrderedDict()
        self._by_identity: dict[Key, _Known] = {}
        self._guard = threading.Lock()
        self._hits = self._misses = 0

    def operator(
        self,
        make: Callable[..., Operator],
        wei: object,
        bias: object,
        options: Mapping[str, object],
    ) -> Operator:
        """Return the operator ``make(wei, bias, **options)``, made now if it is new."""
        token = (make, id(wei), id(bias), *map(_token, options.values()), *options)
        known = self._by_identity.get(token)
        if known is not None and known.is_for(wei, bias):
            self._hits += 1
            return known.operator
        return self._by_its_value(token, make, wei, bias, options)

    def info(self) -> CacheInfo:
        """Return what the cache holds and did."""
        return CacheInfo(self._hits, self._misses, len(self._by_value), self._limit)

    def limit(self, size: int) -> None:
        """Set how many operators are held; those used longest ago go."""
        with self._guard:
            self._limit = whole("size", size, lo=0)
            self._shrink()

    def clear(self) -> None:
        """Forget all operators, and how often they were found."""
        with self._guard:
            self._by_value.clear()
            self._by_identity.clear()
            self._hits = self._misses = 0

    def _by_its_value(
        self,
        token: Key,
        make: Callable[..., Operator],
        wei: object,
        bias: object,
        options: Mapping[str, object],
    ) -> Operator:
        kept = _kept("wei", wei)
        kept_bias = None if bias is None else _kept("bias", bias)
        values = tuple((name, _frozen(value)) for name, value in options.items())
        key = (make, _digest(kept), None if kept_bias is None else _digest(kept_bias), values)
        with self._guard:
            operator = self._by_value.get(key)
            if operator is not None:
                self._hits += 1
                self._by_value.move_to_end(key)
        if operator is None:
            operator = make(kept, kept_bias, **options)
            with self._guard:
                self._misses += 1
                operator = self._by_value.setdefault(key, operator)
        objects = (make, *options.values())
        with self._guard:
            self._by_identity[token] = _Known(operator, wei, bias, (kept, kept_bias), objects)
            self._shrink()
        return operator

    def _shrink(self) -> None:
        dropped = False
        while len(self._by_value) > self._limit:
            self._by_value.popitem(last=False)
            dropped = True
        if dropped or len(self._by_identity) > self._limit:
            # Whoever made these calls finds the operators again by value.
            self._by_identity.clear()


def _token(value: object) -> Hashable:
    """Return what stands for an option: frozen values by identity, as hashing them takes long."""
    if isinstance(value, (QParams, Chain)):
        return id(value)
    return _frozen(value)


def _frozen(value: object) -> Hashable:
    """Return an option as a key: equal only to the same option of the same type."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_frozen, value))
    try:
        hash(value)
    except TypeError:
        wanted = "a number, a string, a tuple of them, or a frozen value"
        raise ArgumentError("options", type(value).__name__, wanted) from None
    return type(value), value


def _kept(name: str, value: object) -> Array:
    """Return a copy of a tensor, whose bytes are then its content."""
    array = as_array(name, value)
    dtypes.from_numpy(array.dtype, name)
    copy: Array = array.copy(order="K")
    return copy


def _digest(array: Array) -> Key:
    # As bytes: bfloat16 has no buffer of its own.
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return array.shape, array.dtype, hashlib.blake2b(data, digest_size=16).digest()
