"""program: a fused model as a network, which runs in one call over one block of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count, islice
from math import prod
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import DTypeError, ShapeError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode, Value
from pyonednn_q.network import Convert, Lookup, Network, Node, PythonCall
from pyonednn_q.network.carrier import as_carrier, carrier_of, is_carried, restored
from pyonednn_q.network.lowering import natural
from pyonednn_q.onnx.code_operations import dims_of, operations_of, parts_of
from pyonednn_q.onnx.code_parts import nodes_of_parts
from pyonednn_q.onnx.code_tables import composed, table_of
from pyonednn_q.onnx.float_operations import float_nodes
from pyonednn_q.onnx.fused_node import CodeOperation, FusedGraph, FusedNode
from pyonednn_q.onnx.selection_operations import selection_nodes
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.shown import shortened

Array = np.ndarray[Any, Any]
Values = dict[str, Array]
Run = Callable[[Values], tuple[Array, ...]]
Tables = dict[str, tuple[str, Lookup]]  # what is looked up: in which tensor, and how


def as_network(graph: FusedGraph, nodes: Iterable[list[Node]]) -> Network:
    """Return a network of the same tensors, by the same names.

    Parameters
    ----------
    graph : FusedGraph
        What it computes.
    nodes : iterable of list of Node
        What each node of the graph becomes, as `lowered` returns it.
    """
    tables: Tables = {}
    steps = [
        _looked_up(node, node.runs, tables) if isinstance(node.runs, Lookup) else node
        for each in nodes
        for node in each
    ]
    outputs = [name for name in graph.outputs if name not in graph.constants]
    ends = {**graph.inputs, **graph.outputs, **graph.tensors}
    names = [name for name in (*graph.inputs, *outputs) if ends[name].dims is not None]
    carried = {name: ends[name] for name in names if is_carried(ends[name])}
    known = {n: carrier_of(v).dims if n in carried else v.dims for n, v in graph.inputs.items()}
    dims = {name: each for name, each in known.items() if each is not None}
    return Network(list(graph.inputs), steps, outputs, carried, dims)


def lowered(
    node: FusedNode, call: Run, graph: FusedGraph, taken: set[str]
) -> tuple[list[Node], Run, str]:
    """Return what a node is in a network, what runs it alone, with the same bits; and why Python.

    Parameters
    ----------
    node : FusedNode
        Node of the graph; prepared, or one that runs as ONNX has it.
    call : callable
        What runs it by its definition: in a network, too, where no operations do.
    graph : FusedGraph
        The graph.
    taken : set of str
        Names of tensors, to which those between operations are added.

    Raises
    ------
    UnsupportedError
        A tensor of dims that are not known.
    """
    computed = [name for name in dict.fromkeys(node.reads) if name not in graph.constants]
    outputs = [name for name in node.outputs if name]
    why = ""
    ends = (*computed, *outputs)
    dims = {name: dims_of(name, graph) for name in ends}
    carried = {name: graph.tensors[name] for name in ends if is_carried(graph.tensors[name])}
    if all(map(prod, dims.values())):
        try:
            nodes = [] if carried else _operations(node, call, graph, taken)
            if not nodes and computed and isinstance(node.operator, GraphNode):
                nodes = selection_nodes(node.operator, graph, computed)
            if nodes:
                alone = Network(computed, nodes, outputs, carried)
                alone.check({name: spec_of(name, graph) for name in computed})
                return nodes, _on(alone, computed, node), ""
        except (DTypeError, ShapeError, UnsupportedError) as error:
            why = f"{type(error).__name__}: {shortened(str(error), 300)}"
    if not computed:
        detail = "a node of constants alone, which could not be computed beforehand"
        raise UnsupportedError("refused", "making a network", node.name, detail)
    return _of_python(node, call, computed, graph), call, why


def _on(network: Network, names: list[str], node: FusedNode) -> Run:
    def run(values: Values) -> tuple[Array, ...]:
        results = network(*(values[name] for name in names))
        return tuple(results[name] if name else np.empty(0) for name in node.outputs)

    return run


def _operations(node: FusedNode, call: Run, graph: FusedGraph, taken: set[str]) -> list[Node]:
    """Return operations that do what a node does, one after the other; empty where none do."""
    computed = [name for name in node.reads if name not in graph.constants]
    what = node.operator
    if isinstance(what, Operator) and len(computed) == len(node.reads):
        operands = {leaf: name for leaf, name in node.operands.items() if leaf != "residual"}
        residual = node.operands.get("residual")
        if what.weights.dtype != "bf16":
            return [Node(node.output, what, node.inputs, residual, operands)]
        (narrow,) = _free(node.output, 1, taken)
        layer = Node(node.output, what, narrow, residual, operands)
        return [Node(narrow, Convert("bf16"), node.inputs), layer]
    if isinstance(what, CodeOperation) and len(computed) == len(node.inputs):
        if (table := table_of(node, call, graph.constants)) is not None:
            return [Node(node.output, table, tuple(dict.fromkeys(node.inputs)))]
        if what.row is kinds.SPLIT and what.moves_codes:
            outputs = node.outputs
            parts = zip(outputs, parts_of(what.attributes, outputs, graph), strict=True)
            return [Node(name, part, node.inputs) for name, part in parts]
        operations = operations_of(what, node, graph)
        if operations:
            names = _free(node.output, len(operations) - 1, taken)
            reads = (node.inputs, *((name,) for name in names))
            row = zip((*names, node.output), operations, reads, strict=True)
            return [Node(dst, operation, src) for dst, operation, src in row]
        return nodes_of_parts(what, node, graph, partial(_free, node.output, taken=taken))
    return float_nodes(what, graph, computed) if isinstance(what, GraphNode) else []


def _free(name: str, number: int, taken: set[str]) -> tuple[str, ...]:
    """Return so many names that no tensor has, and take them."""
    free = (each for at in count(1) if (each := f"{name} ({at})") not in taken)
    names = tuple(islice(free, number))
    taken.update(names)
    return names


def _looked_up(node: Node, table: Lookup, tables: Tables) -> Node:
    """Return a node of one pass, which looks up in the first tensor that all of it comes from."""
    names = node.srcs
    roots = {tables[name][0] if name in tables else name for name in names}
    if len(roots) > 1:
        return node
    known = (tables.get(name) for name in names)
    table = composed(table, *(None if each is None else each[1] for each in known))
    tables[node.dst] = (roots.pop(), table)
    return Node(node.dst, table, tables[node.dst][0])


def _of_python(node: FusedNode, call: Run, computed: list[str], graph: FusedGraph) -> list[Node]:
    nodes = []
    constants = {n: graph.constants[n] for n in node.reads if n in graph.constants}
    for part in node.parts:
        constants |= {n: graph.constants[n] for n in part.inputs if n in graph.constants}
    carried = {n: graph.tensors[n] for n in computed if is_carried(graph.tensors[n])}
    for index, name in enumerate(node.outputs):
        if name:
            function = _one(call, index, computed, constants, carried)
            nodes.append(Node(name, PythonCall(function, spec_of(name, graph)), tuple(computed)))
    return nodes


def _one(
    call: Run,
    index: int,
    names: list[str],
    constants: Mapping[str, Array],
    carried: Mapping[str, Value],
) -> Callable[..., Array]:
    """Return a call on arrays that gives one of a node's outputs."""

    def run(*arrays: Array) -> Array:
        values = dict(zip(names, arrays, strict=True))
        values |= {name: restored(values[name], value) for name, value in carried.items()}
        carrier: Array = as_carrier(np.asarray(call({**constants, **values})[index]))
        return carrier

    return run


def spec_of(name: str, graph: FusedGraph) -> TensorSpec:
    """Return dims, type and usual layout of a tensor, or of the bytes that carry it."""
    dims = dims_of(name, graph)
    info = graph.tensors[name]
    if is_carried(info):
        return carrier_of(info)
    return natural(dims, dtypes.from_numpy(np.dtype(info.dtype), name))
