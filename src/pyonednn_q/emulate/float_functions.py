"""Operators that every runtime computes on floats: bias add, power, sigmoid, softmax.

Codes are dequantized in float32, the function is float32's, and the result is quantized as the
dialect quantizes. Exponentials differ between libraries in their last bit: a result can be the
neighbouring code where the real value lies that close to a tie, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Arithmetic,
    Dialects,
    Encoding,
    Quantized,
    checked,
    choose,
    encoding,
    through_floats,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams


def bias_add(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    bias: Any,  # noqa: ANN401
    *,
    src_q: QParams,
    bias_q: QParams,
    dst_q: QParams,
    dialect: str = "onnxruntime",
) -> Array:
    """Return codes of src + bias[channel].

    Parameters
    ----------
    src : (N, C, ...) tensor
        Codes of src_q's data type.
    bias : (C,) tensor
        Codes of the bias, one per channel, of bias_q's data type.
    src_q, bias_q, dst_q : QParams
        Scale, zero point and data type of src, bias and the result: per tensor, u8 or s8.
    dialect : str
        tflite, onnxruntime, caffe2 or tpu_mlir: how the result is quantized; or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    codes = choose(BIAS_ADD, dialect)
    x, b = checked("src", src, src_q), checked("bias", bias, bias_q)
    if x.codes.ndim < 2 or b.codes.shape != x.codes.shape[1:2]:
        wanted = f"one value for each channel of src, {x.codes.shape}"
        raise ShapeError("bias", str(b.codes.shape), wanted)
    along = b.codes.reshape(-1, *(1,) * (x.codes.ndim - 2))
    return codes(encoding("dst_q", dst_q), x, b._replace(codes=along))


def power(
    src: Any,  # noqa: ANN401
    exponent: float = 1.0,
    *,
    src_q: QParams,
    dst_q: QParams,
    scale: float = 1.0,
    shift: float = 0.0,
    dialect: str = "tflite",
) -> Array:
    """Return codes of (shift + scale · x)^exponent; with the defaults, codes requantized.

    Parameters
    ----------
    src : tensor
        Codes of src_q's data type, of any shape.
    exponent, scale, shift : float
        The constants of the formula, in real units; rounded to float32.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    dialect : str
        Dialect of the arithmetic: tflite, onnxruntime, caffe2, tpu_mlir or onednn.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument; also where a code's power is no real number.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 0, "u8")
    >>> power(np.array([2, 6], np.uint8), 2, src_q=q, dst_q=q)
    array([ 2, 18], dtype=uint8)
    """
    codes = choose(POWER, dialect)
    options = {"exponent": exponent, "scale": scale, "shift": shift}
    p, a, b = (np.float32(real(name, value)) for name, value in options.items())
    x = checked("src", src, src_q)
    if np.isnan(_power(x, p, a, b)).any():
        wanted = "a base and an exponent whose power is a real number"
        raise ArgumentError("exponent", f"{float(p)!r} of a negative base", wanted)
    return codes(encoding("dst_q", dst_q), x, p, a, b)


def sigmoid(
    src: Any,  # noqa: ANN401
    *,
    src_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of 1 / (1 + exp(−x)).

    Parameters
    ----------
    src, src_q, dst_q, dialect
        Arguments of `power`.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, dst_q = QParams(0.1, 0, "s8"), QParams(2.0**-8, -128, "s8")
    >>> sigmoid(np.array([-128, 0, 127], np.int8), src_q=src_q, dst_q=dst_q)
    array([-128,    0,  127], dtype=int8)
    """
    codes = choose(SIGMOID, dialect)
    x = checked("src", src, src_q)
    return codes(encoding("dst_q", dst_q), x)


def softmax(
    src: Any,  # noqa: ANN401
    *,
    src_q: QParams,
    dst_q: QParams,
    axis: int = 1,
    beta: float = 1.0,
    dialect: str = "tflite",
) -> Array:
    """Return codes of exp(beta · x) over its sum along an axis.

    Parameters
    ----------
    src, src_q, dst_q, dialect
        Arguments of `power`.
    axis : int
        The dimension of src along which results add to 1.
    beta : float
        Factor in the exponent, 0 or more; rounded to float32.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    codes = choose(SOFTMAX, dialect)
    x = checked("src", src, src_q)
    along = whole("axis", axis, -x.codes.ndim, x.codes.ndim - 1)
    beta = real("beta", beta)
    if beta < 0:
        raise ArgumentError("beta", shown(beta), "0 or more: the largest class stays the largest")
    return codes(encoding("dst_q", dst_q), x, along, beta)


def _bias_add(x: Quantized, bias: Quantized) -> Array:
    return x.real + bias.real


def _power(x: Quantized, p: np.float32, a: np.float32, b: np.float32) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.power(b + a * x.real, p))


