"""Quantizers that were placed in a graph of certain lengths, put into that which leaves them open.

Where quantizers go follows from dims: which operands are alike, what a Reshape keeps. So they are
placed at the lengths of one batch. But nodes that compute dims from dims are folded there, and such
a graph runs at no other length. Tensors have the same names in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.choices import Bindings, decided_names, is_open
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import with_norms_as_layers
from pyonednn_q.onnx.subgraphs import captured, ends_of, graphs_of, renamed

__all__ = ["at_inputs", "opened", "standing_for"]

Names = Mapping[str, str]

_SAME: Names = MappingProxyType({})


def at_inputs(graph: Graph, inputs: Mapping[str, Array]) -> Graph:
    """Return a float graph of certain lengths and branches, ready for quantizers.

    Parameters
    ----------
    graph : Graph
        Graph that `load` returned; one of `calibrate`, without open branches, comes back unchanged.
    inputs : mapping of str to ndarray
        Inputs of the call, which decide the branches.
    """
    if not is_open(graph):
        return graph
    _, known = Bindings(graph).of(inputs)
    return with_norms_as_layers(prepared(known()))


def opened(graph: Graph, befores: Sequence[Graph], afters: Sequence[Graph]) -> Graph:
    """Return an open graph with the quantizers of those of certain lengths and branches.

    A branch that is in none of them stays in floats. What several of them have is as in the first.

    Parameters
    ----------
    graph : Graph
        Argument of `at_inputs`. Without open branches, the only one of `afters` is returned.
    befores, afters : sequence of Graph
        Graphs from `at_inputs` and from `with_quantizers`, one for each choice of branches.
    """
    if not is_open(graph):
        return afters[0]
    computed = {name for node in _all(graph.nodes) for name in node.outputs if name}
    parts = _QuantizerParts()
    same: dict[str, list[str]] = {}
    chosen: dict[int, list[int]] = {}
    of_branches: set[str] = set()
    for way, (before, after) in enumerate(zip(befores, afters, strict=True)):
        parts.add(before, after, computed)
        choice = _BranchChoice(graph, before)
        for name, root in choice.roots.items():
            same.setdefault(root, []).append(name)
        for branch in choice.branches:
            chosen.setdefault(branch, []).append(way)
        of_branches |= choice.of_branches
    opening = _Opening(parts, same, chosen, of_branches)
    held = {**graph.constants, **parts.constants}
    ordered = opening.nodes(graph.nodes, graph.outputs, seen={*graph.inputs, *graph.constants})
    opsets = {name: each for after in afters for name, each in after.opsets.items()}
    return replace(graph, nodes=tuple(ordered), constants=held, opsets=opsets)


def standing_for(graph: Graph, befores: Sequence[Graph]) -> list[tuple[str, ...]]:
    """Return tensors of an open graph, each with those that stand for it in some of the others.

    Parameters
    ----------
    graph, befores
        Arguments of `opened`.
    """
    roots = [_BranchChoice(graph, before).roots for before in befores]
    names = dict.fromkeys(name for each in roots for name in each)
    return [(name, *(each.get(name, name) for each in roots)) for name in names]


class _QuantizerParts:
    """Nodes and constants that quantizers add to graphs of several choices of branches.

    Attributes
    ----------
    pairs : list of dict of str to (GraphNode, GraphNode)
        Nodes before and after, by their first result, of each choice.
    more : dict of str to GraphNode
        Nodes that there were not before, by what they make.
    constants : dict of str to ndarray
        Constants that these nodes read.
    """

    def __init__(self) -> None:
        self.pairs: list[dict[str, tuple[GraphNode, GraphNode]]] = []
        self.more: dict[str, GraphNode] = {}
        self.constants: dict[str, Array] = {}
        self._count = count(2)

    def add(self, before: Graph, after: Graph, computed: set[str]) -> None:
        """Add a choice: what it has like another stays one, what differs has names of its own."""
        kept = [node for node in after.nodes if not node.row.is_quantizer]
        pairs = {_named(old): (old, new) for old, new in zip(before.nodes, kept, strict=True)}
        there = {id(new) for name, (_, new) in pairs.items() if name in computed}
        names: dict[str, str] = {}
        for name, array in after.constants.items():
            if name in computed:
                continue
            known = self.constants.get(name)
            if known is not None and not _is_same(known, array):
                names[name] = f"{name}.{next(self._count)}"
            self.constants[names.get(name, name)] = array
        for node in after.nodes:
            if id(node) in there:
                continue
            like = self.more.get(_named(node))
            if like is not None and not _is_like(like, renamed(node, names)):
                results = (name for name in node.outputs if name)
                names |= {name: f"{name}.{next(self._count)}" for name in results}
            own = renamed(node, names)
            self.more.update({name: own for name in own.outputs if name})
        self.pairs.append({name: (old, renamed(new, names)) for name, (old, new) in pairs.items()})

    def of(self, ways: Iterable[int]) -> dict[str, tuple[GraphNode, GraphNode]]:
        """Return the pairs of some choices; of the first of them that has a node."""
        pairs: dict[str, tuple[GraphNode, GraphNode]] = {}
        for way in ways:
            pairs = {**self.pairs[way], **pairs}
        return pairs


def _named(node: GraphNode) -> str:
    """Return the first result that a node has a name for."""
    return next(filter(None, node.outputs))


def _is_like(first: GraphNode, second: GraphNode) -> bool:
    """Return whether two nodes have the same operator, inputs and attributes."""
    own, other = first.attributes, second.attributes
    kinds_and_inputs = [(each.domain, each.operator, each.inputs) for each in (first, second)]
    is_one = kinds_and_inputs[0] == kinds_and_inputs[1] and own.keys() == other.keys()
    return is_one and all(np.array_equal(own[name], other[name]) for name in own)


def _is_same(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)


class _BranchChoice:
    """Mapping from the graph of certain branches to the open graph.

    Parameters
    ----------
    graph, before : Graph
        The open graph; one that has one tensor in the place of several, and certain branches.

    Attributes
    ----------
    roots : dict of str to str
        Names in the closed graph, by names of the open graph's tensors.
    branches : set of int
        Identities of branches that run.
    of_branches : set of str
        Names in `roots` for which another branch has another tensor.
    """

    def __init__(self, graph: Graph, before: Graph) -> None:
        self.roots: dict[str, str] = {}
        self.branches: set[int] = set()
        self.of_branches: set[str] = set()
        self._constants = before.constants
        self._kept = {name for node in before.nodes for name in node.outputs} | {*before.outputs}
        self._walk(graph.nodes, _SAME, frozenset())

    def _walk(self, nodes: Iterable[GraphNode], outer: Names, ends: frozenset[str]) -> None:
        for node in (renamed(each, outer) for each in nodes):
            first = node.input(0)
            root = self.roots.get(first, first)
            if node.row in {kinds.IDENTITY, kinds.CAST, kinds.DROPOUT}:
                if node.outputs[0] not in self._kept:
                    is_of_branch = first in self.of_branches or node.outputs[0] in ends
                    self._stand(node.outputs[0], root, is_of_branch=is_of_branch)
                continue
            known = (self._constants.get(name) for name in (root, *decided_names(root)))
            condition = next((each for each in known if each is not None), None)
            branches = _branches(node)
            if not branches or condition is None:
                continue
            branch = branches["then_branch" if condition.reshape(()) else "else_branch"]
            self.branches.add(id(branch))
            names = {**_free(node), **ends_of(branch, node)}
            self._walk(branch.nodes, names, ends | {*node.outputs})
            for name, output in zip(branch.outputs, node.outputs, strict=True):
                own = names.get(name, name)
                if own != output:
                    self._stand(output, self.roots.get(own, own), is_of_branch=True)

    def _stand(self, name: str, root: str, *, is_of_branch: bool) -> None:
        self.roots[name] = root
        if is_of_branch:
            self.of_branches.add(name)


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
    parts : _QuantizerParts
        Parts that quantizers add. Constants that only a branch reads are its own: onnxruntime 1.26
        ends the process over scales of a branch that the graph around it holds.
    same : mapping of str to list of str
        Tensors by that which stands for them; it may lie in a branch, where others do not see it.
    chosen : mapping of int to list of int
        Numbers of the choices in which a branch runs, by the identity of the branch; others stay as
        they are.
    of_branches : set of str
        Tensors for which others stand in some choice only: they have quantizers of their own.
    """

    def __init__(
        self,
        parts: _QuantizerParts,
        same: Mapping[str, list[str]],
        chosen: Mapping[int, list[int]],
        of_branches: set[str],
    ) -> None:
        self._parts, self._constants = parts, parts.constants
        self._same, self._chosen, self._of_branches = same, chosen, of_branches
        self._makers = dict(parts.more)
        self._own: dict[tuple[str, str], str] = {}  # real values of tensors, and of which others
        self._pairs = parts.of(range(len(parts.pairs)))  # of the graph where it is now
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
        """Return nodes of a graph in order, each after the nodes that it reads.

        Parameters
        ----------
        nodes : iterable of GraphNode
            Nodes of the graph, or of a branch.
        outputs : iterable of str
            Names of tensors that are made even if nothing here reads them.
        done : iterable of int
            Identities of nodes that the graph around it has already.
        seen : iterable of str
            Names of tensors that can be read here, by the names where branches are put in.
        outer : mapping of str to str
            Names of a branch's tensors where it is put in, by their names in the branch, if those
            differ.
        own : mapping of str to str
            Names in the branch, by the names outside of it.
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
        if node.row is kinds.IF:
            return node
        old, new = self._pairs.get(_named(node), (node, node))
        quantized = _with(node, old, new)
        inputs = list(quantized.inputs)
        for at, (own, root) in enumerate(zip(node.inputs, old.inputs, strict=False)):
            if own in self._of_branches and at < len(inputs) and inputs[at] not in {own, root}:
                inputs[at] = self._own_quantizers(own, inputs[at])
        return replace(quantized, inputs=tuple(inputs))

    def _own_quantizers(self, name: str, real: str) -> str:
        """Return the values that quantizers make of a tensor, which are those of another."""
        back = self._makers.get(real)
        into = None if back is None else self._makers.get(back.inputs[0])
        if back is None or into is None:
            return real
        if (name, real) not in self._own:
            codes, values = self._fresh((f"{name}:codes", f"{name}:real")).values()
            nodes = (
                replace(into, name=codes, inputs=(name, *into.inputs[1:]), outputs=(codes,)),
                replace(back, name=values, inputs=(codes, *back.inputs[1:]), outputs=(values,)),
            )
            self._makers |= {node.outputs[0]: node for node in nodes}
            self._own[name, real] = values
        return self._own[name, real]

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
            around, self._pairs = self._pairs, self._parts.of(self._chosen[id(branch)])
            nodes = self.nodes(branch.nodes, (), done, seen, {**free, **ends}, own, held)
            self._pairs = around
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
