"""A graph by its tensors: which node makes each, which nodes read it, and what its codes mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.qparams import QParams


class CodeTensor(NamedTuple):
    """A tensor of codes and what they mean.

    Attributes
    ----------
    name : str
        Name of the codes, u8 or s8.
    q : QParams
        Along `axis` of it as DequantizeLinear has it, or per tensor.
    node : GraphNode
        The DequantizeLinear, or QuantizeLinear, that says so.
    """

    name: str
    q: QParams
    node: GraphNode


class GraphView:
    """Producers and readers of the tensors of a graph in which quantizers make the codes.

    Parameters
    ----------
    graph : Graph
        Graph that `prepared` returned.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = graph.constants
        self.producer: dict[str, GraphNode] = {}
        self.readers: dict[str, list[GraphNode]] = {}
        self._reads: Counter[str] = Counter(list(graph.outputs))
        self._place: dict[int, int] = {}
        self._taken: set[int] = set()
        for place, node in enumerate(graph.nodes):
            self._place[id(node)] = place
            self.producer.update({name: node for name in node.outputs if name})
            for name in filter(None, node.inputs):
                self.readers.setdefault(name, []).append(node)
                self._reads[name] += 1

    def take(self, nodes: Iterable[GraphNode]) -> int:
        """Note that nodes belong to a call; return the place of the last one."""
        places = [self._place[id(node)] for node in nodes]
        self._taken.update(places)
        return max(places)

    def place(self, node: GraphNode) -> int:
        """Return the index of a node in the graph."""
        return self._place[id(node)]

    def is_taken(self, node: GraphNode) -> bool:
        """Tell whether a node belongs to a call."""
        return self._place[id(node)] in self._taken

    def only_reader(self, name: str) -> GraphNode | None:
        """Return the node that alone reads a tensor, once, if it belongs to no call yet."""
        if self._reads[name] != 1 or name not in self.readers:
            return None
        (node,) = self.readers[name]
        return None if self.is_taken(node) else node

    def reads(self, name: str) -> int:
        """Return the number of readers of a tensor, the caller among them."""
        return self._reads[name]

    def dims(self, name: str) -> Dims | None:
        """Return the dims of a tensor, if they are known."""
        return self.graph.dims(name)

    def dtype(self, name: str) -> str:
        """Return NumPy's name of a tensor's type; empty if it is not known."""
        info = self.graph.tensors.get(name)
        return "" if info is None else info.dtype

    def dequantized(self, name: str) -> CodeTensor | None:
        """Return the codes whose real values a tensor holds, if that is what it holds."""
        node = self.producer.get(name)
        return self.quantizer(node) if node is not None and node.row is kinds.DEQUANTIZE else None

    def quantizer(self, node: GraphNode) -> CodeTensor | None:
        """Return the QParams of a QuantizeLinear or DequantizeLinear with constant scales.

        None of types other than u8 and s8, of blocks, of scales that are not f32 or cannot be.
        """
        scale, point = self.constants.get(node.input(1)), self.constants.get(node.input(2))
        is_open = scale is None or (node.input(2) and point is None)
        if is_open or node.attributes.get("block_size", 0) or scale is None or scale.ndim > 1:
            return None
        name = node.inputs[0] if node.row is kinds.DEQUANTIZE else node.outputs[0]
        stored = str(point.dtype) if point is not None else self.dtype(name)
        if stored not in {"uint8", "int8"} or scale.dtype != np.float32:
            return None
        axis = int(node.attributes.get("axis", 1)) if scale.size > 1 or scale.ndim else None
        if scale.size == 1:
            axis = None
        points: Any = np.zeros(scale.shape, np.int64) if point is None else point.astype(np.int64)
        if points.shape != scale.shape:
            return None
        flat = (scale.reshape(-1), points.reshape(-1))
        values = (flat[0], flat[1]) if axis is not None else (flat[0][0], flat[1][0])
        try:
            q = QParams(values[0], values[1], dtypes.from_numpy(np.dtype(stored)), axis=axis)
        except ArgumentError:
            return None
        return CodeTensor(name, q, node)

    def float_constant(self, name: str) -> Array | None:
        """Return a constant of real values, or the real values of constant codes."""
        if (constant := self.constants.get(name)) is not None:
            return constant if constant.dtype == np.float32 else None
        node = self.producer.get(name)
        if node is None or node.row is not kinds.DEQUANTIZE:
            return None
        known = [self.constants.get(each) for each in node.inputs if each]
        if any(each is None for each in known):
            return None
        from pyonednn_q.onnx.linear import dequantize_linear

        try:
            return dequantize_linear(*known, **node.attributes)
        except ArgumentError:
            return None
