"""LSTM and GRU of ONNX as operations of a network: a product of the sequence, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.network import Node, Recurrence, Reshape, Slice
from pyonednn_q.onnx.fused_node import FusedGraph
from pyonednn_q.onnx.operations import constants_of, dims_of
from pyonednn_q.onnx.reference_operators import DOUBTS
from pyonednn_q.ops.dense import InnerProduct

__all__ = ["RECURRENT", "recurrent_nodes"]

Array = np.ndarray[Any, Any]

RECURRENT = (kinds.LSTM, kinds.GRU)
_WEI, _STATE_WEI, _BIAS, _LENGTHS, _H, _C, _PEEPHOLES = range(1, 8)  # inputs
_DIRECTIONS = {
    "forward": ("forward",),
    "reverse": ("reverse",),
    "bidirectional": ("forward", "reverse"),
}


def recurrent_nodes(what: GraphNode, graph: FusedGraph, computed: list[str]) -> list[Node]:
    """Return a recurrence as operations; empty where it is one that `Recurrence` is not.

    Parameters
    ----------
    what : GraphNode
        An LSTM or a GRU.
    graph : FusedGraph
        Of it.
    computed : list of str
        Those of its inputs that are no constants.
    """
    constants = constants_of(what, graph)
    if not _is_usual(what, constants, graph) or not set(computed) <= {
        what.inputs[0],
        what.input(_H),
        what.input(_C),
    }:
        return []
    wei, state_wei = constants[_WEI], constants[_STATE_WEI]
    directions = _DIRECTIONS[str(what.attributes.get("direction", "forward"))]
    gates, hidden = state_wei.shape[1], state_wei.shape[2]
    bias = constants.get(_BIAS, np.zeros((len(directions), 2 * gates), np.float32))
    of_source, of_state = bias[:, :gates], bias[:, gates:]
    shift = None
    if what.attributes.get("linear_before_reset", 0):
        shift = np.ascontiguousarray(of_state[:, 2 * hidden :])
        of_state = of_state * (np.arange(gates) < 2 * hidden)
    steps, batch, inputs = dims_of(what.inputs[0], graph)
    total = (of_source + of_state).astype(np.float32).reshape(-1)
    product = InnerProduct(wei.reshape(-1, inputs).copy(), total, dst="f32")
    states = [
        (letter, what.input(at))
        for letter, at in (("h", _H), ("c", _C))
        if what.input(at) and (at not in constants or constants[at].any())
    ]
    if any(name in graph.constants for _, name in states):
        return []  # a state that begins with certain numbers
    alg = "lstm" if what.row is kinds.LSTM else "gru"
    steps_of = Recurrence(
        alg, state_wei.copy(), directions, shift, "".join(letter for letter, _ in states)
    )
    base = next(name for name in what.outputs if name)
    rows, sums, spread, whole = (f"{base}: {part}" for part in ("rows", "sums", "gates", "steps"))
    nodes = [
        Node(rows, Reshape((steps * batch, inputs)), what.inputs[0]),
        Node(sums, product, rows),
        Node(spread, Reshape((steps, batch, len(total))), sums),
        Node(whole, steps_of, (spread, *(name for _, name in states))),
    ]
    begin = 0
    for at, size in enumerate(steps_of.sizes(steps, batch)):
        name = what.outputs[at] if at < len(what.outputs) else ""
        if name:
            part = f"{base}: part {at}"
            nodes.append(Node(part, Slice(0, begin, size), whole))
            nodes.append(Node(name, Reshape(dims_of(name, graph)), part))
        begin += size
    return nodes


def _is_usual(what: GraphNode, constants: Mapping[int, Array], graph: FusedGraph) -> bool:
    """Tell whether a node is of the usual functions, and its weights are constants of float32."""
    held = [constants.get(at) for at in (_WEI, _STATE_WEI)]
    if any(each is None or each.dtype != np.float32 or each.ndim != 3 for each in held):
        return False
    if what.attributes.get("layout", 0) or what.input(_PEEPHOLES):
        return False
    if what.input(_LENGTHS) and _LENGTHS not in constants:
        return False
    source = np.broadcast_to(np.float32(0), dims_of(what.inputs[0], graph))
    known = {what.inputs[at]: each for at, each in constants.items()}
    return not DOUBTS[what.row.name](what, {**known, what.inputs[0]: source})
