"""Nodes of opsets 7 to 12 as opset 13 writes them, by rules of our own.

The package onnx has a converter, too. It wants the whole model in one message, copies its weights
several times, and ends where it meets an operator of another domain. Between 7 and 13 only some
operators changed what they are written as: attributes became inputs, and Softmax got one axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.shape_inference import known_lengths, with_tensors
from pyonednn_q.onnx.subgraphs import graphs_of

__all__ = ["raised_opset"]

_FROM, _TO = 7, 13
_INDICES = ("axes", "split", "pads", "starts", "ends", "k")


def raised_opset(graph: Graph) -> Graph:
    """Rewrite opsets 7 to 12 as opset 13, if all nodes have such a form.

    Parameters
    ----------
    graph : Graph
        Graph as read from the model.
    """
    if not _FROM <= graph.opset < _TO:
        return graph
    constants = dict(graph.constants)
    dtypes = {name: info.dtype for name, info in with_tensors(graph).tensors.items()}
    ranks = {name: len(dims) for name, dims in known_lengths(graph).items()}
    nodes = _OpsetRaiser(graph.opset, constants, ranks, dtypes).raised(graph.nodes)
    if nodes is None:
        return graph
    opsets = {**graph.opsets, "": _TO}
    return replace(graph, nodes=tuple(nodes), constants=constants, opsets=opsets)


class _OpsetRaiser:
    """Writes nodes of opset 7 to 12 as opset 13 has them.

    Parameters
    ----------
    opset : int
        Theirs.
    constants : dict of str to ndarray
        Constants of the graph; those that nodes read instead of attributes are added.
    ranks : mapping of str to int
        Numbers of dims of tensors, where they are known.
    dtypes : mapping of str to str
        Types of tensors.
    """

    def __init__(
        self,
        opset: int,
        constants: dict[str, Array],
        ranks: Mapping[str, int],
        dtypes: Mapping[str, str],
    ) -> None:
        self._opset = opset
        self._constants = constants
        self._ranks, self._dtypes = ranks, dtypes

    def raised(self, nodes: Iterable[GraphNode]) -> list[GraphNode] | None:
        """Return nodes as opset 13 has them; None where there is one that it cannot say."""
        result: list[GraphNode] = []
        for node in nodes:
            fresh = [node] if node.domain else self._raised(node)
            if fresh is None:
                return None
            result += fresh
        return result

    def _raised(self, node: GraphNode) -> list[GraphNode] | None:
        since, names = node.row.reads
        if self._opset < since:
            node = self._reading(node, names)
        since, rule = node.row.older
        return [node] if self._opset >= since else self._written(node, rule)

    def _written(self, node: GraphNode, rule: str) -> list[GraphNode] | None:
        """Return the new nodes for a node of an older opset, by a rule."""
        match rule:
            case "branches":
                return self._branches(node)
            case "dropout":
                return None if any(node.outputs[1:]) else [_without(node, "ratio")]
            case "norm":
                is_plain = node.attributes.get("spatial", 1)
                return [_without(node, "spatial")] if is_plain else None
            case "resize":
                return self._old_resize(node)
            case "softmax":
                return self._softmax(node)
            case _:
                return self._upsample(node)

    def _reading(self, node: GraphNode, names: tuple[str, ...]) -> GraphNode:
        """Return a node in which further inputs replace the named attributes."""
        attributes = dict(node.attributes)
        inputs = list(node.inputs)
        for name in names:
            value = attributes.pop(name, None)
            own = "float32" if name == "scales" else self._dtypes.get(node.inputs[0]) or "float32"
            dtype = np.dtype(np.int64 if name in _INDICES else own)
            array = None if value is None else np.array(value, dtype, ndmin=int(name in _INDICES))
            inputs.append("" if array is None else self._keep(node, name, array))
        while not inputs[-1]:
            inputs.pop()
        return replace(node, inputs=tuple(inputs), attributes=attributes)

    def _keep(self, node: GraphNode, part: str, array: Array) -> str:
        name = f"{node.outputs[0]}:{part}"
        while name in self._constants or name in self._dtypes:
            name += "'"
        array.flags.writeable = False
        self._constants[name] = array
        return name

    def _softmax(self, node: GraphNode) -> list[GraphNode]:
        """Write one over all dims from an axis on, as one of a matrix, unless that is the last."""
        axis, rank = node.attributes.get("axis", 1), self._ranks.get(node.inputs[0])
        own = replace(node, attributes={"axis": -1})
        if axis == -1 or (rank and axis % rank == rank - 1):
            return [own]
        src, dst = node.inputs[0], node.outputs[0]
        dims, flat, result = (f"{dst}:{part}" for part in ("dims", "matrix", "rows"))

        def part(operator: str, inputs: tuple[str, ...], output: str, **of: int) -> GraphNode:
            name = f"{node.name}:{operator}"
            return GraphNode(name, operator, inputs, (output,), of, originals=node.originals)

        return [
            part(kinds.SHAPE.name, (src,), dims),
            part(kinds.FLATTEN.name, (src,), flat, axis=axis),
            replace(own, inputs=(flat,), outputs=(result,)),
            part(kinds.RESHAPE.name, (result, dims), dst),
        ]

    def _old_resize(self, node: GraphNode) -> list[GraphNode] | None:
        """Write one of opset 10, of which onnxruntime takes the element below, or that above."""
        scales = self._constants.get(node.inputs[1])
        if scales is None or ((scales < 1).any() and (scales > 1).any()):
            return None
        return [_resize(node, "ceil" if (scales < 1).any() else "floor")]

    def _upsample(self, node: GraphNode) -> list[GraphNode] | None:
        """Write one of whole factors; of others, runtimes disagree about a Resize."""
        scales = self._constants.get(node.inputs[1])
        is_whole = scales is not None and bool((scales == np.round(scales)).all())
        return [_resize(node, "floor")] if is_whole else None

    def _branches(self, node: GraphNode) -> list[GraphNode] | None:
        """Return a node whose graphs are raised."""
        fresh = dict(node.attributes)
        for name, branch in graphs_of(node.attributes).items():
            constants = dict(branch.constants)
            own = _OpsetRaiser(self._opset, constants, self._ranks, self._dtypes)
            nodes = own.raised(branch.nodes)
            if nodes is None:
                return None
            fresh[name] = replace(branch, nodes=tuple(nodes), constants=constants)
        return [replace(node, attributes=fresh)]


def _without(node: GraphNode, attribute: str) -> GraphNode:
    kept = {name: each for name, each in node.attributes.items() if name != attribute}
    return replace(node, attributes=kept)


def _resize(node: GraphNode, nearest: str) -> GraphNode:
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest}
    inputs = (node.inputs[0], "", node.inputs[1])
    return replace(
        node, operator=kinds.RESIZE.name, inputs=inputs, attributes={**node.attributes, **how}
    )
