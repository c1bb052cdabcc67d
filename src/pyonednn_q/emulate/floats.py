"""Operators that every runtime computes on floats: bias add, power, sigmoid, softmax.

Codes are dequantized in float32, the function is float32's, and the result is quantized as the
dialect quantizes. Exponentials differ between libraries in their last bit: a result can be the
neighbouring code where the real value lies that close to a tie, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import real, whole
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import by_table, checked, choose, through_floats
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.post_ops import EltwisePostOp
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["bias_add", "power", "sigmoid", "softmax"]

Array = np.ndarray[Any, Any]


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
        Codes.
    bias : (C,) tensor
        Codes.
    src_q, bias_q, dst_q : QParams
        Per tensor, u8 or s8.
    dialect : str
        tflite, onnxruntime, caffe2 or tpu_mlir: how the result is quantized; or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    choose("bias_add", dialect)
    x, b = checked("src", src, src_q), checked("bias", bias, bias_q)
    if x.codes.ndim < 2 or b.codes.shape != x.codes.shape[1:2]:
        wanted = f"one value for each channel of src, {x.codes.shape}"
        raise ShapeError("bias", str(b.codes.shape), wanted)
    along = b._replace(codes=b.codes.reshape(-1, *(1,) * (x.codes.ndim - 2)))
    if dialect == "onednn":
        return onednn.added(x, along, dst_q)
    return through_floats(x.real + along.real, dst_q, dialect)


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
        Codes.
    exponent, scale, shift : float
        float32.
    src_q, dst_q : QParams
        Per tensor, u8 or s8.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir or onednn.

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
    choose("power", dialect)
    given = {"exponent": exponent, "scale": scale, "shift": shift}
    p, a, b = (np.float32(real(name, value)) for name, value in given.items())
    x = checked("src", src, src_q)
    with np.errstate(all="ignore"):
        every = by_table(x, lambda x: np.power(b + a * x.real, p))
    if np.isnan(every).any():
        wanted = "a base and an exponent whose power is a real number"
        raise ArgumentError("exponent", f"{float(p)!r} of a negative base", wanted)
    if dialect == "onednn":
        to_real = onednn.linear(float(np.float32(x.scale) * a), float(b))
        powers = {1.0: (), 2.0: (EltwisePostOp("square"),)}
        power_of = powers.get(float(p), (EltwisePostOp("pow", 1.0, float(p)),))
        return onednn.codes(x, dst_q, to_real, *power_of, by=1.0)
    return through_floats(every, dst_q, dialect)


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
        As of `power`.

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
    choose("sigmoid", dialect)
    x = checked("src", src, src_q)
    if dialect == "onednn":
        return onednn.codes(
            x, dst_q, onednn.linear(x.scale, 0.0), EltwisePostOp("logistic"), by=1.0
        )
    one = np.float32(1)
    with np.errstate(over="ignore"):
        return by_table(
            x,
            lambda x: through_floats(one / (one + np.exp(-x.real)), dst_q, dialect),
        )


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
        As of `power`.
    axis : int
        Of the classes.
    beta : float
        float32, 0 or more.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    choose("softmax", dialect)
    x = checked("src", src, src_q)
    along = whole("axis", axis, -x.codes.ndim, x.codes.ndim - 1)
    beta = real("beta", beta)
    if beta < 0:
        raise ArgumentError("beta", shown(beta), "0 or more: the largest class stays the largest")
    if dialect == "onednn":
        return onednn.softmax(x, along, beta, dst_q)
    # The zero point cancels against the largest.
    below = x.codes.astype(np.int64) - x.codes.max(axis=along, keepdims=True)
    step = np.float32(x.scale) * np.float32(beta)
    powers = np.exp(below.astype(np.float32) * step)
    return through_floats(powers / powers.sum(axis=along, keepdims=True), dst_q, dialect)
