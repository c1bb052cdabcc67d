"""Nodes that change nothing left out, and quantizers of other domains as ONNX's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit


def without_identities(graph: Graph) -> Graph:
    """Leave out Identity, Cast to the type that is there, and Dropout that does not train.

    Parameters
    ----------
    graph : Graph
    """
    edit = GraphEdit(graph)
    for each in graph.nodes:
        node = edit.renamed(each)
        if _may_change_nothing(node, graph) and _changes_nothing(node, graph):
            edit.rename(node.outputs[0], node.inputs[0])
        else:
            edit.nodes.append(node)
    return edit.result()


def _may_change_nothing(node: GraphNode, graph: Graph) -> bool:
    if node.row is kinds.CAST:
        before, after = (graph.tensors.get(each) for each in (node.inputs[0], node.outputs[0]))
        return before is not None and after is not None and before.dtype == after.dtype
    return node.row in {kinds.IDENTITY, kinds.DROPOUT}


def _changes_nothing(node: GraphNode, graph: Graph) -> bool:
    mode = node.input(2)  # what comes with a call may say that it trains
    is_training = bool(mode) and bool(graph.constants.get(mode, np.bool_(True)).any())
    others = any(node.outputs[1:])
    return not (node.outputs[0] in graph.outputs or is_training or others)


def with_quantizers_of_onnx(graph: Graph) -> Graph:
    """Call quantizers of other domains ONNX's, which mean the same of more types.

    Parameters
    ----------
    graph : Graph
    """
    edit = GraphEdit(graph)
    for node in graph.nodes:
        edit.nodes.append(replace(node, domain="") if node.row.form == "as_onnx" else node)
    return edit.result()
