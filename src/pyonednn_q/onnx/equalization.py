"""equalized: channels between two convolutions made alike, by their weights alone.

    conv1 -> (sum, product, batch norm, relu, leaky relu, prelu, pool)... -> conv2
    r_c = 2^round(log2(sqrt(e1_c / e2_c)))
    conv1's channel c / r_c, its shift / r_c, conv2's weights of channel c · r_c

e2_c is the largest weight that reads the channel; e1_c the largest that makes it, batch norm and
constants included, or its shift if that is larger. What stands between gives r times as much for r
times as much. By powers of two float32 results stay as they are, bit for bit. Source: "Data-Free
Quantization Through Weight Equalization and Bias Correction" (Nagel et al., 2019), section 4.1. The
powers of two are ours, and the shift: a channel of small weights and a large shift would pass all
others, which the paper mends by absorbing shifts into the layer behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pyonednn_q.argument import instance
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.passes import settled
from pyonednn_q.quantize.corrections import equalized as equalized_weights

__all__ = ["equalized"]

Place = tuple[int, int]  # a node, by its id, and which of its inputs
_WEI, _BIAS = 1, 2
_SWEEPS = 20  # a layer of two pairs changes for one when the other moves
_PASSED = (
    kinds.RELU,
    kinds.LEAKY_RELU,
    kinds.PRELU,
    kinds.MAX_POOL,
    kinds.GLOBAL_MAX_POOL,
    kinds.AVERAGE_POOL,
    kinds.GLOBAL_AVERAGE_POOL,
)


class _Pair(NamedTuple):
    """Two convolutions, what is between, and what is divided: weights or a norm's, and shifts."""

    first: GraphNode
    between: tuple[GraphNode, ...]
    second: GraphNode
    scaled: tuple[GraphNode, int]
    shifts: tuple[tuple[GraphNode, int], ...]


def equalized(graph: Graph) -> Graph:
    """Return a float graph with the same results whose convolutions are easier to quantize.

    It changes pairs of convolutions, with any groups, whose tensors in between have no other
    reader. Between the two may be sums and products with constants for each channel, batch norms,
    pools, and activations f with f(a·x) = a·f(x) for a > 0.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.

    Returns
    -------
    Graph
        Graph for `calibrate`. Its float32 results have the same bits, unless a scaled value leaves
        the normal range of float32.

    Raises
    ------
    ArgumentError
        A graph with quantizers.
    """
    instance("graph", graph, Graph)
    if any(node.row.is_quantizer for node in graph.nodes):
        raise ArgumentError("graph", "quantizers", "a graph of floats")
    base = settled(graph)
    weights = _Constants(base)
    pairs = tuple(_pairs(base))
    for _ in range(_SWEEPS):
        moved = [weights.evened_out(pair) for pair in pairs]
        if not any(moved):
            break
    edit = GraphEdit(base)
    for node in base.nodes:
        inputs = list(node.inputs)
        for at, name in enumerate(node.inputs):
            if (value := weights.changed.get((id(node), at))) is not None:
                inputs[at] = edit.constant(f"{name}:equalized", value.astype(np.float32))
        same = tuple(inputs) == node.inputs
        edit.nodes.append(node if same else replace(node, inputs=tuple(inputs)))
    return edit.result()


def _pairs(graph: Graph) -> Iterator[_Pair]:
    view = GraphView(graph)
    for first in graph.nodes:
        is_layer = first.row is kinds.CONV and _is_float(graph, first.inputs[_WEI])
        if is_layer and (not first.input(_BIAS) or _is_float(graph, first.inputs[_BIAS])):
            between, value = [], first.outputs[0]
            while (node := view.only_reader(value)) is not None and _keeps(graph, first, node):
                between.append(node)
                value = node.outputs[0]
            is_pair = node is not None and node.row is kinds.CONV and node.inputs[0] == value
            if node is not None and is_pair and _is_float(graph, node.inputs[_WEI]):
                yield _Pair(first, tuple(between), node, *_divided(graph, first, between))


def _keeps(graph: Graph, first: GraphNode, node: GraphNode) -> bool:
    """Tell whether a node keeps the factors of channels, or is a sum that can follow them."""
    if node.row is kinds.BATCH_NORM:
        return _is_norm(graph, node)
    if node.row in (kinds.ADD, kinds.MUL):
        wei = graph.constants[first.inputs[_WEI]]
        known = graph.constants.get(node.inputs[_constant(graph, node)])
        return known is not None and _is_by_channel(known, len(wei), wei.ndim)
    is_first = node.inputs[0] not in graph.constants
    return node.row in _PASSED and is_first and not any(node.outputs[1:])


