"""The values of a GRU of 8-bit weights, step by step, in float64 between its codes.

As `lstm_of_codes`. A candidate that is reset before its products multiplies codes of r · h, which
float32 has only nearly: where it may be another code, the bound holds that, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pyonednn_q.dtypes import F32_UNIT, Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.dynamic_recurrences import CodedRows, coded_rows
from pyonednn_q.onnx.linear import dynamic_quantize_linear
from pyonednn_q.onnx.lstm_of_codes import (
    ROUNDINGS,
    RecurrenceValues,
    directions_of,
    lstm_of_codes,
    moved,
    of_product,
    products,
    products_of_source,
    reals,
    sigmoid,
)

__all__ = ["gru_of_codes", "recurrence_of_codes"]

_BIAS, _H = 3, 5  # inputs


def recurrence_of_codes(node: GraphNode, values: Mapping[str, Array]) -> RecurrenceValues:
    """Return the results of a recurrence of codes: of all steps, and the last states.

    Parameters
    ----------
    node : GraphNode
        One with the usual functions, and s8 weights: `is_on_codes`.
    values : mapping of str to ndarray
        Tensors that it reads.
    """
    return (gru_of_codes if node.row is kinds.DYNAMIC_GRU else lstm_of_codes)(node, values)


def gru_of_codes(
    node: GraphNode,
    values: Mapping[str, Array],
    states: Array | None = None,
    *,
    rounds_source: bool = True,
    rounds_states: bool = True,
) -> RecurrenceValues:
    """Return the results of a DynamicQuantizeGRU: of all steps, and the last states.

    Parameters
    ----------
    node, values, states, rounds_source
        Arguments of `lstm_of_codes`.
    rounds_states : bool
        Whether states become codes; otherwise they are multiplied by the real weights.
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
    begin = np.asarray(values.get(node.input(_H), np.zeros((count, batch, hidden))), np.float64)
    is_backward = [each == "reverse" for each in directions_of(node)]
    results = np.empty((steps, count, batch, hidden))
    apart = np.empty(results.shape)
    for way in range(count):
        both = products_of_source(flat, of_source, way, rounds=rounds_source)
        sums, more = (each.reshape(steps, batch, 3, hidden) for each in both)
        cell = _Cell(
            _part(of_states, slice(0, 2 * hidden), way),
            _part(of_states, slice(2 * hidden, columns), way),
            bias[way].reshape(2, 3, hidden),
            bool(node.attributes.get("linear_before_reset", 0)),
            rounds_states,
        )
        h = begin[way]
        for step in reversed(range(steps)) if is_backward[way] else range(steps):
            results[step, way], apart[step, way] = cell.step(h, sums[step], more[step])
            h = results[step, way] if states is None else np.asarray(states[step, way], np.float64)
    last = [results[0 if each else -1, way] for way, each in enumerate(is_backward)]
    return RecurrenceValues(results, apart, np.stack(last), np.empty(0))


class _Cell(NamedTuple):
    """A direction: weights and biases of its gates and its candidate, and how it resets."""

    gates: CodedRows
    candidate: CodedRows
    bias: Array
    is_after: bool
    rounds: bool

    def step(self, h: Array, sums: Array, sums_off: Array) -> tuple[Array, Array]:
        """Return the next states, and the largest float32 error of each."""
        known = np.zeros(h.shape)
        x, x_off = sums.swapaxes(0, 1), sums_off.swapaxes(0, 1)  # by gates
        of_x, of_h = self.bias
        both = _of_states(h, known, self.gates, rounds=self.rounds)
        own, own_off = (np.split(each, 2, axis=1) for each in both)
        (z, z_off), (r, r_off) = (
            _gate(
                x[at] + own[at] + of_x[at] + of_h[at],
                x_off[at] + own_off[at] + _roundings(x[at], own[at], of_x[at], of_h[at]),
            )
            for at in range(2)
        )
        if self.is_after:
            level, level_off = _of_states(h, known, self.candidate, rounds=self.rounds)
            level_off = level_off + _roundings(level, of_h[2])
            level = level + of_h[2]
            reset, reset_off = r * level, of_product(r, r_off, level, level_off)
        else:
            reset_h, off = r * h, np.abs(h) * r_off + F32_UNIT * np.abs(r * h)
            reset, reset_off = _of_states(reset_h, off, self.candidate, rounds=self.rounds)
            reset_off = reset_off + _roundings(reset, of_h[2])
            reset = reset + of_h[2]
        n_off = moved(kinds.TANH, x_off[2] + reset_off + _roundings(x[2], reset, of_x[2]))
        n = np.tanh(x[2] + reset + of_x[2])
        kept, new = z * h, (1 - z) * n
        off = np.abs(h) * z_off + of_product(1 - z, z_off + F32_UNIT, n, n_off)
        return kept + new, off + 3 * F32_UNIT * (np.abs(kept) + np.abs(new) + off)


def _part(weights: CodedRows, rows: slice, way: int) -> CodedRows:
    """Return some rows of a direction, as weights of one direction."""
    return CodedRows(weights.codes[way : way + 1, rows], weights.scale[way : way + 1, rows])


def _gate(total: Array, off: Array) -> tuple[Array, Array]:
    return sigmoid(total), moved(kinds.SIGMOID, off)


def _roundings(*parts: Array) -> Array:
    """Return how far a sum of some parts may be off in float32."""
    return np.asarray(ROUNDINGS * F32_UNIT * sum(np.abs(each) for each in parts))


def _of_states(
    states: Array, off: Array, weights: CodedRows, *, rounds: bool
) -> tuple[Array, Array]:
    """Return products of states that are known so far, and how far they may be off."""
    real = reals(weights, 0)
    if not rounds:
        size = np.abs(states) @ np.abs(real).T
        return states @ real.T, off @ np.abs(real).T + states.shape[1] * F32_UNIT * size
    narrow = np.asarray(states, np.float32)
    pairs = zip(narrow, off, strict=True)
    exact = products(narrow, weights, 0, 1)
    return exact, np.stack([_of_other_codes(*pair, np.abs(real)) for pair in pairs])


def _of_other_codes(row: Array, off: Array, real: Array) -> Array:
    """Return the change of a product if values, and so codes next to ties, change by `off`."""
    if not off.any():
        return np.zeros(len(real))
    _, scale, _ = dynamic_quantize_linear(row)
    worth = float(scale)
    lo, hi = min(float(row.min()), 0.0), max(float(row.max()), 0.0)
    wider = 2 * float(off.max()) / max(hi - lo, worth)  # of the scale
    levels = row.astype(np.float64) / worth
    room = off / worth + wider * np.abs(levels) + 2 * F32_UNIT * 255
    point = -lo / worth
    is_near = np.abs(levels - np.floor(levels) - 0.5) <= room
    if abs(point - np.floor(point) - 0.5) <= wider * 255 + float(off.max()) / worth:
        is_near |= (row <= lo + 1.5 * worth) | (row >= hi - 1.5 * worth)  # which may be cut off
    codes = is_near * worth + wider * (np.abs(row) + worth)
    return np.asarray(real @ codes)
