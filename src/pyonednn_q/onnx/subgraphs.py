"""Graphs within a graph: bodies of a Loop or Scan, and branches of an If, put in where it is known.

Such a node reads what it reads itself and then, behind that, what its graphs read of the graph
around them: so whoever renames what nodes read, or counts readers, need not look into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

__all__ = [
    "WITH_GRAPHS",
    "branch_of",
    "captured",
    "check_graphs",
    "check_inlined",
    "ends_of",
    "graphs_of",
    "renamed",
    "with_names_apart",
]

WITH_GRAPHS = frozenset(row.name for row in (kinds.IF, kinds.LOOP, kinds.SCAN))


def graphs_of(attributes: Mapping[str, Any]) -> dict[str, Graph]:
    """Return the graphs among the attributes of a node."""
    return {name: each for name, each in attributes.items() if isinstance(each, Graph)}


def captured(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what graphs of a node read of the graph around them, each name once, in a fixed order.

    Parameters
    ----------
    attributes : mapping of str to object
        Attributes of the node.
    """
    free: dict[str, None] = {}
    for branch in graphs_of(attributes).values():
        results = (name for node in branch.nodes for name in node.outputs)
        known = {*branch.inputs, *branch.constants, *results}
        read = [name for node in branch.nodes for name in node.inputs if name]
        free |= dict.fromkeys(name for name in (*read, *branch.outputs) if name not in known)
    return tuple(free)


def check_graphs(
    argument: str,
    kind: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    attributes: dict[str, Any],
) -> None:
    """Check the form of a node that has graphs.

    Parameters
    ----------
    argument : str
        Name of the node, for errors.
    kind : str
        One of `WITH_GRAPHS`.
    inputs, outputs : tuple of str
        Names of the tensors that the node itself reads, and of its results.
    attributes : dict of str to object
        The graphs among them.

    Raises
    ------
    ArgumentError
        Graphs that are missing, or do not fit the inputs and outputs.
    UnsupportedError
        A Scan that does not: those of opset 8 read one thing more.
    """
    graphs = graphs_of(attributes)
    if kind == kinds.IF.name:
        known = [graphs.get(name) for name in ("then_branch", "else_branch")]
        ends = [(0, len(outputs))] * 2
        is_right = len(inputs) == 1 and bool(inputs[0]) and len(graphs) == len(known)
        wanted = "a condition and two branches of its outputs"
    else:
        known, is_right = [graphs.get("body")], len(graphs) == 1
        if kind == kinds.SCAN.name:
            number = attributes.get("num_scan_inputs")
            is_right = is_right and isinstance(number, int) and 0 < number <= len(inputs)
        else:
            is_right = is_right and len(inputs) > 1  # a count and a condition
        more = int(kind == kinds.LOOP.name)  # the condition
        ends = [(len(inputs), len(outputs) + more)]
        wanted = "a body that reads its inputs and makes its outputs"
    pairs = zip(known, ends, strict=True)
    if not is_right or any(e is None or (len(e.inputs), len(e.outputs)) != n for e, n in pairs):
        if kind == kinds.SCAN.name:
            raise UnsupportedError("unimplemented", "onnx.load", argument, "a Scan of opset 8")
        raise ArgumentError(argument, "another form", wanted)


def renamed(node: GraphNode, names: Mapping[str, str]) -> GraphNode:
    """Return a node with renamed tensors."""
    inputs = tuple(names.get(name, name) for name in node.inputs)
    outputs = tuple(names.get(name, name) for name in node.outputs)
    return replace(node, inputs=inputs, outputs=outputs)


