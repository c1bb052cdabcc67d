"""The values of an LSTM of 8-bit weights, step by step, in float64 between its codes.

    codes, scale, zero_point = DynamicQuantizeLinear(rows)     of the source; of states in each step
    products = scale · wei_scale · ((codes - zero_point) · wei)

The codes are those of float32, as ONNX has them; sums of them are exact. Beside the values goes how
far float32 may be from them: u = 2^-24 of each product and sum of a step, and what kernels of
functions were measured to be off by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pyonednn_q.dtypes import F32_UNIT, Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.dynamic_recurrences import CodedRows, coded_rows
from pyonednn_q.onnx.linear import dynamic_quantize_linear

__all__ = [
    "ROUNDINGS",
    "RecurrenceValues",
    "directions_of",
    "lstm_of_codes",
    "moved",
    "of_product",
    "products",
    "products_of_source",
    "reals",
    "sigmoid",
]

_BIAS, _H, _C = 3, 5, 6  # inputs
ROUNDINGS = 8  # of a gate's sum: of two sums of codes, scales, products, biases and additions


class RecurrenceValues(NamedTuple):
    """Results of an LSTM or a GRU, in float64.

    Attributes
    ----------
    results, apart : (steps, directions, batch, hidden) ndarray
        Results of each step; and largest distance of float32 from them, going on from the same
        states.
    last, cells : (directions, batch, hidden) ndarray
        The last states; of a GRU no cells.
    """

    results: Array
    apart: Array
    last: Array
    cells: Array


def lstm_of_codes(
    node: GraphNode,
    values: Mapping[str, Array],
    states: Array | None = None,
    *,
    rows: int = 1,
    rounds_source: bool = True,
) -> RecurrenceValues:
    """Return the results of a DynamicQuantizeLSTM: of all steps, the last states, the last cells.

    Parameters
    ----------
    node : GraphNode
        One with the usual functions, and s8 weights: `is_on_codes`.
    values : mapping of str to ndarray
        Tensors that it reads.
    states : (steps, directions, batch, hidden) ndarray of float32, optional
        Results of all steps that somebody has: each step goes on from those, not from its own.
    rows : int
        Rows of the batch that share a range of states, from the first on.
    rounds_source : bool
        Whether the source becomes codes, too.

    Returns
    -------
    RecurrenceValues
    """
    weights = coded_rows(node, values)
    if weights is None:
        raise ValueError(node.name)
    of_source, of_states = weights
    count, columns, hidden = of_states.codes.shape
    source = np.asarray(values[node.inputs[0]], np.float32)
    steps, batch, inputs = source.shape
    flat = source.reshape(-1, inputs)
    bias = np.asarray(values.get(node.input(_BIAS), np.zeros((count, 2 * columns))), np.float64)
    begins = [
        np.asarray(values.get(node.input(at), np.zeros((count, batch, hidden))), np.float64)
        for at in (_H, _C)
    ]
    is_backward = [each == "reverse" for each in directions_of(node)]
    results = np.empty((steps, count, batch, hidden))
    apart = np.empty(results.shape)
    cells = np.empty((count, batch, hidden))
    for way in range(count):
        both = products_of_source(flat, of_source, way, rounds=rounds_source)
        sums, more = (each.reshape(steps, batch, columns) for each in both)
        biases = bias[way].reshape(2, columns)
        h, c, off = begins[0][way], begins[1][way], np.zeros((batch, hidden))
        for step in reversed(range(steps)) if is_backward[way] else range(steps):
            product = products(np.asarray(h, np.float32), of_states, way, rows)
            gates = sums[step] + product + biases.sum(0)
            size = np.abs(sums[step]) + np.abs(product) + np.abs(biases).sum(0)
            apart_by = ROUNDINGS * F32_UNIT * size + more[step]
            *own, c, off = _stepped(gates, apart_by, c, off)
            results[step, way], apart[step, way] = own
            h = results[step, way] if states is None else states[step, way]
        cells[way] = c
    last = [results[0 if each else -1, way] for way, each in enumerate(is_backward)]
    return RecurrenceValues(results, apart, np.stack(last), cells)


def _stepped(gates: Array, off: Array, c: Array, c_off: Array) -> tuple[Array, ...]:
    """Return a state and how far it may be off, and the same of a cell."""
    (i, o, f, fresh), offs = np.split(gates, 4, axis=1), np.split(off, 4, axis=1)
    i, o, f = map(sigmoid, (i, o, f))
    i_off, o_off, f_off = (moved(kinds.SIGMOID, each) for each in offs[:3])
    fresh, fresh_off = np.tanh(fresh), moved(kinds.TANH, offs[3])
    kept, new = f * c, i * fresh
    c_off = of_product(f, f_off, c, c_off) + of_product(i, i_off, fresh, fresh_off)
    c_off = c_off + 2 * F32_UNIT * (np.abs(kept) + np.abs(new) + c_off)
    c = kept + new
    level, level_off = np.tanh(c), moved(kinds.TANH, c_off)
    h_off = of_product(o, o_off, level, level_off)
    return o * level, h_off + F32_UNIT * (np.abs(o * level) + h_off), c, c_off


def moved(kind: Kind, off: Array) -> Array:
    """Return how far a function is off, whose argument is."""
    return np.asarray(kind.slope * off + kind.units * F32_UNIT)


def of_product(a: Array, a_off: Array, b: Array, b_off: Array) -> Array:
    """Return how far a product is off, whose factors are."""
    return np.asarray(np.abs(a) * b_off + np.abs(b) * a_off + a_off * b_off)


def directions_of(node: GraphNode) -> tuple[str, ...]:
    """Return the one or two directions of a recurrence."""
    direction = str(node.attributes.get("direction", "forward"))
    return ("forward", "reverse") if direction == "bidirectional" else (direction,)


def products(values: Array, weights: CodedRows, way: int, rows: int) -> Array:
    """Return products of float32 values; a number of rows share one range."""
    parts = []
    for first in range(0, len(values), rows):
        codes, scale, point = dynamic_quantize_linear(values[first : first + rows])
        whole = codes.astype(np.int64) - int(point)
        unit = np.float64(scale) * weights.scale[way].astype(np.float64)
        parts.append((whole @ weights.codes[way].astype(np.int64).T) * unit)
    return np.concatenate(parts)


def products_of_source(
    flat: Array, weights: CodedRows, way: int, *, rounds: bool
) -> tuple[Array, Array]:
    """Return products of the source, and how far sums of float32 may be off."""
    if rounds:
        exact = products(flat, weights, way, len(flat))
        return exact, np.zeros(exact.shape)
    real = reals(weights, way)
    size = np.abs(flat) @ np.abs(real).T
    return flat.astype(np.float64) @ real.T, flat.shape[1] * F32_UNIT * size


def reals(weights: CodedRows, way: int) -> Array:
    """Return the real values of a direction's weights, in float64."""
    return np.asarray(weights.codes[way] * weights.scale[way].astype(np.float64)[:, None])


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + e^-x), which overflows nowhere."""
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)
