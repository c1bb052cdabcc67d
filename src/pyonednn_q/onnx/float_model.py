"""float_model: a float graph on our own primitives, layers with what follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.float_layers import float_layer
from pyonednn_q.onnx.fused_node import FusedGraph, FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.model import Model

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph


def float_model(graph: Graph) -> Model:
    """Return a float graph as a model that runs: layers on primitives of float32.

    Parameters
    ----------
    graph : Graph
        Without quantizers. A layer's chain ends at an output of the graph.
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
    constants, opsets = graph.constants, graph.opsets
    return Model(FusedGraph(nodes, constants, graph.inputs, graph.outputs, graph.tensors, opsets))
