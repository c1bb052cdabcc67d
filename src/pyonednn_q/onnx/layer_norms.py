"""LayerNormalization that exporters spell out, as the one node that it is since opset 17.

m = mean(x), v = mean((x - m)^2), y = (x - m) / sqrt(v + epsilon) · scale + bias
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.subgraphs import graphs_of

__all__ = ["means_the_same", "with_layer_norms"]


def with_layer_norms(graph: Graph) -> Graph:
    """Write means, differences and roots along the last dim as the LayerNormalization they are.

    Parameters
    ----------
    graph : Graph
        Graph whose constants are computed. Its opset becomes 17 if it was 13 to 16 and no node
        means anything else there.
    """
    since = kinds.LAYER_NORM.since
    if graph.opset < since and not all(map(means_the_same, graph.nodes)):
        return graph
    view = GraphView(graph)
    norms = {id(parts[-1]): parts for node in graph.nodes if (parts := _parts(view, node))}
    if not norms:
        return graph
    gone = {id(each) for parts in norms.values() for each in parts}
    edit = GraphEdit(graph)
    for node in graph.nodes:
        if id(node) in norms:
            edit.nodes.append(_norm(view, norms[id(node)], edit))
        elif id(node) not in gone:
            edit.nodes.append(node)
    opsets = {**graph.opsets, "": max(graph.opset, since)}
    return edit.result(opsets)


def means_the_same(node: GraphNode) -> bool:
    """Tell whether a node of opset 13 means the same in opset 17."""
    is_plain = node.row is not kinds.ROI_ALIGN and not graphs_of(node.attributes)
    return is_plain and not node.attributes.get("training_mode", 0)


def _parts(view: GraphView, first: GraphNode) -> list[GraphNode]:
    """Return the nodes of a norm that begins with a mean, in order; none if it is none."""
    x = first.inputs[0] if first.inputs else ""
    dims = view.dims(x)
    if not dims or not _is_mean(view, first, len(dims)) or view.dtype(x) != "float32":
        return []
    less = _readers(view, first.outputs[0])
    if not less or any(n.row is not kinds.SUB or n.inputs[0] != x for n in less):
        return []
    squares = [n for each in less for n in _readers(view, each.outputs[0]) if _squares(view, n)]
    if len(squares) != 1:
        return []
    parts, value = [first, *less, squares[0]], squares[0].outputs[0]
    for kind in (kinds.REDUCE_MEAN, kinds.ADD, kinds.SQRT, kinds.DIV):
        behind = _readers(view, value)
        if len(behind) != 1 or behind[0].row is not kind:
            return []
        parts.append(behind[0])
        value = behind[0].outputs[0]
    variance, added, _, quotient = parts[-4:]
    is_whole = quotient.inputs[0] in {each.outputs[0] for each in less}
    if not (is_whole and _is_mean(view, variance, len(dims)) and _epsilon(view, added)):
        return []
    inner = [name for each in parts[:-1] for name in each.outputs]
    own = {id(each) for each in parts}
    if any(
        name in view.graph.outputs or not {*map(id, _readers(view, name))} <= own for name in inner
    ):
        return []
    return [*parts, *_scaled(view, value, dims[-1])]


def _readers(view: GraphView, name: str) -> list[GraphNode]:
    return [*{id(node): node for node in view.readers.get(name, [])}.values()]


def _is_mean(view: GraphView, node: GraphNode, rank: int) -> bool:
    """Tell whether a node is the mean along the last dim, which is kept."""
    if node.row is not kinds.REDUCE_MEAN or not node.attributes.get("keepdims", 1):
        return False
    axes = view.constants.get(node.input(1))
    named = node.attributes.get("axes", ()) if axes is None else axes.tolist()
    return [axis % rank for axis in named] == [rank - 1]


def _squares(view: GraphView, node: GraphNode) -> bool:
    if node.row is kinds.MUL:
        return node.inputs[0] == node.inputs[1]
    power = view.constants.get(node.input(1))
    return node.row is kinds.POW and power is not None and power.size == 1 and power.item() == 2


def _epsilon(view: GraphView, node: GraphNode) -> float:
    """Return the constant number that a node adds; 0 if there is none."""
    known = [view.constants.get(name) for name in node.inputs]
    return next((float(each.item()) for each in known if each is not None and each.size == 1), 0)


def _scaled(view: GraphView, value: str, length: int) -> list[GraphNode]:
    """Return the product and the sum with constants of the last dim after a norm."""
    parts: list[GraphNode] = []
    for kind in (kinds.MUL, kinds.ADD):
        node = view.only_reader(value)
        if node is None or node.row is not kind or _along(view, node, value, length) is None:
            break
        parts.append(node)
        value = node.outputs[0]
    return parts


def _along(view: GraphView, node: GraphNode, value: str, length: int) -> str | None:
    """Return the constant of a node that has a number for each element of the last dim."""
    others = [name for name in node.inputs if name != value]
    array = view.constants.get(others[0]) if len(others) == 1 else None
    if array is None or array.dtype != np.float32 or array.shape != (length,):
        return None
    return others[0]


def _norm(view: GraphView, parts: list[GraphNode], edit: GraphEdit) -> GraphNode:
    """Return the node that replaces the nodes."""
    first, last = parts[0], parts[-1]
    x = first.inputs[0]
    length = (view.dims(x) or (1,))[-1]
    kept = [node for node in parts if node.row in {kinds.DIV, kinds.MUL, kinds.ADD}]
    behind = kept[[node.row for node in kept].index(kinds.DIV) + 1 :]
    added = next(node for node in parts if node.row is kinds.ADD)
    value = next(node for node in parts if node.row is kinds.DIV).outputs[0]
    scales = []
    for node in behind:
        scales.append(_along(view, node, value, length) or "")
        value = node.outputs[0]
    if not scales:
        scales = [edit.constant(f"{last.outputs[0]}:scale", np.ones(length, np.float32))]
    originals = tuple(dict.fromkeys(name for node in parts for name in node.originals))
    name = f"{last.name}:{kinds.LAYER_NORM.name}"
    attributes = MappingProxyType({"axis": -1, "epsilon": _epsilon(view, added)})
    return replace(
        last,
        name=name,
        operator=kinds.LAYER_NORM.name,
        inputs=(x, *scales),
        attributes=attributes,
        originals=originals,
    )
