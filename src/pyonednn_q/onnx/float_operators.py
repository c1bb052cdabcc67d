"""Cache of float layers, shared by models that differ in few other layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.fused_node import FusedNode, fused_nodes
from pyonednn_q.ops.operator import Operator

__all__ = ["with_known_operators"]


def with_known_operators(fused: Graph, known: dict[str, list[Operator]]) -> Graph:
    """Return a graph in which known float operators replace equal new ones.

    Parameters
    ----------
    fused : Graph
        Graph of calls of the model.
    known : dict of str to list of Operator
        Known operators by the name of their result; new ones of `fused` are added.
    """

    def shared(node: FusedNode) -> FusedNode:
        own = node.runs
        if not isinstance(own, Operator) or own.settings.is_int8:
            return node
        before = known.setdefault(node.output, [])
        for each in before:
            if _is_same(own, each):
                return replace(node, runs=each)
        before.append(own)
        return node

    return replace(fused, nodes=tuple(map(shared, fused_nodes(fused))))


def _is_same(one: Operator, other: Operator) -> bool:
    """Tell whether two operators of float weights have the same of everything."""
    if type(one) is not type(other) or one.settings != other.settings:
        return False
    if one.groups != other.groups or dict(one.window) != dict(other.window):
        return False
    pairs = ((one.weights.values, other.weights.values), (one.bias, other.bias))
    return one.weights.dtype == other.weights.dtype and all(
        a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs
    )
