"""Bounds of float32 errors of a fused node's values, in whatever order sums are formed.

Values are computed in float64 along the nodes that it replaces, each with a bound for any
computation in float32. A rounding is off by at most u = 2^-24 of its result. A sum of K products in
any order is off by at most gamma(K) = K u / (1 - K u) of the sum of their magnitudes (Higham,
Accuracy and Stability of Numerical Algorithms, 3.1 and 3.5); the errors of its terms are added. A
difference of a code and a zero point counts with both, as sums of either may be taken apart.
Functions have the bounds of `function_bounds`, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q.dtypes import F32_LEAST, F32_UNIT, Array
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.models.function_bounds import function_bounds, function_values, gamma
from pyonednn_q.models.real_values import computed, dequantized, wide
from pyonednn_q.onnx.gru_of_codes import recurrence_of_codes

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import GraphNode
    from pyonednn_q.onnx.fused_node import FusedNode

__all__ = ["FloatBound", "bounds_of", "float_bound", "values_of"]

Values = dict[str, Array]

_MORE = 4  # roundings of a product beside its sum: of both scales, of itself, of a bias


class FloatBound(NamedTuple):
    """Values of a node, and bounds of their float32 errors.

    Attributes
    ----------
    values : ndarray of float64
        Values of its output.
    apart : ndarray of float64 or None
        Bound of each value. None: a function has no bound.
    function : str
        The first of those.
    """

    values: Array
    apart: Array | None
    function: str = ""


def float_bound(
    node: FusedNode, name: str, values: Values, opsets: Mapping[str, int]
) -> FloatBound | None:
    """Return the values of a node's float output, and how far float32 may be from them.

    Parameters
    ----------
    node : FusedNode
        The node.
    name : str
        The output.
    values : dict of str to ndarray
        Sources, and constants of the original nodes.
    opsets : mapping of str to int
        Opset version of each domain of the model.

    Returns
    -------
    FloatBound or None
        Bound, or None where the nodes that it stands for cannot be computed one by one.
    """
    own = {each: wide(array) for each, array in values.items()}
    apart: dict[str, Array | float] = {}
    function = ""
    try:
        for part in node.parts:
            results = values_of(part, own, opsets)
            bounds = None if function else bounds_of(part, own, apart, results, opsets)
            function = function or ("" if bounds is not None else part.kind)
            own.update(zip(part.outputs, results, strict=False))
            apart.update(zip(part.outputs, bounds or [], strict=False))
        exact = np.asarray(own[name], np.float64)
        if function:
            return FloatBound(exact, None, function)
        return FloatBound(exact, np.broadcast_to(np.asarray(apart[name]), exact.shape) + F32_LEAST)
    except (Error, ValueError, KeyError, TypeError, IndexError):
        return None


def values_of(part: GraphNode, own: Values, opsets: Mapping[str, int]) -> list[Array]:
    """Return the outputs of a node, of floats in float64."""
    if part.row is kinds.DEQUANTIZE:
        return [dequantized(part, own)]
    if part.row in {kinds.DYNAMIC_QUANTIZE, kinds.CAST}:  # which say float32
        narrow = {name: _narrow(own[name]) for name in part.inputs if name}
        return [wide(each) for each in computed(part, narrow, opsets)]
    if part.row in kinds.DYNAMIC_RECURRENT:
        known = recurrence_of_codes(part, own)
        return [known.results, known.last, known.cells][: len(part.outputs)]
    exact = function_values(part, own)
    return computed(part, own, opsets) if exact is None else [exact]


def bounds_of(
    part: GraphNode,
    own: Values,
    apart: Mapping[str, Array | float],
    results: list[Array],
    opsets: Mapping[str, int],
) -> list[Any] | None:
    """Return bounds of each output of a node; None where there is none."""
    off = [apart.get(name, 0.0) for name in part.inputs]
    size = np.abs(np.asarray(results[0], np.float64))
    first = off[0] if off else 0.0
    bounds: list[Any] | None = None
    match part.row.bound:
        case "dequantize":
            own[_parts_of(part.outputs[0])] = _magnitudes(part, own)
            bounds = [F32_UNIT * size]
        case "dynamic" if not np.any(first):
            bounds = [0.0, 0.0, 0.0]  # float32 by definition, of what is the same
        case "cast" | "floor":
            bounds = _of_conversion(part, own, first, results[0])
        case "total":
            bounds = [off[0] + off[1] + F32_UNIT * (size + off[0] + off[1])]
            _add_magnitudes(part, own)
        case "product":
            a, b = (np.abs(own[name].astype(np.float64)) for name in part.inputs)
            moved = a * off[1] + b * off[0] + off[0] * off[1]
            bounds = [moved + F32_UNIT * (size + moved)]
        case "leaky" if abs(float(part.attributes.get("alpha", 0.01))) <= 1:
            bounds = [first + F32_UNIT * (size + first)]
        case "exact_sum" if not any(map(np.any, off)):
            own[_parts_of(part.outputs[0])] = _code_magnitudes(part, own, opsets)
            bounds = [0.0]
        case "sum" | "mean":
            bounds = _of_sum(part, own, off, opsets)
        case rule if rule == "step" or part.row.moves_values(part.attributes):
            most = max((float(np.max(each, initial=0.0)) for each in off), default=0.0)
            bounds = [most] * len(results)
        case _:
            of_function = function_bounds(part, own, off, np.asarray(results[0]))
            bounds = None if of_function is None else [of_function]
    return bounds


def _of_conversion(
    part: GraphNode,
    own: Values,
    first: Any,  # noqa: ANN401
    result: Array,
) -> list[Any] | None:
    if part.row is kinds.FLOOR:  # a layer may leave it out
        return [np.where(np.asarray(first) > 0, first + 1.0, 0.0)]
    if result.dtype.kind != "f":  # whole numbers stay what they are
        return [first] if not np.any(own[part.inputs[0]] % 1) else None
    # A kernel may scale sums of codes and of zero points apart, and add them as floats.
    parts = own.get(_parts_of(part.inputs[0]), 0.0)
    return [first + gamma(_MORE) * parts + F32_UNIT * np.abs(result.astype(np.float64))]


def _add_magnitudes(part: GraphNode, own: Values) -> None:
    """Let a sum of codes and what is added to it be a difference of the magnitudes of both."""
    if any(_parts_of(name) in own for name in part.inputs):
        sizes = [own.get(_parts_of(name), np.abs(own[name])) for name in part.inputs]
        own[_parts_of(part.outputs[0])] = np.asarray(sizes[0] + sizes[1], np.float64)


def _of_sum(
    part: GraphNode, own: Values, off: list[Any], opsets: Mapping[str, int]
) -> list[Any] | None:
    if any(float(part.attributes.get(name, 1)) < 0 for name in ("alpha", "beta")):
        return None
    names = [name for name in part.inputs if name]
    places = dict(zip(part.inputs, off, strict=True))
    sizes = {name: np.abs(own[name].astype(np.float64)) for name in names}
    # Sums of products with zero points may be taken apart from those of codes.
    sizes |= {name: own[_parts_of(name)] for name in names if _parts_of(name) in own}
    floats = [name for name in names if own[name].dtype.kind == "f"]
    (inner,) = computed(part, {**own, **{n: sizes[n] for n in floats}}, opsets)[:1]
    wider = {n: sizes[n] + places[n] for n in floats}
    (outer,) = computed(part, {**own, **wider}, opsets)[:1]
    return [outer - inner + gamma(_terms(part, own) + _MORE) * outer]


def _terms(part: GraphNode, own: Values) -> int:
    """Return the number of terms of each sum, or more."""
    src = own[part.inputs[0]].shape
    match part.row.over or part.row.layer:
        case "places":
            return prod(src[2:])
        case "axes":
            return prod(src)
        case "windows":
            return prod(part.attributes["kernel_shape"])
        case "inner_product":
            return int(src[0 if part.attributes.get("transA", 0) else 1])
        case "matmul":
            return int(src[-1])
    wei = own[part.inputs[1]].shape
    groups = int(part.attributes.get("group", 1))
    return prod(wei[1:]) if part.row is kinds.CONV else wei[0] // groups * prod(wei[2:])


def _parts_of(name: str) -> str:
    """Return the name of the magnitudes of what real values of codes are a difference of."""
    return f"{name}\0"


def _magnitudes(part: GraphNode, own: Values) -> Array:
    """Return |code| · scale + |zero point| · scale."""
    name, scale, *_ = part.inputs
    of_codes = dequantized(replace(part, inputs=(name, scale)), own)
    return np.asarray(np.abs(of_codes) + np.abs(of_codes - dequantized(part, own)))


def _code_magnitudes(part: GraphNode, own: Values, opsets: Mapping[str, int]) -> Array:
    """Return the magnitudes of what a sum of codes less zero points may be added up of.

    acc = Σ c w - z Σ w - z_w Σ c + K z z_w, each sum exact, with pads or without; u8 weights and
    their zero point may be stored less 128.
    """
    codes, wei = (own[name].astype(np.float64) for name in part.inputs[:2])
    point, wei_point = (
        own[part.input(at)].astype(np.float64) if part.input(at) else np.zeros(()) for at in (2, 3)
    )
    is_conv = part.row.means == kinds.CONV.name
    if is_conv:
        dims: tuple[int, ...] = (-1, *(1,) * (wei.ndim - 2))
        axes, terms = tuple(range(1, wei.ndim)), prod(wei.shape[1:])
        wei_point = wei_point.reshape(dims) if wei_point.ndim else wei_point
    else:
        dims, axes, terms = (*wei.shape[:-2], 1, -1), (wei.ndim - 2,), wei.shape[-2]
        point = point[..., None] if point.ndim else point  # of rows
    of_floats = replace(part, operator=part.row.means, inputs=("src", "wei"))

    def summed(src: Array, by: Array) -> Array:
        return computed(of_floats, {"src": src, "wei": by}, opsets)[0]

    ones = np.ones_like(codes), np.ones_like(wei)
    products, of_codes = summed(codes, wei), summed(codes, ones[1])
    of_wei, counts = summed(ones[0], wei), summed(*ones)
    whole = wei.sum(axis=axes).reshape(dims)
    sizes = []
    for less in (0.0, 128.0) if own[part.inputs[1]].dtype == np.uint8 else (0.0,):
        weights = np.abs(of_wei - less * counts) + np.abs(whole - less * terms)
        of_point = np.abs(wei_point - less) * (of_codes + np.abs(point) * terms)
        sizes.append(np.abs(products - less * of_codes) + np.abs(point) * weights + of_point)
    return np.asarray(np.max(sizes, axis=0))


def _narrow(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype == np.float64 else array
