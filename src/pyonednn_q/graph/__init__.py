"""graph: a model as one value, whoever wrote it, and the kinds of its operators."""

from __future__ import annotations

from pyonednn_q.graph.graph import Graph, GraphNode, Value

__all__ = ["Graph", "GraphNode", "Value"]
