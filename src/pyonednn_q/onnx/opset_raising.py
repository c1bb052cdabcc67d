"""Nodes of opsets 7 to 12 as opset 13 writes them, by rules of our own.

The package onnx has a converter, too. It wants the whole model in one message, copies its weights
several times, and ends where it meets an operator of another domain. Between 7 and 13 only some
operators changed what they are written as: attributes became inputs, and Softmax got one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode

__all__ = ["RAISED_FROM", "RAISED_TO", "OpsetRaiser"]

Array = np.ndarray[Any, Any]

RAISED_FROM, RAISED_TO = 7, 13
_TYPES = dict.fromkeys(("axes", "split", "pads", "starts", "ends", "k"), np.dtype(np.int64))
_TYPES["scales"] = np.dtype(np.float32)  # others have that of the source


class OpsetRaiser:
    """Writes nodes of opset 7 to 12 as opset 13 has them.

    Parameters
    ----------
    opset : int
        Theirs.
    constants : dict of str to ndarray
        Of the graph; those that nodes read instead of attributes are added.
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
        before, names = _READ.get(node.operator, (0, ()))
        if self._opset < before:
            node = self._reading(node, names)
        if node.operator not in _WRITTEN or self._opset >= _WRITTEN[node.operator][0]:
            return [node]
        return _WRITTEN[node.operator][1](self, node)

    def _reading(self, node: GraphNode, names: tuple[str, ...]) -> GraphNode:
        """Return a node that reads what attributes of some names say, behind its other inputs."""
        attributes = dict(node.attributes)
        inputs = list(node.inputs)
        for name in names:
            value = attributes.pop(name, None)
            dtype = _TYPES.get(name) or np.dtype(self._dtypes.get(node.inputs[0]) or "float32")
            array = None if value is None else np.array(value, dtype, ndmin=int(name in _TYPES))
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

    def softmax(self, node: GraphNode) -> list[GraphNode]:
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

    def old_resize(self, node: GraphNode) -> list[GraphNode] | None:
        """Write one of opset 10, of which onnxruntime takes the element below, or that above."""
        scales = self._constants.get(node.inputs[1])
        if scales is None or ((scales < 1).any() and (scales > 1).any()):
            return None
        return [_resize(node, "ceil" if (scales < 1).any() else "floor")]

    def upsample(self, node: GraphNode) -> list[GraphNode] | None:
        """Write one of whole factors; of others, runtimes disagree about a Resize."""
        scales = self._constants.get(node.inputs[1])
        is_whole = scales is not None and bool((scales == np.round(scales)).all())
        return [_resize(node, "floor")] if is_whole else None

    def branches(self, node: GraphNode) -> list[GraphNode] | None:
        """Return an If whose branches are raised."""
        fresh = {}
        for name, branch in node.attributes.items():
            constants = dict(branch.constants)
            own = OpsetRaiser(self._opset, constants, self._ranks, self._dtypes)
            nodes = own.raised(branch.nodes)
            if nodes is None:
                return None
            fresh[name] = replace(branch, nodes=tuple(nodes), constants=constants)
        return [replace(node, attributes=fresh)]


def _dropout(_: OpsetRaiser, node: GraphNode) -> list[GraphNode] | None:
    return None if any(node.outputs[1:]) else [_without(node, "ratio")]


def _batch_norm(_: OpsetRaiser, node: GraphNode) -> list[GraphNode] | None:
    return [_without(node, "spatial")] if node.attributes.get("spatial", 1) else None


def _scatter(_: OpsetRaiser, node: GraphNode) -> list[GraphNode]:
    return [replace(node, operator="ScatterElements")]


def _without(node: GraphNode, attribute: str) -> GraphNode:
    kept = {name: each for name, each in node.attributes.items() if name != attribute}
    return replace(node, attributes=kept)


def _resize(node: GraphNode, nearest: str) -> GraphNode:
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest}
    inputs = (node.inputs[0], "", node.inputs[1])
    return replace(
        node, operator=kinds.RESIZE.name, inputs=inputs, attributes={**node.attributes, **how}
    )


# By operator: the first opset in which it reads what attributes say before; which, in order.
_READ: Mapping[str, tuple[int, tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum"), (13, ("axes",))),
        "Split": (13, ("split",)),
        "Clip": (11, ("min", "max")),
        "Pad": (11, ("pads", "value")),
        "Slice": (10, ("starts", "ends", "axes")),
        "TopK": (10, ("k",)),
        "Upsample": (9, ("scales",)),
    }
)
# By operator: the first opset in which it is written otherwise, and how.
_WRITTEN: Mapping[str, tuple[int, Callable[[OpsetRaiser, GraphNode], list[GraphNode] | None]]] = (
    MappingProxyType(
        {
            **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, OpsetRaiser.softmax)),
            "Upsample": (13, OpsetRaiser.upsample),
            "Resize": (11, OpsetRaiser.old_resize),
            "Dropout": (12, _dropout),
            "BatchNormalization": (9, _batch_norm),
            "Scatter": (13, _scatter),
            "If": (13, OpsetRaiser.branches),
        }
    )
)