def _divided(
    graph: Graph, first: GraphNode, between: list[GraphNode]
) -> tuple[tuple[GraphNode, int], tuple[tuple[GraphNode, int], ...]]:
    """Return what to divide that is multiplied, and what is added behind that."""
    scaled, shifts = (first, _WEI), [(first, _BIAS)] if first.input(_BIAS) else []
    for node in between:
        if node.row is kinds.BATCH_NORM:
            scaled, shifts = (node, 1), [(node, 2)]
        elif node.row is kinds.ADD:
            shifts.append((node, _constant(graph, node)))
    return scaled, tuple(shifts)


def _constant(graph: Graph, node: GraphNode) -> int:
    """Return which of two inputs is a constant; the second if none is."""
    return 0 if node.inputs[0] in graph.constants else 1


def _is_float(graph: Graph, name: str) -> bool:
    """Tell whether a tensor is a constant of float32."""
    return name in graph.constants and graph.constants[name].dtype == np.float32


def _is_norm(graph: Graph, node: GraphNode) -> bool:
    is_open = node.attributes.get("training_mode", 0) or any(node.outputs[1:])
    return not is_open and all(_is_float(graph, name) for name in node.inputs[1:])


def _is_by_channel(value: Array, channels: int, ndim: int) -> bool:
    """Return whether a constant is one number, or one for each channel, in dim 1."""
    if value.ndim > ndim or value.dtype != np.float32:
        return False
    dims = (1,) * (ndim - value.ndim) + value.shape
    return value.size == 1 or bool(dims[1] == value.size == channels)


class _Constants:
    """The constants of a graph while they change, in float64."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.changed: dict[Place, Array] = {}

    def evened_out(self, pair: _Pair) -> bool:
        """Make the channels of a pair alike; tell whether anything changed."""
        first, second = self._of(pair.first, _WEI), self._of(pair.second, _WEI)
        groups = int(pair.second.attributes.get("group", 1))
        by_group = second.reshape(groups, len(second) // groups, second.shape[1], -1)
        reads = np.abs(by_group).max(axis=(1, 3)).reshape(1, -1)
        extent = self._extent(pair, first)
        even, _, _ = equalized_weights(extent[:, None], np.zeros(len(extent)), reads)
        ratio = extent / np.where(extent > 0.0, even[:, 0], 1.0)
        power = np.exp2(np.round(np.log2(np.where(extent > 0.0, ratio, 1.0))))
        if (power == 1.0).all():
            return False
        node, at = pair.scaled
        own = self._of(node, at)
        self.changed[id(node), at] = own / power.reshape(-1, *(1,) * (own.ndim - 1))
        for node, at in pair.shifts:
            shift = self._by_channel(node, at, pair) / power
            places = first.ndim - 2 if node.row is kinds.ADD else 0
            self.changed[id(node), at] = shift.reshape(-1, *(1,) * places)
        along = power.reshape(groups, 1, -1, 1)
        self.changed[id(pair.second), _WEI] = (by_group * along).reshape(second.shape)
        return True

    def _extent(self, pair: _Pair, wei: Array) -> Array:
        """Return the largest weight of each channel in front of the second layer, or its shift."""
        top = np.abs(wei.reshape(len(wei), -1)).max(axis=1)
        shift = np.zeros(len(wei))
        if pair.first.input(_BIAS):
            shift = shift + self._of(pair.first, _BIAS)
        for node in pair.between:
            if node.row is kinds.BATCH_NORM:
                scale, offset, mean, var = (self._of(node, at) for at in range(1, 5))
                gain = scale / np.sqrt(var + node.attributes.get("epsilon", 1e-5))
                top, shift = top * np.abs(gain), (shift - mean) * gain + offset
            elif node.row in (kinds.ADD, kinds.MUL):
                value = self._by_channel(node, _constant(self._graph, node), pair)
                if node.row is kinds.ADD:
                    shift = shift + value
                else:
                    top, shift = top * np.abs(value), shift * value
        return np.asarray(np.maximum(top, np.abs(shift)))

    def _of(self, node: GraphNode, at: int) -> Array:
        known = self.changed.get((id(node), at))
        return self._graph.constants[node.inputs[at]].astype(np.float64) if known is None else known

    def _by_channel(self, node: GraphNode, at: int, pair: _Pair) -> Array:
        value = self._of(node, at).reshape(-1)
        channels = len(self._graph.constants[pair.first.inputs[_WEI]])
        return np.broadcast_to(value, (channels,))
