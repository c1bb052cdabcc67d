"""Rules by which frameworks quantize floats and store scales: what is rounded, and where.

All work in float32 on an input x and a scale s, inv = f32(1 / s), and clamp to the type last:

    tflite              half away(x / s) + z           reference kernel; SNPS-Caffe's TFLite method
    tflite_optimised    rne(x · inv) + z               optimised kernel and XNNPACK
    onnx                rne(x / s) + z                 ONNX Runtime; Caffe2; SNPS-Caffe's others
    torch_per_tensor    rne(fma(x, inv, z))            the zero point inside, one rounding before
    torch_per_channel   rne(x · inv + z)               inside, two roundings before
    torch_fake_quantize rne(x · inv) + z
    onednn              rne(saturate(x · inv + z))     as the destination of a primitive
    tpu_mlir            half away(x · inv) + z
    stablehlo           rne(saturate(x / s + z))       as its specification quantizes

How scales are stored is the table of types of the quantized-operator note, with what the frameworks
were found to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.evaluate import fma32
from pyonednn_q.requantize.rounding import round_real
from pyonednn_q.requantize.value import AWAY, EVEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike


def quantize(
    x: ArrayLike, scale: ArrayLike, zero_point: ArrayLike, dtype: str, *, rule: str
) -> Array:
    """Return the integers that a runtime makes of float32 values.

    Parameters
    ----------
    x : array_like of float
        Real values as float32, of any shape, without NaN; infinities saturate.
    scale, zero_point : array_like
        Real value of one step, above 0, rounded to float32; and the integer that stands for real 0.
        Both broadcast against `x`.
    dtype : str
        Data type of the result: "u8", "s8" or "s32".
    rule : str
        One of `RULES`: see the head of this module.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    one_of("rule", rule, RULES)
    dtype = dtypes.checked(dtype, "dtype", ("u8", "s8", "s32"))
    values = np.asarray(x)
    if values.dtype != np.float32:
        raise DTypeError("x", str(values.dtype), "float32")
    if np.isnan(values).any():
        raise ArgumentError(argument="x", got="NaN", wanted="numbers")
    s = np.asarray(scale, np.float32)
    if not (np.isfinite(s) & (s > 0)).all():
        raise ArgumentError("scale", str(scale), "values that are finite and positive in float32")
    z = np.asarray(zero_point)
    lo, hi = dtypes.qmin(dtype), dtypes.qmax(dtype)
    if z.dtype.kind not in "iu" or (z < lo).any() or (z > hi).any():
        raise ArgumentError("zero_point", str(zero_point), f"integers from {lo} to {hi}")
    with np.errstate(over="ignore"):
        whole = _RULES[rule](values, s, z.astype(np.float32), lo, hi)
    return np.clip(whole, lo, hi).astype(dtypes.numpy_dtype(dtype))


def dequantize(q: ArrayLike, scale: ArrayLike, zero_point: ArrayLike) -> Array:
    """Return f32(q − zero_point) · scale in float32, which every runtime here computes alike.

    Raises
    ------
    DTypeError
        `q` is not of an integer type.
    """
    values = np.asarray(q)
    dtypes.from_numpy(values.dtype, "q")
    shifted = values.astype(np.int64) - np.asarray(zero_point, np.int64)
    return np.asarray(shifted.astype(np.float32) * np.asarray(scale, np.float32))


