"""Codes of one kind made codes of another: the QUANTIZE of a quantized tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
from pyonednn_q.emulate.rescale import eight_bits, two_step, two_step_up

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["requantize"]

Array = np.ndarray[Any, Any]
_VECTOR = 16


def requantize(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    *,
    src_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of the same values in another scale, zero point or type.

    Parameters
    ----------
    src : tensor
        Codes.
    src_q, dst_q : QParams
        Per tensor, u8 or s8.
    dialect : str
        tflite (its reference kernel), tflite_optimised, xnnpack, onnxruntime, caffe2, tpu_mlir,
        stablehlo or onednn.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> src_q, dst_q = QParams(0.5, 0, "s8"), QParams(0.25, 128, "u8")
    >>> requantize(np.array([-9, 0, 10], np.int8), src_q=src_q, dst_q=dst_q)
    array([110, 128, 148], dtype=uint8)
    """
    choose("requantize", dialect)
    x = checked("src", src, src_q)
    scale, zero_point = parameters("dst_q", dst_q)
    if dialect == "onednn":
        return onednn.codes(x, dst_q)
    single = float(np.float32(x.scale) / np.float32(scale))
    if dialect == "xnnpack" and not (src_q.dtype == dst_q.dtype and 2**-8 <= single <= 2**7):
        dialect = "tflite_optimised"  # not delegated

    def function(x: Quantized) -> Array:
        if dialect == "tflite":
            return stored(two_step(x.shifted, x.scale / scale) + zero_point, dst_q)
        if dialect == "tflite_optimised":
            return stored(two_step_up(x.shifted, x.scale / scale) + zero_point, dst_q)
        if dialect == "xnnpack":
            return stored(eight_bits(x.shifted, single) + zero_point, dst_q)
        return through_floats(x.real, dst_q, dialect)

    dst = by_table(x, function)
    if dialect == "tflite_optimised":
        # What its vectors leave over is done as in the reference kernel.
        rest = x.codes.size - x.codes.size % _VECTOR
        tail = requantize(x.codes.ravel()[rest:], src_q=src_q, dst_q=dst_q)
        dst = np.concatenate([dst.ravel()[:rest], tail]).reshape(dst.shape)
    return dst
