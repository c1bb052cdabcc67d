"""Reductions of ONNX in NumPy, of every opset: axes as an attribute or an input, or left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array

__all__ = ["REDUCTIONS"]

Dims = tuple[int, ...]


def _total(x: Array, axes: Dims) -> Array:
    return np.asarray(x.sum(axis=axes, keepdims=True, dtype=x.dtype))


def _mean(x: Array, axes: Dims) -> Array:
    count = x.dtype.type(np.prod([x.shape[axis] for axis in axes], dtype=np.int64))
    if x.dtype.kind == "f":
        return np.asarray(_total(x, axes) / count)
    total = _total(x, axes)
    return np.asarray(np.trunc(total / count)).astype(x.dtype)


def _log_sum_exp(x: Array, axes: Dims) -> Array:
    x = x.astype(np.float64) if x.dtype.kind != "f" else x
    most = x.max(axis=axes, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0).astype(x.dtype)
    return np.asarray(np.log(_total(np.exp(x - most), axes)) + most)


def _largest(x: Array, axes: Dims) -> Array:
    of_nothing = {} if x.size else {"initial": _ends(x)[0]}
    return np.asarray(x.max(axis=axes, keepdims=True, **of_nothing))


def _least(x: Array, axes: Dims) -> Array:
    of_nothing = {} if x.size else {"initial": _ends(x)[1]}
    return np.asarray(x.min(axis=axes, keepdims=True, **of_nothing))


def _ends(x: Array) -> tuple[Any, Any]:
    """Return the least and the largest number of a type."""
    if x.dtype.kind == "b":
        return False, True
    if x.dtype.kind not in "iu":
        return -np.inf, np.inf
    info = np.iinfo(x.dtype)
    return info.min, info.max


_OVER_AXES: Mapping[str, Callable[[Array, Dims], Array]] = MappingProxyType(
    {
        "ReduceL1": lambda x, axes: _total(np.abs(x), axes),
        "ReduceL2": lambda x, axes: np.sqrt(_total(x * x, axes)),
        "ReduceLogSum": lambda x, axes: np.log(_total(x, axes)),
        "ReduceLogSumExp": _log_sum_exp,
        "ReduceMax": _largest,
        "ReduceMean": _mean,
        "ReduceMin": _least,
        "ReduceProd": lambda x, axes: np.asarray(x.prod(axis=axes, keepdims=True, dtype=x.dtype)),
        "ReduceSum": _total,
        "ReduceSumSquare": lambda x, axes: _total(x * x, axes),
    }
)


def _reduction(over: Callable[[Array, Dims], Array]) -> Callable[..., tuple[Array]]:
    def run(
        _: object,
        x: Array,
        axes_input: Array | None = None,
        axes: Iterable[int] | None = None,
        keepdims: int | None = 1,
        noop_with_empty_axes: int | None = 0,
    ) -> tuple[Array]:
        chosen = [] if axes is None else [*axes]
        if axes_input is not None:
            chosen = [int(axis) for axis in axes_input.ravel()]
        # Then nothing is added up, but squares are squares.
        every = chosen or ([] if noop_with_empty_axes else [*range(x.ndim)])
        own = tuple(sorted({axis % x.ndim for axis in every})) if x.ndim else ()
        result = over(x, own).astype(x.dtype)
        return (np.asarray(result if keepdims in {None, 1} else np.squeeze(result, own)),)

    return run


def _position(function: Callable[..., Any]) -> Callable[..., tuple[Array]]:
    def run(
        _: object,
        x: Array,
        axis: int | None = 0,
        keepdims: int | None = 1,
        select_last_index: int | None = 0,
    ) -> tuple[Array]:
        along = axis or 0
        if select_last_index:
            last = x.shape[along] - 1
            index = last - function(np.flip(x, along), axis=along)
        else:
            index = function(x, axis=along)
        index = np.asarray(index, np.int64)
        return (index if keepdims == 0 else np.expand_dims(index, along),)

    return run


REDUCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "ArgMax": _position(np.argmax),
        "ArgMin": _position(np.argmin),
        **{name: _reduction(over) for name, over in _OVER_AXES.items()},
    }
)
