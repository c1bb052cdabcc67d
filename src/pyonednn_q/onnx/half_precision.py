"""Models of float16 or bfloat16 as models of float32, in which layers are read and computed.

Their weights have the same values in float32, and nothing between nodes is rounded to 11 bits. What
the caller gives and gets keeps its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.element_types import FLOAT
from pyonednn_q.onnx.shape_inference import with_tensors

__all__ = ["in_float32"]

_HALVES = {"float16": 10, "bfloat16": 16}  # by name: TensorProto's number
_TYPES = ("to", "dtype", "output_dtype")  # attributes that are such numbers


def in_float32(graph: Graph) -> Graph:
    """Read layers with weights of 16-bit floats in float32, and all between them.

    Parameters
    ----------
    graph : Graph
        Graph whose tensors have types.
    """
    fixed = {*graph.constants}
    for node in graph.nodes:
        if all(name in fixed for name in node.inputs if name):
            fixed.update(node.outputs)
    # A layer whose source is constant, too, is none that runs.
    layers = [node for node in graph.nodes if node.row.layer and node.input(0) not in fixed]
    weights = {node.input(1) for node in layers} & fixed
    if not any(graph.tensors[n].dtype in _HALVES for n in weights if n in graph.tensors):
        return graph
    taken = {*graph.constants, *graph.inputs, *graph.tensors}
    names: dict[str, str] = {}
    first, last = [], []
    for name, info in graph.inputs.items():
        if info.dtype in _HALVES:
            names[name] = _fresh(name, taken)
            first.append(_cast(name, names[name], FLOAT))
    for name in graph.outputs:
        info = graph.tensors.get(name, graph.outputs[name])
        if info.dtype in _HALVES and name not in graph.inputs:
            names[name] = _fresh(name, taken)
            last.append(_cast(names[name], name, _HALVES[info.dtype]))
    nodes = tuple(_wide(node, names) for node in graph.nodes)
    constants = {names.get(name, name): _widened(each) for name, each in graph.constants.items()}
    return with_tensors(replace(graph, nodes=(*first, *nodes, *last), constants=constants))


def _wide(node: GraphNode, names: Mapping[str, str]) -> GraphNode:
    attributes = {name: _widened(each, name) for name, each in node.attributes.items()}
    inputs, outputs = (
        tuple(names.get(name, name) for name in ends) for ends in (node.inputs, node.outputs)
    )
    return replace(node, inputs=inputs, outputs=outputs, attributes=attributes)


def _widened(value: Any, name: str = "") -> Any:  # noqa: ANN401 - a constant, or an attribute
    if isinstance(value, np.ndarray) and value.dtype.name in _HALVES:
        wide = value.astype(np.float32)
        wide.flags.writeable = False
        return wide
    if isinstance(value, Graph):
        nodes = tuple(_wide(node, {}) for node in value.nodes)
        constants = {at: _widened(each) for at, each in value.constants.items()}
        return replace(value, nodes=nodes, constants=constants)
    return FLOAT if name in _TYPES and value in _HALVES.values() else value


def _cast(src: str, dst: str, number: int) -> GraphNode:
    name = f"{dst}:{kinds.CAST.name}"
    return GraphNode(name, kinds.CAST.name, (src,), (dst,), {"to": number}, originals=(name,))


def _fresh(name: str, taken: set[str]) -> str:
    fresh = f"{name}:float32"
    while fresh in taken:
        fresh += "'"
    taken.add(fresh)
    return fresh
