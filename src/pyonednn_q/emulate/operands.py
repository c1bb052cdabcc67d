"""Quantized tensors as operators take them: codes with one scale and zero point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, one_of
from pyonednn_q.emulate.catalogue import ARITHMETIC
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import quantizers

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Quantized",
    "by_table",
    "checked",
    "choose",
    "parameters",
    "plain",
    "stored",
    "through_floats",
]

Array = np.ndarray[Any, Any]

# How a dialect makes codes of float32 values: `requantize.quantizers`.
_STORE = {
    "tflite": "tflite",
    "tflite_optimised": "tflite_optimised",
    "xnnpack": "tflite_optimised",
    "onnxruntime": "onnx",
    "onednn": "onednn",
    "caffe2": "onnx",
    "tpu_mlir": "tpu_mlir",
    "tpu_mlir_cv18xx": "tpu_mlir",
    "stablehlo": "stablehlo",
}


class Quantized(NamedTuple):
    """Codes, and what they stand for."""

    codes: Array
    scale: float
    zero_point: int

    @property
    def shifted(self) -> Array:
        """Codes less the zero point, in 64 bits."""
        return self.codes.astype(np.int64) - self.zero_point

    @property
    def real(self) -> Array:
        """What the codes stand for, in float32."""
        return quantizers.dequantize(self.codes, self.scale, self.zero_point)


def choose(op: str, dialect: str) -> None:
    """Refuse a dialect that has no such operator.

    Raises
    ------
    ArgumentError
        Naming those that have it.
    """
    one_of("dialect", dialect, tuple(ARITHMETIC[op]))


def parameters(name: str, q: object) -> tuple[float, int]:
    """Return scale, as runtimes store it, and zero point of a tensor.

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
    return scale, int(q.zero_point)


def checked(name: str, value: object, q: QParams) -> Quantized:
    """Return a tensor with its parameters, which are called as the tensor is with ``_q``.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    scale, zero_point = parameters(f"{name}_q", q)
    array = as_array(name, value)
    wanted = f"{dtypes.numpy_dtype(q.dtype)}, as {name}_q says"
    dtype = dtypes.from_numpy(array.dtype, name, wanted)
    if dtype != q.dtype:
        raise DTypeError(name, dtype, f"{q.dtype}, as {name}_q says")
    return Quantized(array, scale, zero_point)


def plain(name: str, value: object) -> Array:
    """Return a tensor of 8-bit codes whose parameters do not matter.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    array = as_array(name, value)
    found = dtypes.from_numpy(array.dtype, name, "codes: uint8 or int8")
    dtypes.checked(found, name, ("u8", "s8"))
    return array


def stored(whole: Array, q: QParams, *, lo: int | None = None) -> Array:
    """Return integers, zero point included, within the range of codes; `lo` raises its end."""
    least = dtypes.qmin(q.dtype)
    bounded = np.clip(whole, least if lo is None else max(lo, least), dtypes.qmax(q.dtype))
    return np.asarray(bounded).astype(dtypes.numpy_dtype(q.dtype))


def through_floats(real: Array, dst_q: QParams, dialect: str) -> Array:
    """Return codes of float32 values, as the dialect makes them."""
    scale, zero_point = parameters("dst_q", dst_q)
    return quantizers.quantize(real, scale, zero_point, dst_q.dtype, rule=_STORE[dialect])


def by_table(src: Quantized, function: Callable[[Quantized], Array]) -> Array:
    """Return a function of single codes, computed once for each of the 256 there are."""
    info = np.iinfo(src.codes.dtype)
    every = np.arange(info.min, info.max + 1).astype(src.codes.dtype)
    table = function(src._replace(codes=every))
    return table[src.codes.astype(np.int64) - info.min]
