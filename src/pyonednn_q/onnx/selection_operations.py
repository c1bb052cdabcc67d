"""What nodes that pick become in a network: by conditions, by indices, by known places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, GraphNode
from pyonednn_q.network import IsNaN, IsNonzero, Node, Pick, TableRows, Where
from pyonednn_q.network.carrier import is_carried, numpy_type
from pyonednn_q.onnx.fused_node import FusedGraph
from pyonednn_q.onnx.operations import constants_of, dims_of
from pyonednn_q.onnx.reference_call import reference_call

Array = np.ndarray[Any, Any]

_MOST_PLACES = 2**22  # 8 bytes each
_CASTS_OF = ("bool", "int32", "int64")


def selection_nodes(what: GraphNode, graph: FusedGraph, computed: list[str]) -> list[Node]:
    """Return what a node picks, as operations of a network; empty where none does that.

    Parameters
    ----------
    what : GraphNode
        As ONNX has it.
    graph : FusedGraph
        Of it.
    computed : list of str
        Those of its inputs that are no constants.
    """
    dst = what.outputs[0]
    if what.domain or any(what.outputs[1:]) or not dims_of(dst, graph):
        return []
    constants = constants_of(what, graph)
    operation = _operation(what, constants, graph, computed)
    srcs = tuple(name for at, name in enumerate(what.inputs) if name and at not in constants)
    return [] if operation is None else [Node(dst, operation, srcs)]


def _operation(
    what: GraphNode, constants: Mapping[int, Array], graph: FusedGraph, computed: list[str]
) -> Any:  # noqa: ANN401 - an operation
    types = [graph.tensors[name].dtype for name in (*computed, what.outputs[0])]
    if what.row is kinds.WHERE:
        return _where(constants, types) if dims_of(what.inputs[0], graph) else None
    if len(computed) != 1 or what.inputs.count(computed[0]) != 1:
        return None
    if what.row is kinds.IS_NAN:
        return IsNaN() if types == ["float32", "bool"] else None
    if what.row is kinds.CAST:
        is_test = types[0] in _CASTS_OF and types[1] == "bool"
        return IsNonzero() if is_test and dims_of(computed[0], graph) else None
    if what.row is kinds.AND:
        (mask,) = constants.values() or (np.zeros(0, np.bool_),)
        return _masked(mask, dims_of(computed[0], graph), dims_of(what.outputs[0], graph))
    if what.row is kinds.GATHER and 0 in constants:
        return _rows(constants[0], what.attributes.get("axis", 0), types)
    return _picked(what, constants, graph)


def _where(constants: Mapping[int, Array], types: list[str]) -> Where | None:
    numbers = [constants.get(at) for at in (1, 2)]
    is_scalar = all(each is None or each.size == 1 for each in numbers)
    if 0 in constants or not is_scalar or types[1:] != ["float32"] * (len(types) - 1):
        return None
    first, second = (None if each is None else float(each.reshape(())) for each in numbers)
    return Where(first, second)


def _masked(mask: Array, src: Dims, dst: Dims) -> Pick | None:
    """Return an And with constants: elements where these are true, else false."""
    if not mask.size or not src:
        return None
    places = np.broadcast_to(np.arange(prod(src)).reshape(src), dst)
    return Pick(np.where(mask, places, -1), b"\0", in_bytes=True)


def _rows(table: Array, axis: int, types: list[str]) -> TableRows | None:
    is_known = table.dtype == np.float32 and table.ndim == 2 and table.size and axis % 2 == 0
    return TableRows(np.ascontiguousarray(table)) if is_known and types[0] == "int64" else None


def _picked(what: GraphNode, constants: Mapping[int, Array], graph: FusedGraph) -> Pick | None:
    """Return the places that a node takes elements from: what it gives of their numbers."""
    row, name = what.row, what.inputs[0]
    # Constants of a Concat are elements of its result.
    moves = row.moves_values(what.attributes) and not row.pool and row is not kinds.CONCAT
    if 0 in constants or not (
        moves or row in {kinds.PAD, kinds.TILE, kinds.EXPAND, kinds.GATHER_ND}
    ):
        return None
    src, dst = (dims_of(each, graph) for each in (name, what.outputs[0]))
    value = graph.tensors[name]
    if not src or max(prod(src), prod(dst)) > _MOST_PLACES:
        return None
    # From 1 on: what is padded with is 0.
    known: dict[str, Array] = {n: graph.constants[n] for n in what.inputs if n in graph.constants}
    fill = np.zeros((), numpy_type(value.dtype))
    if row is kinds.PAD and what.input(2):
        fill = np.asarray(constants[2]).reshape(())
        known[what.input(2)] = np.zeros((), np.int64)
    elif row is kinds.PAD and (number := what.attributes.get("value", 0.0)):  # up to opset 10
        fill = np.asarray(number, fill.dtype)
        what = replace(what, attributes={**what.attributes, "value": 0.0})
    try:
        places = reference_call(what, graph.opsets)(
            {**known, name: np.arange(1, prod(src) + 1).reshape(src)}
        )[0]
    except Error:
        return None
    if places.shape != dst or places.dtype != np.int64:
        return None
    return Pick(places - 1, fill.tobytes(), in_bytes=is_carried(value))
