"""Passes: functions from a graph to a graph that means the same, and those before `fuse`.

The first line of a pass's docstring is what it promises. Graphs carry what passes changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from pyonednn_q.graph.change import Change
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.constant_folding import with_constants_computed
from pyonednn_q.onnx.group_norms import with_group_norms
from pyonednn_q.onnx.layer_norms import with_layer_norms
from pyonednn_q.onnx.plain_form import with_quantizers_of_onnx, without_identities
from pyonednn_q.onnx.qdq_form import with_codes_between_quantizers
from pyonednn_q.onnx.shape_inference import with_dims

Pass: TypeAlias = "Callable[[Graph], Graph]"

PASSES: tuple[Pass, ...] = (
    with_dims,
    without_identities,
    with_quantizers_of_onnx,
    with_constants_computed,
    with_codes_between_quantizers,
    with_constants_computed,
    with_layer_norms,
    with_group_norms,
)
_ROUNDS = 8  # each may know dims that the one before computed; most graphs take two


def prepared(graph: Graph) -> Graph:
    """Return a graph after all passes.

    Parameters
    ----------
    graph : Graph
        Graph that `load` returned.
    """
    for _ in range(_ROUNDS):
        before = graph
        graph = passed(graph, PASSES)
        if graph is before:
            break
    return graph


def settled(graph: Graph) -> Graph:
    """Return a graph after all passes; with open lengths, after those that need none.

    Parameters
    ----------
    graph : Graph
        Graph that `load` returned.
    """
    if graph.symbols:
        return passed(graph, (without_identities, with_constants_computed))
    return prepared(graph)


def passed(graph: Graph, passes: Iterable[Pass]) -> Graph:
    """Return a graph after some passes, with the changes of each.

    Parameters
    ----------
    graph : Graph
        Input of the first pass.
    passes : iterable of callable
        Passes in order.
    """
    for each in passes:
        after = each(graph)
        if after is not graph:
            told = after.changes[len(graph.changes) :] or changed(each, graph, after)
            graph = replace(after, changes=(*graph.changes, *told))
    return graph


def changed(by: Callable[..., Any], before: Graph, after: Graph) -> list[Change]:
    """Return the changes of a pass, grouped by the original nodes.

    Parameters
    ----------
    by : callable
        The pass, or a `functools.partial` of it. The first line of its docstring says why.
    before, after : Graph
        Input and result of the pass.
    """
    by = by.func if isinstance(by, partial) else by
    rooted = _rooted((*before.nodes, *after.nodes))
    kinds: dict[str, tuple[list[str], list[str]]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for side, graph in enumerate((before, after)):
        for node in graph.nodes:
            if node.originals:
                root = rooted(node.originals[0])
                kinds.setdefault(root, ([], []))[side].append(node.kind)
                if side == 0:
                    names[root] = tuple(dict.fromkeys((*names.get(root, ()), *node.originals)))
    promise = (by.__doc__ or "").partition("\n")[0].rstrip(".")
    return [
        Change(by.__name__, names.get(root, (root,)), tuple(was), tuple(now), promise)
        for root, (was, now) in kinds.items()
        if Counter(was) != Counter(now)
    ]


def _rooted(nodes: Iterable[GraphNode]) -> Callable[[str], str]:
    """Return what gives one name of all that belong together: those that a node stands for."""
    above: dict[str, str] = {}

    def root(name: str) -> str:
        while (other := above.get(name, name)) != name:
            name = other
        return name

    for node in nodes:
        for name in node.originals[1:]:
            if (other := root(node.originals[0])) != root(name):
                above[other] = root(name)
    return root
