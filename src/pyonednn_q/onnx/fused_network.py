"""program: a fused model as a network, which runs in one call over one block of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from itertools import count, islice
from math import prod

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import DTypeError, SaturationError, ShapeError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.network import Convert, Lookup, Network, Node, PythonCall
from pyonednn_q.network.carrier import as_carrier, carrier_of, is_carried, restored
from pyonednn_q.network.lowering import natural
from pyonednn_q.onnx.code_operations import dims_of, operations_of, parts_of
from pyonednn_q.onnx.code_parts import nodes_of_parts
from pyonednn_q.onnx.code_tables import composed, table_of
from pyonednn_q.onnx.definitions import Run, Values, defined
from pyonednn_q.onnx.float_operations import float_nodes
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode, fused_nodes
from pyonednn_q.onnx.selection_operations import selection_nodes
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.report.progress import counted
from pyonednn_q.shown import shortened, shown

Tables = dict[str, tuple[str, Lookup]]  # what is looked up: in which tensor, and how


def with_kernels(graph: Graph) -> Graph:
    """Take the layers that no kernel takes here apart again, each node with the reason.

    Parameters
    ----------
    graph : Graph
        Graph that `fuse` returned.

    Raises
    ------
    SaturationError
        Layers that are refused, as `fuse` was asked to.
    """
    nodes = fused_nodes(graph)
    todo = counted(nodes, "preparing nodes")
    known = tuple(each for node in todo for each in _with_kernel(node, graph))
    are_same = len(known) == len(nodes) and all(a is b for a, b in zip(known, nodes, strict=True))
    return graph if are_same else replace(graph, nodes=known)


def with_operations(graph: Graph) -> Graph:
    """Give each call the operations of a network that do the same, or one that enters Python.

    Parameters
    ----------
    graph : Graph
        Graph that `fuse` returned, of layers that kernels take.

    Raises
    ------
    UnsupportedError
        Nodes that neither we nor `onnx.reference` know.
    """
    nodes = fused_nodes(graph)
    taken = set(graph.tensors).union(graph.inputs, *(node.outputs for node in nodes))
    return replace(graph, nodes=tuple(_lowered(node, graph, taken) for node in nodes))


def as_network(graph: Graph) -> Network:
    """Return a network of the same tensors, by the same names.

    Parameters
    ----------
    graph : Graph
        Graph that `with_operations` returned.

    Raises
    ------
    UnsupportedError
        Dims that values decide, naming the node; a node of constants alone.
    """
    _check_known(graph)
    tables: Tables = {}
    steps = [
        _looked_up(step, step.runs, tables) if isinstance(step.runs, Lookup) else step
        for node in fused_nodes(graph)
        # A node without steps is none here: asked again, it says why.
        for step in node.steps or _steps(node, defined(node, graph), graph, set())[0]
    ]
    outputs = [name for name in graph.outputs if name not in graph.constants]
    ends = {**graph.inputs, **graph.outputs, **graph.tensors}
    names = [name for name in (*graph.inputs, *outputs) if ends[name].dims is not None]
    carried = {name: ends[name] for name in names if is_carried(ends[name])}
    known = {n: carrier_of(v).dims if n in carried else v.dims for n, v in graph.inputs.items()}
    dims = {name: each for name, each in known.items() if each is not None}
    return Network(list(graph.inputs), steps, outputs, carried, dims)


def known_part(graph: Graph) -> tuple[Graph, tuple[FusedNode, ...]]:
    """Return the part of a graph that is a network, and the nodes that are left.

    Those are the ones that values give dims, a Loop or a NonZero, and all that reads them.

    Parameters
    ----------
    graph : Graph
        Graph that `with_operations` returned.
    """
    nodes: list[FusedNode] = []
    left: list[FusedNode] = []
    computed: set[str] = set()  # by nodes that are left
    for node in fused_nodes(graph):
        is_known = bool(node.steps) and computed.isdisjoint(node.reads)
        (nodes if is_known else left).append(node)
        computed.update(() if is_known else node.outputs)
    if not left:
        return graph, ()
    wanted = {*graph.outputs, *(name for node in left for name in node.reads)}
    ends = [name for node in nodes for name in node.outputs if name in wanted]
    outputs = {name: graph.tensors[name] for name in ends}
    return replace(graph, nodes=tuple(nodes), outputs=outputs), tuple(left)


def call_of(node: FusedNode, graph: Graph) -> Run:
    """Return a function that runs a node alone, from values by name, with the network's bits.

    Parameters
    ----------
    node : FusedNode
        Node of the graph.
    graph : Graph
        Graph that `with_operations` returned.
    """
    if not node.is_compiled:
        return defined(node, graph)
    computed = _computed(node, graph)
    network = _alone(node, list(node.steps), computed, graph)

    def run(values: Values) -> tuple[Array, ...]:
        results = network(*(values[name] for name in computed))
        return tuple(results[name] if name else np.empty(0) for name in node.outputs)

    return run


def _check_known(graph: Graph) -> None:
    """Refuse dims that values decide, by the name of the node that reads those."""
    for node in fused_nodes(graph):
        for name in filter(None, node.outputs):
            known = graph.tensors.get(name)
            if known is None or known.dims is None:
                what = f"{node.kind} {shown(node.name)}"
                detail = (
                    f"values decide the dims of {shown(name)}; call the model, as by Model.run: it "
                    "compiles what comes before, and runs the rest node by node"
                )
                raise UnsupportedError("refused", "making a network", what, detail)


def _with_kernel(node: FusedNode, graph: Graph) -> tuple[FusedNode, ...]:
    if not isinstance(node.runs, Operator) or node.runs.in_groups:
        return (node,)
    src = graph.tensors.get(node.srcs[0])
    try:
        node.runs.prepare(() if src is None or src.dims is None else src.dims)
    except SaturationError:
        raise
    except (ShapeError, UnsupportedError) as error:
        why = f"{type(error).__name__}: {shortened(str(error), 300)}"
        parts = [part for part in node.parts if part.outputs[0] not in graph.constants]
        return tuple(FusedNode.as_it_is(part, why) for part in parts)
    return (node,)


def _lowered(node: FusedNode, graph: Graph, taken: set[str]) -> FusedNode:
    @cache  # when it is needed first: few nodes run by their definition
    def definition() -> Run:
        return defined(node, graph)

    def run(values: Values) -> tuple[Array, ...]:
        return definition()(values)

    try:
        steps, why = _steps(node, run, graph, taken)
    except UnsupportedError:  # nothing in a network, where it may be that nobody asks for one
        steps, why = [], ""
    known = replace(node, steps=tuple(steps), why=node.why or why)
    if not known.is_compiled:
        definition()
    return known


def _steps(node: FusedNode, call: Run, graph: Graph, taken: set[str]) -> tuple[list[Node], str]:
    """Return the operations of a node in a network, and the reason if it runs in Python."""
    computed, why = _computed(node, graph), ""
    ends = (*computed, *filter(None, node.outputs))
    dims = {name: dims_of(name, graph) for name in ends}
    if all(map(prod, dims.values())):
        try:
            is_dense = not any(is_carried(graph.tensors[name]) for name in ends)
            nodes = _operations(node, call, graph, taken) if is_dense else []
            if not nodes and computed and node.runs is None:
                nodes = selection_nodes(node, graph, computed)
            if nodes:
                alone = _alone(node, nodes, computed, graph)
                alone.check({name: spec_of(name, graph) for name in computed})
                return nodes, ""
        except (DTypeError, ShapeError, UnsupportedError) as error:
            why = f"{type(error).__name__}: {shortened(str(error), 300)}"
    if not computed:
        detail = "a node of constants alone, which could not be computed beforehand"
        raise UnsupportedError("refused", "making a network", node.name, detail)
    return _of_python(node, call, computed, graph), why


def _computed(node: FusedNode, graph: Graph) -> list[str]:
    return [name for name in dict.fromkeys(node.reads) if name not in graph.constants]


def _alone(node: FusedNode, steps: list[Node], computed: list[str], graph: Graph) -> Network:
    outputs = [name for name in node.outputs if name]
    known = {name: graph.tensors[name] for name in (*computed, *outputs)}
    carried = {name: value for name, value in known.items() if is_carried(value)}
    return Network(computed, steps, outputs, carried)


def _operations(node: FusedNode, call: Run, graph: Graph, taken: set[str]) -> list[Node]:
    """Return operations in a row that compute a node; empty if none do."""
    computed = [name for name in node.reads if name not in graph.constants]
    what = node.runs
    if isinstance(what, Operator) and len(computed) == len(node.reads):
        operands = {leaf: name for leaf, name in node.operands.items() if leaf != "residual"}
        residual = node.operands.get("residual")
        if what.weights.dtype != "bf16":
            return [Node(node.output, what, node.srcs, residual, operands)]
        (narrow,) = _free(node.output, 1, taken)
        layer = Node(node.output, what, narrow, residual, operands)
        return [Node(narrow, Convert("bf16"), node.srcs), layer]
    if isinstance(what, CodeOperation) and len(computed) == len(node.srcs):
        if (table := table_of(node, call, graph.constants)) is not None:
            return [Node(node.output, table, tuple(dict.fromkeys(node.srcs)))]
        if what.row is kinds.SPLIT and what.moves_codes:
            outputs = node.outputs
            parts = zip(outputs, parts_of(what.attributes, outputs, graph), strict=True)
            return [Node(name, part, node.srcs) for name, part in parts]
        operations = operations_of(what, node, graph)
        if operations:
            names = _free(node.output, len(operations) - 1, taken)
            reads = (node.srcs, *((name,) for name in names))
            row = zip((*names, node.output), operations, reads, strict=True)
            return [Node(dst, operation, src) for dst, operation, src in row]
        return nodes_of_parts(what, node, graph, partial(_free, node.output, taken=taken))
    return float_nodes(node, graph, computed) if what is None else []


def _free(name: str, number: int, taken: set[str]) -> tuple[str, ...]:
    """Return a number of unused tensor names, and reserve them."""
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


def _of_python(node: FusedNode, call: Run, computed: list[str], graph: Graph) -> list[Node]:
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


def spec_of(name: str, graph: Graph) -> TensorSpec:
    """Return dims, type and usual layout of a tensor, or of the bytes that carry it."""
    dims = dims_of(name, graph)
    info = graph.tensors[name]
    if is_carried(info):
        return carrier_of(info)
    return natural(dims, dtypes.from_numpy(np.dtype(info.dtype), name))
