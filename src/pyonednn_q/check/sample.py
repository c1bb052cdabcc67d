"""Sample: a few elements of a result, every kind of place and of channel among them.

What a blocked kernel gets wrong is a block, an edge, a tail, a channel, or all but the first of
something. So along each dimension the first and the last index come often, those beside them too,
and the rest evenly. All corners are there. Channels are the first and the last of the result, of
its groups and of blocks of 16, and those of the tail. Others follow as long as there is room, each
once before any comes twice. Every place meets several channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.check.places import tap_sources
from pyonednn_q.dtypes import Array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.check.places import Geometry

    F64 = NDArray[np.float64]
    Indices = tuple[NDArray[np.intp], ...]

Dims = tuple[int, ...]

MOST = 256
LEAST = 64
_PRODUCTS = 2**21  # that a sample may cost before it gets smaller
_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Reads:
    """Elements of src and weights that the sums of a sample read.

    Term (t, i) of a place multiplies ``src[src_at[place, t] + i along src_axis]`` with
    ``wei[wei_at[slot] + taps[t] + i along wei_axis]``.

    Attributes
    ----------
    src_at : tuple of ndarray
        One array for each dimension of src, which broadcasts to (places, taps).
    inside : ndarray of bool
        (places, taps): whether there is such an element of src; if not, the term is 0.
    wei_at, taps : tuple of ndarray
        One array for each dimension of the weights: of (slots,) and of (taps,).
    src_axis, wei_axis, inner : int
        The dimensions along which i runs, and how far.
    """

    src_at: Indices
    inside: NDArray[np.bool_]
    wei_at: Indices
    taps: Indices
    src_axis: int
    wei_axis: int
    inner: int

    @property
    def places(self) -> int:
        """Number of places; each has as many slots."""
        return len(self.inside)

    def src_index(self) -> Indices:
        """Return indices of src that broadcast to (places, taps, inner)."""
        return _along(self.src_at, self.src_axis, self.inner)

    def wei_index(self) -> Indices:
        """Return indices of the weights that broadcast to (slots, taps, inner)."""
        pairs = zip(self.wei_at, self.taps, strict=True)
        whole = tuple(at[:, np.newaxis] + tap for at, tap in pairs)
        return _along(whole, self.wei_axis, self.inner)


@dataclass(frozen=True, slots=True)
class Slots:
    """Elements of a result: slots, of which so many in a row lie at one place.

    Attributes
    ----------
    dims : tuple of int
        Dims of the result.
    axis : int
        The dimension of its channels.
    index : tuple of ndarray
        One array of slots for each dimension of the result.
    each : int
        Number of slots of each place. They differ in their channels, except for ends, which come
        often.
    """

    dims: Dims
    axis: int
    index: Indices
    each: int

    @classmethod
    def of(
        cls, dims: Dims, axis: int, *, terms: int = 1, groups: int = 1, far: bool = False
    ) -> Slots:
        """Return 64 to 256 elements, or all where there are fewer.

        Parameters
        ----------
        dims : tuple of int
            Dims of the result; none is 0.
        axis : int
            The dimension of the channels.
        terms : int
            Number of products in the sum of one element.
        groups : int
            Number of groups of channels.
        far : bool
            Whether terms of weights lie far from each other: to read them takes longer.

        Examples
        --------
        >>> sample = Slots.of((2, 40, 9, 9), 1)
        >>> sample.count, np.unique(sample.index[1]).size, {0, 8} <= set(sample.index[3].tolist())
        (256, 40, True)
        """
        rng = np.random.default_rng(7)
        others = tuple(dim for at, dim in enumerate(dims) if at != axis)
        channels, total = dims[axis], math.prod(others)
        most = max(LEAST, min(MOST, (_PRODUCTS >> 3 * far) // terms))
        each = min(channels, most if total == 1 else max(4, most // total))
        count = min(total, max(1, most // each))
        places = tuple(_grid(others)) if count == total else _places(rng, others, count)
        if each == channels:
            of_places = np.tile(np.arange(channels), (count, 1))
        else:
            chosen = np.sort(_channels(rng, channels, channels // groups, count * each))
            # A stratum for each slot of a place: most of its channels differ.
            of_places = rng.permuted(chosen.reshape(each, count), axis=1).T
        index = [np.repeat(place, each) for place in places]
        index.insert(axis, np.ascontiguousarray(of_places).reshape(-1))
        return cls(dims, axis, tuple(index), each)

    @property
    def count(self) -> int:
        """Number of slots."""
        return len(self.index[0])

    def take(self, array: Array) -> Array:
        """Return the values of an array of the result's dims, or of one that broadcasts to them."""
        return np.asarray(np.broadcast_to(array, self.dims)[self.index])

    def at(self, slot: int) -> Dims:
        """Return where in the result a slot is."""
        return tuple(int(index[slot]) for index in self.index)

    def reads(self, geometry: Geometry) -> Reads:
        """Return the elements that the sums of a result of that geometry read."""
        if geometry.kind == "matmul":
            return self._of_product(geometry)
        each = 1 if geometry.groups > 1 else self.each  # another group, other channels of src
        inner = geometry.wei[1]
        none = np.zeros(1, np.intp)
        channels = self.index[1]
        lengths = geometry.wei[2:]
        group = channels[::each] // (geometry.channels // geometry.groups)
        src_at: list[Any] = [self.index[0][::each, np.newaxis], (group * inner)[:, np.newaxis]]
        taps = [none, none, *_grid(lengths)]
        inside = np.ones((len(channels) // each, math.prod(lengths)), bool)
        if geometry.kind == "inner_product":
            src_at += _grid(lengths)
        else:
            for axis in range(len(lengths)):
                at, valid = tap_sources(geometry, axis, self.index[2 + axis][::each])
                tap = taps[2 + axis]
                inside &= valid[:, tap]
                src_at.append(np.where(valid, at, 0)[:, tap])
        wei_at = (channels, *(np.zeros_like(channels) for _ in geometry.wei[1:]))
        return Reads(tuple(src_at), inside, wei_at, tuple(taps), 1, 1, inner)

    def _of_product(self, geometry: Geometry) -> Reads:
        *lead, row, column = self.index
        none = np.zeros(1, np.intp)

        def of(dims: Dims, each: int) -> list[Any]:  # a dimension of 1 is broadcast
            pairs = zip(lead[len(lead) - len(dims) :], dims, strict=True)
            return [np.zeros_like(at[::each]) if d == 1 else at[::each] for at, d in pairs]

        src_at = [
            at[:, np.newaxis] for at in (*of(geometry.src[:-2], self.each), row[:: self.each])
        ]
        wei_at = (*of(geometry.wei[:-2], 1), np.zeros_like(column), column)
        inside = np.ones((self.count // self.each, 1), bool)
        taps = (none,) * len(geometry.wei)
        axes = len(geometry.src) - 1, len(geometry.wei) - 2
        return Reads((*src_at, none), inside, wei_at, taps, *axes, geometry.wei[-2])


def _grid(lengths: Dims) -> list[Any]:
    return list(np.unravel_index(np.arange(math.prod(lengths)), lengths)) if lengths else []


def _along(index: Indices, axis: int, inner: int) -> Indices:
    steps = np.arange(inner)
    whole = [at[..., np.newaxis] for at in index]
    whole[axis] = whole[axis] + steps
    return tuple(whole)


def _places(rng: np.random.Generator, dims: Dims, count: int) -> Indices:
    """Return places: the corners and the middle, and others whose indices are spread."""
    ends = [(0, dim - 1) if dim > 1 else (0,) for dim in dims]
    corners = list(product(*ends))
    if len(corners) > count // 4:
        corners = [corners[at] for at in rng.permutation(len(corners))[: count // 4]]
    fixed = [*corners, tuple(dim // 2 for dim in dims)][:count]
    rest = [_spread(rng, dim, count - len(fixed)) for dim in dims]
    return tuple(
        np.concatenate([[place[axis] for place in fixed], rest[axis]]).astype(np.intp)
        for axis in range(len(dims))
    )


def _spread(rng: np.random.Generator, dim: int, count: int) -> Array:
    """Return indices of a dimension: its ends often, those beside them, the rest evenly."""
    if dim == 1:
        return np.zeros(count, np.intp)
    often = count // 8
    ends = [0] * often + [dim - 1] * often + [1] * (often // 2) + [dim - 2] * (often // 2)
    rest = count - len(ends)
    evenly = (np.arange(rest) + rng.random(rest)) * (dim / max(rest, 1))
    return rng.permutation(np.concatenate([ends, evenly.astype(np.intp)]).astype(np.intp))


def _channels(rng: np.random.Generator, channels: int, of_group: int, count: int) -> Array:
    """Return channels: ends of the result, of groups and blocks, the tail, the rest evenly."""
    share = count // 16
    ends = [0] * (share // 2) + [channels - 1] * share
    tail = channels % _BLOCK
    if tail:
        ends += [channels - 1 - at % tail for at in range(share)]
    if count < channels:  # else all are there
        blocks = np.arange(0, channels, _BLOCK)
        groups = np.arange(0, channels, of_group)
        # Not np.unique: a daemon thread that is in it when Python ends takes the process along.
        met = {0}.union(*(set(at.tolist()) for at in (blocks, blocks - 1, groups, groups - 1)))
        edges = np.array(sorted(met - {-1}))
        if len(edges) > count // 4:
            edges = rng.permutation(edges)[: count // 4]
        ends += edges.tolist()
    rest = count - len(ends)
    whole = np.tile(np.arange(channels), rest // channels)
    left = rest - len(whole)
    apart = channels / max(left, 1)
    # So that no block is left out where there is one for each.
    moved = min(_BLOCK / apart - 1, 1.0) if apart < _BLOCK else 1.0
    evenly = ((np.arange(left) + moved * rng.random(left)) * apart).astype(np.intp)
    return np.concatenate([ends, whole, evenly]).astype(np.intp)
