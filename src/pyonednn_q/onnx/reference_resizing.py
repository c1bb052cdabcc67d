"""Resize and Upsample of ONNX in NumPy, one dim after the other.

Places are computed in float32, as onnxruntime has them: which of two elements is nearer to one in
their middle follows from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx.reference.ops import load_op

from pyonednn_q.dtypes import Array

__all__ = ["RESIZING", "taps_of"]

_HALF = np.float32(0.5)
_PLACES: Mapping[str, Callable[[Array, int, int, np.float32], Array]] = MappingProxyType(
    {
        "align_corners": lambda at, n, m, by: (
            at * np.float32(n - 1) / (by * np.float32(n) - 1) if m > 1 else at * 0
        ),
        "asymmetric": lambda at, _n, _m, by: at / by,
        "half_pixel": lambda at, _n, _m, by: (at + _HALF) / by - _HALF,
        "half_pixel_symmetric": lambda at, n, m, by: (
            np.float32(n / 2) * (1 - np.float32(m) / (by * np.float32(n)))
            + (at + _HALF) / by
            - _HALF
        ),
        "pytorch_half_pixel": lambda at, _n, m, by: (at + _HALF) / by - _HALF if m > 1 else at * 0,
    }
)
_NEAREST: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "ceil": np.ceil,
        "floor": np.floor,
        "round_prefer_ceil": lambda places: np.floor(places + _HALF),
        "round_prefer_floor": lambda places: np.ceil(places - _HALF),
    }
)


def _resize(
    self: Any,  # noqa: ANN401
    x: Array,
    first: Array | None = None,
    second: Array | None = None,
    sizes: Array | None = None,
    **attributes: Any,  # noqa: ANN401
) -> tuple[Array]:
    is_old = len(self.onnx_node.input) == 2  # of opset 10: no roi, and one way to do it
    scales = first if is_old else second
    how = attributes.get("coordinate_transformation_mode") or "half_pixel"
    if is_old:
        how = "asymmetric"
    if attributes.get("antialias") or how not in _PLACES:
        known = load_op("", "Resize", self.run_params["opsets"][""], evaluator_cls=None)
        other = known(self.onnx_node, self.run_params)
        inputs = (x, first, second, sizes)[: len(self.onnx_node.input)]
        result: tuple[Array] = other._run(*inputs, **attributes)  # noqa: SLF001 - as OpRun does
        return result
    array = x
    for axis, by, places in _scaled(x.shape, scales, sizes, how, attributes):
        nearest = attributes.get("nearest_mode") or "round_prefer_floor"
        if is_old:  # which onnxruntime has so, and nobody says
            nearest = "floor" if by > 1 else "ceil"
        array = _along(array, axis, places, nearest, attributes)
    return (np.asarray(array, x.dtype),)


def taps_of(
    dims: tuple[int, ...],
    scales: Array | None,
    sizes: Array | None,
    attributes: Mapping[str, Any],
) -> list[tuple[int, Array, Array]] | None:
    """Return what a Resize by weights makes its results of, a dimension after the other.

    Parameters
    ----------
    dims : tuple of int
        Dims of its source.
    scales, sizes : ndarray or None
        Inputs of the node.
    attributes : mapping
        Attributes of the node, of opset 11 or later.

    Returns
    -------
    list of (int, ndarray, ndarray) or None
        Dimensions that it changes, each with the indices of the source for each result, (results,
        taps), and their weights in float32. None: the mode has none, or is not known here.
    """
    how = attributes.get("coordinate_transformation_mode") or "half_pixel"
    mode = attributes.get("mode") or "nearest"
    if mode == "nearest" or attributes.get("antialias") or how not in _PLACES:
        return None
    return [
        (axis, *_taps(places, dims[axis] - 1, mode, attributes, np.dtype(np.float32)))
        for axis, _, places in _scaled(dims, scales, sizes, how, attributes)
    ]


def _scaled(
    dims: tuple[int, ...],
    scales: Array | None,
    sizes: Array | None,
    how: str,
    attributes: Mapping[str, Any],
) -> Iterator[tuple[int, np.float32, Array]]:
    """Yield each dimension that changes, its scale, and where in the source its results lie."""
    axes = attributes.get("axes") or range(len(dims))
    policy = attributes.get("keep_aspect_ratio_policy") or "stretch"
    for at, axis in enumerate(axes):
        length = dims[axis]
        if sizes is not None and sizes.size and policy != "stretch":
            ratios = [int(size) / dims[each] for size, each in zip(sizes, axes, strict=True)]
            same = min(ratios) if policy == "not_larger" else max(ratios)
            count, by = math.floor(same * length + 0.5), np.float32(same)
        elif sizes is not None and sizes.size:
            count = int(sizes[at])
            by = np.float32(count / max(length, 1))
        else:
            assert scales is not None
            by = np.float32(scales[at])
            count = int(np.floor(np.float32(length) * by))
        if by != 1:
            places = _PLACES[how](np.arange(count).astype(np.float32), length, count, by)
            yield axis % len(dims), by, places


def _along(
    x: Array, axis: int, places: Array, nearest: str, attributes: Mapping[str, Any]
) -> Array:
    last = x.shape[axis] - 1
    mode = attributes.get("mode") or "nearest"
    if mode == "nearest":
        index = np.clip(_NEAREST[nearest](places), 0, last).astype(np.int64)
        return np.asarray(np.take(x, index, axis))
    dims = [-1 if dim == axis else 1 for dim in range(x.ndim)]
    wide = x if x.dtype.kind == "f" else x.astype(np.float32)
    index, weights = _taps(places, last, mode, attributes, wide.dtype)
    terms = [
        np.take(wide, at, axis) * each.reshape(dims)
        for at, each in zip(index.T, weights.T, strict=True)
    ]
    return np.asarray(sum(terms))


def _taps(
    places: Array,
    last: int,
    mode: str,
    attributes: Mapping[str, Any],
    dtype: np.dtype[Any],
) -> tuple[Array, Array]:
    """Return indices and weights, (results, taps) each."""
    if mode in {"linear", "bilinear"}:
        places = np.clip(places, 0, last)
        low = np.floor(places).astype(np.int64)
        part = (places - low).astype(dtype)
        high = np.minimum(low + 1, last)
        return np.stack([low, high], 1), np.stack([1 - part, part], 1)
    low = np.floor(places).astype(np.int64)
    sharp = attributes.get("cubic_coeff_a")
    weights = _cubic(places - low, np.float32(-0.75 if sharp is None else sharp))
    taps = [low + step for step in (-1, 0, 1, 2)]
    if attributes.get("exclude_outside"):
        weights = [w * ((t >= 0) & (t <= last)) for w, t in zip(weights, taps, strict=True)]
        total = np.sum(weights, axis=0)
        weights = [each / total for each in weights]
    return np.clip(np.stack(taps, 1), 0, last), np.stack(weights, 1).astype(dtype)


def _cubic(part: Array, a: np.float32) -> list[Array]:
    """Return the weights of four neighbours."""
    near, far = part, 1 - part
    return [
        ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a,
        ((a + 2) * near - (a + 3)) * near * near + 1,
        ((a + 2) * far - (a + 3)) * far * far + 1,
        ((a * (far + 1) - 5 * a) * (far + 1) + 8 * a) * (far + 1) - 4 * a,
    ]


def _upsample(
    self: Any,  # noqa: ANN401
    x: Array,
    scales: Array | None = None,
    mode: str | None = None,
    **_of_old: Any,  # noqa: ANN401
) -> tuple[Array]:
    if scales is None:  # before opset 9 they are an attribute
        known = {each.name: each for each in self.onnx_node.attribute}
        scales = np.array(known["scales"].floats, np.float32)
    result = x
    for axis, by in enumerate(scales):
        count = int(np.floor(np.float32(x.shape[axis]) * by))
        if by != 1:
            places = np.arange(count).astype(np.float32) / np.float32(by)
            result = _along(result, axis, places, "floor", {"mode": mode})
    return (np.asarray(result, x.dtype),)


RESIZING: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"Resize": _resize, "Upsample": _upsample}
)
