"""Quantizers that were placed in a graph of certain lengths, put into that which leaves them open.

Where quantizers go follows from dims: which operands are alike, what a Reshape keeps. So they are
placed at the lengths of one batch. But the nodes that compute dims from dims are folded there, and
a graph with that folded runs at no other length. Tensors have the same names in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.onnx.open_dims import bound
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import with_norms_as_layers

__all__ = ["at_lengths", "opened"]


def at_lengths(graph: Graph, dims: Mapping[str, Dims]) -> Graph:
    """Return a float graph of certain lengths, ready for quantizers; as it is if none is open.

    Parameters
    ----------
    graph : Graph
        As `load` returns it; if no length is open, as `calibrate` makes it of that.
    dims : mapping of str to tuple of int
        Dims of its inputs.
    """
    if not graph.symbols:
        return graph
    plain, _ = prepared(bound(graph, {name: dims[name] for name in graph.symbols}))
    return with_norms_as_layers(plain)


def opened(graph: Graph, before: Graph, after: Graph) -> Graph:
    """Return a graph with open lengths and with the quantizers of one of certain lengths.

    Parameters
    ----------
    graph : Graph
        With open lengths. If no length is open, `after` is returned.
    before, after : Graph
        As `at_lengths` and `quantized_form` return them.
    """
    if not graph.symbols:
        return after
    kept = [node for node in after.nodes if not node.row.is_quantizer]
    pairs = {old.outputs[0]: (old, new) for old, new in zip(before.nodes, kept, strict=True)}
    computed = {name for node in graph.nodes for name in node.outputs if name}
    more = [
        node for node in after.nodes if node.outputs[0] not in computed or node.row.is_quantizer
    ]
    nodes = [_with(node, *pairs.get(node.outputs[0], (node, node))) for node in graph.nodes]
    constants = {name: each for name, each in after.constants.items() if name not in computed}
    ordered = tuple(_ordered(nodes, more, graph.outputs))
    held = {**graph.constants, **constants}
    return replace(graph, nodes=ordered, constants=held, opsets=after.opsets)


def _with(node: GraphNode, old: GraphNode, new: GraphNode) -> GraphNode:
    """Return a node with the inputs and outputs that changed between two forms of it."""
    if old.operator != node.operator or len(old.inputs) != len(node.inputs):
        return new
    inputs = tuple(
        own if first == second else second
        for own, first, second in zip(node.inputs, old.inputs, new.inputs, strict=False)
    )
    more = new.inputs[len(inputs) :]  # a bias that there was not
    return replace(node, inputs=(*inputs, *more), outputs=new.outputs)


def _ordered(
    nodes: list[GraphNode], more: list[GraphNode], outputs: Iterable[str]
) -> Iterable[GraphNode]:
    """Give nodes in their order, each behind those of the others whose results it reads."""
    makers = {name: node for node in more for name in node.outputs if name}
    done: set[int] = set()
    ends = [makers[name] for name in outputs if name in makers]
    for node in (*nodes, *ends):
        todo = [(node, False)]
        while todo:
            each, is_ready = todo.pop()
            if id(each) in done:
                continue
            if is_ready:
                done.add(id(each))
                yield each
                continue
            todo.append((each, True))
            todo += [(makers[n], False) for n in each.inputs if n in makers]
