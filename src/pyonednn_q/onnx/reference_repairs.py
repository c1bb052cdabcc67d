"""Replacements of operators that `onnx.reference` (1.23) computes against ONNX's definition.

`REPAIRED` says of each what is otherwise there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.onnx.reference_reductions import REDUCTIONS
from pyonednn_q.onnx.reference_regions import REGIONS
from pyonednn_q.onnx.reference_resizing import RESIZING
from pyonednn_q.onnx.reference_shapes import SHAPES
from pyonednn_q.onnx.reference_windows import POOLS

__all__ = ["REPAIRED", "repaired_operators"]

# What `onnx.reference` computes wrongly; tests/peers/onnx/test_reference_drawn.py draws it.
_REDUCED = "of tensors of nothing and of integers: fails, or another type"
_ONE_AXIS = "before opset 13: one axis, where ONNX has all from there on"
_WINDOWS = "pads at one end, SAME_LOWER, 1 and 3 dims: other values, other dims, or fails"
REPAIRED: Mapping[str, str] = MappingProxyType(
    {
        "BatchNormalization": "opsets 7 to 13: means that are updated, as in training",
        "Clip": "an end left out: infinities, where ONNX has the largest number of the type",
        "Flatten": "of tensors of nothing: fails",
        "GatherElements": "an index shorter than the source: fails",
        "GlobalLpPool": "unknown there",
        "GlobalMaxPool": "of 1 and 3 dims: other dims",
        "GroupNormalization": "few channels, tensors of nothing: fails",
        "Hardmax": _ONE_AXIS,
        "LRN": "as many channels as there are images, or fails",
        "LogSoftmax": f"{_ONE_AXIS}; the logarithm of a 0",
        "LpNormalization": "p = 1: sums with signs",
        "OneHot": "a depth of one dim: fails",
        "Pad": "lengths below 0: fails",
        "Reshape": "of tensors of nothing: fails",
        "Resize": "opset 10: fails; places that are elements: a neighbour",
        "RoiAlign": "before opset 16: shifted by half a pixel",
        "Softmax": _ONE_AXIS,
        "Softsign": "of a scalar: fails",
        "Squeeze": "axes that do not ascend, one counted from the end: fails",
        "Unique": "not sorted, along an axis: other values and dims, or fails",
        "Unsqueeze": "axes counted from the end: other dims",
        "Upsample": "before opset 9: fails; places that are elements: a neighbour",
        **dict.fromkeys(("ArgMax", "ArgMin", *sorted(REDUCTIONS)), _REDUCED),
        **dict.fromkeys(("AveragePool", "GlobalAveragePool", "LpPool", "MaxPool"), _WINDOWS),
    }
)


def repaired_operators(opsets: Mapping[str, int]) -> list[type[Any]]:
    """Return those that `onnx.reference` needs for a model of some opsets."""
    opset = opsets.get("", 0)
    repairs: dict[str, Callable[..., Any]] = {
        "Clip": _clip,
        "LRN": _lrn,
        **POOLS,
        **REDUCTIONS,
        **REGIONS,
        **RESIZING,
        **SHAPES,
    }
    if 0 < opset < kinds.SOFTMAX.axis_since:
        repairs |= {name: _over_axes(of_rows) for name, of_rows in _OF_ROWS.items()}
    else:
        repairs["LogSoftmax"] = _log_softmax_along  # there it is the logarithm of a 0
    if 7 <= opset < 14:
        repairs["BatchNormalization"] = _batch_norm
    # By the class's name `onnx.reference` finds an operator.
    return [type(name, (OpRun,), {"op_domain": "", "_run": run}) for name, run in repairs.items()]


def _over_axes(of_rows: Callable[[Array], Array]) -> Callable[..., tuple[Array]]:
    def run(self: Any, x: Array, axis: int | None = None) -> tuple[Array]:  # noqa: ANN401
        # What is left out comes with the newest opset's default.
        is_given = any(each.name == "axis" for each in self.onnx_node.attribute)
        first = 1 if axis is None or not is_given else axis
        first += x.ndim if first < 0 else 0
        rows = x.reshape(math.prod(x.shape[:first]), math.prod(x.shape[first:]))
        return (of_rows(rows).reshape(x.shape).astype(x.dtype),)

    return run


def _softmax(rows: Array) -> Array:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax(rows: Array) -> Array:
    less = rows - rows.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(less - np.log(np.exp(less).sum(axis=1, keepdims=True)))


def _hardmax(rows: Array) -> Array:
    ones = np.zeros_like(rows)
    if rows.size:
        np.put_along_axis(ones, rows.argmax(axis=1, keepdims=True), 1, axis=1)
    return ones


def _log_softmax_along(self: Any, x: Array, axis: int | None = None) -> tuple[Array]:  # noqa: ANN401, ARG001
    at = -1 if axis is None else axis
    moved = np.moveaxis(x, at, -1)
    rows = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
    return (np.moveaxis(_log_softmax(rows).reshape(moved.shape), -1, at).astype(x.dtype),)


_OF_ROWS = {"Softmax": _softmax, "LogSoftmax": _log_softmax, "Hardmax": _hardmax}


def _batch_norm(
    self: Any,  # noqa: ANN401
    x: Array,
    scale: Array,
    bias: Array,
    mean: Array,
    var: Array,
    epsilon: float | None = None,
    spatial: int | None = 1,
    **_of_training: object,
) -> tuple[Array]:
    if spatial == 0 or any([*self.onnx_node.output][1:]):
        message = "only of the mean and variance of channels, which are given"
        raise RuntimeError(message)
    by_channel = (-1, *(1,) * (x.ndim - 2))
    scale, bias, mean, var = (each.reshape(by_channel) for each in (scale, bias, mean, var))
    root = np.sqrt(var + np.float32(1e-5 if epsilon is None else epsilon))
    return ((scale * (x - mean) / root + bias).astype(x.dtype),)


def _clip(
    _: object,
    x: Array,
    *ends: Array | None,
    min: float | None = None,  # noqa: A002 - ONNX's names, before opset 11
    max: float | None = None,  # noqa: A002
) -> tuple[Array]:
    lo: Any
    hi: Any
    lo, hi = (*ends, None, None)[:2]
    lo, hi = min if lo is None else lo, max if hi is None else hi
    limits: Any = np.iinfo if x.dtype.kind in "iu" else np.finfo
    if x.dtype.kind == "V":  # bf16
        from ml_dtypes import finfo as limits
    lo = limits(x.dtype).min if lo is None else lo
    hi = limits(x.dtype).max if hi is None else hi
    return (np.minimum(np.maximum(x, np.asarray(lo, x.dtype)), np.asarray(hi, x.dtype)),)


def _lrn(
    _: Any,  # noqa: ANN401
    x: Array,
    alpha: float | None = None,
    beta: float | None = None,
    bias: float | None = None,
    size: int | None = None,
) -> tuple[Array]:
    if size is None or x.ndim < 2:
        message = f"size {size} for {x.ndim} dims"
        raise RuntimeError(message)
    sums = np.empty_like(x)
    for channel in range(x.shape[1]):
        begin = max(0, channel - (size - 1) // 2)
        sums[:, channel] = np.square(x[:, begin : channel + size // 2 + 1]).sum(axis=1)
    factor = (1e-4 if alpha is None else alpha) / size
    by = ((1.0 if bias is None else bias) + factor * sums) ** (0.75 if beta is None else beta)
    return ((x / by).astype(x.dtype),)
