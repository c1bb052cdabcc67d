"""Quantized tensors as operators take them, tables of what each dialect does, and its products."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import quantize_rules
from pyonednn_q.requantize.multiplier import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.requantize.rounding import shift_round

# How a dialect makes codes of float32 values: the rule of `requantize.quantize_rules`, as docs
# say it.
_RULES = {
    "tflite": ("tflite", "floats, half away(y / s) + z"),
    "onnxruntime": ("onnx", "floats, even(y / s) + z"),
    "caffe2": ("onnx", "floats, even(y / s) + z"),
    "tpu_mlir": ("tpu_mlir", "floats, half away(y · f32(1 / s)) + z"),
    "stablehlo": ("stablehlo", "floats, even(y / s + z)"),
    "onednn": ("onednn", "floats, even(y · f32(1 / s) + z)"),
}


class Arithmetic(NamedTuple):
    """Arithmetic of an operator in one dialect.

    Parameters
    ----------
    says : str
        The arithmetic in words, as the docs print it.
    codes : callable
        Function from the result's encoding, the operands and the operator's options to codes.
    """

    says: str
    codes: Callable[..., Array]


Dialects = dict[str, Arithmetic]


class Encoding(NamedTuple):
    """Meaning of one tensor's codes: type, scale as runtimes store it, zero point."""

    dtype: str
    scale: float
    zero_point: int

    def __str__(self) -> str:
        return f"{self.dtype}, scale {self.scale!r}, zero point {self.zero_point}"

    def stored(self, whole: Array) -> Array:
        """Return integers, zero point included, within the range of codes."""
        bounded = np.clip(whole, dtypes.qmin(self.dtype), dtypes.qmax(self.dtype))
        return np.asarray(bounded).astype(dtypes.numpy_dtype(self.dtype))

    def quantized(self, real: Array, dialect: str) -> Array:
        """Return codes of float32 values, as the dialect makes them."""
        rule, _ = _RULES[dialect]
        return quantize_rules.quantize(real, self.scale, self.zero_point, self.dtype, rule=rule)


class Quantized(NamedTuple):
    """Codes, and what they stand for."""

    codes: Array
    scale: float
    zero_point: int

    @property
    def encoding(self) -> Encoding:
        """Type, scale and zero point of the codes."""
        dtype = dtypes.from_numpy(self.codes.dtype, "src")
        return Encoding(dtype, self.scale, self.zero_point)

    @property
    def shifted(self) -> Array:
        """Codes less the zero point, in 64 bits."""
        return self.codes.astype(np.int64) - self.zero_point

    @property
    def real(self) -> Array:
        """Real values of the codes, in float32."""
        return quantize_rules.dequantize(self.codes, self.scale, self.zero_point)


def choose(table: Dialects, dialect: str) -> Callable[..., Array]:
    """Return the function of a dialect.

    Raises
    ------
    ArgumentError
        The operator does not have it; the message names those that it has.
    """
    one_of("dialect", dialect, tuple(table))
    return table[dialect].codes


def by_code(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function of single codes as one of tensors, which computes each of the 256 once."""

    @functools.wraps(function)
    def codes(dst: Encoding, src: Quantized, *options: float) -> Array:
        info = np.iinfo(src.codes.dtype)
        every = np.arange(info.min, info.max + 1).astype(src.codes.dtype)
        table = function(dst, src._replace(codes=every), *options)
        return table[src.codes.astype(np.int64) - info.min]

    return codes


def floats(dialect: str, real: Callable[..., Array], prefix: str = "") -> Arithmetic:
    """Return the arithmetic of dequantizing, a function in float32, and quantizing.

    Parameters
    ----------
    dialect : str
        Arithmetic that quantizes the result.
    real : callable
        Function from operands and options to float32 values.
    prefix : str
        Text that docs have before the sentence of the dialect.
    """

    def codes(dst: Encoding, *operands: Any) -> Array:  # noqa: ANN401
        return dst.quantized(real(*operands), dialect)

    return Arithmetic(prefix + _RULES[dialect][1], codes)


def through_floats(
    real: Callable[..., Array], *dialects: str, single_codes: bool = False
) -> Dialects:
    """Return `floats` of several dialects; a function of single codes is computed by code."""
    table = {dialect: floats(dialect, real) for dialect in dialects}
    if not single_codes:
        return table
    return {dialect: entry._replace(codes=by_code(entry.codes)) for dialect, entry in table.items()}


def encoding(name: str, q: object) -> Encoding:
    """Return the meaning of codes with these parameters.

    Raises
    ------
    ArgumentError
        No `QParams`, several scales, or one that float32 does not hold.
    DTypeError
        Not of 8 bits.
    """
    instance(name, q, QParams)
    assert isinstance(q, QParams)
    if q.dtype not in {"u8", "s8"}:
        raise DTypeError(name, q.dtype, "u8 or s8")
    if q.axis is not None:
        raise ArgumentError(name, f"{q.channels} channels", "one scale for the tensor")
    with np.errstate(over="ignore"):
        scale = float(np.float32(q.scale))
    if not (np.isfinite(scale) and scale > 0):
        raise ArgumentError(name, f"a scale of {q.scale!r}", "one that float32 holds")
    return Encoding(q.dtype, scale, int(q.zero_point))


def checked(name: str, value: object, q: QParams) -> Quantized:
    """Return a tensor with its parameters, which are called as the tensor is with ``_q``.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    dtype, scale, zero_point = encoding(f"{name}_q", q)
    array = as_array(name, value)
    says = f"{dtypes.numpy_dtype(dtype)}, as {name}_q says"
    got = dtypes.from_numpy(array.dtype, name, says)
    if got != dtype:
        raise DTypeError(name, got, f"{dtype}, as {name}_q says")
    return Quantized(array, scale, zero_point)


def plain(name: str, value: object) -> Array:
    """Return a tensor of 8-bit codes whose parameters do not matter.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    array = as_array(name, value)
    dtype = dtypes.from_numpy(array.dtype, name, "codes: uint8 or int8")
    dtypes.checked(dtype, name, ("u8", "s8"))
    return array


def two_step(x: Array, multiplier: float, *, left_shift: int = 0) -> Array:
    """Return x · 2^left_shift · multiplier as TFLite does: 31 bits, two roundings."""
    q, exponent = quantize_multiplier(multiplier)
    return multiply_by_quantized_multiplier(x << left_shift, q, exponent)


def two_step_up(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as TFLite's optimised kernels do: the second rounding is half up."""
    return multiply_by_quantized_multiplier(x, *quantize_multiplier(multiplier), "two_step_up")


def eight_bits(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as XNNPACK does: in 256ths, half up."""
    k = int(np.rint(np.float32(256) * np.float32(multiplier)))
    return shift_round(x * k, 8, "half_up")


def searched(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as TPU-MLIR does: 7 bits, a shift from 0 to 30, half up."""
    k, r = scale_to_mult_shift(multiplier, 8, "positive")
    return shift_round(x * k, r, "half_up")
