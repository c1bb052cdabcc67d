"""Functions of one value: relu, leaky relu, parametric relu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import real
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Quantized,
    by_table,
    checked,
    choose,
    parameters,
    stored,
    through_floats,
)
from pyonednn_q.emulate.rescale import eight_bits, searched, two_step
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.requantize.multiplier import scale_to_mult_shift
from pyonednn_q.requantize.rounding import shift_round

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["leaky_relu", "prelu", "relu"]

Array = np.ndarray[Any, Any]


def relu(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    *,
    src_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of max(x, 0).

    Parameters
    ----------
    src : tensor
        Codes.
    src_q, dst_q : QParams
        Per tensor, u8 or s8.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir or onednn.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, dst_q = QParams(0.5, 0, "s8"), QParams(0.25, -128, "s8")
    >>> relu(np.array([-9, 0, 10], np.int8), src_q=src_q, dst_q=dst_q)
    array([-128, -128, -108], dtype=int8)
    """
    choose("relu", dialect)
    x = checked("src", src, src_q)
    scale, zero_point = parameters("dst_q", dst_q)
    if dialect == "onednn":
        return onednn.codes(x, dst_q, EltwisePostOp("relu"))

    def function(x: Quantized) -> Array:
        if dialect == "tflite":
            whole = two_step(x.shifted, x.scale / scale) + zero_point
            return stored(whole, dst_q, lo=zero_point)
        return through_floats(np.maximum(x.real, np.float32(0)), dst_q, dialect)

    return by_table(x, function)


def leaky_relu(
    src: Any,  # noqa: ANN401
    alpha: float,
    *,
    src_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of x for x >= 0, alpha · x below.

    Parameters
    ----------
    src : tensor
        Codes.
    alpha : float
        The slope below 0; float32, as runtimes store it.
    src_q, dst_q, dialect
        As of `relu`.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 20, "s8")
    >>> leaky_relu(np.array([40, 4], np.int8), 0.25, src_q=q, dst_q=q)
    array([40, 16], dtype=int8)
    """
    choose("leaky_relu", dialect)
    x = checked("src", src, src_q)
    scale, zero_point = parameters("dst_q", dst_q)
    slope = float(np.float32(real("alpha", alpha)))
    if dialect == "onednn":
        return onednn.codes(x, dst_q, EltwisePostOp("relu", slope))

    def function(x: Quantized) -> Array:
        if dialect == "tflite" or (dialect == "xnnpack" and not _delegated(x, slope, scale)):
            ratio = x.scale / scale
            below = x.scale * slope / scale
            shifted = x.shifted
            whole = np.where(shifted >= 0, two_step(shifted, ratio), two_step(shifted, below))
            return stored(whole + zero_point, dst_q)
        if dialect == "xnnpack":
            return stored(_xnnpack(x, slope, scale) + zero_point, dst_q)
        if dialect == "tpu_mlir" and (x.scale, x.zero_point, zero_point) == (scale, 0, 0):
            q = x.shifted
            return stored(np.where(q >= 0, q, searched(q, slope)), dst_q)
        values = x.real
        return through_floats(
            np.where(values >= 0, values, values * np.float32(slope)), dst_q, dialect
        )

    return by_table(x, function)


def prelu(
    src: Any,  # noqa: ANN401
    slope: Any,  # noqa: ANN401
    *,
    src_q: QParams,
    slope_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of x for x >= 0, slope[channel] · x below.

    Parameters
    ----------
    src : (N, C, ...) tensor
        Codes.
    slope : (C,) tensor
        Codes of the slopes.
    src_q, slope_q, dst_q : QParams
        Per tensor, u8 or s8.
    dialect : str
        As of `relu`.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    choose("prelu", dialect)
    x, slopes = checked("src", src, src_q), checked("slope", slope, slope_q)
    scale, zero_point = parameters("dst_q", dst_q)
    if x.codes.ndim < 2 or slopes.codes.shape != x.codes.shape[1:2]:
        wanted = f"one value for each channel of src, {x.codes.shape}"
        raise ShapeError("slope", str(slopes.codes.shape), wanted)
    along = slopes._replace(codes=slopes.codes.reshape(-1, *(1,) * (x.codes.ndim - 2)))
    if dialect == "onednn":
        return onednn.prelu(x, along.real[np.newaxis], dst_q)
    if dialect == "tflite":
        shifted = x.shifted
        above = two_step(shifted, x.scale / scale)
        below = two_step(shifted * along.shifted, x.scale * slopes.scale / scale)
        return stored(np.where(shifted >= 0, above, below) + zero_point, dst_q)
    if dialect == "tpu_mlir" and x.zero_point == zero_point == 0:
        if x.scale != scale:
            raise ArgumentError("dst_q", f"scale {scale!r}", f"{x.scale!r}, that of src_q")
        return stored(_tpu_mlir(x.shifted, along.real.astype(np.float64)), dst_q)
    values = x.real
    return through_floats(np.where(values >= 0, values, values * along.real), dst_q, dialect)


def _delegated(x: Quantized, slope: float, scale: float) -> bool:
    """Whether XNNPACK takes the multipliers; else the interpreter's own kernel runs."""
    ratio = np.float32(x.scale) / np.float32(scale)
    below = ratio * np.float32(slope)
    return bool(2**-8 <= ratio <= 2**7 and abs(below) >= 2**-8 and -128 < below <= 2**7)


def _xnnpack(x: Quantized, slope: float, scale: float) -> Array:
    ratio = np.float32(x.scale) / np.float32(scale)
    parts = [eight_bits(x.shifted, float(each)) for each in (ratio, ratio * np.float32(slope))]
    return np.where(x.shifted >= 0, *parts)


def _tpu_mlir(q: Array, slope: Array) -> Array:
    """Take the power of two that brings the largest slope to 7 bits, and drop what is left."""
    _, r = scale_to_mult_shift(float(np.abs(slope).max()), 8, "truncate")
    k = np.trunc(slope * 2.0 ** int(r)).astype(np.int64)
    return np.asarray(np.where(q >= 0, q, shift_round(q * k, r, "half_up")))
