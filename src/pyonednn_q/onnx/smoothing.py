"""smoothed: channels of a layer's source made alike, and its weights what makes up for it.

    src' = src / s,  wei' = wei · s                       s: of each input channel, a power of two
    s = 2^round(log2(max|src|^alpha / max|wei|^(1 - alpha)))

One scale for a tensor has room for its widest channel; of one that is a thousandth of it, nothing
is left. The division joins the chain of the layer before, or the gains of a LayerNormalization.
By powers of two float32 results stay as they are, bit for bit. Source: "SmoothQuant" (Xiao et al.,
2023), equations 3 and 4; the powers of two are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pyonednn_q.argument import instance, real
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.divided_sources import divisible_sources, input_axis, with_sources_divided
from pyonednn_q.onnx.float_model import observed
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.quantize.corrections import smoothed as smoothed_weights

__all__ = ["smoothed"]


def smoothed(graph: Graph, batches: Iterable[Any], alpha: float = 0.5) -> Graph:
    """Return a float graph with the same results that is easier to quantize, by SmoothQuant.

    It changes sources of convolutions with one group and of products with a weight matrix. All
    readers of the source must be such layers, and a layer's chain or a LayerNormalization must
    compute it.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs, as for `calibrate`; read once and not kept.
    alpha : float
        Exponent of SmoothQuant, 0 to 1: how much of the range moves from sources to weights.

    Returns
    -------
    Graph
        Graph for `calibrate`. Its float32 results have the same bits, unless a divided channel or
        its weights leave the normal range of float32.

    Raises
    ------
    ArgumentError
        No batches; a graph with quantizers.
    """
    instance("graph", graph, Graph)
    share = real("alpha", alpha)
    if not 0.0 <= share <= 1.0:
        raise ArgumentError("alpha", f"{share}", "a number from 0 to 1")
    if any(node.row.is_quantizer for node in graph.nodes):
        raise ArgumentError("graph", "quantizers", "a graph of floats")
    base = graph if graph.symbols else prepared(graph)
    groups: dict[str, list[GraphNode]] = {}
    tops: dict[str, Array] = {}

    def sources(plain: Graph) -> Iterable[str]:
        groups.update({} if groups else divisible_sources(plain, base))
        return groups

    for values in observed(base, batches, sources):
        for name, layers in groups.items():
            widest = _tops(values[name], layers[0])
            tops[name] = np.maximum(widest, tops.get(name, widest))
    divisors = {name: _divisor(each, base, tops[name], share) for name, each in groups.items()}
    return with_sources_divided(base, groups, divisors)


def _tops(values: Array, layer: GraphNode) -> Array:
    """Return the largest magnitude of each channel of a layer's source."""
    axis = 1 if layer.row is kinds.CONV else values.ndim - 1
    others = tuple(at for at in range(values.ndim) if at != axis)
    return np.asarray(np.abs(values).max(axis=others, initial=0.0), np.float64)


def _divisor(layers: list[GraphNode], graph: Graph, tops: Array, alpha: float) -> Array:
    """Return the powers of two that a source's channels are divided by."""
    rows = []
    for node in layers:
        wei = graph.constants[node.inputs[1]]
        rows.append(np.moveaxis(wei, input_axis(node, wei), -1).reshape(-1, len(tops)))
    divisor, _ = smoothed_weights(tops, np.concatenate(rows), alpha)
    return np.asarray(np.exp2(np.round(np.log2(divisor))), np.float64)