def branch_of(
    node: GraphNode, *, is_true: bool, fresh: Callable[[str], str]
) -> tuple[list[GraphNode], dict[str, Any]]:
    """Return the nodes that an If becomes where its condition is known, and their constants.

    Parameters
    ----------
    node : GraphNode
        The If.
    is_true : bool
        Value of the condition.
    fresh : callable
        Function from the name of a tensor of the branch to one that no tensor around it has.
    """
    branch: Graph = node.attributes["then_branch" if is_true else "else_branch"]
    names = dict(zip(captured(node.attributes), node.inputs[1:], strict=True))
    ends = ends_of(branch, node)
    inner = [name for name in (*branch.constants, *_results(branch)) if name not in ends]
    names |= ends | {name: fresh(name) for name in inner}
    constants = {names[name]: array for name, array in branch.constants.items()}
    nodes = [renamed(each, names) for each in branch.nodes]
    for name, output in zip(branch.outputs, node.outputs, strict=True):
        if output and name not in ends:
            same = (names[name],)
            nodes.append(GraphNode(f"{node.name}:{output}", kinds.IDENTITY.name, same, (output,)))
    return nodes, constants


def ends_of(branch: Graph, node: GraphNode) -> dict[str, str]:
    """Return what the results that a branch makes of its own are called where it is put in.

    That is what readers of the If know; what it hands on of the graph around it has another name.
    """
    results = {*_results(branch)}
    ends = zip(branch.outputs, node.outputs, strict=True)
    return {name: output for name, output in ends if output and name in results}


def _results(graph: Graph) -> list[str]:
    return [name for each in graph.nodes for name in each.outputs if name]


def with_names_apart(graph: Graph) -> Graph:
    """Give no tensor, and no node, of a branch the name of another.

    So a branch that is put in keeps its names: what is known by them is known of the If, too.

    Parameters
    ----------
    graph : Graph
        Graph of the model.
    """
    if not any(node.row is kinds.IF for node in graph.nodes):
        return graph
    taken = {*graph.constants, *graph.inputs, *_results(graph)}
    named = {node.name for node in graph.nodes}
    nodes = tuple(_apart(node, taken, named) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _apart(node: GraphNode, taken: set[str], named: set[str]) -> GraphNode:
    if node.row is not kinds.IF:
        return node
    attributes = dict(node.attributes)
    for at, branch in graphs_of(attributes).items():
        names = {name: _other(name, taken) for name in (*branch.constants, *_results(branch))}
        nodes = [
            replace(renamed(each, names), name=_other(each.name, named)) for each in branch.nodes
        ]
        attributes[at] = replace(
            branch,
            nodes=tuple(_apart(each, taken, named) for each in nodes),
            constants={names[name]: each for name, each in branch.constants.items()},
            outputs={names.get(name, name): each for name, each in branch.outputs.items()},
        )
    return replace(node, attributes=attributes)


def _other(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it."""
    base, count = name, 1
    while name in taken:
        count += 1
        name = f"{base}.{count}"
    taken.add(name)
    return name


def check_inlined(proto: ModelProto, most: int) -> None:
    """Check that a model has no more than some nodes when its functions are written out.

    Raises
    ------
    ArgumentError
        More of them, or functions that call themselves.
    """
    functions = {_key(each): each for each in proto.functions}
    counts: dict[tuple[str, str, str], int] = {}
    todo = [(each, False) for each in functions]
    running: set[tuple[str, str, str]] = set()
    while todo:
        key, is_ready = todo.pop()
        called = [_called(each) for each in _within(functions[key].node)]
        if is_ready:
            running.discard(key)
            counts[key] = sum(counts.get(each, 1) for each in called)
            continue
        if key in counts:
            continue
        if key in running:
            raise ArgumentError("model", f"{shown(key[1])}, which calls itself", "functions")
        running.add(key)
        todo.append((key, True))
        todo += [(each, False) for each in called if each in functions and each not in counts]
    count = sum(counts.get(_called(each), 1) for each in _within(proto.graph.node))
    if count > most:
        got = f"{count} nodes with those of functions"
        raise ArgumentError("model", got, f"at most {most}")


def _key(function: FunctionProto) -> tuple[str, str, str]:
    return function.domain, function.name, function.overload


def _called(node: NodeProto) -> tuple[str, str, str]:
    return node.domain, node.op_type, node.overload


def _within(nodes: Any) -> Iterator[NodeProto]:  # noqa: ANN401 - a repeated field
    """Give nodes, and those of graphs within them."""
    todo = [*nodes]
    while todo:
        node = todo.pop()
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                todo += graph.node
