"""Operators of older opsets that `onnx.reference` computes as the newest opset has them.

Before opset 13 Softmax, LogSoftmax and Hardmax are taken over all axes from `axis` on, as one, and
`axis` is 1 where it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

__all__ = ["old_operators"]

Array = np.ndarray[Any, Any]
_OF_ONE_AXIS = 13


def old_operators(opsets: Mapping[str, int]) -> list[type[Any]]:
    """Return those that `onnx.reference` needs for a model of some opsets."""
    is_old = 0 < opsets.get("", 0) < _OF_ONE_AXIS
    return [_over_axes(*each) for each in _OF_ROWS.items()] if is_old else []


def _over_axes(name: str, of_rows: Callable[[Array], Array]) -> type[Any]:
    """Return the class by whose name `onnx.reference` finds an operator."""

    def run(self: Any, x: Array, axis: int | None = None) -> tuple[Array]:  # noqa: ANN401
        # What is left out comes with the newest opset's default.
        is_given = any(each.name == "axis" for each in self.onnx_node.attribute)
        first = 1 if axis is None or not is_given else axis
        first += x.ndim if first < 0 else 0
        rows = x.reshape(prod(x.shape[:first]), prod(x.shape[first:]))
        return (of_rows(rows).reshape(x.shape).astype(x.dtype),)

    return type(name, (OpRun,), {"op_domain": "", "_run": run})


def _softmax(rows: Array) -> Array:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _log_softmax(rows: Array) -> Array:
    less = rows - rows.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(less - np.log(np.exp(less).sum(axis=1, keepdims=True)))


def _hardmax(rows: Array) -> Array:
    found = np.zeros_like(rows)
    if rows.size:
        np.put_along_axis(found, rows.argmax(axis=1, keepdims=True), 1, axis=1)
    return found


_OF_ROWS = {"Softmax": _softmax, "LogSoftmax": _log_softmax, "Hardmax": _hardmax}
