"""LSTM and GRU of 8-bit weights: what their codes are, and their forms of real weights.

Their products are of u8 codes by the range of what is multiplied: the source as a whole, and each
step's states. Weights are (directions, inputs, gates · hidden), ONNX's have the last two the other
way. Source: onnxruntime, operator com.microsoft.DynamicQuantizeLSTM; its kernel multiplies all rows
of a batch at once, or some of them on each thread, and those share a range. The GRU is its like,
without what a GRU has not: an operator of ours, for onnxruntime has none.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.reference_operators import DOUBTS
from pyonednn_q.qparams import QParams

__all__ = [
    "CodedRows",
    "as_real",
    "coded_rows",
    "is_on_codes",
    "recurrences_worth_codes",
    "with_dynamic_recurrences",
    "with_real_weights",
]

Quantize: TypeAlias = Callable[[str, Array, int], tuple[Array, QParams]]
_WORTH = 64  # numbers of a state from which codes are faster (benchmarks/recurrences.py)

_DIMS = 3  # of weights
_WEI, _STATE_WEI = 1, 2  # inputs
_SCALES = {kinds.DYNAMIC_LSTM: 8, kinds.DYNAMIC_GRU: 6}  # behind what the float ones read
_LENGTHS, _PEEPHOLES = 4, 7
_CODED = {kinds.LSTM: kinds.DYNAMIC_LSTM, kinds.GRU: kinds.DYNAMIC_GRU}
_GRU_TOLD = {"direction": "forward", "linear_before_reset": 0}  # what its function is told


class CodedRows(NamedTuple):
    """Weights of 8 bits in ONNX's order.

    Attributes
    ----------
    codes : (directions, gates · hidden, inputs) ndarray of int8
    scale : (directions, gates · hidden) ndarray of float32
        Real value of one step, for each row.
    """

    codes: Array
    scale: Array


def coded_rows(node: GraphNode, constants: Mapping[str, Array]) -> tuple[CodedRows, ...] | None:
    """Return weights of source and of states; None where they are no constants of s8 codes.

    Parameters
    ----------
    node : GraphNode
        One of `kinds.DYNAMIC_RECURRENT`.
    constants : mapping of str to ndarray
        Constants of the graph.
    """
    rows = []
    for at, first in _places(node):
        known = _known(node, constants, at, first)
        if known is None:
            return None
        codes, scale, point = known
        wide = codes.astype(np.int16) - point.astype(np.int16)
        if np.abs(wide).max(initial=0) > np.iinfo(np.int8).max:
            return None
        dims = codes.shape[0], codes.shape[2]
        rows.append(
            CodedRows(
                np.ascontiguousarray(wide.astype(np.int8).swapaxes(1, 2)),
                np.ascontiguousarray(np.broadcast_to(scale[:, 0], dims), np.float32),
            )
        )
    return tuple(rows)


def _places(node: GraphNode) -> tuple[tuple[int, int], ...]:
    """Return the places of codes, and of their scales, which are before zero points."""
    first = _SCALES[node.row]
    return (_WEI, first), (_STATE_WEI, first + 2)


def _known(
    node: GraphNode, constants: Mapping[str, Array], at: int, first: int
) -> tuple[Array, Array, Array] | None:
    """Return codes, scales and zero points, all of three dims."""
    codes, scale, point = (constants.get(node.input(each)) for each in (at, first, first + 1))
    if codes is None or scale is None or point is None or codes.ndim != _DIMS:
        return None
    along = (-1, 1, scale.shape[-1] if scale.ndim > 1 else 1)
    return codes, scale.reshape(along), point.reshape(along)


def is_on_codes(node: GraphNode, constants: Mapping[str, Array]) -> bool:
    """Tell whether a recurrence of codes is of the usual functions, and of s8 weights."""
    if node.input(_LENGTHS) or (node.row is kinds.DYNAMIC_LSTM and node.input(_PEEPHOLES)):
        return False
    usual = {node.inputs[0]: np.empty((0, 0, 0), np.float32)}
    doubt = DOUBTS[node.row.means](replace(node, operator=node.row.means, domain=""), usual)
    return not doubt and coded_rows(node, constants) is not None


def as_real(edit: GraphEdit, node: GraphNode) -> GraphNode:
    """Return a recurrence of codes as that of the real values of its weights.

    That rounds neither source nor states. Constants are added to the graph.
    """
    reals = []
    for at, first in _places(node):
        known = _known(node, edit.constants, at, first)
        if known is None:
            return node
        codes, scale, point = known
        shifted = (codes.astype(np.float32) - point.astype(np.float32)) * scale
        wei = np.ascontiguousarray(shifted.swapaxes(1, 2))
        reals.append(edit.constant(f"{_name(node)}:weights {at}", wei))
    inputs = [node.inputs[0], *reals, *(node.input(at) for at in range(3, _SCALES[node.row]))]
    while not inputs[-1]:
        inputs.pop()
    return replace(node, operator=node.row.means, inputs=tuple(inputs), domain="")


def with_real_weights(graph: Graph, names: Callable[[str], bool] = lambda _: True) -> Graph:
    """Return a graph whose recurrences of codes are those of real weights: all, or by name."""
    edit = GraphEdit(graph)
    for node in graph.nodes:
        is_one = node.row in kinds.DYNAMIC_RECURRENT and names(node.name)
        edit.nodes.append(as_real(edit, node) if is_one else node)
    return edit.result()


def recurrences_worth_codes(graph: Graph) -> tuple[GraphNode, ...]:
    """Return LSTMs and GRUs of floats whose products are faster of codes, and may be.

    Parameters
    ----------
    graph : Graph
        A float graph, as `prepared` returns it.
    """
    return tuple(each for each in graph.nodes if _is_worth_codes(each, graph))


def _is_worth_codes(node: GraphNode, graph: Graph) -> bool:
    if node.row not in _CODED or node.inputs[0] in graph.constants:
        return False
    if node.input(_LENGTHS) or node.input(_PEEPHOLES) or node.attributes.get("layout", 0):
        return False
    known = [graph.constants.get(node.inputs[at]) for at in (_WEI, _STATE_WEI)]
    if any(each is None or each.dtype != np.float32 or each.ndim != _DIMS for each in known):
        return False
    hidden = 0 if known[1] is None else known[1].shape[2]
    usual = {node.inputs[0]: np.empty((0, 0, 0), np.float32)}
    return hidden >= _WORTH and not DOUBTS[node.row.name](node, usual)


def with_dynamic_recurrences(graph: Graph, names: Container[str], quantize: Quantize) -> Graph:
    """Give LSTMs and GRUs that gain by it weights of 8 bits.

    Parameters
    ----------
    graph : Graph
        Graph with such as are worth codes.
    names : container of str
        Names of those.
    quantize : callable
        Function from the name of a layer, its real rows and the axis along which scales differ to
        s8 codes and their QParams.
    """
    edit = GraphEdit(graph)
    opsets = graph.opsets
    for node in graph.nodes:
        if node.row in _CODED and node.name in names:
            edit.nodes.append(_as_dynamic(edit, node, quantize))
            opsets = {edit.nodes[-1].domain: 1, **opsets}
        else:
            edit.nodes.append(node)
    return edit.result(opsets)


def _as_dynamic(edit: GraphEdit, node: GraphNode, quantize: Quantize) -> GraphNode:
    weights, numbers = [], []
    for at in (_WEI, _STATE_WEI):
        real = edit.constants[node.inputs[at]]
        codes, q = quantize(node.name, real.reshape(-1, real.shape[2]), 0)
        scale = np.broadcast_to(np.asarray(q.scale, np.float32), len(codes))
        parts = {
            "codes": np.ascontiguousarray(codes.reshape(real.shape).swapaxes(1, 2)),
            "scale": scale.reshape(real.shape[:2]).copy(),
            "point": np.zeros(real.shape[:2], np.int8),
        }
        own = [edit.constant(f"{node.inputs[at]}:{part}", each) for part, each in parts.items()]
        weights.append(own[0])
        numbers += own[1:]
    coded, outputs = _CODED[node.row], node.outputs
    inputs = (node.inputs[0], *weights, *(node.input(at) for at in range(3, _SCALES[coded])))
    how = {name: each for name, each in node.attributes.items() if name != "layout"}
    if coded is kinds.DYNAMIC_GRU:
        how = {name: how.get(name, usual) for name, usual in _GRU_TOLD.items()}
        how["hidden_size"] = edit.constants[node.inputs[_STATE_WEI]].shape[2]
        # onnxruntime wants of a function's node all that the function gives.
        outputs = (*node.outputs, "")[:2]
        outputs = tuple(name or edit.free(f"{node.name}:unread") for name in outputs)
    domain, _, operator = coded.name.rpartition(".")
    return replace(
        node,
        operator=operator,
        inputs=(*inputs, *numbers),
        outputs=outputs,
        domain=domain,
        attributes=MappingProxyType(how),
    )


def _name(node: GraphNode) -> str:
    return next(filter(None, node.outputs))
