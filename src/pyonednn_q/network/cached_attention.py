"""CachedAttention: attention of new tokens on all so far, whose keys and values a cache holds.

A program has the cache as an input that it writes to: its memory grows in place, and nothing that
is there is copied. So one program serves any number of caches, each in one call at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import flag, instance, numbers, one_of, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.native.arrays import LINE
from pyonednn_q.native.attention import attention_bytes, attention_pass
from pyonednn_q.network.floats import floats_of
from pyonednn_q.predict.attention_rows import CACHES, RotaryAngles
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

__all__ = ["CacheShape", "CachedAttention", "KeyValueCache"]

_TILE, _LENGTH = 16, 8  # tokens, and bytes
_MOST_BYTES = 2**46  # of a process, and more than anybody has


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Dims and data type of a cache of keys and values.

    Parameters
    ----------
    layers, batch, groups : int
        Numbers of attention layers, of sequences, and of heads of keys and values.
    depth, width : int
        Numbers of elements of a key and of a value.
    capacity : int
        Largest number of tokens of a sequence; rounded up to a multiple of 16.
    dtype : {"s8", "f32"}
        Data type of keys and values: s8, one scale for each token and head; or f32.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument, what came and what would do.
    """

    layers: int
    batch: int
    groups: int
    depth: int
    width: int
    capacity: int
    dtype: str = "s8"

    def __post_init__(self) -> None:
        for name in ("layers", "batch", "groups", "depth", "width", "capacity"):
            object.__setattr__(self, name, whole(name, getattr(self, name), lo=1))
        one_of("dtype", self.dtype, CACHES)
        object.__setattr__(self, "capacity", -(-self.capacity // _TILE) * _TILE)
        elements = (self.depth + LINE + self.width + LINE) * self.capacity
        if 4 * self.layers * self.batch * self.groups * elements > _MOST_BYTES:
            raise ShapeError("capacity", str(self.capacity), "one that memory can hold")

    @property
    def nbytes(self) -> int:
        """Bytes of a cache."""
        sizes = self.depth, self.width, self.capacity
        return attention_bytes(self.layers, self.batch * self.groups, *sizes, self.dtype == "s8")


class KeyValueCache:
    """Keys and values of all tokens so far and all layers, as codes or floats; it grows in place.

    Parameters
    ----------
    shape : CacheShape
        Dims and data type of the cache.

    Raises
    ------
    ShapeError
        The cache does not fit into memory.

    Attributes
    ----------
    shape : CacheShape
        Dims of the cache that the node reads and appends to.
    memory : (nbytes,) ndarray of uint8
        Memory that programs take as an input and write to. A program writes tokens after `length`
        and does not change `length`; the caller increases it (`append`) when all layers have run.
    """

    def __init__(self, shape: CacheShape) -> None:
        instance("shape", shape, CacheShape)
        self.shape = shape
        try:
            block = np.zeros(shape.nbytes + LINE, np.uint8)
        except MemoryError:
            got, wanted = f"{shape.nbytes} bytes", "a cache that memory has room for"
            raise ShapeError("shape", got, wanted) from None
        first = -block.ctypes.data % LINE
        self.memory = block[first : first + shape.nbytes]
        self._length = self.memory[:_LENGTH].view(np.int64)

    @property
    def length(self) -> int:
        """Number of tokens in the cache."""
        return int(self._length[0])

    def check_room(self, tokens: int) -> None:
        """Raise ShapeError if this number of further tokens does not fit."""
        if self.length + tokens > self.shape.capacity:
            got = f"{tokens} behind the {self.length} that the cache holds"
            wanted = f"at most {self.shape.capacity} together, its capacity"
            raise ShapeError("tokens", got, f"{wanted}: truncate it, or make a larger one")

    def append(self, tokens: int) -> None:
        """Add this number of tokens, which a program has written, to `length`.

        Raises
        ------
        ShapeError
            The tokens do not fit.
        """
        more = whole("tokens", tokens, lo=0)
        self.check_room(more)
        self._length[0] += more

    def truncate(self, length: int) -> None:
        """Keep the first tokens, up to a length, and forget the others."""
        self._length[0] = whole("length", length, lo=0, hi=self.length)

    def __repr__(self) -> str:
        shape = self.shape
        return f"<KeyValueCache {self.length} of {shape.capacity} tokens, {shape.dtype}>"


@dataclass(frozen=True, eq=False, slots=True)
class CachedAttention:
    """Causal attention of new tokens, whose keys and values are added to a cache.

    Its sources are queries, keys and values of float32: (batch, tokens, heads · elements) each, or
    side by side along the last dim of one tensor, or (batch, heads, tokens, elements); then the
    cache's memory. The result has the dims of the queries, with
    the elements of values. `predict.attention_rows` computes the same bits.

    Parameters
    ----------
    cache : CacheShape
        Dims and data type of the cache.
    layer : int
        Index of the layer in the cache.
    heads : int
        Number of heads of queries, a multiple of the cache's groups, which share keys and values.
    scale : float
        Factor of scores; 0: 1 / sqrt(depth).
    angles : RotaryAngles, optional
        Angles of a rotary embedding of queries and keys; the first token has the position `length`
        of the cache.
    is_packed : bool
        Whether queries, keys and values are one tensor.
    window : int
        Number of tokens that a query sees, its own the last of them; 0: all.
    softcap : float
        Limit of scores, by cap · tanh(score / cap); 0: no limit.
    sinks : (heads,) array_like of float32, optional
        A score of each head that takes its share, and has no value.
    """

    cache: CacheShape
    layer: int
    heads: int
    scale: float = 0.0
    angles: RotaryAngles | None = None
    is_packed: bool = False
    window: int = 0
    softcap: float = 0.0
    sinks: Array | None = None

    def __post_init__(self) -> None:
        instance("cache", self.cache, CacheShape)
        whole("layer", self.layer, lo=0, hi=self.cache.layers - 1)
        if whole("heads", self.heads, lo=1) % self.cache.groups:
            raise ShapeError("heads", str(self.heads), f"a multiple of {self.cache.groups}")
        real("scale", self.scale)
        flag("is_packed", self.is_packed)
        whole("window", self.window, lo=0)
        if real("softcap", self.softcap) < 0:
            raise ArgumentError("softcap", str(self.softcap), "0, or a number above it")
        if self.sinks is not None:
            sinks = numbers("sinks", self.sinks).astype(np.float32)
            if sinks.shape != (self.heads,):
                raise ShapeError("sinks", str(sinks.shape), f"({self.heads},), one of each head")
            object.__setattr__(self, "sinks", sinks)
        if self.angles is not None:
            instance("angles", self.angles, RotaryAngles)

    @property
    def factor(self) -> float:
        """Factor of the scores."""
        return self.scale or 1 / float(np.sqrt(self.cache.depth))

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        wanted = 2 if self.is_packed else 4
        if len(src) != wanted:
            raise ArgumentError("src", f"{len(src)} tensors", str(wanted))
        *names, cache = src
        held = at.specs[cache]
        if held.dtype != "u8" or held.dims != (self.cache.nbytes,):
            raise ShapeError("cache", str(held), f"u8 of {self.cache.nbytes} bytes")
        specs = [floats_of(at, name) for name in names]
        batch, tokens = self._rows(specs[0].dims)
        is_flat, cached = specs[0].ndim != 4, self.cache
        heads = (self.heads, cached.groups, cached.groups)
        sizes = (cached.depth, cached.depth, cached.width)
        if self.is_packed:
            row = sum(n * size for n, size in zip(heads, sizes, strict=True))
            dims: list[tuple[int, ...]] = [(batch, tokens, row)]
            strides = [(tokens * row, row, size) for size in sizes]
        else:
            both = [*zip(heads, sizes, strict=True)]
            dims = [_dims(batch, tokens, *each, is_flat=is_flat) for each in both]
            strides = [_strides(tokens, *each, is_flat=is_flat) for each in both]
        for spec, each in zip(specs, dims, strict=True):
            if spec.dims != each:
                raise ShapeError("src", str(spec.dims), str(each))
        result = (self.heads, cached.width)
        strides.append(_strides(tokens, *result, is_flat=is_flat))
        reads = tuple(
            at.in_layout(name, TensorSpec.dense(at.specs[name].dims, "f32")) for name in names
        )
        runs = attention_pass(
            (batch, tokens, *heads[:2], cached.depth, cached.width),
            (cached.capacity, cached.layers, self.layer),
            strides,
            scale=self.factor,
            are_codes=cached.dtype == "s8",
            is_packed=self.is_packed,
            window=self.window,
            softcap=self.softcap,
            sinks=() if self.sinks is None else [float(each) for each in self.sinks],
            angles=self.angles,
        )
        spec = TensorSpec.dense(_dims(batch, tokens, *result, is_flat=is_flat), "f32")
        at.add(runs, (*reads, cache), dst, spec)

    def _rows(self, dims: tuple[int, ...]) -> tuple[int, int]:
        if len(dims) == 4 and not self.is_packed:
            batch, _, tokens, _ = dims
        elif len(dims) == 3:
            batch, tokens, _ = dims
        else:
            raise ShapeError("src", str(dims), "(batch, tokens, heads · elements)")
        if batch != self.cache.batch:
            raise ShapeError("src", str(dims), f"a batch of {self.cache.batch}, as the cache has")
        if not prod(dims):
            raise ShapeError("src", str(dims), "a token at least")
        return batch, tokens


def _dims(batch: int, tokens: int, heads: int, size: int, *, is_flat: bool) -> tuple[int, ...]:
    return (batch, tokens, heads * size) if is_flat else (batch, heads, tokens, size)


def _strides(tokens: int, heads: int, size: int, *, is_flat: bool) -> tuple[int, int, int]:
    """Return strides of sequences, tokens and heads."""
    whole_batch = tokens * heads * size
    return (whole_batch, heads * size, size) if is_flat else (whole_batch, size, tokens * size)
