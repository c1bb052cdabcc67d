"""Conversion of nodes on floats to operations of a network, each with its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Affine, Eltwise
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.network import (
    Concat,
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    Interpolation,
    LayerNorm,
    Node,
    Pick,
    Reshape,
    Softmax,
)
from pyonednn_q.onnx.code_operations import (
    constants_of,
    dims_of,
    parts_of,
    reshaped,
    slices_of,
    transposed,
)
from pyonednn_q.onnx.decoder_form import cached_nodes
from pyonednn_q.onnx.float_layers import norm_weights
from pyonednn_q.onnx.float_reductions import (
    EXPONENTIAL,
    OPPOSITE,
    REDUCTIONS,
    log_of_sums,
    log_sum_exp,
    pooled,
    reduced,
)
from pyonednn_q.onnx.recurrences import RECURRENT, recurrent_nodes
from pyonednn_q.onnx.reference_operators import DOUBTS

# Functions that oneDNN has, beside those that are steps of chains.
_FUNCTIONS: Mapping[str, Eltwise] = {
    kinds.EXP.name: EXPONENTIAL,
    kinds.ROUND.name: Eltwise("round"),
    kinds.SQRT.name: Eltwise("sqrt"),
}

_ALGS = {kinds.MAX: "max", kinds.MIN: "min", kinds.SUM: "add"}  # of any number, two by two
_NORMS = {
    kinds.BATCH_NORM,
    kinds.GROUP_NORM,
    kinds.INSTANCE_NORM,
    kinds.LAYER_NORM,
    kinds.RMS_NORM,
}
_NOTHING = np.empty(0)

# Of these oneDNN's are too rough alone: of softplus 8e-6 where it is 1e-30 (float32, x = -68).
_ROUGH = {"soft_relu"}


def float_nodes(what: GraphNode, graph: Graph, computed: list[str]) -> list[Node]:
    """Return what a node of computed tensors does, as it is; empty where no operation does that.

    It moves values, whatever they are, or computes with floats. The mean of floats is one of
    another order of sums than NumPy's.

    Parameters
    ----------
    what : GraphNode
        Node of ONNX.
    graph : Graph
        Graph that the node belongs to.
    computed : list of str
        Inputs that are not constants.
    """
    if what.row in RECURRENT:
        return recurrent_nodes(what, graph, computed)
    if what.row is kinds.CACHED_ATTENTION:
        return cached_nodes(what, graph)
    if what.domain or not what.inputs or not (what.inputs[0] in computed or _is_even(what)):
        return []
    dst, (*srcs,) = what.outputs[0], computed
    if what.row is kinds.SPLIT:
        parts = zip(what.outputs, parts_of(what.attributes, what.outputs, graph), strict=True)
        return [Node(name, part, srcs[0]) for name, part in parts]
    if any(what.outputs[1:]):
        return []
    constants = constants_of(what, graph)
    if (nodes := _of_tensors(what, graph, dst, srcs, constants)) is not None:
        return nodes
    operations = _of_one(what, constants, graph) if len(srcs) == 1 else ()
    names = [*(f"{dst}: part {at}" for at in range(1, len(operations))), dst]
    reads = [srcs[0], *names]
    return [Node(n, each, r) for n, each, r in zip(names, operations, reads, strict=False)]


def _of_tensors(
    what: GraphNode,
    graph: Graph,
    dst: str,
    srcs: list[str],
    constants: Mapping[int, Array],
) -> list[Node] | None:
    """Return operations of a node with several tensors; None: of another kind."""
    row = what.row
    if row is kinds.POW:
        return _power(dst, srcs, constants)
    if _is_sum(what) or row is kinds.MATMUL:
        return _of_two(what, dst, srcs, constants)
    if row in _ALGS or row is kinds.MEAN:
        return _of_several(what, graph)
    if row is kinds.LOG_SOFTMAX and graph.opsets.get("", 0) >= row.axis_since:
        nodes, less, log = log_of_sums(dst, srcs[0], (int(what.attributes.get("axis", -1)),))
        return [*nodes, Node(dst, FloatArithmetic("sub"), (less, log))]
    if row is kinds.LOG_SUM_EXP:
        return log_sum_exp(what, graph, dst, constants)
    if row is not kinds.CONCAT:
        return None
    return _joined(what, dst, srcs[0], constants)


def _joined(what: GraphNode, dst: str, src: str, constants: Mapping[int, Array]) -> list[Node]:
    """Return a Concat; constants are computed beside a tensor."""
    if any(each.dtype != np.float32 or not each.size for each in constants.values()):
        return []
    nodes, reads = [], [*what.inputs]
    for at, constant in constants.items():
        reads[at] = f"{dst}: source {at}"
        nodes += _held(reads[at], src, constant)
    return [*nodes, Node(dst, Concat(int(what.attributes["axis"])), tuple(reads))]


def _held(dst: str, src: str, constant: Array) -> list[Node]:
    """Return what makes a tensor of a constant: 0 and it, beside any tensor."""
    nought = f"{dst}: nought"
    return [
        Node(nought, Pick(np.full(1, -1), np.float32(0).tobytes()), src),
        Node(dst, FloatArithmetic("add", constant), nought),
    ]


def _is_even(what: GraphNode) -> bool:
    """Tell whether the first input may be the constant as well as any."""
    return _is_sum(what) or what.row in _ALGS or what.row in {kinds.MATMUL, kinds.CONCAT}


def _is_sum(what: GraphNode) -> bool:
    return (what.row.is_arithmetic or what.row in _ALGS) and len(what.inputs) == 2


def _of_two(
    what: GraphNode, dst: str, srcs: list[str], constants: Mapping[int, Array]
) -> list[Node]:
    if what.row is kinds.MATMUL:
        return _product(what, dst, srcs, constants)
    alg = _ALGS.get(what.row, what.row.chain)
    if len(constants) > 1:
        return []
    if not constants:
        return [Node(dst, FloatArithmetic(alg), what.inputs)]
    ((at, constant),) = constants.items()
    if constant.dtype != np.float32 or not constant.size:
        return []
    return [Node(dst, FloatArithmetic(alg, constant, is_first=not at), srcs[0])]


def _product(
    what: GraphNode, dst: str, srcs: list[str], constants: Mapping[int, Array]
) -> list[Node]:
    """Return a product of tensors; a constant stack is 0 and it, beside the tensor."""
    if not constants:
        return [Node(dst, FloatMatMul(), what.inputs)]
    ((at, constant),) = constants.items()
    if constant.dtype != np.float32 or not constant.size:
        return []
    stack = f"{dst}: stack"
    reads = (stack, srcs[0]) if at == 0 else (srcs[0], stack)
    return [*_held(stack, srcs[0], constant), Node(dst, FloatMatMul(), reads)]


def _of_several(what: GraphNode, graph: Graph) -> list[Node]:
    """Return operations on any number of tensors, two at a time."""
    dst, count = what.outputs[0], len(what.inputs)
    if graph.tensors[dst].dtype != "float32":
        return []
    row, last = (kinds.SUM, f"{dst}: sum") if what.row is kinds.MEAN else (what.row, dst)
    nodes, value = [], what.inputs[0]
    for at, name in enumerate(what.inputs[1:], 2):
        held = {
            at: graph.constants[n] for at, n in enumerate((value, name)) if n in graph.constants
        }
        result = last if at == count else f"{dst}: of {at}"
        step = replace(what, operator=row.name, inputs=(value, name), outputs=(result,))
        nodes += _of_two(step, result, [n for n in step.inputs if n not in graph.constants], held)
        value = result
    if len(nodes) < count - 1:
        return []
    if what.row is kinds.MEAN:
        nodes.append(Node(dst, FloatArithmetic("div", np.full(1, count, np.float32)), value))
    return nodes or [Node(dst, Reshape(dims_of(dst, graph)), value)]


def _power(dst: str, srcs: list[str], constants: Mapping[int, Array]) -> list[Node]:
    """Return squares and cubes as products; other powers have no operation."""
    exponent = constants.get(1, np.zeros(2))
    if len(srcs) != 1 or exponent.size != 1 or exponent.ndim > 1 or exponent.item() not in {2, 3}:
        return []
    (x,) = srcs
    if exponent.item() == 2:
        return [Node(dst, FloatArithmetic("mul"), (x, x))]
    square = f"{dst}: square"
    return [
        Node(square, FloatArithmetic("mul"), (x, x)),
        Node(dst, FloatArithmetic("mul"), (square, x)),
    ]


def _of_one(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> tuple[Any, ...]:
    """Return operations on the first input, one after the other."""
    row = what.row
    if row.reshapes or row is kinds.IDENTITY:
        return (reshaped(row, constants, what.outputs[0], graph),)
    if row is kinds.TRANSPOSE:
        return (transposed(what.attributes, what.outputs[0], graph),)
    if row is kinds.SLICE:
        return slices_of(constants, dims_of(what.inputs[0], graph))
    if graph.tensors[what.outputs[0]].dtype != "float32":
        return ()
    if row is kinds.RECIPROCAL:
        return (FloatArithmetic("div", np.ones(1, np.float32), is_first=True),)
    if row is kinds.RESIZE or row in REDUCTIONS:
        of_row = _resized if row is kinds.RESIZE else reduced
        return of_row(what, constants, graph)
    if row.pool:
        return pooled(what, graph)
    return _normalized(what, constants, graph) if row in _NORMS else _function(what, graph)


def _bounded(constants: Mapping[int, Array], what: GraphNode) -> tuple[FloatArithmetic, ...]:
    bounds = [(constants.get(at), alg) for at, alg in ((1, "max"), (2, "min")) if what.input(at)]
    if not bounds or any(each is None or each.dtype != np.float32 for each, _ in bounds):
        return ()
    return tuple(FloatArithmetic(alg, each) for each, alg in bounds)


def _function(what: GraphNode, graph: Graph) -> tuple[Any, ...]:
    row = what.row
    if row is kinds.CLIP:
        return _bounded(constants_of(what, graph), what)
    if row is kinds.SOFTMAX and graph.opsets.get("", 0) >= row.axis_since:
        return (Softmax(int(what.attributes.get("axis", -1))),)
    if row.name in _FUNCTIONS:
        return (Elementwise(_FUNCTIONS[row.name]),)
    step = None if row.step is None else row.step(what.attributes)
    if isinstance(step, Affine):  # the opposite
        return (OPPOSITE,)
    if isinstance(step, Eltwise) and step.alg not in _ROUGH:
        return (Elementwise(step),)
    return ()


def _resized(
    what: GraphNode, constants: Mapping[int, Array], graph: Graph
) -> tuple[Interpolation, ...]:
    from pyonednn_q.onnx.reference_resizing import taps_of  # which the package onnx tells

    if len(what.inputs) < 3 or any(at not in constants for at in (2, 3) if what.input(at)):
        return ()
    src, dst = (dims_of(name, graph) for name in (what.inputs[0], what.outputs[0]))
    known = {what.inputs[at]: each for at, each in constants.items()}
    if DOUBTS[what.row.name](what, {**known, what.inputs[0]: np.broadcast_to(np.float32(0), src)}):
        return ()
    taps = taps_of(src, constants.get(2), constants.get(3), what.attributes) or []
    lengths = {axis: len(index) for axis, index, _ in taps}
    is_right = dst == tuple(lengths.get(axis, dim) for axis, dim in enumerate(src))
    return tuple(Interpolation(*each) for each in taps) if is_right else ()


def _batch_norm(what: GraphNode, graph: Graph) -> tuple[Any, ...]:
    """Return a product and a sum with constants of the channels."""
    weights, rank = norm_weights(what, graph.constants), len(dims_of(what.inputs[0], graph))
    if weights is None or rank < 2:
        return ()
    ends = zip(("mul", "add"), weights, strict=True)
    return tuple(FloatArithmetic(alg, each.reshape(-1, *(1,) * (rank - 2))) for alg, each in ends)


def _normalized(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> tuple[Any, ...]:
    if what.row is kinds.BATCH_NORM:
        return _batch_norm(what, graph)
    if what.row in {kinds.GROUP_NORM, kinds.INSTANCE_NORM}:
        return _group_norm(what, constants, graph)
    return _layer_norm(what, graph)


def _layer_norm(what: GraphNode, graph: Graph) -> tuple[Any, ...]:
    gain = graph.constants.get(what.input(1))
    shift = graph.constants.get(what.input(2))
    src = dims_of(what.inputs[0], graph)
    axis = what.attributes.get("axis", -1) % len(src)
    if gain is None or gain.dtype != np.float32 or gain.shape != src[axis:]:
        return ()
    if what.input(2) and (shift is None or shift.shape != gain.shape):
        return ()
    if what.attributes.get("stash_type", 1) != 1:
        return ()
    shift = np.zeros_like(gain) if shift is None else shift
    epsilon = float(what.attributes.get("epsilon", 1e-5))
    return (LayerNorm(gain, shift, epsilon, is_centered=what.row is kinds.LAYER_NORM),)


def _group_norm(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> tuple[Any, ...]:
    """Return a norm over the places of each channel, or of each group of them."""
    src = dims_of(what.inputs[0], graph)
    gain, shift = (constants.get(at, _NOTHING) for at in (1, 2))
    groups = int(what.attributes.get("num_groups", src[1]))
    if len(src) < 3 or src[1] % groups or what.attributes.get("stash_type", 1) != 1:
        return ()
    if any(each.dtype != np.float32 or each.shape != src[1:2] for each in (gain, shift)):
        return ()
    places = (1,) * (len(src) - 2)
    ones = np.ones(prod(src[1:]) // groups, np.float32)
    epsilon = float(what.attributes.get("epsilon", 1e-5))
    by_group: tuple[Any, ...] = (
        Reshape((src[0] * groups, ones.size)),
        LayerNorm(ones, ones * 0, epsilon),
        Reshape(src),
    )
    if groups == 1:
        whole = np.ones(src[1:], np.float32)
        by_group = (LayerNorm(whole, whole * 0, epsilon),)
    return (
        *by_group,
        FloatArithmetic("mul", gain.reshape(-1, *places)),
        FloatArithmetic("add", shift.reshape(-1, *places)),
    )
