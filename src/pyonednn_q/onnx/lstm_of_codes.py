"""The values of an LSTM of 8-bit weights, step by step, in float64 between its codes.

    codes, scale, zero_point = DynamicQuantizeLinear(rows)     of the source; of states in each step
    products = scale · wei_scale · ((codes - zero_point) · wei)

The codes are those of float32, as ONNX has them; sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.dynamic_lstm import CodedRows, coded_rows
from pyonednn_q.onnx.linear import dynamic_quantize_linear

__all__ = ["lstm_of_codes"]

Array = np.ndarray[Any, Any]
_BIAS, _H, _C = 3, 5, 6  # inputs


def lstm_of_codes(
    node: GraphNode,
    values: Mapping[str, Array],
    states: Array | None = None,
    *,
    rows: int = 1,
) -> list[Array]:
    """Return the results of a DynamicQuantizeLSTM: of all steps, the last states, the last cells.

    Parameters
    ----------
    node : GraphNode
        Of the usual functions, and s8 weights: `is_on_codes`.
    values : mapping of str to ndarray
        What it reads.
    states : (steps, directions, batch, hidden) ndarray of float32, optional
        Results of all steps that somebody has: each step goes on from those, not from its own.
    rows : int
        Rows of the batch that share a range of states, from the first on.

    Returns
    -------
    list of ndarray of float64
    """
    weights = coded_rows(node, values)
    if weights is None:
        raise ValueError(node.name)
    of_source, of_states = weights
    count, columns, hidden = of_states.codes.shape
    source = np.asarray(values[node.inputs[0]], np.float32)
    steps, batch, inputs = source.shape
    bias = np.asarray(values.get(node.input(_BIAS), np.zeros((count, 2 * columns))), np.float64)
    begins = [
        np.asarray(values.get(node.input(at), np.zeros((count, batch, hidden))), np.float64)
        for at in (_H, _C)
    ]
    is_backward = [each == "reverse" for each in _directions(node)]
    results = np.empty((steps, count, batch, hidden))
    cells = np.empty((count, batch, hidden))
    for way in range(count):
        sums = _products(source.reshape(-1, inputs), of_source, way, steps * batch)
        sums = sums.reshape(steps, batch, columns) + bias[way].reshape(2, columns).sum(0)
        h, c = begins[0][way], begins[1][way]
        for step in reversed(range(steps)) if is_backward[way] else range(steps):
            gates = sums[step] + _products(np.asarray(h, np.float32), of_states, way, rows)
            i, o, f, fresh = np.split(gates, 4, axis=1)
            c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(fresh)
            results[step, way] = _sigmoid(o) * np.tanh(c)
            h = results[step, way] if states is None else states[step, way]
        cells[way] = c
    last = [results[0 if each else -1, way] for way, each in enumerate(is_backward)]
    return [results, np.stack(last), cells]


def _directions(node: GraphNode) -> tuple[str, ...]:
    direction = str(node.attributes.get("direction", "forward"))
    return ("forward", "reverse") if direction == "bidirectional" else (direction,)


def _products(values: Array, weights: CodedRows, way: int, rows: int) -> Array:
    """Return products of float32 values, so many rows of one range."""
    parts = []
    for first in range(0, len(values), rows):
        codes, scale, point = dynamic_quantize_linear(values[first : first + rows])
        whole = codes.astype(np.int64) - int(point)
        unit = np.float64(scale) * weights.scale[way].astype(np.float64)
        parts.append((whole @ weights.codes[way].astype(np.int64).T) * unit)
    return np.concatenate(parts)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * np.tanh(0.5 * x) + 0.5)
