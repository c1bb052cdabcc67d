"""Nodes of constants, computed once; moves of weights placed after their DequantizeLinear."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode, Value
from pyonednn_q.onnx.element_types import FLOAT
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear
from pyonednn_q.onnx.reference_call import reference_call
from pyonednn_q.onnx.shape_inference import inferred
from pyonednn_q.onnx.subgraphs import branch_of

_MOST_BYTES = 1 << 30  # by which results exceed what is read; the rest is computed in each run
_WIDEST = 8  # bytes of an element
_SMALL = 1 << 16  # elements that are read
_WHOLE_NUMBERS = ("int32", "int64")


def with_constants_computed(graph: Graph) -> Graph:
    """Compute nodes that depend on constants and known dims only.

    Parameters
    ----------
    graph : Graph
    """
    folding = _Folding(graph)
    for node in graph.nodes:
        folding.fold(node)
    return folding.result()


class _Folding(GraphEdit):
    """The new graph, and the tensors that are known so far."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._tensors = dict(graph.tensors)
        self._left = _MOST_BYTES
        self._weights: dict[str, GraphNode] = {}  # what dequantizes constant codes, by its result

    def fold(self, node: GraphNode) -> None:
        """Add a node, unless its results are constants; the branch of an If that runs."""
        if node.row is kinds.IF and self._is_put_in(node):
            return
        kept = self._folded(node)
        if kept is not None:
            self._learn(kept)
            self.nodes.append(kept)

    def _is_put_in(self, node: GraphNode) -> bool:
        """Add the branch of an If whose condition is constant; tell whether it is."""
        condition = self.constants.get(node.inputs[0])
        if condition is None or condition.size != 1:
            return False
        is_true = bool(condition.reshape(()))
        nodes, constants = branch_of(node, is_true=is_true, fresh=self.free)
        self.constants.update(constants)
        for each in nodes:
            self.fold(each)
        return True

    def _learn(self, node: GraphNode, *, of_constants: bool = False) -> None:
        """Infer a node's results, if their dims follow only from constants computed so far."""
        outputs = [name for name in node.outputs if name]
        infos = [self._tensors.get(name) for name in outputs]
        if all(info is not None and info.dims is not None for info in infos):
            return
        read = [name for name in dict.fromkeys(node.inputs) if name]
        own = {name: self.constants[name] for name in read if name in self.constants}
        known = {} if of_constants else self._tensors
        inputs = {name: known[name] for name in read if name in known and name not in own}
        if len(own) + len(inputs) < len(read) or any(v.dims is None for v in inputs.values()):
            return
        results = inferred((node,), own, inputs, self.graph.opsets)
        self._tensors.update((name, results[name]) for name in outputs if name in results)

    def _folded(self, node: GraphNode) -> GraphNode | None:
        """Return a node as it has to stay, or None: its results are constants now.

        DequantizeLinear of constants stays: of codes that are moved where its result was.
        """
        if node.row in {kinds.SHAPE, kinds.SIZE}:
            return self._measured(node)
        if self._is_nought(node):
            return None
        known = [name for name in node.inputs if name]
        if any(name not in self.constants and name not in self._weights for name in known):
            return node
        if node.row in {kinds.LOOP, kinds.SCAN}:  # which may take as long as they like
            return node
        if node.row is kinds.DEQUANTIZE:
            if all(name in self.constants for name in known):
                self._weights[node.outputs[0]] = node
            return node
        return self._moved(node) or self._computed(node)

    def _measured(self, node: GraphNode) -> GraphNode | None:
        info = self._tensors.get(node.inputs[0])
        if info is None or info.dims is None:
            return node
        dims = info.dims
        if node.row is kinds.SHAPE:
            dims = dims[slice(node.attributes.get("start", 0), node.attributes.get("end"))]
            self._keep(node.outputs[0], np.array(dims, np.int64))
        else:
            self._keep(node.outputs[0], np.array(math.prod(dims), np.int64))
        return None

    def _is_nought(self, node: GraphNode) -> bool:
        """Tell whether it is a product of whole numbers with 0; its result is a constant then."""
        info = self._tensors.get(node.outputs[0])
        if node.row is not kinds.MUL or info is None or info.dtype not in _WHOLE_NUMBERS:
            return False
        known = (self.constants[name] for name in node.inputs if name in self.constants)
        if info.dims is None or math.prod(info.dims) > _SMALL or all(each.any() for each in known):
            return False
        self._keep(node.outputs[0], np.zeros(info.dims, info.dtype))
        return True

    def _moved(self, node: GraphNode) -> GraphNode | None:
        """Return a DequantizeLinear of moved codes where a node moves dequantized ones."""
        before = self._weights.get(node.inputs[0]) if node.inputs else None
        if before is None or before.attributes.get("block_size", 0):
            return None
        codes = self.constants[before.inputs[0]]
        along = self.constants[before.inputs[1]].size > 1
        axis = before.attributes.get("axis", 1) % codes.ndim if along else 0
        if node.row is kinds.TRANSPOSE:
            perm = tuple(node.attributes.get("perm", range(codes.ndim)[::-1]))
            moved, axis = np.transpose(codes, perm), perm.index(axis) if along else 0
        elif node.row.reshapes:
            try:
                own = {name: self.constants[name] for name in node.inputs[1:] if name}
                own[node.inputs[0]] = codes
                (moved,) = reference_call(node, self.graph.opsets)(own)
            except Error:
                return None
            places = [axis] if not along else _same_axis(codes.shape, axis, moved.shape)
            if not places:
                return None
            axis = places[0]
        elif node.row is kinds.CAST and node.attributes.get("to") == FLOAT:
            if self.constants[before.inputs[1]].dtype != np.float32:
                return None
            moved = codes
        else:
            return None
        name = f"{node.outputs[0]}:codes"
        while name in self.constants or name in self._tensors:
            name += "'"
        self._keep(name, np.array(moved, order="C"))
        fresh = replace(
            before,
            inputs=(name, *before.inputs[1:]),
            outputs=node.outputs,
            attributes=MappingProxyType({**before.attributes, **({"axis": axis} if along else {})}),
            originals=(*before.originals, *node.originals),
        )
        self._weights[node.outputs[0]] = fresh
        return fresh

    def _computed(self, node: GraphNode) -> GraphNode | None:
        if not self._is_small(node):
            return node
        values: dict[str, Array] = {}
        try:
            for name in filter(None, node.inputs):
                before = self._weights.get(name)
                values[name] = self.constants[name] if before is None else self._real(before)
            if node.row is kinds.QUANTIZE:
                inputs = (values[name] if name else None for name in node.inputs)
                results: tuple[Array, ...] = (quantize_linear(*inputs, **node.attributes),)
            else:
                results = reference_call(node, self.graph.opsets, self._tensors)(values)
        except Error:  # which it raises again when it runs, with its name
            return node
        more = sum(each.size for each in results) - self._size(node)
        self._left -= _WIDEST * max(more, 0)
        for name, result in zip(node.outputs, results, strict=True):
            if name:
                self._keep(name, result)
        return None

    def _is_small(self, node: GraphNode) -> bool:
        """Return whether results are not larger than the sources, or small."""
        self._learn(node, of_constants=True)
        infos = [self._tensors.get(name) for name in node.outputs if name]
        dims = [info.dims for info in infos if info is not None and info.dims is not None]
        if len(dims) == len(infos):
            more = sum(map(math.prod, dims)) - self._size(node)
            return more <= 0 or _WIDEST * more <= self._left
        return not node.row.grows and self._size(node) <= _SMALL and self._left > 0

    def _size(self, node: GraphNode) -> int:
        """Return the number of elements that a node reads."""
        reads = [self._weights[n].inputs[0] if n in self._weights else n for n in node.inputs if n]
        return sum(self.constants[name].size for name in reads)

    def _real(self, node: GraphNode) -> Array:
        inputs = [self.constants[name] for name in node.inputs if name]
        return dequantize_linear(*inputs, **node.attributes)

    def _keep(self, name: str, result: Array) -> None:
        is_view = result.flags.writeable and not result.flags.owndata
        result = np.array(result) if is_view else result
        result.flags.writeable = False
        self.constants[name] = result
        self._tensors[name] = Value(result.dtype.name, result.shape)


def _same_axis(before: Dims, axis: int, after: Dims) -> list[int]:
    """Return the axes of other dims, of the same elements, that are the same as one of some."""
    outer = math.prod(before[:axis])
    return [
        at
        for at, length in enumerate(after)
        if length == before[axis] and math.prod(after[:at]) == outer
    ]
