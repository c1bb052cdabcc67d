"""Tensors of the hunt in any layout: axes in any order, gaps between and within rows."""

from __future__ import annotations

import math

import numpy as np

from hunt_oracle import RANGES, Array, Dims
from hunt_sample import SIZES, Rng, one
from pyonednn_q.dtypes import numpy_dtype
from pyonednn_q.primitive import TensorSpec

_MOST = 20_000  # elements
_TYPES = ("u8", "u8", "s8", "s8", "f32", "f32", "bf16", "s32")


def laid(values: Array, spec: TensorSpec) -> Array:
    """Return values in the layout of a tensor."""
    assert spec.strides is not None
    dtype = numpy_dtype(spec.dtype)
    span = 1 + sum((d - 1) * step for d, step in zip(spec.dims, spec.strides, strict=True))
    steps = [step * dtype.itemsize for step in spec.strides]
    array: Array = np.ndarray(spec.dims, dtype, np.zeros(span, dtype), 0, steps)
    array[...] = values
    return array


def random_spec(rng: Rng, dims: Dims, dtype: str, like: TensorSpec | None = None) -> TensorSpec:
    """Give a tensor of any layout, that of another one more often."""
    if like is not None and like.dims == dims and rng.random() < 0.5:
        return TensorSpec(dims, dtype, like.strides)
    way = rng.random()
    if way < 0.25:
        return TensorSpec.dense(dims, dtype)
    if way < 0.5 and len(dims) > 2:
        return TensorSpec.channels_last(dims, dtype)
    if way < 0.65:
        return part_of_larger(rng, dims, dtype)
    order = rng.permutation(len(dims)) if way < 0.8 else np.arange(len(dims))[::-1]
    has_gaps, step, steps = rng.random() < 0.5, 1, [0] * len(dims)
    if has_gaps and rng.random() < 0.3:
        step = int(rng.integers(2, 4))
    for axis in order:
        steps[axis] = step
        step *= dims[axis] + (int(rng.integers(0, 4)) if has_gaps else 0)
    return TensorSpec(dims, dtype, tuple(steps))


def part_of_larger(rng: Rng, dims: Dims, dtype: str) -> TensorSpec:
    """Give what a slice along an axis leaves of a larger tensor, or every other one of its images.

    Gaps are between images, rows or pixels, and nowhere else.
    """
    axis, larger = int(rng.integers(len(dims))), list(dims)
    larger[axis] += int(rng.integers(1, 18))
    is_last = len(dims) > 2 and rng.random() < 0.5
    whole = (TensorSpec.channels_last if is_last else TensorSpec.dense)(larger, dtype)
    assert whole.strides is not None
    first, *others = whole.strides
    return TensorSpec(dims, dtype, (2 * first if axis == 0 else first, *others))


def values_of(rng: Rng, spec: TensorSpec, reach: int = 100) -> Array:
    """Give small integers in the layout of a tensor."""
    lo, hi = RANGES.get(spec.dtype, (-reach, reach))
    return laid(rng.integers(max(lo, -reach), min(hi, reach) + 1, spec.dims), spec)


def random_dims(rng: Rng, least: int, most: int) -> Dims:
    """Give sizes around blocks, of a tensor that is not too large.

    One in six of those with three dimensions or more has up to 24 rows of up to 199 values:
    kernels take up to 64 at once, and some begin to go wrong behind these.
    """
    while True:
        ndim = int(rng.integers(least, most + 1))
        dims = tuple(int(one(rng, SIZES if at < 2 else SIZES[:14])) for at in range(ndim))
        if ndim > 2 and rng.random() < 1 / 6:
            few = (int(one(rng, SIZES[:11])) for _ in dims[2:])
            dims = (*few, int(rng.integers(1, 25)), int(rng.integers(1, 200)))
        if math.prod(dims) <= _MOST:
            return dims


def random_type(rng: Rng) -> str:
    """Give a data type."""
    return str(one(rng, _TYPES))


def dst_type(rng: Rng, src: str, chance: float = 0.4) -> str:
    """Give src's type more often than another one."""
    return random_type(rng) if rng.random() < chance else src


def broadcast(rng: Rng, dims: Dims) -> Dims:
    """Give dims of an operand: those of dst, along channels, or of any axes."""
    way = rng.random()
    if way < 0.4:
        return dims
    if way < 0.6:
        return tuple(length if axis == 1 else 1 for axis, length in enumerate(dims))
    return tuple(1 if rng.random() < 0.5 else length for length in dims)


def as_real(array: Array) -> Array:
    """Return float64."""
    return array.astype(np.float64)
