"""What ONNX's operators mean: integers exactly, reals in float64, from ONNX's text alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from support.oracle_convolution import convolve, deconvolve

Array = np.ndarray[Any, Any]
Attributes = dict[str, Any]


def _per_dim(attributes: Attributes, name: str, count: int, default: int) -> list[int]:
    return list(attributes.get(name) or [default] * count)


def _problem(
    lengths: list[int], batch: int, channels: int, window: dict[str, list[int]], groups: int
) -> Any:
    """Return what `convolve` and `deconvolve` read of a problem."""
    dst = SimpleNamespace(dims=(batch, channels, *lengths))
    return SimpleNamespace(dst=dst, groups=groups, **window)


def convolved(x: Array, w: Array, attributes: Attributes) -> Array:
    """Return Σ x · w in float64 for ONNX's attributes of a convolution."""
    count, groups = x.ndim - 2, attributes.get("group", 1)
    stride = _per_dim(attributes, "strides", count, 1)
    dilation = _per_dim(attributes, "dilations", count, 1)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    pads = _per_dim(attributes, "pads", 2 * count, 0)
    lo, hi = pads[:count], pads[count:]
    if attributes.get("auto_pad", "NOTSET").startswith("SAME"):
        wanted = [-(-length // step) for length, step in zip(x.shape[2:], stride, strict=True)]
        for i in range(count):
            total = max(0, (wanted[i] - 1) * stride[i] + reach[i] - x.shape[2 + i])
            small, large = total // 2, total - total // 2
            is_upper = attributes["auto_pad"] == "SAME_UPPER"
            lo[i], hi[i] = (small, large) if is_upper else (large, small)
    lengths = [(x.shape[2 + i] + lo[i] + hi[i] - reach[i]) // stride[i] + 1 for i in range(count)]
    window = {"stride": stride, "dilation": dilation, "padding_lo": lo, "padding_hi": hi}
    outputs = w.shape[0]
    wei = w.astype(np.float64).reshape(groups, outputs // groups, *w.shape[1:])
    problem = _problem(lengths, x.shape[0], outputs, window, groups)
    return convolve(x.astype(np.float64), wei, problem)


def transposed(x: Array, w: Array, attributes: Attributes) -> Array:
    """Return the convolution that spreads x, in float64, for ONNX's attributes."""
    count, groups = x.ndim - 2, attributes.get("group", 1)
    stride = _per_dim(attributes, "strides", count, 1)
    dilation = _per_dim(attributes, "dilations", count, 1)
    extra = _per_dim(attributes, "output_padding", count, 0)
    pads = _per_dim(attributes, "pads", 2 * count, 0)
    lo, hi = pads[:count], pads[count:]
    auto_pad = attributes.get("auto_pad", "NOTSET")
    full = [
        stride[i] * (x.shape[2 + i] - 1) + extra[i] + (w.shape[2 + i] - 1) * dilation[i] + 1
        for i in range(count)
    ]
    shape = attributes.get("output_shape")
    if shape is None and auto_pad.startswith("SAME"):
        shape = [x.shape[2 + i] * stride[i] for i in range(count)]
    if shape is None:
        shape = [full[i] - lo[i] - hi[i] for i in range(count)]
    else:
        for i in range(count):
            total = max(0, full[i] - shape[i])
            small, large = total // 2, total - total // 2
            lo[i], hi[i] = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    window = {"stride": stride, "dilation": dilation, "padding_lo": lo, "padding_hi": hi}
    channels, outputs = w.shape[:2]
    wei = w.astype(np.float64).reshape(groups, channels // groups, outputs, *w.shape[2:])
    problem = _problem(shape, x.shape[0], outputs * groups, window, groups)
    return deconvolve(x.astype(np.float64), wei.swapaxes(1, 2), problem)


def conv_sums(inputs: list[Any], attributes: Attributes) -> Array:
    """Return the exact sums of (x, x_zero_point, w, w_zero_point, B)."""
    x, x_point, w, w_point, added = inputs
    points = np.zeros(1) if w_point is None else np.asarray(w_point, np.float64).reshape(-1)
    centred = w.astype(np.float64) - points.reshape(-1, *(1,) * (w.ndim - 1))
    acc = convolved(x.astype(np.float64) - float(x_point or 0), centred, attributes)
    if added is not None:
        acc = acc + added.astype(np.float64).reshape(-1, *(1,) * (x.ndim - 2))
    return acc.astype(np.int64)


def product_sums(a: Array, a_point: Any, b: Array, b_point: Any) -> Array:
    """Return the exact product of matrices less their zero points."""
    rows = np.zeros((), np.int64) if a_point is None else np.asarray(a_point, np.int64)
    columns = np.zeros((), np.int64) if b_point is None else np.asarray(b_point, np.int64)
    if rows.ndim == 1 and rows.size > 1:
        rows = rows[:, None]
    product: Array = np.matmul(
        a.astype(np.int64) - rows.reshape(rows.shape if rows.size > 1 else ()),
        b.astype(np.int64) - columns.reshape(columns.shape if columns.size > 1 else ()),
    )
    return product


def codes(acc: Array, multiplier: Array, zero_point: Any, dtype: Any) -> Array:
    """Return saturate(rne(f32(acc) · multiplier) + zero_point)."""
    whole = np.rint(acc.astype(np.float32) * multiplier).astype(np.float64) + zero_point
    info = np.iinfo(dtype)
    return np.asarray(np.clip(whole, info.min, info.max).astype(dtype))


UNIT = 2.0**-24  # the relative error of one rounding to float32


def float32_bound(magnitudes: Array, terms: int, more: int = 2) -> Array:
    """Return how far a float32 sum, in any order, can be from the exact one.

    Each of `terms` products and sums, and `more` operations after them, is off by one part in 2^24
    at most: gamma_n = n u / (1 - n u) of the sum of magnitudes (Higham, Accuracy and Stability of
    Numerical Algorithms, section 3.1); what is denormal, by 2^-149 each.
    """
    n = terms + more
    return np.asarray(magnitudes * (n * UNIT / (1 - n * UNIT)) + n * 2.0**-149)
