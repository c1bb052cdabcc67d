"""Places: elements of a result, and the exact sums of products that belong to them.

Windows are read here once more, apart from `primitive.window`: a self check must not share its
reading. And it is as unlike a kernel as can be: for each place the elements of src that
its window meets are gathered, and multiplied with the weights, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pyonednn_q.dtypes import Array

Dims = tuple[int, ...]
Kind: TypeAlias = Literal["convolution", "deconvolution", "inner_product", "matmul"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Dims and window of a call.

    Attributes
    ----------
    kind : str
        "convolution", "deconvolution", "inner_product" or "matmul".
    src, wei : tuple of int
        Dims: (N, IC, spatial) and (OC, IC / groups, spatial), or (..., M, K) and (..., K, N).
    stride, dilation : tuple of int
        One value per spatial dimension, at least 1; empty where there is no window.
    padding : tuple of (int, int)
        (before, behind) each spatial dimension: places of real 0 that are added, by a deconvolution
        outputs that are cut off; below 0, outputs that are added.
    groups : int
        Number of groups of channels.
    """

    kind: Kind
    src: Dims
    wei: Dims
    stride: Dims = ()
    padding: tuple[tuple[int, int], ...] = ()
    dilation: Dims = ()
    groups: int = 1

    @classmethod
    def of(
        cls,
        kind: Kind,
        src: Dims,
        wei: Dims,
        *,
        stride: Any = 1,  # noqa: ANN401 - as callers pass it
        padding: Any = 0,  # noqa: ANN401
        dilation: Any = 1,  # noqa: ANN401
        groups: int = 1,
    ) -> Geometry:
        """Return the geometry of a call, by the arguments that operators take.

        Examples
        --------
        >>> call = Geometry.of("convolution", (1, 8, 9, 9), (4, 8, 3, 1), stride=(2, 1), padding=1)
        >>> call.padding, call.dst
        (((1, 1), (1, 1)), (1, 4, 5, 11))
        """
        if kind in {"inner_product", "matmul"}:
            return cls(kind, tuple(src), tuple(wei))
        count = len(wei) - 2
        return cls(
            kind,
            tuple(src),
            tuple(wei),
            _each(stride, count),
            _sides(padding, count),
            _each(dilation, count),
            groups,
        )

    @property
    def axis(self) -> int:
        """The dimension of dst that channels run along."""
        return len(self.dst) - 1 if self.kind == "matmul" else 1

    @property
    def dst(self) -> Dims:
        """Dims of the result."""
        if self.kind == "inner_product":
            return (self.src[0], self.wei[0])
        if self.kind == "matmul":
            return (*self._batch, self.src[-2], self.wei[-1])
        of = self._gathered if self.kind == "convolution" else self._spread
        return (self.src[0], self.wei[0], *(of(axis) for axis in range(len(self.stride))))

    @property
    def channels(self) -> int:
        """Output channels, or columns."""
        return self.dst[self.axis]

    @property
    def blocks(self) -> tuple[int, int]:
        """The dimension of src along which most places lie, and how many of its windows are apart.

        Examples
        --------
        >>> Geometry.of("convolution", (2, 8, 9, 27), (4, 8, 3, 3)).blocks
        (3, 4)
        """
        apart = {0: self.src[0]}
        if self.kind == "matmul":
            apart = dict(enumerate(self.src[:-1]))
        for axis in range(len(self.stride)):
            apart[2 + axis] = self.src[2 + axis] // (2 * self._reach(axis))
        axis = max(apart, key=lambda axis: apart[axis])
        return axis, max(apart[axis], 1)

    @property
    def _batch(self) -> Dims:
        lead = len(self.src) - len(self.wei)
        of_wei = (1,) * max(lead, 0) + self.wei[:-2]
        of_src = (1,) * max(-lead, 0) + self.src[:-2]
        return tuple(max(a, b) for a, b in zip(of_src, of_wei, strict=True))

    def _reach(self, axis: int) -> int:
        return (self.wei[2 + axis] - 1) * self.dilation[axis] + 1

    def _gathered(self, axis: int) -> int:
        room = self.src[2 + axis] + sum(self.padding[axis]) - self._reach(axis)
        return room // self.stride[axis] + 1

    def _spread(self, axis: int) -> int:
        whole = (self.src[2 + axis] - 1) * self.stride[axis] + self._reach(axis)
        return whole - sum(self.padding[axis])


