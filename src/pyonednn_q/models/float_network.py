"""A float graph on our own primitives: layers with what follows them, pools, the rest as ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyonednn_q.onnx import Model
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.float_layers import float_layer
from pyonednn_q.onnx.fused_node import FusedGraph, FusedNode
from pyonednn_q.onnx.quantizers import GraphView

if TYPE_CHECKING:
    from pyonednn_q.network import Network
    from pyonednn_q.onnx.graph import OnnxGraph

__all__ = ["FloatNetwork", "float_network"]


class FloatNetwork(NamedTuple):
    """A float model as a network.

    Attributes
    ----------
    graph : FusedGraph
        What it computes.
    network : Network
        The same, to be compiled and run.
    """

    graph: FusedGraph
    network: Network


def float_network(graph: OnnxGraph) -> FloatNetwork:
    """Return a float graph as a network.

    Parameters
    ----------
    graph : OnnxGraph
        Without quantizers, as `float_form` returns it.

    Raises
    ------
    UnsupportedError
        A tensor between nodes of a type that oneDNN has not, or of dims that are not known.
    """
    view = GraphView(graph)
    chains = ChainReader(view)
    by_place: dict[int, FusedNode] = {}
    for node in reversed(graph.nodes):
        if node.row.layer and not view.is_taken(node):
            layer = float_layer(view, chains, node)
            if isinstance(layer, FusedNode):
                by_place[view.take(layer.parts)] = layer
    for place, node in enumerate(graph.nodes):
        if not view.is_taken(node):
            by_place[place] = FusedNode(node.name, node, node.inputs, {}, node.outputs, (node,))
    nodes = tuple(by_place[place] for place in sorted(by_place))
    fused = FusedGraph(
        nodes, graph.constants, graph.inputs, graph.outputs, graph.tensors, {}, graph.opsets
    )
    model = Model(fused)
    return FloatNetwork(model.graph, model.network())
