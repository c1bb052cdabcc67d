"""Operators that `onnx.reference` computes otherwise than ONNX says (1.23): what takes their place.

===================  ==============================================================================
Softmax, LogSoftmax  Before opset 13 over all axes from `axis` on, as one, and `axis` is 1 where it
and Hardmax          is left out; there of one axis, as the newest opset has it.
BatchNormalization   Opsets 7 to 13: of the mean and variance that are given; there of means that
                     are updated, as in training.
LRN                  Of every channel; there of as many channels as the batch has images.
Pools                `reference_windows`: of 1 and 3 dims, with pads at one end, with SAME_LOWER.
Reductions           `reference_reductions`: of the axes that are left out, of tensors of nothing,
                     of integers.
Resize, Upsample     `reference_resizing`: of opsets before 11, and at places that are elements.
Others               `reference_shapes`.
===================  ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from pyonednn_q.graph import kinds
from pyonednn_q.onnx.reference_reductions import REDUCTIONS
from pyonednn_q.onnx.reference_resizing import RESIZING
from pyonednn_q.onnx.reference_shapes import SHAPES
from pyonednn_q.onnx.reference_windows import POOLS

__all__ = ["repaired_operators"]

Array = np.ndarray[Any, Any]


def repaired_operators(opsets: Mapping[str, int]) -> list[type[Any]]:
    """Return those that `onnx.reference` needs for a model of some opsets."""
    opset = opsets.get("", 0)
    repairs: dict[str, Callable[..., Any]] = {
        "LRN": _lrn,
        **POOLS,
        **REDUCTIONS,
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
