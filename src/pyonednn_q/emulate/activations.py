"""Functions of one value: relu, leaky relu, parametric relu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import real
from pyonednn_q.dtypes import Array
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Arithmetic,
    Dialects,
    Encoding,
    Quantized,
    by_code,
    checked,
    choose,
    eight_bits,
    encoding,
    searched,
    through_floats,
    two_step,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.requantize.multiplier import scale_to_mult_shift
from pyonednn_q.requantize.rounding import shift_round

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams


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
        Codes of src_q's data type, of any shape.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    dialect : str
        Dialect of the arithmetic: tflite, onnxruntime, caffe2, tpu_mlir or onednn.

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
    codes = choose(RELU, dialect)
    x = checked("src", src, src_q)
    return codes(encoding("dst_q", dst_q), x)


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
        Codes of src_q's data type, of any shape.
    alpha : float
        The slope below 0; float32, as runtimes store it.
    src_q, dst_q, dialect
        Arguments of `relu`.

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
    codes = choose(LEAKY_RELU, dialect)
    x, to = checked("src", src, src_q), encoding("dst_q", dst_q)
    return codes(to, x, float(np.float32(real("alpha", alpha))))


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
        Codes of src_q's data type.
    slope : (C,) tensor
        Codes of the slope below 0, one per channel, of slope_q's data type.
    src_q, slope_q, dst_q : QParams
        Scale, zero point and data type of src, of the slopes and of the result: per tensor, u8 or
        s8.
    dialect : str
        Dialect, as in `relu`.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    codes = choose(PRELU, dialect)
    x, slopes = checked("src", src, src_q), checked("slope", slope, slope_q)
    to = encoding("dst_q", dst_q)
    if x.codes.ndim < 2 or slopes.codes.shape != x.codes.shape[1:2]:
        wanted = f"one value for each channel of src, {x.codes.shape}"
        raise ShapeError("slope", str(slopes.codes.shape), wanted)
    along = slopes.codes.reshape(-1, *(1,) * (x.codes.ndim - 2))
    return codes(to, x, slopes._replace(codes=along))


def _relu_real(x: Quantized) -> Array:
    return np.asarray(np.maximum(x.real, np.float32(0)))


@by_code
def _relu_tflite(dst_q: Encoding, x: Quantized) -> Array:
    codes = two_step(x.shifted, x.scale / dst_q.scale) + dst_q.zero_point
    return dst_q.stored(np.maximum(codes, dst_q.zero_point))


def _relu_onednn(dst_q: Encoding, x: Quantized) -> Array:
    return onednn.codes(dst_q, x, EltwisePostOp("relu"))


def _leaky_real(x: Quantized, slope: float) -> Array:
    return np.where(x.real >= 0, x.real, x.real * np.float32(slope))


@by_code
def _leaky_tflite(dst_q: Encoding, x: Quantized, slope: float) -> Array:
    above = two_step(x.shifted, x.scale / dst_q.scale)
    below = two_step(x.shifted, x.scale * slope / dst_q.scale)
    return dst_q.stored(np.where(x.shifted >= 0, above, below) + dst_q.zero_point)


@by_code
def _leaky_xnnpack(dst_q: Encoding, x: Quantized, slope: float) -> Array:
    ratio = np.float32(x.scale) / np.float32(dst_q.scale)
    below = ratio * np.float32(slope)
    # Multipliers that XNNPACK takes; with others the interpreter's own kernel runs.
    if not (2**-8 <= ratio <= 2**7 and abs(below) >= 2**-8 and -128 < below <= 2**7):
        return _leaky_tflite(dst_q, x, slope)
    parts = [eight_bits(x.shifted, float(factor)) for factor in (ratio, below)]
    return dst_q.stored(np.where(x.shifted >= 0, *parts) + dst_q.zero_point)


@by_code
def _leaky_tpu_mlir(dst_q: Encoding, x: Quantized, slope: float) -> Array:
    if (x.scale, x.zero_point, dst_q.zero_point) != (dst_q.scale, 0, 0):
        return _LEAKY_FLOATS["tpu_mlir"].codes(dst_q, x, slope)
    q = x.shifted
    return dst_q.stored(np.where(q >= 0, q, searched(q, slope)))


def _leaky_onednn(dst_q: Encoding, x: Quantized, slope: float) -> Array:
    return onednn.codes(dst_q, x, EltwisePostOp("relu", slope))


def _prelu_real(x: Quantized, slopes: Quantized) -> Array:
    return np.where(x.real >= 0, x.real, x.real * slopes.real)


def _prelu_tflite(dst_q: Encoding, x: Quantized, slopes: Quantized) -> Array:
    above = two_step(x.shifted, x.scale / dst_q.scale)
    below = two_step(x.shifted * slopes.shifted, x.scale * slopes.scale / dst_q.scale)
    return dst_q.stored(np.where(x.shifted >= 0, above, below) + dst_q.zero_point)


def _prelu_tpu_mlir(dst_q: Encoding, x: Quantized, slopes: Quantized) -> Array:
    """Take the power of two that brings the largest slope to 7 bits, and drop what is left."""
    if x.zero_point or dst_q.zero_point:
        return _PRELU_FLOATS["tpu_mlir"].codes(dst_q, x, slopes)
    if x.scale != dst_q.scale:
        raise ArgumentError("dst_q", f"scale {dst_q.scale!r}", f"{x.scale!r}, that of src_q")
    slope, q = slopes.real.astype(np.float64), x.shifted
    _, r = scale_to_mult_shift(float(np.abs(slope).max()), 8, "truncate")
    k = np.trunc(slope * 2.0 ** int(r)).astype(np.int64)
    return dst_q.stored(np.where(q >= 0, q, shift_round(q * k, r, "half_up")))


def _prelu_onednn(dst_q: Encoding, x: Quantized, slopes: Quantized) -> Array:
    return onednn.prelu(dst_q, x, slopes.real[np.newaxis])


_FLOATS = "onnxruntime", "caffe2", "tpu_mlir"
_LEAKY_FLOATS = through_floats(_leaky_real, *_FLOATS, single_codes=True)
_PRELU_FLOATS = through_floats(_prelu_real, *_FLOATS)

RELU: Dialects = {
    "tflite": Arithmetic("x · s_src / s_dst by D2, + z, not below z", _relu_tflite),
    **through_floats(_relu_real, *_FLOATS, single_codes=True),
    "onednn": Arithmetic(
        "fma(max(x, 0), r, z), even: binary, relu and linear as post-ops", _relu_onednn
    ),
}

LEAKY_RELU: Dialects = {
    "tflite": Arithmetic(
        "x · s_src / s_dst, for x < 0 x · s_src · alpha / s_dst, by D2, + z", _leaky_tflite
    ),
    "xnnpack": Arithmetic(
        "x · rint(256 · s_src / s_dst) / 256, for x < 0 with alpha in the rint, half up, + z; as "
        "tflite where a ratio is below 1/256",
        _leaky_xnnpack,
    ),
    **_LEAKY_FLOATS,
    "tpu_mlir": Arithmetic(
        "zero points 0, scales alike: q, for q < 0 q · alpha by 7 bits, half up; else "
        + _LEAKY_FLOATS["tpu_mlir"].says,
        _leaky_tpu_mlir,
    ),
    "onednn": Arithmetic(
        "fma(f32(x · alpha), r, z), even: binary, relu and linear as post-ops", _leaky_onednn
    ),
}

PRELU: Dialects = {
    "tflite": Arithmetic(
        "x · s_src / s_dst, for x < 0 x · slope · s_src · s_slope / s_dst, by D2, + z",
        _prelu_tflite,
    ),
    **_PRELU_FLOATS,
    "tpu_mlir": Arithmetic(
        "zero points 0, scales alike: q, for q < 0 q · slope by 7 bits cut off, half up; else "
        + _PRELU_FLOATS["tpu_mlir"].says,
        _prelu_tpu_mlir,
    ),
    "onednn": Arithmetic(
        "fma(f32(x · slope), r, z), even: prelu between a reorder and a binary", _prelu_onednn
    ),
}
