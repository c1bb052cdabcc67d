"""Layers that models share: of other lengths, or of others alone; weights are packed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fused_node import FusedNode, fused_nodes
from pyonednn_q.ops.operator import Operator

__all__ = ["with_known_operators", "with_layers_of"]


def with_layers_of(graph: Graph, other: Graph) -> Graph:
    """Return a fused graph with the layers of another one, where they are the same.

    Parameters
    ----------
    graph, other : Graph
        Graphs that `fuse` returned, of one model at different lengths.
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


def with_known_operators(fused: Graph, known: dict[str, list[Operator]]) -> Graph:
    """Return a graph with operators of floats that were there before, where they compute the same.

    Parameters
    ----------
    fused : Graph
        Calls of a model like those before.
    known : dict of str to list of Operator
        Operators by what they make, each ready for its source once it was used; those of `fused`
        are added for what comes.
    """

    def shared(node: FusedNode) -> FusedNode:
        own = node.runs
        if not isinstance(own, Operator) or own.settings.is_int8:
            return node
        before = known.setdefault(node.output, [])
        for each in before:
            if _are_equal(own, each):
                return replace(node, runs=each)
        before.append(own)
        return node

    return replace(fused, nodes=tuple(map(shared, fused_nodes(fused))))


def _are_equal(one: Operator, other: Operator) -> bool:
    """Tell whether two operators of float weights have the same of everything."""
    if type(one) is not type(other) or one.settings != other.settings:
        return False
    if one.groups != other.groups or dict(one.window) != dict(other.window):
        return False
    pairs = ((one.weights.values, other.weights.values), (one.bias, other.bias))
    return one.weights.dtype == other.weights.dtype and all(
        a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs
    )
