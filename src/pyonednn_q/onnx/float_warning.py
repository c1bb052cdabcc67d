"""A warning where no layer of a model runs in INT8, so that nobody thinks that some do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pyonednn_q.native.first_run import LOGGER
from pyonednn_q.onnx.fused_node import FusedGraph, FusedNode
from pyonednn_q.onnx.saturating_layers import IN_FLOATS
from pyonednn_q.ops.operator import Operator

__all__ = ["warn_of_floats"]

_WARNING = "none of %d layers runs in INT8; of most, because of: %s"


def warn_of_floats(graph: FusedGraph, asked: Collection[str]) -> FusedGraph:
    """Return a graph; warn once if it has layers of constant weights, and none is INT8.

    Parameters
    ----------
    graph : FusedGraph
        As `fuse` makes it.
    asked : collection of str
        Names of layers that were to stay in floats: of those nothing is said.
    """
    layers = [node for node in graph.nodes if _is_layer(node, graph) and node.name not in asked]
    if layers and not any(map(_is_int8, layers)):
        ((why, _),) = Counter(node.why or "floats were asked for" for node in layers).most_common(1)
        if why != IN_FLOATS:  # which has a line of its own
            LOGGER.warning(_WARNING, len(layers), why)
    return graph


def _is_layer(node: FusedNode, graph: FusedGraph) -> bool:
    if isinstance(node.operator, Operator):
        return True
    part = node.parts[0]
    return part.row.multiplies and part.input(1) in graph.constants


def _is_int8(node: FusedNode) -> bool:
    return isinstance(node.operator, Operator) and node.operator.settings.is_int8
