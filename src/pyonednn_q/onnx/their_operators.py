"""onnxruntime's operators of decoders that ONNX has by now, too: written as ONNX's.

    SimplifiedLayerNormalization(x, gain)              RMSNormalization
    SkipSimplifiedLayerNormalization(x, skip, gain)    Add, RMSNormalization
    SkipLayerNormalization(x, skip, gain, shift)       Add, LayerNormalization
    RotaryEmbedding(x, places, cos, sin)               RotaryEmbedding(x, cos, sin, places)
    GatherBlockQuantized(table, rows, scales)          Gather, Cast, Mul
    MultiHeadAttention, Attention                      Attention, behind products and sums

A bias of the second and third is added to the sum, which may be a result, too.
Source: onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.block_gathers import gathered_blocks
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.their_attentions import attention_of_heads, attention_of_one

__all__ = ["with_operators_of_onnx"]

_SINCE = 18  # the opset from which on nodes mean the same at that of the norm
_SKIPS = {kinds.SKIP_NORM: 5, kinds.SKIP_SIMPLE_NORM: 4}  # inputs, with a bias of the sum
_EPSILON = 1e-12  # of sums, where none is told
_SUM = 3  # output that is the sum
_PARTS = {
    kinds.GATHER_BITS: gathered_blocks,
    kinds.HEADS: attention_of_heads,
    kinds.THEIR_ATTENTION: attention_of_one,
}


def with_operators_of_onnx(graph: Graph) -> Graph:
    """Write norms and rotary embeddings of onnxruntime as those of ONNX.

    Parameters
    ----------
    graph : Graph
        Graph as read. The opset of the result is at least that of the written nodes.
    """
    if graph.opset < _SINCE:
        return graph
    edit = GraphEdit(graph)
    since = graph.opset
    for node in graph.nodes:
        before = len(edit.nodes)
        if node.row not in _PARTS:
            edit.nodes += _written(node, edit)
        elif not _PARTS[node.row](node, edit):
            del edit.nodes[before:]
        if len(edit.nodes) == before:
            edit.nodes.append(node)
        else:
            since = max([since, *(each.row.since for each in edit.nodes[before:])])
    return edit.result({**graph.opsets, "": since})


def _written(node: GraphNode, edit: GraphEdit) -> list[GraphNode]:
    """Return a node as nodes of ONNX; empty if it is ONNX's, or has no such form."""
    if node.row is kinds.SIMPLE_NORM and not any(node.outputs[1:]):
        return [_norm(node, kinds.RMS_NORM, node.inputs[0], node.inputs[1:])]
    if node.row in _SKIPS and not any(node.outputs[1:_SUM]):
        return _skipped(node, edit)
    if node.row is kinds.THEIR_ROTARY:
        return _rotary(node, edit)
    return []


def _norm(node: GraphNode, kind: Kind, x: str, others: tuple[str, ...]) -> GraphNode:
    """Return a norm along the last dims."""
    told = {name: node.attributes[name] for name in ("axis", "epsilon") if name in node.attributes}
    told.setdefault("axis", -1)
    return replace(
        node,
        operator=kind.name,
        domain="",
        inputs=(x, *others),
        outputs=node.outputs[:1],
        attributes=told,
    )


def _skipped(node: GraphNode, edit: GraphEdit) -> list[GraphNode]:
    is_centered = node.row is kinds.SKIP_NORM
    told = dict(node.attributes)
    told.setdefault("epsilon", _EPSILON)
    own = replace(node, attributes=told)
    end = node.outputs[_SUM] if len(node.outputs) > _SUM else ""
    terms = [*node.inputs[:2]]
    if bias := node.input(_SKIPS[node.row] - 1):
        terms.append(bias)
    nodes, x = [], terms[0]
    for at, term in enumerate(terms[1:], 1):
        is_last = at == len(terms) - 1
        dst = (end if is_last else "") or edit.free(f"{node.outputs[0]}:sum")
        name = f"{node.name}:{dst}"
        nodes.append(GraphNode(name, kinds.ADD.name, (x, term), (dst,), {}, "", node.originals))
        x = dst
    kind = kinds.LAYER_NORM if is_centered else kinds.RMS_NORM
    others = tuple(filter(None, node.inputs[2 : _SKIPS[node.row] - 1]))
    return [*nodes, _norm(own, kind, x, others)]


def _rotary(node: GraphNode, edit: GraphEdit) -> list[GraphNode]:
    """Return ONNX's, of places of every token."""
    x, places, cos, sin = (node.input(at) for at in range(4))
    told = dict(node.attributes)
    dims = edit.graph.tensors[x].lengths or edit.graph.tensors[x].dims or ()
    of_places = edit.graph.tensors.get(places)
    table = edit.graph.constants.get(cos)
    is_known = of_places is not None and len(of_places.lengths or of_places.dims or ()) == 2
    plain = {"scale": 1.0, "is_packed_batching": 0}
    if not is_known or table is None or any(told.pop(n, v) != v for n, v in plain.items()):
        return []
    heads = int(told.get("num_heads", 0))
    if len(dims) == 3 and not heads:
        if not isinstance(dims[-1], int):
            return []
        heads = dims[-1] // (2 * table.shape[1])
    told = {name: value for name, value in told.items() if value}
    if len(dims) == 3:
        told["num_heads"] = heads
    else:
        told.pop("num_heads", None)
    kind = kinds.ROTARY.name
    return [replace(node, operator=kind, domain="", inputs=(x, cos, sin, places), attributes=told)]
