"""Layers that models of different lengths share, so that weights are packed and held once."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fused_node import FusedNode, fused_nodes
from pyonednn_q.ops.operator import Operator

__all__ = ["with_layers_of"]


def with_layers_of(graph: Graph, other: Graph) -> Graph:
    """Return a fused graph with the layers of another one, where they are the same.

    Parameters
    ----------
    graph, other : Graph
        As `fuse` returns them, of one model at different lengths.
    """
    known = {node.name: node for node in fused_nodes(other) if isinstance(node.runs, Operator)}
    nodes = [
        replace(node, runs=same.runs)
        if (same := known.get(node.name)) and _is_same(node, graph, same, other)
        else node
        for node in fused_nodes(graph)
    ]
    return replace(graph, nodes=tuple(nodes))


def _is_same(node: FusedNode, graph: Graph, other: FusedNode, of: Graph) -> bool:
    """Tell whether two nodes are one layer: of the same options and the very same constants."""
    one, two = node.runs, other.runs
    if type(one) is not type(two) or not isinstance(one, Operator) or not isinstance(two, Operator):
        return False
    parts = [[(each.kind, each.inputs, each.outputs) for each in n.parts] for n in (node, other)]
    names = {name for each in node.parts for name in each.inputs}
    are_held = all(graph.constants.get(n) is of.constants.get(n) for n in names)
    return parts[0] == parts[1] and are_held and one.settings == two.settings
