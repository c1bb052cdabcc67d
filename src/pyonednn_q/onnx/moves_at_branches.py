"""Moves quantizers from before a move of values into a branch to after it, for saved files.

onnxruntime moves quantizers past nodes that move values, and ends the process where such a result
is read by a graph within a node: an If, a Loop (QDQPropagationTransformer of 1.31 and 1.32, which
looks for it among the node's own inputs). A quantizer of one scale commutes with what moves values,
so the same values come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.subgraphs import captured, graphs_of

__all__ = ["with_moves_before_quantizers"]

Constants = Mapping[str, Array]


def with_moves_before_quantizers(graph: Graph, wanted: frozenset[str] = frozenset()) -> Graph:
    """Return a graph in which no dequantized tensor is moved on its way into a branch.

    Parameters
    ----------
    graph : Graph
        Graph that `load` returned.
    wanted : frozenset of str
        Tensors that stay, whether something reads them or not.
    """
    if not any(graphs_of(node.attributes) for node in graph.nodes):
        return graph
    return _within(graph, graph.constants, wanted)


def _within(graph: Graph, around: Constants, wanted: frozenset[str]) -> Graph:
    constants = {**around, **graph.constants}
    nodes = [_with_graphs(node, constants, wanted) for node in graph.nodes]
    reach = {name for node in nodes for name in captured(node.attributes)}
    for node in reversed(nodes):
        if _is_move(node) and node.outputs[0] in reach:
            reach.add(node.inputs[0])
    makers: dict[str, GraphNode] = {}
    kept: list[GraphNode] = []
    for node in nodes:
        pair = _pair(node, makers, constants) if node.outputs[0] in reach else None
        steps = [node] if pair is None else _behind(node, *pair)
        kept += steps
        makers.update((name, each) for each in steps for name in each.outputs)
    ends = wanted.union(graph.outputs)
    return replace(graph, nodes=tuple(_read(kept, ends) if len(kept) > len(nodes) else nodes))


def _with_graphs(node: GraphNode, constants: Constants, wanted: frozenset[str]) -> GraphNode:
    graphs = graphs_of(node.attributes)
    if not graphs:
        return node
    own = {name: _within(each, constants, wanted) for name, each in graphs.items()}
    return replace(node, attributes=MappingProxyType({**node.attributes, **own}))


def _is_move(node: GraphNode) -> bool:
    """Tell whether it moves the values of its first input, and has one result."""
    moves = node.row.moves == "always" and not node.row.pool
    return moves and len(node.outputs) == 1 and node.row not in {kinds.CONCAT, kinds.SPLIT}


def _pair(
    node: GraphNode, makers: Mapping[str, GraphNode], constants: Constants
) -> tuple[GraphNode, GraphNode] | None:
    """Return the quantizers of one scale before what moves values; None where there are none."""
    after = makers.get(node.inputs[0]) if _is_move(node) else None
    before = makers.get(after.inputs[0]) if after is not None else None
    if after is None or before is None or before.row is not kinds.QUANTIZE:
        return None
    known = [constants.get(name) for each in (before, after) for name in each.inputs[1:] if name]
    is_of_one = all(each is not None and each.size == 1 for each in known)
    return (before, after) if after.row is kinds.DEQUANTIZE and is_of_one else None


def _behind(move: GraphNode, before: GraphNode, after: GraphNode) -> list[GraphNode]:
    """Return a move of real values, and quantizers of its result."""
    result = move.outputs[0]
    real, codes = (f"{result}:{part}" for part in ("moved", "moved codes"))
    return [
        replace(move, inputs=(before.inputs[0], *move.inputs[1:]), outputs=(real,)),
        replace(
            before,
            name=f"{move.name}:quantize",
            inputs=(real, *before.inputs[1:]),
            outputs=(codes,),
        ),
        replace(
            after,
            name=f"{move.name}:dequantize",
            inputs=(codes, *after.inputs[1:]),
            outputs=(result,),
        ),
    ]


def _read(nodes: list[GraphNode], ends: frozenset[str]) -> list[GraphNode]:
    """Return nodes without the quantizers that nothing reads any more."""
    reads = Counter(name for node in nodes for name in node.inputs)
    kept: list[GraphNode] = []
    for node in reversed(nodes):
        if node.row.is_quantizer and not reads[node.outputs[0]] and node.outputs[0] not in ends:
            reads.subtract(node.inputs)
        else:
            kept.append(node)
    return kept[::-1]
