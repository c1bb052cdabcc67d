"""Graphs within a graph: branches of an If, which are put in where its condition is constant.

An If reads its condition and then, behind it, what its branches read of the graph around them: so
whoever renames what nodes read, or counts readers, need not look into branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, NodeProto

__all__ = ["branch_of", "captured", "check_inlined", "renamed"]


def captured(branches: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what branches read of the graph around them, each name once, in a fixed order.

    Parameters
    ----------
    branches : mapping of str to Graph
        The attributes of an If.
    """
    free: dict[str, None] = {}
    for branch in branches.values():
        known = {*branch.constants, *(name for node in branch.nodes for name in node.outputs)}
        read = [name for node in branch.nodes for name in node.inputs if name]
        free |= dict.fromkeys(name for name in (*read, *branch.outputs) if name not in known)
    return tuple(free)


def renamed(node: GraphNode, names: Mapping[str, str]) -> GraphNode:
    """Return a node whose tensors have other names, where there are such."""
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
        Its condition.
    fresh : callable
        From the name of a tensor of the branch to one that no tensor around it has.
    """
    branch: Graph = node.attributes["then_branch" if is_true else "else_branch"]
    names = dict(zip(captured(node.attributes), node.inputs[1:], strict=True))
    inner = [*branch.constants, *(name for each in branch.nodes for name in each.outputs if name)]
    names |= {name: fresh(name) for name in inner}
    constants = {names[name]: array for name, array in branch.constants.items()}
    nodes = [renamed(each, names) for each in branch.nodes]
    for name, output in zip(branch.outputs, node.outputs, strict=True):
        if output:
            same = (names[name],)
            nodes.append(GraphNode(f"{node.name}:{output}", kinds.IDENTITY.name, same, (output,)))
    return nodes, constants


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
