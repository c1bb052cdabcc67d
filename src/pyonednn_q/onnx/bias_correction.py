"""Biases that take back what rounding of weights adds to a layer's mean result.

    bias[oc] += sum over taps of (wei - what its codes mean)[oc] · mean of the source's channel

The mean is over samples and places. A tap counts as often as it reads the source: of a result of
one row, kernels of three rows have two that read nothing but padding.
Source: "Data-Free Quantization Through Weight Equalization and Bias Correction" (Nagel et al.,
2019), section 4.2, with means of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.geometry import convolution
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.layer_reader import window_of
from pyonednn_q.quantize.corrections import corrected_bias
from pyonednn_q.quantize.quantizers import Quantizers

__all__ = ["SourceMeans", "with_biases_corrected"]


class SourceMeans:
    """Means of the channels of layers' sources, over batches."""

    def __init__(self) -> None:
        self._sums: dict[str, Array] = {}
        self._counts: dict[str, int] = {}

    def add(self, layers: Iterable[GraphNode], values: Mapping[str, Array]) -> None:
        """Take a batch in: layers that ran on it, and its tensors."""
        known: dict[tuple[str, int], Array] = {}
        for layer in layers:
            name = layer.inputs[0]
            if name not in values or values[name].ndim < 2:
                continue
            array = values[name]
            # A convolution's channels are dim 1, a product's the last.
            axis = 1 if layer.row in {kinds.CONV, kinds.CONV_TRANSPOSE} else array.ndim - 1
            if (name, axis) not in known:
                others = tuple(at for at in range(array.ndim) if at != axis)
                known[name, axis] = array.sum(axis=others, dtype=np.float64)
            total = known[name, axis]
            self._sums[layer.name] = self._sums.get(layer.name, 0.0) + total
            self._counts[layer.name] = self._counts.get(layer.name, 0) + array.size // len(total)

    def result(self) -> dict[str, Array]:
        """Return the means, by the names of layers."""
        return {name: total / self._counts[name] for name, total in self._sums.items()}


def with_biases_corrected(
    graph: Graph, layers: Iterable[GraphNode], quantizers: Quantizers
) -> Graph:
    """Add to biases what rounding of weights takes from the mean results of layers.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `prepared` returns it.
    layers : iterable of GraphNode
        Layers that become INT8: convolutions, and products with a bias, or a sum behind them.
    quantizers : Quantizers
        Codes of the weights, and means of sources.
    """
    view, edit = GraphView(graph), GraphEdit(graph)
    changed: dict[int, GraphNode] = {}
    for node in layers:
        shift = _shift(node, graph, quantizers)
        if shift is None:
            continue
        at, owner = 2, node
        if node.row is kinds.MATMUL:
            added = view.only_reader(node.outputs[0])
            if added is None or added.row is not kinds.ADD:
                continue
            at, owner = 1 - added.inputs.index(node.outputs[0]), added
        bias = graph.constants.get(owner.input(at))
        if bias is None and owner.input(at):
            continue
        old = np.zeros(len(shift)) if bias is None else bias.astype(np.float64).reshape(-1)
        if old.shape != shift.shape:
            continue
        name = edit.constant(f"{node.outputs[0]}:bias", (old + shift).astype(np.float32))
        inputs = [*owner.inputs, ""][: max(len(owner.inputs), at + 1)]
        inputs[at] = name
        changed[id(owner)] = replace(owner, inputs=tuple(inputs))
    edit.nodes += [changed.get(id(node), node) for node in graph.nodes]
    return edit.result()


def _shift(node: GraphNode, graph: Graph, quantizers: Quantizers) -> Array | None:
    """Return the correction of a layer's bias; None if the mean does not determine it."""
    wei, attributes = graph.constants[node.inputs[1]], node.attributes
    mean = quantizers.means.get(node.name)
    if node.row is kinds.CONV:
        axis, groups = 0, int(attributes.get("group", 1))
    elif (
        node.row is kinds.GEMM and attributes.get("alpha", 1.0) == attributes.get("beta", 1.0) == 1
    ):
        axis, groups = 0 if attributes.get("transB", 0) else 1, 1
        mean = None if attributes.get("transA", 0) else mean
    elif node.row is kinds.MATMUL and wei.ndim == 2:
        axis, groups = 1, 1
    else:
        return None
    if mean is None:
        return None
    codes, q = quantizers.weights(node.name, wei, axis)
    real, meant = (np.moveaxis(each, axis, 0) for each in (wei, q.dequantize(codes)))
    if len(mean) != groups * real.shape[1] or len(real) % groups:
        return None
    parts = zip(
        np.split(real, groups), np.split(meant, groups), np.split(mean, groups), strict=True
    )
    read = _shares_read(node, graph, wei) if real.ndim > 2 else np.ones(())
    places = (1,) * (real.ndim - 2)
    shifts = [
        corrected_bias(one, np.zeros(len(one)), other, own.reshape(-1, *places) * read)
        for one, other, own in parts
    ]
    return np.concatenate(shifts)


def _shares_read(node: GraphNode, graph: Graph, wei: Array) -> Array:
    """Return at which share of the result's places each tap of a convolution reads the source."""
    src = graph.tensors[node.inputs[0]].dims
    if src is None:
        return np.ones(wei.shape[2:])
    how = convolution(("X", "W"), src, wei.shape, **window_of(node))
    shares = np.ones(())
    for axis, (taps, length, places) in enumerate(
        zip(wei.shape[2:], src[2:], how.dst, strict=True)
    ):
        first = np.arange(places)[:, None] * how.stride[axis] - how.lo[axis]
        at = first + how.dilation[axis] * np.arange(taps)
        shares = np.multiply.outer(shares, ((at >= 0) & (at < length)).mean(axis=0))
    return shares
