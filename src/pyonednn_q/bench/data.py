"""Data to measure with: Gaussian weights, half-normal activations, and their quantization.

Half-normal is what a relu makes of a normal value. Weights are scaled so that results have a
deviation of about 1, whatever the shape. Large tensors repeat a block: drawing hundreds of millions
of numbers takes longer than measuring with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import dtypes
from pyonednn_q.bench.tail import RESIDUAL_RANGE, residual_scale

if TYPE_CHECKING:
    from pyonednn_q.bench.case import Case
    from pyonednn_q.bench.precision import Precision
    from pyonednn_q.bench.shape import Shape

__all__ = ["Sample", "TypedSample", "quantize"]

Array = NDArray[Any]
_Float32 = NDArray[np.float32]

_BLOCK = 1_000_003  # a prime, so that no two rows of a repeated block line up
_SRC_RANGE = 4.0  # all but one half-normal value in 16 000


@dataclass(frozen=True, slots=True)
class Sample:
    """Real values for a shape, the same in every data type.

    Attributes
    ----------
    src, wei, bias, residual : ndarray of float32
        Tensors in logical dimensions.
    """

    src: _Float32
    wei: _Float32
    bias: _Float32
    residual: _Float32

    @classmethod
    def of(cls, shape: Shape, *, with_residual: bool) -> Sample:
        """Draw the values of a shape; always the same ones."""
        rng = np.random.default_rng(2024)
        terms = shape.macs / math.prod(shape.dst)  # products that make one result
        src = np.abs(_normal(rng, shape.src))
        wei = _normal(rng, shape.wei) * np.float32(1 / math.sqrt(terms))
        bias = _normal(rng, (channels(shape),)) * np.float32(0.1)
        residual = np.abs(_normal(rng, shape.dst if with_residual else (0,)))
        return cls(src, wei, bias, residual)


@dataclass(frozen=True, slots=True)
class TypedSample:
    """A sample in the data types of a case.

    Attributes
    ----------
    src, wei, dst : ndarray
        Tensors in logical dimensions; dst holds the residual that a sum reads, if there is one.
    src_scale : float
        Real value of one step of src.
    wei_scale : ndarray of float64
        Real value of a weight code of 1, per output channel; one value for two sources.
    """

    src: Array
    wei: Array
    dst: Array
    src_scale: float
    wei_scale: NDArray[np.float64]


def channels(shape: Shape) -> int:
    """Return the number of output channels: columns of a matmul."""
    return shape.dst[-1] if shape.kind == "matmul" else shape.dst[1]


def quantize(case: Case, sample: Sample) -> TypedSample:
    """Return a sample in the data types of `case`."""
    precision = case.precision
    precision.check_primitive()
    if not precision.is_int8:
        src, wei = _as(sample.src, precision.src), _as(sample.wei, precision.wei)
        return TypedSample(src, wei, _as(sample.residual, precision.dst), 1.0, np.ones(1))
    src_scale = _SRC_RANGE / dtypes.qmax(precision.src)
    wei_scale = _wei_scales(case.shape, sample.wei)
    return TypedSample(
        src=_levels(sample.src, src_scale, precision.src),
        wei=_levels(sample.wei, _along_wei(case.shape, wei_scale), "s8"),
        dst=_stored_residual(sample.residual, precision),
        src_scale=src_scale,
        wei_scale=wei_scale,
    )


def _normal(rng: np.random.Generator, dims: tuple[int, ...]) -> _Float32:
    size = math.prod(dims)
    block = rng.standard_normal(min(size, _BLOCK), dtype=np.float32)
    values: _Float32 = np.resize(block, size).reshape(dims)
    return values


def _levels(values: _Float32, scale: object, dtype: str) -> Array:
    # In place: the weights of a language model's vocabulary are a gigabyte.
    levels: Array = values / np.asarray(scale, np.float32)
    np.rint(levels, out=levels)
    np.clip(levels, dtypes.qmin(dtype), dtypes.qmax(dtype), out=levels)
    return _as(levels, dtype)


def _stored_residual(residual: _Float32, precision: Precision) -> Array:
    scale = residual_scale(precision.dst)
    if not dtypes.is_integer(precision.dst):
        return _as(residual, precision.dst)
    clipped = np.minimum(residual, np.float32(RESIDUAL_RANGE))
    return _as(np.rint(clipped / np.float32(scale)), precision.dst)


def _as(values: _Float32, dtype: str) -> Array:
    converted: Array = values.astype(dtypes.numpy_dtype(dtype), copy=False)
    return converted


def _wei_scales(shape: Shape, wei: _Float32) -> NDArray[np.float64]:
    """Return symmetric scales: the largest weight of an output channel becomes 127."""
    if shape.has_two_sources:
        largest = np.abs(wei).max(keepdims=True).reshape(1)
    elif shape.kind == "matmul":
        largest = np.abs(wei).reshape(-1, wei.shape[-1]).max(axis=0)
    else:
        largest = np.abs(wei.reshape(channels(shape), -1)).max(axis=1)
    return np.asarray(np.maximum(largest.astype(np.float64), 1e-6) / 127)


def _along_wei(shape: Shape, scales: NDArray[np.float64]) -> NDArray[np.float64]:
    if shape.kind == "matmul" or len(scales) == 1:
        return scales
    lead = 2 if shape.has_groups else 1
    return scales.reshape(shape.wei[:lead] + (1,) * (len(shape.wei) - lead))
