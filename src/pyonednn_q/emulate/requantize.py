"""Codes of one kind made codes of another: the QUANTIZE of a quantized tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

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
    through_floats,
    two_step,
    two_step_up,
)

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

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
        Codes of src_q's data type, of any shape.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
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
    codes = choose(REQUANTIZE, dialect)
    x = checked("src", src, src_q)
    return codes(encoding("dst_q", dst_q), x)


@by_code
def _tflite(dst_q: Encoding, x: Quantized) -> Array:
    return dst_q.stored(two_step(x.shifted, x.scale / dst_q.scale) + dst_q.zero_point)


@by_code
def _in_vectors(dst_q: Encoding, x: Quantized) -> Array:
    return dst_q.stored(two_step_up(x.shifted, x.scale / dst_q.scale) + dst_q.zero_point)


def _tflite_optimised(dst_q: Encoding, x: Quantized) -> Array:
    """Do what whole vectors leave over as the reference kernel does."""
    flat = x.codes.ravel()
    rest = flat.size - flat.size % _VECTOR
    parts = x._replace(codes=flat[:rest]), x._replace(codes=flat[rest:])
    dst = np.concatenate([_in_vectors(dst_q, parts[0]), _tflite(dst_q, parts[1])])
    return np.asarray(dst.reshape(x.codes.shape))


def _xnnpack(dst_q: Encoding, x: Quantized) -> Array:
    ratio = float(np.float32(x.scale) / np.float32(dst_q.scale))
    is_delegated = x.encoding.dtype == dst_q.dtype and 2**-8 <= ratio <= 2**7
    return _in_256ths(dst_q, x, ratio) if is_delegated else _tflite_optimised(dst_q, x)


@by_code
def _in_256ths(dst_q: Encoding, x: Quantized, ratio: float) -> Array:
    return dst_q.stored(eight_bits(x.shifted, ratio) + dst_q.zero_point)


def _real(x: Quantized) -> Array:
    return x.real


REQUANTIZE: Dialects = {
    "tflite": Arithmetic("x · s_src / s_dst by D2, + z: the reference kernel", _tflite),
    "tflite_optimised": Arithmetic(
        "the same by U2; the last, up to 15, of a tensor by D2", _tflite_optimised
    ),
    "xnnpack": Arithmetic(
        "of one type: x · rint(256 · s_src / s_dst) / 256, half up, + z; else as tflite_optimised",
        _xnnpack,
    ),
    **through_floats(_real, "onnxruntime", "caffe2", "tpu_mlir", "stablehlo", single_codes=True),
    "onednn": Arithmetic("fma(x, r, z), even: binary, linear as a post-op", onednn.codes),
}
