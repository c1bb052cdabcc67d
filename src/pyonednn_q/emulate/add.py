"""The sum of two quantized tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Quantized,
    checked,
    choose,
    parameters,
    stored,
    through_floats,
)
from pyonednn_q.emulate.rescale import searched, two_step
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fma import fma32
from pyonednn_q.requantize.multiplier import (
    high_product,
    quantize_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.requantize.rounding import round_real, shift_round

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["add"]

Array = np.ndarray[Any, Any]
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
        Codes; NumPy's broadcasting applies.
    a_q, b_q, dst_q : QParams
        Per tensor, u8 or s8.
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
    choose("add", dialect)
    left, right = checked("a", a, a_q), checked("b", b, b_q)
    try:
        np.broadcast_shapes(left.codes.shape, right.codes.shape)
    except ValueError:
        wanted = f"dimensions that broadcast with {left.codes.shape} of a"
        raise ShapeError("b", str(right.codes.shape), wanted) from None
    scale, zero_point = parameters("dst_q", dst_q)
    if dialect == "onednn":
        return onednn.added(left, right, dst_q)
    if dialect == "onnxruntime":
        return stored(_onnxruntime(left, right, scale, zero_point), dst_q)
    if dialect == "tflite_optimised":
        return _in_vectors(left, right, dst_q)
    if dialect in _SUMS:
        return stored(_SUMS[dialect](left, right, scale) + zero_point, dst_q)
    symmetric = (left.zero_point, right.zero_point, zero_point) == (0, 0, 0)
    if symmetric and dialect.startswith("tpu_mlir"):
        if dialect == "tpu_mlir":
            parts = (searched(x.shifted, x.scale / scale) for x in (left, right))
            return stored(np.add(*parts), dst_q)
        return stored(_one_shift(left, right, scale), dst_q)
    if dialect == "tpu_mlir_cv18xx":
        wanted = "0 for all three tensors: this chip adds symmetric ones"
        raise ArgumentError("zero_point", f"{zero_point} of dst_q, or others", wanted)
    return through_floats(left.real + right.real, dst_q, dialect)


def _tflite(a: Quantized, b: Quantized, scale: float) -> Array:
    twice = 2 * max(a.scale, b.scale)
    parts = [two_step(x.shifted, x.scale / twice, left_shift=_HEAD_ROOM) for x in (a, b)]
    return two_step(parts[0] + parts[1], twice / (2**_HEAD_ROOM * scale))


def _in_vectors(a: Quantized, b: Quantized, dst_q: QParams) -> Array:
    """Add whole vectors as the optimised kernel does, and what they leave over as the reference.

    Vectors are cut from channels-last tensors.
    """
    dims = a.codes.shape
    if b.codes.shape != dims:
        wanted = f"{dims} of a: the optimised kernels cut broadcast tensors otherwise"
        raise ShapeError("b", str(b.codes.shape), wanted)
    flat = [x._replace(codes=_channels_last(x.codes).ravel()) for x in (a, b)]
    scale, zero_point = parameters("dst_q", dst_q)
    vector = 16 if dst_q.dtype == "s8" else 8
    whole = a.codes.size - a.codes.size % vector
    heads, tails = (
        [x._replace(codes=x.codes[part]) for x in flat]
        for part in (slice(whole), slice(whole, None))
    )
    twice = 2 * max(a.scale, b.scale)
    parts = [_one_rounding(x, x.scale / twice, dst_q.dtype) for x in heads]
    q, exponent = quantize_multiplier(twice / (2**_HEAD_ROOM * scale))
    total = high_product(parts[0] + parts[1], q)
    # Narrowed to 16 bits, which wraps around, and so does the addition of the zero point.
    narrow = shift_round(total, np.maximum(-exponent, 0), "half_away_from_zero").astype(np.int16)
    made = (narrow + np.int16(zero_point)).astype(np.int64)
    rest = _tflite(tails[0], tails[1], scale) + zero_point
    codes = stored(np.concatenate([made, rest]), dst_q)
    last = _channels_last(a.codes).shape
    return np.ascontiguousarray(_channels_second(codes.reshape(last)))


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


def _onnxruntime(a: Quantized, b: Quantized, scale: float, zero_point: int) -> Array:
    """Fuse multiply-adds as its kernels do: in the constant, then b's product, then a's."""
    to = np.float32(scale)
    left, right = (np.asarray(np.float32(x.scale) / to) for x in (a, b))
    points = [np.asarray(np.float32(x.zero_point)) for x in (a, b)]
    constant = np.asarray(np.float32(zero_point) - fma32(points[0], left, right * points[1]))
    codes = [x.codes.astype(np.float32) for x in (a, b)]
    return round_real(fma32(codes[0], left, fma32(codes[1], right, constant)), "half_to_even")


def _xnnpack(a: Quantized, b: Quantized, scale: float) -> Array:
    to = np.float32(scale)
    ratios = [float(np.float32(x.scale) / to) for x in (a, b)]
    shift = 20 - int(np.floor(np.log2(max(ratios))))
    k = [int(round_real(ratio * 2.0**shift, "half_to_even")) for ratio in ratios]
    return shift_round(a.shifted * k[0] + b.shifted * k[1], shift, "half_up")


def _caffe2(a: Quantized, b: Quantized, scale: float) -> Array:
    to = np.float32(scale)
    ratios = [float(np.float32(x.scale) / to) for x in (a, b)]
    shift = 21 - int(np.floor(np.log2(max(ratios))))
    k = [int(round_real(ratio * 2.0**shift, "half_to_even")) for ratio in ratios]
    return shift_round(a.shifted * k[0] + b.shifted * k[1], shift, "half_away_from_zero")


def _one_shift(a: Quantized, b: Quantized, scale: float) -> Array:
    ratios = [x.scale / scale for x in (a, b)]
    _, shift = scale_to_mult_shift(max(ratios), 8, "truncate")
    k = [int(ratio * 2.0 ** int(shift)) for ratio in ratios]
    return shift_round(a.shifted * k[0] + b.shifted * k[1], shift, "half_up")


# Of integers, less the zero point of the result.
_SUMS: dict[str, Callable[[Quantized, Quantized, float], Array]] = {
    "tflite": _tflite,
    "xnnpack": _xnnpack,
    "caffe2": _caffe2,
}