def _tflite(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    return round_real(x / s, AWAY) + z


def _tflite_optimised(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    return round_real(x * _inverse(s), EVEN) + z


def _onnx(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    return round_real(x / s, EVEN) + z


def _torch_per_tensor(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    finite = np.where(np.isinf(x), np.copysign(np.float32(3e38), x), x)
    return round_real(fma32(finite, np.asarray(_inverse(s)), z), EVEN)


def _torch_per_channel(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    return round_real(x * _inverse(s) + z, EVEN)


def _onednn(x: Array, s: Array, z: Array, lo: int, hi: int) -> Array:
    return round_real(np.clip((x * _inverse(s) + z).astype(np.float64), lo, hi), EVEN)


def _stablehlo(x: Array, s: Array, z: Array, lo: int, hi: int) -> Array:
    return round_real(np.clip((x / s + z).astype(np.float64), lo, hi), EVEN)


def _tpu_mlir(x: Array, s: Array, z: Array, _lo: int, _hi: int) -> Array:
    return round_real(x * _inverse(s), AWAY) + z


def _inverse(s: Array) -> Array:
    return np.asarray(np.float32(1) / s)


_RULES: dict[str, Callable[[Array, Array, Array, int, int], Array]] = {
    "tflite": _tflite,
    "tflite_optimised": _tflite_optimised,
    "onnx": _onnx,
    "torch_per_tensor": _torch_per_tensor,
    "torch_per_channel": _torch_per_channel,
    "torch_fake_quantize": _tflite_optimised,
    "onednn": _onednn,
    "tpu_mlir": _tpu_mlir,
    "stablehlo": _stablehlo,
}
RULES = tuple(_RULES)


@dataclass(frozen=True, slots=True)
class Framework:
    """Rules of a framework for scales and halves.

    Attributes
    ----------
    scale : {"float32", "float64"}
        Type in which scales are stored.
    multiplier : {"double", "single_product", "single"}
        Precision in which src_scale · wei_scale / dst_scale is formed: see `real_multiplier`.
    quantize : str
        The rule by which floats become codes: one of `quantizers.RULES`.
    rounding : str
        Way in which that rule rounds halves.
    """

    scale: str
    multiplier: str
    quantize: str
    rounding: str


FRAMEWORKS = {
    "tflite_int8": Framework("float32", "double", "tflite", "half_away_from_zero"),
    "tflite_uint8": Framework("float32", "single_product", "tflite", "half_away_from_zero"),
    "tflite_optimised": Framework("float32", "double", "tflite_optimised", "half_to_even"),
    "onnxruntime": Framework("float32", "single", "onnx", "half_to_even"),
    "caffe2": Framework("float32", "single", "onnx", "half_to_even"),
    "torch": Framework("float32", "single", "torch_per_tensor", "half_to_even"),
    "onednn": Framework("float32", "single", "onednn", "half_to_even"),
    "tpu_mlir": Framework("float64", "double", "tpu_mlir", "half_away_from_zero"),
}


def framework(name: str) -> Framework:
    """Return the constants of a framework.

    Raises
    ------
    ArgumentError
        There is none of that name.

    Examples
    --------
    >>> framework("tflite_int8").multiplier, framework("onnxruntime").rounding
    ('double', 'half_to_even')
    """
    one_of("name", name, tuple(FRAMEWORKS))
    return FRAMEWORKS[name]


class Bounds(TypedDict):
    """Parameters of `requantizer`: where its integers are kept, and between which bounds."""

    dst_dtype: str
    lo: int | None
    hi: int | None


# SNPS-Caffe's Saturate: those without "8bit" in their name have 12 bits.
SATURATE_MODES = {
    "None": Bounds(dst_dtype="s32", lo=None, hi=None),
    "Signed": Bounds(dst_dtype="s32", lo=-2048, hi=2047),
    "Unsigned": Bounds(dst_dtype="s32", lo=0, hi=4095),
    "Signed_8bit": Bounds(dst_dtype="s8", lo=-128, hi=127),
    "Unsigned_8bit": Bounds(dst_dtype="u8", lo=0, hi=255),
}


def saturate_mode(name: str) -> Bounds:
    """Return arguments of `requantizer` for one of SNPS-Caffe's Saturate modes.

    Raises
    ------
    ArgumentError
        There is none of that name.

    Examples
    --------
    >>> saturate_mode("Signed")
    {'dst_dtype': 's32', 'lo': -2048, 'hi': 2047}
    """
    one_of("name", name, tuple(SATURATE_MODES))
    return SATURATE_MODES[name]
