"""Operations of networks for nodes that select by conditions and indices, compare, or convert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array, numpy_type
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.network import (
    Compare,
    Concat,
    IsNaN,
    Lookup,
    Node,
    NumberCast,
    Pick,
    Reshape,
    TableRows,
    Where,
)
from pyonednn_q.network.carrier import is_carried
from pyonednn_q.network.conditions import COMPARED
from pyonednn_q.onnx.code_operations import constants_of, dims_of
from pyonednn_q.onnx.reference_call import reference_call

_MOST_PLACES = 2**22  # 8 bytes each
_CASTS_OF = ("bool", "uint8", "int8", "int32", "int64", "float32")
_CASTS_TO = ("bool", "int32", "int64", "float32")
_COMPARISONS = {  # what is asked, and whether of the second and the first
    kinds.EQUAL: ("equal", False),
    kinds.LESS: ("less", False),
    kinds.LESS_OR_EQUAL: ("less_or_equal", False),
    kinds.GREATER: ("less", True),
    kinds.GREATER_OR_EQUAL: ("less_or_equal", True),
}
_BITS = np.minimum(np.arange(256), 1)  # of a byte that is true if it is not 0
_LOGIC = {  # as tables of bytes
    kinds.NOT: np.uint8(1 - _BITS),
    kinds.AND: np.uint8(_BITS[:, None] & _BITS),
    kinds.OR: np.uint8(_BITS[:, None] | _BITS),
    kinds.XOR: np.uint8(_BITS[:, None] ^ _BITS),
}


def selection_nodes(what: GraphNode, graph: Graph, computed: list[str]) -> list[Node]:
    """Return the operations of a node that selects, compares or converts; empty: there are none.

    Parameters
    ----------
    what : GraphNode
        Node of ONNX.
    graph : Graph
        Graph that the node belongs to.
    computed : list of str
        Inputs that are not constants.
    """
    dst = what.outputs[0]
    if what.domain or any(what.outputs[1:]) or not dims_of(dst, graph):
        return []
    constants = constants_of(what, graph)
    srcs = tuple(name for at, name in enumerate(what.inputs) if name and at not in constants)
    if what.row is kinds.WHERE and 0 in constants:
        return _chosen(what, constants, graph, srcs)
    if what.row is kinds.XOR and constants and len(srcs) == 1:
        (mask,) = constants.values()
        asked, number = np.asarray(~mask, np.int32), f"{dst}: number"
        is_equal = Compare("equal", "int32", asked)  # what is not its opposite
        return [Node(number, NumberCast("bool", "int32"), srcs), Node(dst, is_equal, number)]
    is_table = what.row is kinds.GATHER and 0 in constants and bool(srcs)
    if is_table and graph.tensors[srcs[0]].dtype == "int32":
        wide, rows = f"{dst}: indices", _rows(what, constants, ["int64"])
        casts = [Node(wide, NumberCast("int32", "int64"), srcs), Node(dst, rows, wide)]
        return casts if rows is not None else []
    operation = _operation(what, constants, graph, computed)
    is_turned = what.row in _COMPARISONS and _COMPARISONS[what.row][1]
    return [] if operation is None else [Node(dst, operation, srcs[::-1] if is_turned else srcs)]


def _operation(
    what: GraphNode, constants: Mapping[int, Array], graph: Graph, computed: list[str]
) -> Any:  # noqa: ANN401 - an operation
    types = [graph.tensors[name].dtype for name in (*computed, what.outputs[0])]
    if what.row is kinds.WHERE:
        return _where(constants, types) if dims_of(what.inputs[0], graph) else None
    if what.row in _COMPARISONS:
        return _comparison(what, constants, types)
    if what.row in _LOGIC and not constants:
        return Lookup(_LOGIC[what.row])
    if len(computed) != 1 or what.inputs.count(computed[0]) != 1:
        return None
    if what.row is kinds.IS_NAN:
        return IsNaN() if types == ["float32", "bool"] else None
    if what.row is kinds.CAST:
        is_known = types[0] in _CASTS_OF and types[1] in _CASTS_TO
        return NumberCast(types[0], types[1]) if is_known else None
    if what.row in {kinds.AND, kinds.OR}:
        (mask,) = constants.values() or (np.zeros(0, np.bool_),)
        src, dst = dims_of(computed[0], graph), dims_of(what.outputs[0], graph)
        return _masked(mask, src, dst, is_or=what.row is kinds.OR)
    is_table = what.row is kinds.GATHER and 0 in constants
    return _rows(what, constants, types) if is_table else _picked(what, constants, graph)


def _where(constants: Mapping[int, Array], types: list[str]) -> Where | None:
    numbers = [constants.get(at) for at in (1, 2)]
    is_known = all(each is None or (each.dtype == np.float32 and each.size) for each in numbers)
    if not is_known or types[1:] != ["float32"] * (len(types) - 1):
        return None
    return Where(*numbers)


def _chosen(
    what: GraphNode, constants: Mapping[int, Array], graph: Graph, srcs: tuple[str, ...]
) -> list[Node]:
    """Return a Where of constant conditions: elements of a tensor, of another, or a number."""
    name, dims = what.outputs[0], dims_of(what.outputs[0], graph)
    value = graph.tensors[name]
    lengths = [dims_of(each, graph) for each in srcs]
    numbers = [constants[at] for at in (1, 2) if at in constants]
    if not all(lengths) or any(each.size != 1 for each in numbers):
        return []
    if max(prod(dims), sum(map(prod, lengths))) > _MOST_PLACES:
        return []
    begins, places = 0, []
    for at in (1, 2):
        own = np.full(dims, -1)
        if at not in constants:
            src = dims_of(what.inputs[at], graph)
            own[...] = np.arange(begins, begins + prod(src)).reshape(src)
            begins += prod(src)
        places.append(own)
    fill = numbers[0].astype(numpy_type(value.dtype)).tobytes() if numbers else b""
    chosen = Pick(np.where(constants[0], *places), fill, in_bytes=is_carried(value))
    if len(srcs) == 1:
        return [Node(name, chosen, srcs)]
    if is_carried(value):
        return []
    flat = [f"{name}: source {at}" for at in (1, 2)]
    nodes = [Node(each, Reshape((-1,)), src) for each, src in zip(flat, srcs, strict=True)]
    both = f"{name}: sources"
    return [*nodes, Node(both, Concat(0), tuple(flat)), Node(name, chosen, both)]


def _comparison(
    what: GraphNode, constants: Mapping[int, Array], types: list[str]
) -> Compare | None:
    alg, is_turned = _COMPARISONS[what.row]
    dtype = types[0]
    if dtype not in COMPARED or {*types[:-1], *(c.dtype.name for c in constants.values())} != {
        dtype
    }:
        return None
    if not constants:
        return Compare(alg, dtype)
    ((at, constant),) = constants.items()
    return Compare(alg, dtype, constant, is_first=(at == 0) != is_turned)


def _masked(mask: Array, src: Dims, dst: Dims, *, is_or: bool) -> Pick | None:
    """Return an And or Or with constants: elements where these say nothing, else what they say."""
    if not mask.size or not src:
        return None
    places = np.broadcast_to(np.arange(prod(src)).reshape(src), dst)
    fill = b"\1" if is_or else b"\0"
    return Pick(np.where(mask != is_or, places, -1), fill, in_bytes=True)


def _rows(what: GraphNode, constants: Mapping[int, Array], types: list[str]) -> TableRows | None:
    table, axis = constants[0], int(what.attributes.get("axis", 0))
    is_codes = table.dtype == np.int8 and table.shape[-1] % 4 == 0
    is_known = (is_codes or table.dtype == np.float32) and table.ndim == 2 and axis % 2 == 0
    is_known = is_known and bool(table.size) and types[0] == "int64"
    return TableRows(np.ascontiguousarray(table)) if is_known else None


def _picked(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> Pick | None:
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
