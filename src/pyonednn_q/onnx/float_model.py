"""float_model: a float graph on our own primitives, layers with what follows them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.float_layers import float_layer
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import passed

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph


def float_model(graph: Graph) -> Model:
    """Return a float graph as a model that runs.

    Parameters
    ----------
    graph : Graph
        Graph without quantizers.
    """
    return Model(passed(graph, (with_float_calls,)))


def with_float_calls(graph: Graph) -> Graph:
    """Make one call in float32 of each layer and what follows it, and of all other nodes.

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
            by_place[place] = FusedNode.as_it_is(node)
    return replace(graph, nodes=tuple(by_place[place] for place in sorted(by_place)))
