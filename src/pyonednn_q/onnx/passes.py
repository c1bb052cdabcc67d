"""What a graph goes through before it is fused: one list of passes, and a trace of what each did.

A pass is a function from a graph to a graph that means the same. The first line of its docstring
is what it promises. `trace` of a result names, for each node of the model, what it was and became.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import NamedTuple, TypeAlias

from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.constant_folding import with_constants_computed
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
)
_ROUNDS = 8  # each may know dims that the one before computed; most graphs take two


class Change(NamedTuple):
    """What a pass made of some nodes.

    Attributes
    ----------
    by : str
        Name of the pass.
    originals : tuple of str
        Names of the model's nodes.
    before, after : tuple of str
        Operators that stood for them; none after where the results are constants now, or another
        tensor's.
    why : str
        What the pass promises.
    """

    by: str
    originals: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    why: str

    def __str__(self) -> str:
        names = ", ".join(self.originals)
        became = ", ".join(self.after) or "nothing that runs"
        return f"{names}: {', '.join(self.before)} -> {became}"


def traced(changes: Iterable[Change]) -> list[str]:
    """Return lines of text: each pass with what it promises, and what it changed below."""
    lines = []
    for (by, why), group in groupby(changes, key=lambda each: (each.by, each.why)):
        lines.append(f"{by}: {why}")
        lines += [f"  {each}" for each in group]
    return lines


def prepared(graph: Graph) -> tuple[Graph, tuple[Change, ...]]:
    """Return a graph behind all passes, and what each changed.

    Parameters
    ----------
    graph : Graph
        As `load` returns it.
    """
    changes: list[Change] = []
    for _ in range(_ROUNDS):
        before = graph
        graph, more = passed(graph, PASSES)
        changes += more
        if graph is before:
            break
    return graph, tuple(changes)


def settled(graph: Graph) -> Graph:
    """Return a graph behind all passes; one of open lengths behind those that need none.

    Parameters
    ----------
    graph : Graph
        As `load` returns it.
    """
    if graph.symbols:
        return passed(graph, (without_identities, with_constants_computed))[0]
    return prepared(graph)[0]


def passed(graph: Graph, passes: Iterable[Pass]) -> tuple[Graph, list[Change]]:
    """Return a graph behind some passes, and what each changed.

    Parameters
    ----------
    graph : Graph
        What the first one takes.
    passes : iterable of callable
        In order.
    """
    changes: list[Change] = []
    for each in passes:
        after = each(graph)
        if after is not graph:
            changes += changed(each, graph, after)
        graph = after
    return graph, changes


def changed(by: Pass, before: Graph, after: Graph) -> list[Change]:
    """Return what a pass changed, nodes that stand for the same originals together."""
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
