"""The sums of a shape in float64, written from their definition: exact for whole numbers.

Independent of everything that lowers or runs: one matrix product per tap of the kernel.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pyonednn_q.bench.shape import Shape

__all__ = ["accumulate"]

Array = NDArray[Any]
Float64 = NDArray[np.float64]

_ALL = (slice(None),) * 3  # batch, groups and channels, before the spatial dimensions


def accumulate(shape: Shape, src: Array, wei: Array) -> Float64:
    """Return Σ src · wei in dst's dimensions; exact while sums stay below 2**53."""
    left, right = src.astype(np.float64), wei.astype(np.float64)
    if shape.kind == "matmul":
        return np.asarray(left @ right, np.float64)
    if shape.kind == "ip":
        return np.asarray(left.reshape(len(left), -1) @ right.reshape(len(right), -1).T)
    groups, spatial = shape.groups, len(shape.src) - 2
    kernel = shape.wei[-spatial:]
    # (groups, OC, IC, taps) and (N, groups, IC, spatial): one form with and without groups.
    taps = right.reshape(groups, shape.dst[1] // groups, -1, math.prod(kernel))
    grouped = left.reshape(len(left), groups, -1, *shape.src[2:])
    gather_or_spread = _gather if shape.kind == "conv" else _spread
    acc = gather_or_spread(shape, grouped, taps, kernel)
    return acc.reshape(shape.dst)


def _gather(shape: Shape, src: Float64, taps: Float64, kernel: tuple[int, ...]) -> Float64:
    padded = np.pad(src, ((0, 0),) * 3 + shape.padding)
    out = shape.dst[2:]
    acc = np.zeros((*src.shape[:2], taps.shape[1], *out))
    for index, at in enumerate(itertools.product(*map(range, kernel))):
        steps = zip(at, shape.dilation, shape.stride, out, strict=True)
        window = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in steps)
        acc += _product(taps[..., index], padded[_ALL + window])
    return acc


def _spread(shape: Shape, src: Float64, taps: Float64, kernel: tuple[int, ...]) -> Float64:
    lengths = [
        max((n - 1) * s + (k - 1) * d + 1, lo + out)
        for n, s, k, d, (lo, _), out in zip(
            shape.src[2:], shape.stride, kernel, shape.dilation, shape.padding, shape.dst[2:],
            strict=True,
        )
    ]  # fmt: skip
    acc = np.zeros((*src.shape[:2], taps.shape[1], *lengths))
    for index, at in enumerate(itertools.product(*map(range, kernel))):
        steps = zip(at, shape.dilation, shape.stride, shape.src[2:], strict=True)
        window = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in steps)
        acc[_ALL + window] += _product(taps[..., index], src)
    cut = tuple(
        slice(lo, lo + out) for (lo, _), out in zip(shape.padding, shape.dst[2:], strict=True)
    )
    return np.asarray(acc[_ALL + cut])


def _product(weights: Float64, values: Float64) -> Float64:
    """Multiply (groups, OC, IC) with (N, groups, IC, spatial)."""
    flat = values.reshape(*values.shape[:3], -1)
    product = weights @ flat
    return np.asarray(product.reshape(*product.shape[:3], *values.shape[3:]))
