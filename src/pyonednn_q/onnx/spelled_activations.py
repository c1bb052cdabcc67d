"""Activations that exporters spell out: several nodes from one tensor to one, as one step.

HardSwish as Add, Clip, Mul, Div; Gelu by Erf or Tanh; SiLU and Mish as products. Nodes may stand in
any order and hold any constants. They are computed in float64 at points from -10^12 to 10^12, and
are an activation if both are within 2^-20 max(1, |x|) at all points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Chain, Eltwise, Step
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.graph_view import GraphView

__all__ = ["Spelled", "spelled"]

_MOST = 14  # nodes of one activation
_FAR = [s * 10.0**power for power in (1.5, 2, 3, 6, 12) for s in (-1, 1)]
_POINTS = np.concatenate([np.linspace(-12, 12, 2401), _FAR])
_REACH = 2.0**-20 * np.maximum(1.0, np.abs(_POINTS))
_ACTIVATIONS = (
    Eltwise("hardswish", 1 / 6, 0.5),
    Eltwise("swish", 1.0),
    Eltwise("gelu_erf"),
    Eltwise("gelu_tanh"),
    Eltwise("mish"),
)


class Spelled(NamedTuple):
    """An activation, the nodes that compute it, and the tensor of its result."""

    step: Step
    nodes: tuple[GraphNode, ...]
    value: str


def spelled(view: GraphView, value: str) -> Spelled | None:
    """Return the activation that the nodes after a tensor compute, or None.

    Parameters
    ----------
    view : GraphView
        View of the graph. Nodes that belong to a call are none of the activation's.
    value : str
        A tensor of float32 that is read more than once, by these nodes alone.
    """
    if view.reads(value) < 2 or value in view.graph.outputs:
        return None
    known: dict[str, Array] = {value: _POINTS}
    nodes: list[GraphNode] = []
    read: dict[str, int] = {}
    while len(nodes) < _MOST:
        node = _next(view, known, nodes)
        result = None if node is None else _computed(view, node, known)
        if node is None or result is None or view.dims(node.outputs[0]) != view.dims(value):
            return None
        nodes.append(node)
        known[node.outputs[0]] = result
        for name in node.inputs:
            read[name] = read.get(name, 0) + 1
        left = [name for name in known if read.get(name, 0) < view.reads(name)]
        if left == [node.outputs[0]] and (step := _activation(nodes, result)) is not None:
            return Spelled(step, tuple(nodes), node.outputs[0])
    return None


def _next(view: GraphView, known: Mapping[str, Array], nodes: list[GraphNode]) -> GraphNode | None:
    """Return the first node after known tensors that reads no other computed tensor."""
    behind = {id(node): node for name in known for node in view.readers.get(name, [])}
    ready = [
        node
        for node in behind.values()
        if not any(node is each for each in nodes)
        and not view.is_taken(node)
        and all(name in known or name in view.constants for name in node.inputs if name)
    ]
    return min(ready, key=view.place, default=None)


def _computed(view: GraphView, node: GraphNode, known: Mapping[str, Array]) -> Array | None:
    """Return a node's results for the points; None if it is not elementwise."""
    if node.domain or len(node.outputs) != 1:
        return None
    inputs: list[Array] = []
    for name in node.inputs:
        constant = view.constants.get(name, view.float_constant(name))
        if name in known:
            inputs.append(known[name])
        elif constant is not None and constant.size == 1:
            inputs.append(constant.astype(np.float64).reshape(()))
        else:
            return None
    with np.errstate(all="ignore"):
        if node.row.step is not None and len(inputs) == 1:
            return evaluate(Chain(node.row.step(node.attributes)), inputs[0])
        function = _FUNCTIONS.get(node.kind)
        return None if function is None else function(node, inputs)


def _activation(nodes: list[GraphNode], result: Array) -> Step | None:
    """Return the activation that makes the same of the points; of two nodes, by their kinds."""
    if len(nodes) == 2 and nodes[1].row is kinds.MUL and nodes[0].row.gate is not None:
        return nodes[0].row.gate(nodes[0].attributes)
    for step in _ACTIVATIONS:
        if np.all(np.abs(evaluate(Chain(step), _POINTS) - result) <= _REACH):
            return step
    return None


def _clipped(node: GraphNode, inputs: list[Array]) -> Array:
    lo = inputs[1] if node.input(1) else node.attributes.get("min", -np.inf)
    hi = inputs[-1] if node.input(2) else node.attributes.get("max", np.inf)
    return np.clip(inputs[0], lo, hi)


_FUNCTIONS: Mapping[str, Callable[[GraphNode, list[Array]], Array]] = MappingProxyType(
    {
        kinds.ADD.name: lambda _, x: np.add(*x),
        kinds.SUB.name: lambda _, x: np.subtract(*x),
        kinds.MUL.name: lambda _, x: np.multiply(*x),
        kinds.DIV.name: lambda _, x: np.divide(*x),
        kinds.POW.name: lambda _, x: np.power(*x),
        kinds.MIN.name: lambda _, x: np.minimum.reduce(np.broadcast_arrays(*x)),
        kinds.MAX.name: lambda _, x: np.maximum.reduce(np.broadcast_arrays(*x)),
        kinds.CLIP.name: _clipped,
        kinds.EXP.name: lambda _, x: np.exp(x[0]),
        kinds.ERF.name: lambda _, x: np.array([math.erf(each) for each in x[0]]),
    }
)
