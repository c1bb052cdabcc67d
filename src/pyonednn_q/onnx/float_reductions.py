"""Operations for float reductions, means and pools, and for logarithms of sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.expr.steps import Eltwise
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.network import Elementwise, FloatArithmetic, Node, Pool, Reduction, Reshape
from pyonednn_q.onnx.code_operations import dims_of, is_over_places, window_pool

__all__ = [
    "EXPONENTIAL",
    "OPPOSITE",
    "REDUCTIONS",
    "log_of_sums",
    "log_sum_exp",
    "pooled",
    "reduced",
]

EXPONENTIAL = Eltwise("exp")
REDUCTIONS = {
    kinds.REDUCE_SUM: "sum",
    kinds.REDUCE_MEAN: "mean",
    kinds.REDUCE_MAX: "max",
    kinds.REDUCE_MIN: "max",
    kinds.REDUCE_L1: "sum",
    kinds.REDUCE_L2: "sum",
    kinds.REDUCE_SQUARES: "sum",
    kinds.REDUCE_PRODUCT: "prod",
    kinds.REDUCE_LOG_SUM: "log_sum",
}
OPPOSITE = FloatArithmetic("mul", np.full(1, -1, np.float32))
_SQUARE = Elementwise(Eltwise("square"))
# What is done before some, and behind.
_AROUND: Mapping[Kind, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    kinds.REDUCE_MIN: ((OPPOSITE,), (OPPOSITE,)),
    kinds.REDUCE_L1: ((Elementwise(Eltwise("abs")),), ()),
    kinds.REDUCE_L2: ((_SQUARE,), (Elementwise(Eltwise("sqrt")),)),
    kinds.REDUCE_SQUARES: ((_SQUARE,), ()),
}


def log_of_sums(dst: str, src: str, axes: tuple[int, ...]) -> tuple[list[Node], str, str]:
    """Return log(sum(exp(x - max))), which is right where a probability is nearly 0.

    Also the names of x - max and of that logarithm. An infinite maximum counts as the largest float
    there is, so that inf - inf does not occur.
    """
    greatest, top, less, power, log, high = (f"{dst}: part {at}" for at in range(1, 7))
    most = np.full(1, np.finfo(np.float32).max)
    nodes = [
        Node(greatest, Reduction("max", axes), src),
        Node(high, FloatArithmetic("min", most), greatest),
        Node(top, FloatArithmetic("max", -most), high),
        Node(less, FloatArithmetic("sub"), (src, top)),
        Node(power, Elementwise(EXPONENTIAL), less),
        Node(log, Reduction("log_sum", axes), power),
    ]
    return nodes, less, log


def log_sum_exp(
    what: GraphNode, graph: Graph, dst: str, constants: Mapping[int, Array]
) -> list[Node]:
    """Return a logarithm of sums of exponentials: that above, and the maximum again."""
    src = what.inputs[0]
    axes = _axes(what, constants, len(dims_of(src, graph)))
    if not axes or graph.tensors[dst].dtype != "float32":
        return []
    nodes, _, log = log_of_sums(dst, src, axes)
    total = f"{dst}: sum"
    return [
        *nodes,
        Node(total, FloatArithmetic("add"), (log, nodes[2].dst)),
        Node(dst, Reshape(dims_of(dst, graph)), total),
    ]


def reduced(what: GraphNode, constants: Mapping[int, Array], graph: Graph) -> tuple[Any, ...]:
    """Return operations that reduce, one after the other; none where they do not."""
    src, dst = (dims_of(name, graph) for name in (what.inputs[0], what.outputs[0]))
    if what.input(1) and 1 not in constants:
        return ()
    if what.row.pool and is_over_places(what.attributes, constants, src):
        return pooled(what, graph)
    before, behind = _AROUND.get(what.row, ((), ()))
    if not (axes := _axes(what, constants, len(src))):
        return () if before or what.row is kinds.REDUCE_LOG_SUM else (Reshape(dst),)
    reduced = Reduction(REDUCTIONS[what.row], axes)
    last = () if what.attributes.get("keepdims", 1) else (Reshape(dst),)
    return (*before, reduced, *behind, *last)


def _axes(what: GraphNode, constants: Mapping[int, Array], rank: int) -> tuple[int, ...]:
    """Return the axes of a reduction; none where it does nothing, or where no constant tells."""
    if what.input(1) and 1 not in constants:
        return ()
    told = constants[1].ravel().tolist() if 1 in constants else what.attributes.get("axes") or ()
    is_nothing = not told and what.attributes.get("noop_with_empty_axes", 0)
    return () if is_nothing else tuple(told) or tuple(range(rank))


def pooled(what: GraphNode, graph: Graph) -> tuple[Any, ...]:
    """Return what pools windows, or all places of a channel."""
    src, opset = dims_of(what.inputs[0], graph), graph.opsets.get("", 0)
    if what.row.over == "windows":
        pool = window_pool(what, src, opset) if len(src) > 2 else None
        return () if pool is None else (pool,)
    if what.row.pool == "max":
        return (Pool("max"),)
    # One dimension after the other: sums of few terms lose less in float32.
    kernels = [
        (1,) * at + (src[at + 2],) + (1,) * (len(src) - at - 3) for at in range(len(src) - 2)
    ]
    means = [Pool("avg_include_padding", kernel) for kernel in kernels[::-1] if max(kernel) > 1]
    return (*means, Reshape(dims_of(what.outputs[0], graph)))
