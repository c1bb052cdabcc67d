"""A warning if no layer of a model runs in INT8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from pyonednn_q.graph.graph import Graph
from pyonednn_q.native.first_run import LOGGER
from pyonednn_q.onnx.fused_node import FusedNode, fused_nodes
from pyonednn_q.onnx.saturating_layers import IN_FLOATS
from pyonednn_q.ops.operator import Operator

__all__ = ["warn_of_floats"]

_WARNING = "none of %d layers runs in INT8; of most, because of: %s"


def warn_of_floats(graph: Graph, asked: Collection[str]) -> Graph:
    """Return a graph; warn once if it has layers of constant weights, and none is INT8.

    Parameters
    ----------
    graph : Graph
        Graph that `fuse` returned.
    asked : collection of str
        Names of layers that were to stay in floats: of those nothing is said.
    """
    nodes = (node for node in fused_nodes(graph) if node.name not in asked)
    layers = [node for node in nodes if _is_layer(node, graph)]
    if layers and not any(map(_is_int8, layers)):
        ((why, _),) = Counter(node.why or "floats were asked for" for node in layers).most_common(1)
        if why != IN_FLOATS:  # which has a line of its own
            LOGGER.warning(_WARNING, len(layers), why)
    return graph


def _is_layer(node: FusedNode, graph: Graph) -> bool:
    if isinstance(node.runs, Operator):
        return True
    part = node.parts[0]
    return part.row.multiplies and part.input(1) in graph.constants


def _is_int8(node: FusedNode) -> bool:
    return isinstance(node.runs, Operator) and node.runs.settings.is_int8
