"""with_last_token_alone: a decoder whose logits are those of the last token of a call.

Its last product, the largest of a language model, has a row for each sequence then, not for each
token.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.shape_inference import known_lengths

__all__ = ["with_last_token_alone"]

_PRODUCTS = {kinds.MATMUL, kinds.MATMUL_BITS}
_LAST = np.iinfo(np.int64).max


def with_last_token_alone(graph: Graph) -> Graph:
    """Return the graph whose last product reads the last token alone; the same where none does.

    Parameters
    ----------
    graph : Graph
        Graph with one output, of logits (batch, tokens, words).
    """
    makers = {name: node for node in graph.nodes for name in node.outputs if name}
    (name,) = graph.outputs
    maker = makers.get(name)
    while maker is not None and (before := _source(maker, graph)):
        maker = makers.get(before)
    if maker is None or maker.row not in _PRODUCTS:
        return graph
    src, dims = maker.inputs[0], known_lengths(graph)
    is_plain = maker.row is kinds.MATMUL_BITS or len(dims.get(maker.inputs[1], ())) == 2
    if len(dims.get(src, ())) != 3 or not is_plain or src not in makers:
        return graph
    edit = GraphEdit(graph)
    every = edit.free(f"{src}:every token")
    told = {"starts": -1, "ends": _LAST, "axes": 1}
    numbers = [edit.constant(f"{src}:{n}", np.array([each])) for n, each in told.items()]
    for node in graph.nodes:
        # The product keeps the name of its source: it is the same layer in both graphs.
        reads = node.inputs if node is maker else _renamed(node.inputs, src, every)
        edit.nodes.append(replace(node, inputs=reads, outputs=_renamed(node.outputs, src, every)))
        if src in node.outputs:
            edit.node(kinds.SLICE, (every, *numbers), src)
    return edit.result()


def _renamed(names: tuple[str, ...], name: str, other: str) -> tuple[str, ...]:
    return tuple(other if each == name else each for each in names)


def _source(node: GraphNode, graph: Graph) -> str:
    """Return what a node computes each token's numbers of; "" where it does something else."""
    if node.row.elementwise:
        return node.inputs[0]
    sources = [name for name in node.inputs if name not in graph.constants]
    others = [graph.constants[name] for name in node.inputs if name in graph.constants]
    is_one = node.row.is_arithmetic and len(sources) == 1
    return sources[0] if is_one and all(each.ndim < 2 for each in others) else ""
