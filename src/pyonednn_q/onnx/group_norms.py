"""GroupNormalization that exporters spell out, as the one node that it is since opset 18.

Each group of channels becomes one channel, which InstanceNormalization brings to mean 0 and
variance 1; behind that, every channel has its scale and its bias.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.layer_norms import means_the_same

__all__ = ["with_group_norms"]

_SCALED_SINCE = 21  # a scale for each channel: before, for each group
_RENAMED = ("bilinear", "bicubic")  # of GridSample, in opset 20
_AXES_ARE_INPUTS = 18  # of reductions; and a Split without lengths says how many parts it has


class _Norm(NamedTuple):
    parts: list[GraphNode]  # in order
    groups: int
    scale: Array
    bias: Array


def with_group_norms(graph: Graph) -> Graph:
    """Write norms of reshaped groups, scaled by channels, as the GroupNormalization they are.

    Parameters
    ----------
    graph : Graph
        Graph whose constants are computed. Its opset becomes 21 if it was 13 to 20 and no node
        means anything else there.
    """
    since = _SCALED_SINCE
    if graph.opset < since and not all(_means_the_same(node, graph.opset) for node in graph.nodes):
        return graph
    view = GraphView(graph)
    spelled = [norm for node in graph.nodes if (norm := _norm(view, node)) is not None]
    if not spelled:
        return graph
    norms = {id(norm.parts[-1]): norm for norm in spelled}
    gone = {id(each) for norm in spelled for each in norm.parts}
    edit = GraphEdit(graph)
    for node in graph.nodes:
        if id(node) in norms:
            edit.nodes.append(_written(norms[id(node)], edit))
        elif id(node) not in gone:
            edit.nodes.append(node)
    return edit.result({**graph.opsets, "": max(graph.opset, since)})


def _means_the_same(node: GraphNode, opset: int) -> bool:
    """Tell whether a node of opset 13 to 20 means the same in opset 21."""
    if node.row is kinds.GROUP_NORM or node.attributes.get("mode") in _RENAMED:
        return False
    if opset >= _AXES_ARE_INPUTS:
        return True
    is_whole = node.row is not kinds.SPLIT or bool(node.input(1))
    return is_whole and "axes" not in node.attributes and means_the_same(node)


def _norm(view: GraphView, node: GraphNode) -> _Norm | None:
    """Return what a norm of each channel is the middle of; None if of nothing else."""
    if node.row is not kinds.INSTANCE_NORM or view.dtype(node.inputs[0]) != "float32":
        return None
    before = view.producer.get(node.inputs[0])
    behind = view.only_reader(node.outputs[0])
    if before is None or behind is None or view.only_reader(node.inputs[0]) is not node:
        return None
    if not before.row is behind.row is kinds.RESHAPE:
        return None
    dims, grouped = view.dims(before.inputs[0]), view.dims(node.inputs[0])
    scale, bias = (view.constants.get(name) for name in node.inputs[1:])
    if dims is None or grouped is None or len(dims) < 3 or view.dims(behind.outputs[0]) != dims:
        return None
    if len(grouped) != 3 or grouped[0] != dims[0] or dims[1] % grouped[1]:
        return None
    if scale is None or bias is None or (scale != 1).any() or bias.any():
        return None
    parts, values = [before, node, behind], [np.ones(dims[1]), np.zeros(dims[1])]
    for at, row in enumerate((kinds.MUL, kinds.ADD)):
        after = view.only_reader(parts[-1].outputs[0])
        value = None if after is None else _of_channels(view, after, parts[-1].outputs[0], dims)
        if after is None or value is None or after.row is not row:
            break
        parts.append(after)
        values[at] = value
    return _Norm(parts, grouped[1], *(each.astype(np.float32) for each in values))


def _of_channels(
    view: GraphView, node: GraphNode, name: str, dims: tuple[int, ...]
) -> Array | None:
    """Return the constant that a node has beside a tensor, if it has a number for each channel."""
    others = [each for each in node.inputs if each != name]
    known = view.constants.get(others[0]) if len(others) == 1 else None
    if known is None or known.dtype != np.float32 or known.ndim > len(dims):
        return None
    shape = (1,) * (len(dims) - known.ndim) + known.shape
    of_channels = (1, dims[1], *(1,) * (len(dims) - 2))
    return known.reshape(-1) if shape == of_channels else None


def _written(norm: _Norm, edit: GraphEdit) -> GraphNode:
    last = norm.parts[-1]
    values = {"scale": norm.scale, "bias": norm.bias}
    names = [edit.constant(f"{last.outputs[0]}:{part}", each) for part, each in values.items()]
    attributes: dict[str, Any] = {"num_groups": norm.groups}
    attributes["epsilon"] = norm.parts[1].attributes.get("epsilon", 1e-5)
    return replace(
        last,
        name=f"{last.name}:{kinds.GROUP_NORM.name}",
        operator=kinds.GROUP_NORM.name,
        inputs=(norm.parts[0].inputs[0], *names),
        attributes=MappingProxyType(attributes),
        originals=tuple(dict.fromkeys(name for part in norm.parts for name in part.originals)),
    )
