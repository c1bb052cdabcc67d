"""Quantizers that were placed in a graph of certain lengths, put into that which leaves them open.

Where quantizers go follows from dims: which operands are alike, what a Reshape keeps. So they are
placed at the lengths of one batch. But the nodes that compute dims from dims are folded there, and
a graph with that folded runs at no other length. Tensors have the same names in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.choices import Bindings, decided_names, is_open
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import with_norms_as_layers
from pyonednn_q.onnx.subgraphs import captured, ends_of, graphs_of, renamed

__all__ = ["at_inputs", "opened"]

Array = np.ndarray[Any, Any]
Names = Mapping[str, str]

_SAME: Names = MappingProxyType({})


def at_inputs(graph: Graph, inputs: Mapping[str, Array]) -> Graph:
    """Return a float graph of certain lengths and branches, ready for quantizers.

    Parameters
    ----------
    graph : Graph
        As `load` returns it; if nothing of it is open, as `calibrate` makes it of that, and
        returned as it is.
    inputs : mapping of str to ndarray
        What decides over it.
    """
    if not is_open(graph):
        return graph
    _, known = Bindings(graph).of(inputs)
    return with_norms_as_layers(prepared(known()))


def opened(graph: Graph, before: Graph, after: Graph) -> Graph:
    """Return an open graph with the quantizers of one of certain lengths and branches.

    A branch that was not there stays in floats.

    Parameters
    ----------
    graph : Graph
        What `at_inputs` takes. If nothing of it is open, `after` is returned.
    before, after : Graph
        As `at_inputs` and `with_quantizers` return them.
    """
    if not is_open(graph):
        return after
    kept = [node for node in after.nodes if not node.row.is_quantizer]
    pairs = {old.outputs[0]: (old, new) for old, new in zip(before.nodes, kept, strict=True)}
    computed = {name for node in _all(graph.nodes) for name in node.outputs if name}
    there = {id(new) for name, (_, new) in pairs.items() if name in computed}
    more = [node for node in after.nodes if id(node) not in there]
    constants = {name: each for name, each in after.constants.items() if name not in computed}
    same, chosen = _chosen(graph, before)
    opening = _Opening(pairs, more, constants, same, chosen)
    held = {**graph.constants, **constants}
    ordered = opening.nodes(graph.nodes, graph.outputs, seen={*graph.inputs, *graph.constants})
    return replace(graph, nodes=tuple(ordered), constants=held, opsets=after.opsets)


def _chosen(graph: Graph, before: Graph) -> tuple[dict[str, list[str]], set[int]]:
    """Return tensors of an open graph by that which stands for them, and identities of branches.

    `before` has one tensor in the place of several, and went certain branches.
    """
    kept = {name for node in before.nodes for name in node.outputs} | {*before.outputs}
    roots: dict[str, str] = {}
    chosen: set[int] = set()

    def walk(nodes: Iterable[GraphNode], outer: Names) -> None:
        for node in (renamed(each, outer) for each in nodes):
            first = node.input(0)
            first = roots.get(first, first)
            if node.row in {kinds.IDENTITY, kinds.CAST, kinds.DROPOUT}:
                if node.outputs[0] not in kept:
                    roots[node.outputs[0]] = first
                continue
            known = (before.constants.get(name) for name in (first, *decided_names(first)))
            condition = next((each for each in known if each is not None), None)
            branches = _branches(node)
            if not branches or condition is None:
                continue
            branch = branches["then_branch" if condition.reshape(()) else "else_branch"]
            chosen.add(id(branch))
            names = {**_free(node), **ends_of(branch, node)}
            walk(branch.nodes, names)
            for name, output in zip(branch.outputs, node.outputs, strict=True):
                own = names.get(name, name)
                if own != output:
                    roots[output] = roots.get(own, own)

    walk(graph.nodes, _SAME)
    same: dict[str, list[str]] = {}
    for name, root in roots.items():
        same.setdefault(root, []).append(name)
    return same, chosen


def _all(nodes: Iterable[GraphNode]) -> Iterator[GraphNode]:
    """Give nodes, and those of branches."""
    for node in nodes:
        yield node
        for branch in _branches(node).values():
            yield from _all(branch.nodes)


def _branches(node: GraphNode) -> dict[str, Graph]:
    return graphs_of(node.attributes) if node.row is kinds.IF else {}


def _free(node: GraphNode) -> dict[str, str]:
    """Return what an If reads of the graph around it, by the names of its branches."""
    return dict(zip(captured(node.attributes), node.inputs[1:], strict=True))


class _Opening:
    """Nodes of an open graph, and of its branches, with those that quantizers bring.

    Parameters
    ----------
    pairs : mapping of str to (GraphNode, GraphNode)
        Nodes before and after, by their first result.
    more : list of GraphNode
        Those that there were not before.
    constants : mapping of str to ndarray
        Those of the graph before. What only a branch reads is its own: onnxruntime 1.26 ends the
        process over scales of a branch that the graph around it holds.
    same : mapping of str to list of str
        Tensors by that which stands for them; it may lie in a branch, where others do not see it.
    chosen : set of int
        Identities of branches that run: others stay as they are.
    """

    def __init__(
        self,
        pairs: Mapping[str, tuple[GraphNode, GraphNode]],
        more: list[GraphNode],
        constants: Mapping[str, Array],
        same: Mapping[str, list[str]],
        chosen: set[int],
    ) -> None:
        self._pairs, self._constants = pairs, constants
        self._same, self._chosen = same, chosen
        self._makers = {name: node for node in more for name in node.outputs if name}
        self._count = count(2)

    def nodes(
        self,
        nodes: Iterable[GraphNode],
        outputs: Iterable[str] = (),
        done: Iterable[int] = (),
        seen: Iterable[str] = (),
        outer: Names = _SAME,
        own: Names = _SAME,
        held: dict[str, Array] | None = None,
    ) -> list[GraphNode]:
        """Return nodes of a graph in order, each behind what it reads.

        Parameters
        ----------
        nodes : iterable of GraphNode
            Those of the graph, or of a branch.
        outputs : iterable of str
            What is made by name, whoever reads it.
        done : iterable of int
            What the graph around it has already.
        seen : iterable of str
            What may be read here, by the names where branches are put in.
        outer : mapping of str to str
            What tensors of a branch are called where it is put in, where that differs.
        own : mapping of str to str
            What tensors that are called so are called in the branch.
        held : dict of str to ndarray, optional
            Constants of the branch; those that come are added.
        """
        names, ready, visible = dict(own), {*done}, {*seen}
        order: list[GraphNode] = []
        ends = [self._makers[name] for name in outputs if name in self._makers]
        for node in (*(self._quantized(renamed(each, outer)) for each in nodes), *ends):
            todo = [(node, False)]
            while todo:
                each, is_ready = todo.pop()
                if id(each) in ready:
                    continue
                if is_ready:
                    ready.add(id(each))
                    if held is not None:  # another branch may have the same
                        new = [name for name in each.inputs if name in self._constants]
                        new = [name for name in new if name not in visible and name not in names]
                        names |= self._fresh(new)
                        held |= {names[name]: self._constants[name] for name in new}
                        names |= self._fresh(each.outputs if each is not node else ())
                    read = {name: self._here(name, visible) for name in each.inputs}
                    here = replace(each, inputs=tuple(map(read.__getitem__, each.inputs)))
                    order.append(self._named(here, ready, visible, names))
                    visible |= {*each.outputs}
                    continue
                todo.append((each, True))
                inputs = each.inputs[:1] if each.row is kinds.IF else each.inputs
                todo += [(self._makers[n], False) for n in inputs if n in self._makers]
        return order

    def _here(self, name: str, visible: set[str]) -> str:
        """Return a tensor that may be read in the place of one."""
        if not name or name in visible:
            return name
        return next((each for each in self._same.get(name, ()) if each in visible), name)

    def _fresh(self, names: Iterable[str]) -> dict[str, str]:
        return {name: f"{name}.{next(self._count)}" for name in dict.fromkeys(names) if name}

    def _quantized(self, node: GraphNode) -> GraphNode:
        is_if = node.row is kinds.IF
        return node if is_if else _with(node, *self._pairs.get(node.outputs[0], (node, node)))

    def _named(self, node: GraphNode, done: set[int], visible: set[str], names: Names) -> GraphNode:
        """Return a node by the names of its graph, its branches with their quantizers."""
        branches = _branches(node)
        if not branches:
            return renamed(node, names)
        free, attributes = _free(node), dict(node.attributes)
        for at, branch in branches.items():
            if id(branch) not in self._chosen:
                continue
            ends = ends_of(branch, node)
            own = {**names, **{there: here for here, there in ends.items()}}
            seen = {*visible, *branch.constants}
            held = {name: self._constants.get(name, e) for name, e in branch.constants.items()}
            nodes = self.nodes(branch.nodes, (), done, seen, {**free, **ends}, own, held)
            read = {name for each in nodes for name in each.inputs} | {*branch.outputs}
            constants = {name: each for name, each in held.items() if name in read}
            handed = {name: names.get(free[name], free[name]) for name in free}
            results = {handed.get(name, name): each for name, each in branch.outputs.items()}
            attributes[at] = replace(
                branch, nodes=tuple(nodes), constants=constants, outputs=results
            )
        condition, *_ = node.inputs
        inputs = (names.get(condition, condition), *captured(attributes))
        outputs = tuple(names.get(name, name) for name in node.outputs)
        return replace(node, inputs=inputs, outputs=outputs, attributes=attributes)


def _with(node: GraphNode, old: GraphNode, new: GraphNode) -> GraphNode:
    """Return a node with the inputs and outputs that changed between two forms of it."""
    if old.operator != node.operator or len(old.inputs) != len(node.inputs):
        return new
    if new.operator != old.operator:  # of codes now
        same = dict(zip(old.inputs, node.inputs, strict=True))
        return replace(new, inputs=tuple(same.get(name, name) for name in new.inputs))
    inputs = tuple(
        own if first == second else second
        for own, first, second in zip(node.inputs, old.inputs, new.inputs, strict=False)
    )
    more = new.inputs[len(inputs) :]  # a bias that there was not
    return replace(node, inputs=(*inputs, *more), outputs=new.outputs)
