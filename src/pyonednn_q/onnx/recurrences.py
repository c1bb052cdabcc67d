"""LSTM and GRU of ONNX as operations of a network: a product of the sequence, and its steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.network import Node, Recurrence, Reshape, Slice
from pyonednn_q.onnx.code_operations import constants_of, dims_of
from pyonednn_q.onnx.dynamic_recurrences import coded_rows
from pyonednn_q.onnx.reference_operators import DOUBTS
from pyonednn_q.onnx.saturating_layers import saturates
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic

__all__ = ["RECURRENT", "recurrent_nodes"]

RECURRENT = (kinds.LSTM, kinds.GRU, *kinds.DYNAMIC_RECURRENT)
_WEI, _STATE_WEI, _BIAS, _LENGTHS, _H, _C, _PEEPHOLES = range(1, 8)  # inputs
_DIRECTIONS = {
    "forward": ("forward",),
    "reverse": ("reverse",),
    "bidirectional": ("forward", "reverse"),
}


def recurrent_nodes(what: GraphNode, graph: Graph, computed: list[str]) -> list[Node]:
    """Return a recurrence as operations; empty where it is one that `Recurrence` is not.

    Parameters
    ----------
    what : GraphNode
        An LSTM or a GRU, also of codes.
    graph : Graph
        The graph of the node.
    computed : list of str
        Inputs that are not constants.
    """
    constants = constants_of(what, graph)
    alg = "gru" if what.row in {kinds.GRU, kinds.DYNAMIC_GRU} else "lstm"
    places = (("h", _H), ("c", _C)) if alg == "lstm" else (("h", _H),)
    of_states = {what.input(at) for _, at in places}
    if not set(computed) <= {what.inputs[0], *of_states}:
        return []
    wei_scale = state_scale = None
    if what.row in kinds.DYNAMIC_RECURRENT:
        weights = coded_rows(what, graph.constants)
        if weights is None:
            return []
        (wei, wei_scale), (state_wei, state_scale) = weights
    elif _is_usual(what, constants, graph):
        wei, state_wei = constants[_WEI], constants[_STATE_WEI]
    else:
        return []
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
    product = _product(wei.reshape(-1, inputs), total, wei_scale, steps * batch)
    states = [
        (letter, what.input(at))
        for letter, at in places
        if what.input(at) and (at not in constants or constants[at].any())
    ]
    if any(name in graph.constants for _, name in states):
        return []  # a state that begins with certain numbers
    begins = "".join(letter for letter, _ in states)
    steps_of = Recurrence(alg, state_wei.copy(), directions, shift, begins, state_scale)
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


def _product(wei: Array, bias: Array, scale: Array | None, rows: int) -> InnerProduct:
    """Return the product of the source, on floats, or on codes if there is a scale.

    If codes might saturate here, it is made for floats, with the real values of the weights.
    """
    if scale is None:
        return InnerProduct(wei.copy(), bias, dst="f32")
    q = QParams(scale.reshape(-1), 0, "s8", axis=0)
    product = InnerProduct(wei.copy(), bias, src_q=Dynamic("u8"), wei_q=q, saturation="refuse")
    if not saturates(product, (rows, wei.shape[1])):
        return product
    return InnerProduct(q.dequantize(wei).astype(np.float32), bias, dst="f32")


def _is_usual(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> bool:
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