def _power_onednn(
    dst_q: Encoding, x: Quantized, p: np.float32, a: np.float32, b: np.float32
) -> Array:
    to_real = onednn.linear(float(np.float32(x.scale) * a), float(b))
    powers = {1.0: (), 2.0: (EltwisePostOp("square"),)}
    power_of = powers.get(float(p), (EltwisePostOp("pow", 1.0, float(p)),))
    return onednn.codes(dst_q, x, to_real, *power_of, by=1.0)


def _sigmoid(x: Quantized) -> Array:
    one = np.float32(1)
    with np.errstate(over="ignore"):
        return np.asarray(one / (one + np.exp(-x.real)))


def _sigmoid_onednn(dst_q: Encoding, x: Quantized) -> Array:
    to_real = onednn.linear(x.scale, 0.0)
    return onednn.codes(dst_q, x, to_real, EltwisePostOp("logistic"), by=1.0)


def _softmax(x: Quantized, axis: int, beta: float) -> Array:
    # The zero point cancels against the largest.
    below = x.codes.astype(np.int64) - x.codes.max(axis=axis, keepdims=True)
    step = np.float32(x.scale) * np.float32(beta)
    powers = np.exp(below.astype(np.float32) * step)
    return np.asarray(powers / powers.sum(axis=axis, keepdims=True))


def _softmax_table(dst_q: Encoding, x: Quantized, axis: int, beta: float) -> Array:
    """Add exponentials of a table, as large as float32 lets their sum be; 1 / s is a whole number.

    The table is of float32, made in float64; onnxruntime's QLinearSoftmax, since 1.18.
    """
    below = x.codes.astype(np.int64) - x.codes.max(axis=axis, keepdims=True)
    step = float(np.float32(x.scale) * np.float32(beta))
    largest = np.finfo(np.float32).max / np.float32(x.codes.shape[axis])
    room = max(0.0, float(np.log(np.float64(largest))) - _HEAD_ROOM)
    table = np.exp(np.arange(-255, 1) * step + room).astype(np.float32)
    powers = np.moveaxis(table[below + 255], axis, -1)
    total = np.add.accumulate(powers, axis=-1, dtype=np.float32)[..., -1:]
    steps = np.floor(np.float32(1) / np.float32(dst_q.scale))
    with np.errstate(over="ignore"):
        real = np.rint(powers * steps / total)
    # What leaves float32 has no integer: the least of 32 bits, and the zero point may wrap it.
    whole = np.where(np.isfinite(real), real, np.iinfo(np.int32).min).astype(np.int64)
    return dst_q.stored(np.moveaxis(whole + dst_q.zero_point, -1, axis).astype(np.int32))


_HEAD_ROOM = 5  # in the exponent

_EVERY = "tflite", "onnxruntime", "caffe2", "tpu_mlir"

BIAS_ADD: Dialects = {
    **through_floats(_bias_add, "onnxruntime", "caffe2", "tflite", "tpu_mlir"),
    "onednn": Arithmetic("as `add`", onednn.added),
}

POWER: Dialects = {
    **through_floats(_power, *_EVERY),
    "onednn": Arithmetic(
        "fma(x, s_src · scale, shift), pow or square, fma(v, 1 / s_dst, z), even: binary, the "
        "others post-ops",
        _power_onednn,
    ),
}

SIGMOID: Dialects = {
    **through_floats(_sigmoid, *_EVERY, single_codes=True),
    "onednn": Arithmetic(
        "f32(x · s_src), logistic, fma(v, 1 / s_dst, z), even: binary, the others post-ops",
        _sigmoid_onednn,
    ),
}

SOFTMAX: Dialects = {
    **through_floats(_softmax, *_EVERY),
    "onnxruntime_table": Arithmetic(
        "a table of f32 exponentials, their sum one by one, even(y · floor(1 / s)) + z",
        _softmax_table,
    ),
    "onednn": Arithmetic(
        "f32(x · s_src · beta) by a reorder, softmax, fma(v, 1 / s_dst, z), even", onednn.softmax
    ),
}
