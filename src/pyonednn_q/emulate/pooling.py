"""Means and maxima of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Quantized,
    checked,
    choose,
    parameters,
    plain,
    stored,
)
from pyonednn_q.emulate.rescale import searched
from pyonednn_q.emulate.windows import Pooling
from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.rounding import round_real, shift_round

if TYPE_CHECKING:
    from pyonednn_q.primitive.window import Padding, PerDim
    from pyonednn_q.qparams import QParams

__all__ = ["average_pool", "max_pool"]

Array = np.ndarray[Any, Any]


def average_pool(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    kernel: PerDim,
    *,
    src_q: QParams,
    dst_q: QParams,
    stride: PerDim | None = None,
    padding: Padding = 0,
    count_padding: bool = False,
    dialect: str = "tflite",
) -> Array:
    """Return codes of the mean of every window.

    Parameters
    ----------
    src : (N, C, spatial) tensor
        Codes.
    kernel, stride : int or sequence of int
        By default windows lie side by side.
    src_q, dst_q : QParams
        Per tensor, u8 or s8.
    padding : int or sequence
        As of `Conv`; less than the kernel.
    count_padding : bool
        Divide by the whole kernel at the border too; padding is real 0.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir, which always counts padding, tosa or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 1, "u8")
    >>> average_pool(np.array([[[3, 4, 8, 9]]], np.uint8), 2, src_q=q, dst_q=q)
    array([[[4, 9]]], dtype=uint8)
    """
    choose("average_pool", dialect)
    flag("count_padding", count_padding)
    x = checked("src", src, src_q)
    scale, zero_point = parameters("dst_q", dst_q)
    pooling = Pooling(x.codes.shape, kernel, stride, padding)
    if dialect == "onednn":
        dims = (*x.codes.shape[:2], *pooling.out)
        return onednn.means(x, dims, pooling.window, dst_q, whole=count_padding)
    whole = count_padding or dialect == "tpu_mlir"
    count = np.asarray(pooling.size) if whole else pooling.counts(x.codes.shape)
    if dialect == "tflite":
        if (x.scale, x.zero_point) != (scale, zero_point):
            wanted = "the parameters of src_q: TFLite's AveragePool does not rescale"
            raise ArgumentError("dst_q", f"scale {scale!r}, zero point {zero_point}", wanted)
        outside = pooling.size - pooling.counts(x.codes.shape) if whole else 0
        sums = pooling.sums(x.codes.astype(np.int64)) + outside * zero_point
        return stored(_nearest(sums, count), dst_q)
    if dialect == "onnxruntime" and not pooling.is_global(x.codes.shape):
        means = pooling.sums(x.real) / count.astype(np.float32)
        return stored(np.rint(means / np.float32(scale) + np.float32(zero_point)), dst_q)
    sums = pooling.sums(x.shifted)
    if dialect == "tpu_mlir":
        return stored(_tpu_mlir(x, sums, pooling.size, scale, zero_point), dst_q)
    if dialect == "tosa":
        if x.scale != scale:
            wanted = f"{x.scale!r}, that of src_q: TOSA's AVG_POOL2D does not rescale"
            raise ArgumentError("dst_q", f"scale {scale!r}", wanted)
        return stored(_tosa(sums, count) + zero_point, dst_q)
    factor = np.float32(x.scale) / (np.float32(scale) * count.astype(np.float32))
    halves = "half_to_even" if dialect == "onnxruntime" else "half_away_from_zero"
    return stored(round_real(sums.astype(np.float32) * factor, halves) + zero_point, dst_q)


def max_pool(
    src: Any,  # noqa: ANN401
    kernel: PerDim,
    *,
    stride: PerDim | None = None,
    padding: Padding = 0,
    dialect: str = "tflite",
) -> Array:
    """Return the largest code of every window: the same in all dialects.

    Parameters
    ----------
    src, kernel, stride, padding
        As of `average_pool`; u8 or s8. Padding is never the largest.
    dialect : str
        As of `average_pool`; onednn runs its pooling.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    choose("max_pool", dialect)
    codes = plain("src", src)
    pooling = Pooling(codes.shape, kernel, stride, padding)
    if dialect == "onednn":
        return onednn.largest(codes, (*codes.shape[:2], *pooling.out), pooling.window)
    return pooling.largest(codes, int(np.iinfo(codes.dtype).min))


def _nearest(sums: Array, count: Array) -> Array:
    """Divide integers, halves away from zero."""
    size = (2 * np.abs(sums) + count) // (2 * count)
    return np.asarray(np.where(sums < 0, -size, size))


def _tosa(sums: Array, count: Array) -> Array:
    """Multiply by 2^(30 + k) / count, with 2^k the power of two that is not less, and shift."""
    k = np.frexp(count - 1)[1].astype(np.int64)
    multiplier = ((2**30 + 1) << k) // count
    return shift_round(sums * multiplier, 30 + k, "half_up")


def _tpu_mlir(x: Quantized, sums: Array, count: int, scale: float, zero_point: int) -> Array:
    if x.zero_point == zero_point == 0:
        return searched(sums, x.scale / (scale * count))
    factor, ratio = x.scale / (scale * count), x.scale / scale
    codes = sums + count * x.zero_point
    return round_real(codes * factor + (zero_point - ratio * x.zero_point), "half_away_from_zero")
