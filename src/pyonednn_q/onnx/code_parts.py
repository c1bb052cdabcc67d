"""Operations on codes that no one pass does: moved as codes, or reals between their quantizers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.network import Dequantize, Node, Quantize
from pyonednn_q.onnx.code_operations import dims_of
from pyonednn_q.onnx.float_operations import float_nodes
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.selection_operations import selection_nodes
from pyonednn_q.onnx.subgraphs import renamed

__all__ = ["nodes_of_parts"]

Free = Callable[[int], tuple[str, ...]]


def nodes_of_parts(what: CodeOperation, node: FusedNode, graph: Graph, free: Free) -> list[Node]:
    """Return operations of a network that do the same, part by part; empty where there are none.

    Parameters
    ----------
    what : CodeOperation
        Operation of the node.
    node : FusedNode
        Node whose parts are quantizers and operations between them.
    graph : Graph
        The graph of the node.
    free : callable
        Function from a number to that many names of tensors.
    """
    inner = [part for part in node.parts if not part.row.is_quantizer]
    if not inner or any(len(part.outputs) != 1 for part in inner):
        return []
    if what.moves_codes:
        return _moved(inner, node, graph, what)
    if None in what.srcs_q or any(q is not None and q.channels is not None for q in what.srcs_q):
        return []
    names: dict[str, str] = {}
    nodes, tensors = [], dict(graph.tensors)
    stores = [part for part in node.parts if part.row is kinds.DEQUANTIZE]
    for part, codes, q in zip(stores, node.srcs, what.srcs_q, strict=True):
        if q is not None and part.outputs[0] not in names:
            (names[part.outputs[0]],) = free(1)
            nodes.append(Node(names[part.outputs[0]], Dequantize(q), codes))
            tensors[names[part.outputs[0]]] = Value("float32", dims_of(codes, graph))
    dims = dims_of(node.output, graph)
    for part in inner:
        is_last = part is inner[-1] and what.dst_q is None
        (names[part.outputs[0]],) = (node.output,) if is_last else free(1)
        tensors[names[part.outputs[0]]] = Value("float32", dims)
        here = replace(graph, tensors=MappingProxyType(tensors))
        more = _of_part(renamed(part, names), here)
        if not more:
            return []
        nodes += more
    if what.dst_q is not None:
        if what.dst_q.channels is not None:
            return []
        nodes.append(Node(node.output, Quantize(what.dst_q), names[inner[-1].outputs[0]]))
    return nodes


def _moved(
    inner: list[GraphNode], node: FusedNode, graph: Graph, what: CodeOperation
) -> list[Node]:
    """Return what moves the codes as it would move the reals."""
    if len(inner) != 1:
        return []
    part, left = inner[0], iter(node.srcs)
    places = range(len(part.inputs))
    inputs = tuple(
        part.inputs[at] if at in what.constants or not part.inputs[at] else next(left)
        for at in places
    )
    return _of_part(replace(part, inputs=inputs, outputs=(node.output,)), graph)


def _of_part(part: GraphNode, graph: Graph) -> list[Node]:
    computed = [n for n in dict.fromkeys(part.inputs) if n and n not in graph.constants]
    return float_nodes(part, graph, computed) or selection_nodes(part, graph, computed)