def _each(value: Any, count: int) -> Dims:  # noqa: ANN401
    """Return one value per spatial dimension, from one for all or from as many."""
    return tuple(map(int, value)) if isinstance(value, Iterable) else (int(value),) * count


def _sides(value: Any, count: int) -> tuple[tuple[int, int], ...]:  # noqa: ANN401
    """Return (lo, hi) per dimension, from one value, one per dimension, or pairs.

    ONNX writes all that come before and then all that come behind.
    """
    paddings = list(value) if isinstance(value, Iterable) else [value] * count
    if len(paddings) == 2 * count and not any(isinstance(side, Iterable) for side in paddings):
        paddings = list(zip(paddings[:count], paddings[count:], strict=True))
    pairs = [tuple(side) if isinstance(side, Iterable) else (side, side) for side in paddings]
    return tuple((int(lo), int(hi)) for lo, hi in pairs)


if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]
    _Indices = tuple[NDArray[np.intp], ...]

MOST_MACS = 2**27  # some tenths of a second in float64
MOST_GATHERED = 2**22
_LEAST = 16


@dataclass(frozen=True, slots=True)
class Places:
    """Places of a result, all channels of each.

    Attributes
    ----------
    geometry : Geometry
        Geometry of the call.
    index : tuple of ndarray
        One array for each dimension of dst but the channels'.
    """

    geometry: Geometry
    index: _Indices

    @classmethod
    def of(cls, geometry: Geometry, turns: int = 1) -> Places:
        """Return all places, or as many as `MOST_MACS` and `MOST_GATHERED` allow.

        Those are the corners, and others drawn evenly. `turns`: how often they are looked at.
        """
        dims = _dims(geometry)
        total = math.prod(dims)
        is_matmul = geometry.kind == "matmul"
        # What one place multiplies, and what is gathered for it, of all groups.
        products = math.prod(geometry.wei[-2:] if is_matmul else geometry.wei)
        terms = geometry.wei[-2] if is_matmul else products // geometry.channels * geometry.groups
        count = max(_LEAST, min(MOST_MACS // turns // products, MOST_GATHERED // terms))
        if count >= total:
            flat = np.arange(total)
        else:
            corners = np.array(list(product(*((0, d - 1) for d in dims)))).T
            chosen = np.random.default_rng(0).choice(total, count, replace=False)
            flat = np.union1d(np.ravel_multi_index(tuple(corners), dims), chosen)
        return cls(geometry, tuple(np.unravel_index(flat, dims)))

    @property
    def count(self) -> int:
        """Number of places."""
        return len(self.index[0])

    def take(self, array: Array) -> Array:
        """Return the values of an array of dst's dims, as (places, channels)."""
        return np.asarray(np.moveaxis(array, self.geometry.axis, -1)[self.index])

    def at(self, place: int, channel: int) -> tuple[int, ...]:
        """Return where in dst a value of `take` is."""
        where = [int(index[place]) for index in self.index]
        where.insert(self.geometry.axis, channel)
        return tuple(where)

    def sums(self, src: Array, wei: Array) -> F64:
        """Return Σ src · wei at the places, in float64, as (places, channels).

        Parameters
        ----------
        src, wei : ndarray
            Codes in the geometry's dims, less their zero points.
        """
        geometry = self.geometry
        src, wei = src.astype(np.float64), wei.astype(np.float64)
        if geometry.kind == "matmul":
            return self._products(src, wei)
        if geometry.kind == "inner_product":
            rows: F64 = src.reshape(len(src), -1)[self.index[0]] @ wei.reshape(len(wei), -1).T
            return rows
        patches = self._patches(src)  # (places, taps, IC)
        groups, oc = geometry.groups, geometry.channels
        grouped = wei.reshape(groups, oc // groups, geometry.wei[1], -1)
        taps = patches.reshape(*patches.shape[:2], groups, -1).transpose(2, 0, 1, 3)
        taps = taps.reshape(groups, self.count, -1)
        weights = grouped.transpose(0, 3, 2, 1).reshape(groups, -1, oc // groups)
        sums: F64 = np.matmul(taps, weights).transpose(1, 0, 2).reshape(self.count, oc)
        return sums

    def _products(self, src: F64, wei: F64) -> F64:
        *lead, row = self.index

        def of(batch: tuple[int, ...]) -> _Indices:  # a dimension of 1 is broadcast
            pairs = zip(lead[len(lead) - len(batch) :], batch, strict=True)
            return tuple(np.where(d == 1, 0, index) for index, d in pairs)

        where = (*of(src.shape[:-2]), row)
        rows = src[where]
        if math.prod(wei.shape[:-2]) == 1:
            return np.asarray(rows @ wei.reshape(wei.shape[-2:]))
        sums = np.empty((self.count, wei.shape[-1]))
        batches = np.ravel_multi_index(of(wei.shape[:-2]), wei.shape[:-2])
        for batch in set(batches.tolist()):
            mine = batches == batch
            sums[mine] = rows[mine] @ wei.reshape(-1, *wei.shape[-2:])[batch]
        return sums

    def _patches(self, src: F64) -> F64:
        """Return the elements in each window, 0 beyond the edges: (places, taps, IC)."""
        spatial = len(self.geometry.stride)
        index: list[Any] = [self.index[0].reshape(-1, *(1,) * spatial)]
        inside = np.ones((1,) * (spatial + 1), bool)
        for axis in range(spatial):
            at, valid = tap_sources(self.geometry, axis, self.index[1 + axis])
            shape = [self.count, *(1,) * spatial]
            shape[1 + axis] = at.shape[1]
            index.append(np.where(valid, at, 0).reshape(shape))
            inside = inside & valid.reshape(shape)
        met = np.moveaxis(src, 1, -1)[tuple(index)] * inside[..., np.newaxis]
        patches: F64 = met.reshape(self.count, -1, src.shape[1])
        return patches


def exact_sums(geometry: Geometry, src: Array, wei: Array) -> F64:
    """Return Σ src · wei in dst's dims, in float64: whole numbers are exact below 2^53.

    Parameters
    ----------
    geometry : Geometry
        Dims and window of the call.
    src, wei : ndarray
        Codes in the geometry's dims, less their zero points.
    """
    acc = np.empty(geometry.dst)
    by_channel = np.moveaxis(acc, geometry.axis, -1)
    dims = _dims(geometry)
    is_matmul = geometry.kind == "matmul"
    met = geometry.wei[-2] if is_matmul else math.prod(geometry.wei[1:]) * geometry.groups
    # As many places at once as may be gathered.
    step, total = max(1, MOST_GATHERED // max(met, 1)), math.prod(dims)
    for start in range(0, total, step):
        index = np.unravel_index(np.arange(start, min(start + step, total)), dims)
        by_channel[index] = Places(geometry, index).sums(src, wei)
    return acc


def _dims(geometry: Geometry) -> tuple[int, ...]:
    dims = geometry.dst
    return dims[: geometry.axis] + dims[geometry.axis + 1 :]


def tap_sources(
    geometry: Geometry, axis: int, out: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return which element of src each tap meets along an axis, and whether there is one."""
    length, stride = geometry.src[2 + axis], geometry.stride[axis]
    low = geometry.padding[axis][0]
    taps = np.arange(geometry.wei[2 + axis]) * geometry.dilation[axis]
    if geometry.kind == "convolution":
        at = out[:, np.newaxis] * stride - low + taps
        return at, (at >= 0) & (at < length)
    reach = out[:, np.newaxis] + low - taps  # i · stride
    at = reach // stride
    return at, (reach % stride == 0) & (at >= 0) & (at < length)
