"""Lengths and branches that a call decides: which they are, and the graph that has them.

The condition of an If that no constant decides, and no layer: a rate of samples that is 16000, a
cache that is empty. Its few nodes run by themselves; the graph with the branch that they choose is
one without that If, whose layers are any others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.onnx.open_dims import bound, check_dims
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.reference_call import reference_call
from pyonednn_q.onnx.subgraphs import graphs_of
from pyonednn_q.ops.shapes import Shapes

__all__ = ["Bindings", "Choices", "Key", "choice_of", "decided_names", "is_open"]

Path = tuple[bool, ...]
Key = tuple[tuple[Dims, ...], Path]


def choice_of(graph: Graph) -> GraphNode | None:
    """Return the first If that values of a call decide before any layer runs; None: there is none.

    Parameters
    ----------
    graph : Graph
        Graph that `prepared` returned: an If of a constant condition is none any more.
    """
    ifs = [node for node in graph.nodes if node.row is kinds.IF]
    makers = {name: node for node in graph.nodes for name in node.outputs} if ifs else {}
    return next((node for node in ifs if _deciding(node, makers) is not None), None)


def is_open(graph: Graph) -> bool:
    """Tell whether a graph has lengths, or branches, that calls decide.

    Parameters
    ----------
    graph : Graph
        Graph that `prepared` returned, or one of open lengths.
    """
    return bool(graph.symbols) or choice_of(graph) is not None


def _deciding(node: GraphNode, makers: Mapping[str, GraphNode]) -> tuple[GraphNode, ...] | None:
    """Return the nodes that a condition is made of, in order; None where layers are among them."""
    order: list[GraphNode] = []
    done: set[int] = set()
    todo = [(node.inputs[0], False)]
    while todo:
        name, is_ready = todo.pop()
        maker = makers.get(name)
        if maker is None or id(maker) in done:
            continue
        if is_ready:
            done.add(id(maker))
            order.append(maker)
            continue
        if maker.row.multiplies or graphs_of(maker.attributes):
            return None
        todo.append((name, True))
        todo += [(each, False) for each in maker.inputs if each]
    return tuple(order)


class Choices:
    """The graphs that a graph is, by what the values of calls choose; each is made once.

    Parameters
    ----------
    graph : Graph
        One whose lengths are known.

    """

    def __init__(self, graph: Graph) -> None:
        self._graph = prepared(graph)
        self._node = choice_of(self._graph)
        self._behind: dict[bool, Choices] = {}
        self._last: bool | None = None
        if self._node is not None:
            makers = {name: node for node in self._graph.nodes for name in node.outputs}
            self._calls = [
                (node, reference_call(node, graph.opsets))
                for node in _deciding(self._node, makers) or ()
            ]

    def chosen(self, inputs: Mapping[str, Array] | None = None) -> tuple[Path, Graph]:
        """Return the branches that the inputs of a call choose, one after the other, and its graph.

        Parameters
        ----------
        inputs : mapping of str to ndarray, optional
            All inputs of the call. None: the choices of the last call.

        Raises
        ------
        ArgumentError
            No inputs, and no call before.
        """
        if self._node is None:
            return (), self._graph
        if inputs is not None:
            self._last = self._decided(self._node, inputs)
        if self._last is None:
            got = f"an If, {self._node.name}, that inputs decide"
            raise ArgumentError("model", got, "a call on arrays first")
        if self._last not in self._behind:
            self._behind[self._last] = Choices(_with(self._graph, self._node, self._last))
        path, graph = self._behind[self._last].chosen(inputs)
        return (self._last, *path), graph

    def _decided(self, node: GraphNode, inputs: Mapping[str, Array]) -> bool:
        values = {**self._graph.constants, **inputs}
        for each, call in self._calls:
            values.update(zip(each.outputs, call(values), strict=True))
        return bool(values[node.inputs[0]].reshape(()))


class Bindings:
    """The graphs that an open graph is, by the lengths and values of calls.

    Parameters
    ----------
    graph : Graph
        Any; one of no open length and no branch is itself.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._has_branches = any(node.row is kinds.IF for node in graph.nodes)
        self._choices: Shapes[tuple[Dims, ...], Choices] = Shapes()

    @property
    def open_inputs(self) -> tuple[str, ...]:
        """Names of the inputs of which lengths are open."""
        return tuple(self._graph.symbols)

    def at(
        self, dims: Mapping[str, Dims], inputs: Mapping[str, Array] | None = None
    ) -> tuple[Key, Callable[[], Graph]]:
        """Return the graph in place of that of a call, and its maker.

        Parameters
        ----------
        dims : mapping of str to tuple of int
            Dims of at least the open inputs.
        inputs : mapping of str to ndarray, optional
            All inputs of the call. None: branches as the last call of these lengths chose them.

        Raises
        ------
        ArgumentError, ShapeError
            Dims that do not fit, naming the input; branches that no call chose.
        """
        graph = self._graph
        check_dims(graph, dims)
        lengths = tuple(dims[name] for name in graph.symbols)
        if not self._has_branches:
            return (lengths, ()), lambda: bound(graph, dims) if graph.symbols else graph
        if (choices := self._choices.get(lengths)) is None:
            known = bound(graph, dims) if graph.symbols else graph
            choices = self._choices.add(lengths, Choices(known), 0)
        path, chosen = choices.chosen(inputs)
        return (lengths, path), lambda: chosen

    def of(self, inputs: Mapping[str, Array]) -> tuple[Key, Callable[[], Graph]]:
        """Return what `at` does, of arrays."""
        return self.at({name: inputs[name].shape for name in self._graph.symbols}, inputs)


def decided_names(condition: str) -> tuple[str, str]:
    """Return the name of a condition that is known to be false, or true."""
    return f"{condition}:false", f"{condition}:true"


def _with(graph: Graph, node: GraphNode, is_true: bool) -> Graph:
    """Return a graph whose Ifs of the same condition have a constant one."""
    condition = node.inputs[0]
    name = decided_names(condition)[is_true]
    nodes = tuple(
        replace(each, inputs=(name, *each.inputs[1:]))
        if each.row is kinds.IF and each.inputs[0] == condition
        else each
        for each in graph.nodes
    )
    constants = MappingProxyType({**graph.constants, name: np.asarray(is_true)})
    return replace(graph, nodes=nodes, constants=constants)
