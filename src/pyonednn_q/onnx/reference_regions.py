"""Operators of ONNX in NumPy: means of regions, and what differs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx.reference.ops import load_op

from pyonednn_q.dtypes import Array

__all__ = ["REGIONS"]

_HALF_PIXEL_SINCE = 16  # coordinates of RoiAlign are shifted by half a pixel, unless told


def _roi_align(
    self: Any,  # noqa: ANN401
    x: Array,
    rois: Array,
    batch_indices: Array,
    coordinate_transformation_mode: str | None = None,
    output_height: int | None = 1,
    output_width: int | None = 1,
    sampling_ratio: int | None = 0,
    spatial_scale: float | None = 1.0,
    mode: str | None = "avg",
) -> tuple[Array]:
    opset = self.run_params["opsets"][""]
    how = coordinate_transformation_mode or "half_pixel"
    how = how if opset >= _HALF_PIXEL_SINCE else "output_half_pixel"
    shift = 0.5 if how == "half_pixel" else 0.0
    scale = 1.0 if spatial_scale is None else spatial_scale
    if mode == "max":  # as nobody else has it
        known = load_op("", self.onnx_node.op_type, opset, evaluator_cls=None)
        sizes = (output_height, output_width, sampling_ratio, scale)
        other = known(self.onnx_node, self.run_params)
        result_of_max: tuple[Array] = other._run(x, rois, batch_indices, how, mode, *sizes)  # noqa: SLF001
        return result_of_max
    counts = (output_height or 1, output_width or 1)
    result = np.zeros((len(rois), x.shape[1], *counts), x.dtype)
    for at, (roi, image) in enumerate(zip(rois.astype(np.float64), batch_indices, strict=True)):
        places = []
        for axis, count in enumerate(counts):
            begin, end = (roi[side - axis] * scale - shift for side in (1, 3))
            length = end - begin if shift else max(end - begin, 1.0)
            # By default a cell has as many samples as elements.
            number = sampling_ratio or math.ceil(length / count)
            steps = (np.arange(count * max(number, 0)) + 0.5) / max(number, 1)
            places.append((begin + steps * (length / count)).reshape(count, -1))
        rows, columns = (_between(each, n) for each, n in zip(places, x.shape[2:], strict=True))
        means = np.einsum("pyh,chw,qxw->cpq", rows, x[image].astype(np.float64), columns)
        result[at] = means / max(places[0].shape[1] * places[1].shape[1], 1)
    return (result,)


def _between(places: Array, length: int) -> Array:
    """Return the weights of elements at each place; none has a place more than 1 outside."""
    inside = np.clip(places, 0, length - 1)
    weights = np.maximum(1 - np.abs(inside[..., None] - np.arange(length)), 0)
    return np.asarray(weights * ((places >= -1) & (places <= length))[..., None])


def _unique(
    self: Any,  # noqa: ANN401
    x: Array,
    axis: int | None = None,
    sorted: int | None = 1,  # noqa: A002 - ONNX's name
) -> tuple[Array, ...]:
    told = {each.name for each in self.onnx_node.attribute}
    along = axis if "axis" in told else None
    x = x.ravel() if along is None else x
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    inverse = inverse.reshape(-1)
    if sorted == 0 and "sorted" in told:  # in the order in which they come
        order = np.argsort(first, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(order.size)
        values = np.take(values, order, axis=along or 0)
        first, inverse, counts = first[order], ranks[inverse], counts[order]
    results = (values, *(each.astype(np.int64) for each in (first, inverse, counts)))
    return results[: len(self.onnx_node.output)]


REGIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"RoiAlign": _roi_align, "Unique": _unique}
)
