"""The sum of two quantized tensors."""

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
    checked,
    choose,
    encoding,
    floats,
    searched,
    through_floats,
    two_step,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.evaluate import fma32
from pyonednn_q.requantize.multiplier import (
    high_product,
    quantize_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.requantize.rounding import round_real, shift_round

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

_HEAD_ROOM = 20  # bits that TFLite shifts its inputs left by


def add(
    a: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    b: Any,  # noqa: ANN401
    *,
    a_q: QParams,
    b_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of a + b, in a dialect's arithmetic.

    Parameters
    ----------
    a, b : (N, C, spatial) tensors
        Codes of a_q's and b_q's data types, in shapes that broadcast as NumPy's do.
    a_q, b_q, dst_q : QParams
        Scale, zero point and data type of a, b and the result: per tensor, u8 or s8.
    dialect : str
        tflite (its reference kernel), tflite_optimised (without broadcasting), xnnpack,
        onnxruntime, caffe2, tpu_mlir, tpu_mlir_cv18xx, stablehlo or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> half, quarter = QParams(0.5, 3, "s8"), QParams(0.25, 0, "s8")
    >>> a, b = np.array([5, 7], np.int8), np.array([2, -3], np.int8)
    >>> add(a, b, a_q=half, b_q=quarter, dst_q=half)
    array([6, 6], dtype=int8)
    """
    codes = choose(ADD, dialect)
    left, right = checked("a", a, a_q), checked("b", b, b_q)
    try:
        np.broadcast_shapes(left.codes.shape, right.codes.shape)
    except ValueError:
        wanted = f"dimensions that broadcast with {left.codes.shape} of a"
        raise ShapeError("b", str(right.codes.shape), wanted) from None
    return codes(encoding("dst_q", dst_q), left, right)


def _real(a: Quantized, b: Quantized) -> Array:
    return a.real + b.real


def _tflite(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    twice = 2 * max(a.scale, b.scale)
    parts = [two_step(x.shifted, x.scale / twice, left_shift=_HEAD_ROOM) for x in (a, b)]
    total = two_step(parts[0] + parts[1], twice / (2**_HEAD_ROOM * dst_q.scale))
    return dst_q.stored(total + dst_q.zero_point)


def _tflite_optimised(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    """Add whole vectors as the optimised kernel does, and what they leave over as the reference.

    Vectors are cut from channels-last tensors.
    """
    dims = a.codes.shape
    if b.codes.shape != dims:
        wanted = f"{dims} of a: the optimised kernels cut broadcast tensors otherwise"
        raise ShapeError("b", str(b.codes.shape), wanted)
    flat = [x._replace(codes=_channels_last(x.codes).ravel()) for x in (a, b)]
    vector = 16 if dst_q.dtype == "s8" else 8
    whole = a.codes.size - a.codes.size % vector
    heads, tails = (
        [x._replace(codes=x.codes[part]) for x in flat]
        for part in (slice(whole), slice(whole, None))
    )
    dst = np.concatenate([_in_vectors(dst_q, *heads), _tflite(dst_q, *tails)])
    last = _channels_last(a.codes).shape
    return np.ascontiguousarray(_channels_second(dst.reshape(last)))


def _in_vectors(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    twice = 2 * max(a.scale, b.scale)
    parts = [_one_rounding(x, x.scale / twice, dst_q.dtype) for x in (a, b)]
    q, exponent = quantize_multiplier(twice / (2**_HEAD_ROOM * dst_q.scale))
    total = high_product(parts[0] + parts[1], q)
    # Narrowed to 16 bits, which wraps around, and so does the addition of the zero point.
    narrow = shift_round(total, np.maximum(-exponent, 0), "half_away_from_zero").astype(np.int16)
    return dst_q.stored(narrow + np.int16(dst_q.zero_point))


def _one_rounding(x: Quantized, multiplier: float, dtype: str) -> Array:
    """Return x · 2^20 · multiplier: s8 shifted before the one rounding, u8 cut off behind it."""
    q, exponent = (int(value) for value in quantize_multiplier(multiplier))
    if dtype == "u8":
        return np.asarray(high_product(x.shifted << _HEAD_ROOM, q) >> -exponent)
    left = _HEAD_ROOM + exponent
    return high_product(x.shifted << max(left, 0) >> max(-left, 0), q)


def _channels_last(codes: Array) -> Array:
    return np.moveaxis(codes, 1, -1) if codes.ndim > 2 else codes


def _channels_second(codes: Array) -> Array:
    return np.moveaxis(codes, -1, 1) if codes.ndim > 2 else codes


def _onnxruntime(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    """Fuse multiply-adds as its kernels do: in the constant, then b's product, then a's."""
    to = np.float32(dst_q.scale)
    left, right = (np.asarray(np.float32(x.scale) / to) for x in (a, b))
    points = [np.asarray(np.float32(x.zero_point)) for x in (a, b)]
    shift = fma32(points[0], left, right * points[1])
    constant = np.asarray(np.float32(dst_q.zero_point) - shift)
    codes = [x.codes.astype(np.float32) for x in (a, b)]
    real_code = fma32(codes[0], left, fma32(codes[1], right, constant))
    return dst_q.stored(round_real(real_code, "half_to_even"))


def _xnnpack(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    return _one_power(dst_q, a, b, 21, "half_up")


def _caffe2(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    return _one_power(dst_q, a, b, 22, "half_away_from_zero")


def _one_power(dst_q: Encoding, a: Quantized, b: Quantized, bits: int, halves: str) -> Array:
    """Multiply by integers of so many bits at the most, in units of one power of two."""
    to = np.float32(dst_q.scale)
    ratios = [float(np.float32(x.scale) / to) for x in (a, b)]
    shift = bits - 1 - int(np.floor(np.log2(max(ratios))))
    k = [int(round_real(ratio * 2.0**shift, "half_to_even")) for ratio in ratios]
    total = shift_round(a.shifted * k[0] + b.shifted * k[1], shift, halves)
    return dst_q.stored(total + dst_q.zero_point)


def _tpu_mlir(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    if not _is_symmetric(dst_q, a, b):
        return _TPU_MLIR_FLOATS.codes(dst_q, a, b)
    parts = (searched(x.shifted, x.scale / dst_q.scale) for x in (a, b))
    return dst_q.stored(np.add(*parts))


def _tpu_mlir_cv18xx(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    if not _is_symmetric(dst_q, a, b):
        wanted = "0 for all three tensors: this chip adds symmetric ones"
        raise ArgumentError("zero_point", f"{dst_q.zero_point} of dst_q, or others", wanted)
    ratios = [x.scale / dst_q.scale for x in (a, b)]
    _, shift = scale_to_mult_shift(max(ratios), 8, "truncate")
    k = [int(ratio * 2.0 ** int(shift)) for ratio in ratios]
    return dst_q.stored(shift_round(a.shifted * k[0] + b.shifted * k[1], shift, "half_up"))


def _is_symmetric(*tensors: Encoding | Quantized) -> bool:
    return not any(tensor.zero_point for tensor in tensors)


_TPU_MLIR_FLOATS = floats("tpu_mlir", _real)

ADD: Dialects = {
    "tflite": Arithmetic(
        "each x · 2^20 · s / (2 · max s) by D2, their sum · 2 · max s / (2^20 · s_dst) by D2, + z: "
        "the reference kernel",
        _tflite,
    ),
    "tflite_optimised": Arithmetic(
        "no broadcasting; each x · 2^20 · s / (2 · max s) with one rounding, half up (s8: shifted "
        "before it; u8: after it, cut off), their sum by D2, in 16 bits, + z; the last, up to 15 "
        "(u8: 7), of a channels-last tensor as tflite",
        _tflite_optimised,
    ),
    "onnxruntime": Arithmetic(
        "f32: a · (s_a / s_dst) + b · (s_b / s_dst) on codes, with all zero points as one constant "
        "inside, even",
        _onnxruntime,
    ),
    "xnnpack": Arithmetic("21-bit multipliers of the same power, one shift half up, + z", _xnnpack),
    "caffe2": Arithmetic(
        "22-bit multipliers of the same power, one shift half away, + z (SNPS-Caffe)", _caffe2
    ),
    "tpu_mlir": Arithmetic(
        "zero points 0: two products by 7 bits, each shifted half up, then added (BM168x); else "
        "floats",
        _tpu_mlir,
    ),
    "tpu_mlir_cv18xx": Arithmetic(
        "zero points 0: two products by 7 bits, added, then one shift half up", _tpu_mlir_cv18xx
    ),
    **through_floats(_real, "stablehlo"),
    "onednn": Arithmetic(
        "f32(f32(a · r_a) + f32(b · r_b)) on codes, + all zero points as one constant, even: "
        "binary add",
        onednn.added,
    ),
}
