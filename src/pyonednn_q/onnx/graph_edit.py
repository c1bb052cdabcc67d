"""GraphEdit: a graph while a pass makes another of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pyonednn_q.dtypes import Array
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx.shape_inference import with_tensors


class GraphEdit:
    """Nodes and constants of the new graph; names that no tensor has.

    Parameters
    ----------
    graph : Graph
        Graph to begin with: its constants, and none of its nodes.

    Attributes
    ----------
    graph : Graph
        Graph that is edited.
    nodes : list of GraphNode
        Nodes of the new graph, in order.
    constants : dict of str to ndarray
        Constants of the new graph.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: list[GraphNode] = []
        self.constants: dict[str, Array] = dict(graph.constants)
        self._same: dict[str, str] = {}  # tensors that are others now
        self._taken = {*graph.constants, *graph.inputs, *graph.tensors}
        self._taken.update(name for node in graph.nodes for name in node.outputs)

    def free(self, base: str) -> str:
        """Return a name that no tensor has, and take it."""
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}{count}"
        self._taken.add(name)
        return name

    def constant(self, base: str, value: Array) -> str:
        """Add a constant; return its name."""
        name = self.free(base)
        self.constants[name] = value.view()  # the caller may write to his
        self.constants[name].flags.writeable = False
        return name

    def node(
        self, kind: Kind, reads: tuple[str, ...], dst: str, name: str = "", **attributes: object
    ) -> str:
        """Add a node of ONNX's own domain, and return the tensor that it makes."""
        self.nodes.append(GraphNode(name or dst, kind.name, reads, (dst,), attributes))
        return dst

    def rename(self, name: str, other: str) -> None:
        """Let nodes that come read another tensor in the place of one."""
        self._same[name] = self._same.get(other, other)

    def renamed(self, node: GraphNode) -> GraphNode:
        """Return a node that reads the replacements of its inputs."""
        inputs = tuple(self._same.get(name, name) for name in node.inputs)
        return node if inputs == node.inputs else replace(node, inputs=inputs)

    def add(
        self,
        node: GraphNode,
        operator: str,
        inputs: tuple[str, ...],
        output: str,
        attributes: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Add a node of ONNX's own domain in the place of one that there was."""
        inputs = inputs if inputs[-1] else inputs[:-1]
        name = f"{node.name}:{operator}"
        self.nodes.append(
            GraphNode(name, operator, inputs, (output,), attributes, "", node.originals)
        )

    def part(
        self, of: GraphNode, kind: Kind, *reads: str, dst: str = "", **attributes: object
    ) -> str:
        """Add one of the nodes that another is written out as; return the tensor that it makes."""
        base = of.outputs[0]
        dst = dst or self.free(f"{base}:{kind.name}")
        name = f"{of.name}:{dst.removeprefix(f'{base}:')}"
        self.nodes.append(GraphNode(name, kind.name, reads, (dst,), attributes, "", of.originals))
        return dst

    def result(self, opsets: Mapping[str, int] | None = None) -> Graph:
        """Return the new graph, its dims inferred again; the old one where nothing changed.

        Parameters
        ----------
        opsets : mapping of str to int, optional
            Versions of operators by domain, where nodes are of others now.
        """
        before = self.graph
        is_same = len(self.nodes) == len(before.nodes) and all(
            one is other for one, other in zip(self.nodes, before.nodes, strict=True)
        )
        if is_same and self.constants.keys() == before.constants.keys():
            return before
        nodes, constants = tuple(self.nodes), MappingProxyType(self.constants)
        changed = replace(before, nodes=nodes, constants=constants)
        return with_tensors(changed if opsets is None else replace(changed, opsets=opsets))
