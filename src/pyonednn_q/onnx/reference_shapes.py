"""Operators of ONNX in NumPy that pad, pick and normalize, of all that `onnx.reference` refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array

__all__ = ["SHAPES"]

_MODES = ("constant", "edge", "reflect", "wrap")


def _pad(
    _: object,
    x: Array,
    pads_input: Array | None = None,
    constant: Array | None = None,
    axes: Array | None = None,
    mode: str | None = None,
    pads: list[int] | None = None,
    value: float | None = None,
) -> tuple[Array]:
    lengths = [int(each) for each in (pads or []) if pads_input is None]
    lengths = lengths if pads_input is None else [int(each) for each in pads_input.ravel()]
    chosen = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes.ravel()]
    sides = [(0, 0)] * x.ndim
    half = len(lengths) // 2
    for axis, lo, hi in zip(chosen, lengths[:half], lengths[half:], strict=True):
        sides[axis] = (lo, hi)
    # What is cut off is no more there to be repeated.
    inner = [
        slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(sides, x.shape, strict=True)
    ]
    more = [(max(lo, 0), max(hi, 0)) for lo, hi in sides]
    how: Any = mode or "constant"
    if how not in _MODES:
        raise RuntimeError(how)
    if how != "constant":
        return (np.pad(x[tuple(inner)], more, how),)
    fill = (value or 0) if constant is None or not constant.size else constant.reshape(())
    return (np.pad(x[tuple(inner)], more, constant_values=np.asarray(fill, x.dtype)),)


def _flatten(_: object, x: Array, axis: int | None = 1) -> tuple[Array]:
    at = 1 if axis is None else axis
    at += x.ndim if at < 0 else 0
    return (x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:])),)


def _reshape(_: object, x: Array, shape: Array, allowzero: int | None = 0) -> tuple[Array]:
    dims = [int(length) for length in shape.ravel()]
    if not allowzero:
        dims = [length or x.shape[at] for at, length in enumerate(dims)]
    known = math.prod(length for length in dims if length != -1)
    left = x.size // known if known else 0
    return (x.reshape([left if length == -1 else length for length in dims]),)


def _unsqueeze(
    _: object, x: Array, axes_input: Array | None = None, axes: list[int] | None = None
) -> tuple[Array]:
    chosen = axes if axes_input is None else [int(axis) for axis in axes_input.ravel()]
    return (np.expand_dims(x, tuple(chosen or ())),)


def _squeeze(
    _: object, x: Array, axes_input: Array | None = None, axes: list[int] | None = None
) -> tuple[Array]:
    chosen = axes if axes_input is None else [int(axis) for axis in axes_input.ravel()]
    return (np.squeeze(x, tuple(chosen) if chosen else None),)


def _gather_elements(_: object, x: Array, index: Array, axis: int | None = 0) -> tuple[Array]:
    at = (axis or 0) % x.ndim
    own = tuple(slice(n) if d != at else slice(None) for d, n in enumerate(index.shape))
    if not index.size:
        return (np.empty(index.shape, x.dtype),)
    wrapped = np.where(index < 0, index + x.shape[at], index)
    return (np.take_along_axis(x[own], wrapped.astype(np.int64), axis=at),)


def _one_hot(
    _: object, index: Array, depth: Array, values: Array, axis: int | None = -1
) -> tuple[Array]:
    count = int(depth.reshape(()))
    at = -1 if axis is None else axis
    at += index.ndim + 1 if at < 0 else 0
    classes = np.arange(count).reshape(count, *(1,) * (index.ndim - at))
    whole = index.astype(np.int64)
    is_there = (whole >= -count) & (whole < count)
    wrapped = np.where(whole < 0, whole + count, whole)
    hot = (np.expand_dims(wrapped, at) == classes) & np.expand_dims(is_there, at)
    off, on = values.reshape(2)
    return (np.where(hot, on, off).astype(values.dtype),)


def _soft_sign(_: object, x: Array) -> tuple[Array]:
    return (np.asarray(x / (1 + np.abs(x)), x.dtype),)


def _lp_normal(_: object, x: Array, axis: int | None = -1, p: int | None = 2) -> tuple[Array]:
    along, power = (-1 if axis is None else axis), p or 2
    with np.errstate(all="ignore"):
        x, dtype = (x.astype(np.float32) if x.dtype.itemsize < 4 else x), x.dtype
        size = (np.abs(x) ** power).sum(axis=along, keepdims=True) ** (1 / power)
        return (np.where(size == 0, 0, x / size).astype(dtype),)


def _group_normal(
    _: object,
    x: Array,
    scale: Array,
    bias: Array,
    epsilon: float | None = None,
    num_groups: int | None = None,
    stash_type: int | None = 1,
) -> tuple[Array]:
    if not num_groups or x.ndim < 3 or x.shape[1] % num_groups:
        message = f"{num_groups} groups of {x.shape}"
        raise RuntimeError(message)
    wide = x if stash_type != 1 or x.dtype == np.float64 else x.astype(np.float32)
    groups = wide.reshape(x.shape[0], num_groups, -1)
    off = groups - groups.mean(axis=2, keepdims=True)
    variance = np.square(off).mean(axis=2, keepdims=True)
    root = np.sqrt(variance + wide.dtype.type(1e-5 if epsilon is None else epsilon))
    normal = (off / root).reshape(x.shape)
    if scale.size == num_groups:  # as opset 18 has them; of channels since
        scale, bias = (np.repeat(each, x.shape[1] // num_groups) for each in (scale, bias))
    by_channel = (-1, *(1,) * (x.ndim - 2))
    return ((normal * scale.reshape(by_channel) + bias.reshape(by_channel)).astype(x.dtype),)


SHAPES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "Flatten": _flatten,
        "GatherElements": _gather_elements,
        "GroupNormalization": _group_normal,
        "LpNormalization": _lp_normal,
        "OneHot": _one_hot,
        "Pad": _pad,
        "Reshape": _reshape,
        "Softsign": _soft_sign,
        "Squeeze": _squeeze,
        "Unsqueeze": _unsqueeze,
    }
)
