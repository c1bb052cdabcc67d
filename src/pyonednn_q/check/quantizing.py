"""Quantizing: what a float source means as codes, by the formulas that docs/calls.md promises.

    code = clamp(rne(x / scale) + zero_point)         float32, one operation after the other

Written apart from what calls run: `native.quantize` and `quantize.ranges`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes

Array = np.ndarray[Any, Any]


class QuantizedSrc(NamedTuple):
    """Codes of a source, with scale and zero point: one value, or one per row."""

    codes: Array
    scale: Array
    zero_point: Array


def quantized(values: Array, scale: Array, zero_point: Array, dtype: str) -> Array:
    """Return codes of f32 values; scale and zero point broadcast."""
    with np.errstate(over="ignore"):
        whole = np.rint(values / np.asarray(scale, np.float32)) + np.asarray(zero_point, np.float32)
    codes = np.clip(whole, dtypes.qmin(dtype), dtypes.qmax(dtype))
    return np.asarray(codes).astype(dtypes.numpy_dtype(dtype))


def by_own_range(values: Array, dtype: str, rows: int = 1) -> QuantizedSrc:
    """Return codes of f32 values by the range of all, or by that of each of so many rows.

    Parameters
    ----------
    values : ndarray of float32
        Real values of a source, of any shape.
    dtype : {"u8", "s8"}
        u8: asymmetric, as ONNX's DynamicQuantizeLinear has it; s8: symmetric.
    rows : int
        How many rows of equal length the source has in row-major order; each gets a range of its
        own.

    Examples
    --------
    >>> by_own_range(np.array([-1.0, 1.55], np.float32), "u8").zero_point
    array([[100.]], dtype=float32)
    """
    flat = values.reshape(rows, -1)
    lo = np.minimum(flat.min(axis=1, keepdims=True), np.float32(0))
    hi = np.maximum(flat.max(axis=1, keepdims=True), np.float32(0))
    if dtype == "s8":
        scale = np.maximum(-lo, hi) / np.float32(127)
        point = np.zeros_like(scale)
    else:
        scale = (hi - lo) / np.float32(255)
        point = np.zeros_like(scale)
    nothing = (lo == 0) & (hi == 0)
    scale = np.where(nothing, np.float32(1), np.maximum(scale, np.finfo(np.float32).tiny))
    if dtype == "u8":
        point = np.clip(np.rint(-lo / scale), np.float32(0), np.float32(255))
    codes = quantized(flat, scale, point, dtype).reshape(values.shape)
    return QuantizedSrc(codes, scale, point)
