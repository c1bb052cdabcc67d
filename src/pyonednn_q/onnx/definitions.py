"""Nodes that run by their definition: outputs from values by name, one node at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.onnx.fused_node import CodeOperation, FusedNode
from pyonednn_q.onnx.linear import dequantize_linear, quantize_linear
from pyonednn_q.onnx.matmuls import qlinear_matmul
from pyonednn_q.onnx.pools import onnx_numbers, pool
from pyonednn_q.onnx.reference_call import reference_call

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph, GraphNode

__all__ = ["Run", "Values", "defined"]

Values = dict[str, Array]
Run: TypeAlias = Callable[[Values], tuple[Array, ...]]


def defined(node: FusedNode, graph: Graph) -> Run:
    """Return a function that runs a node by its definition: from values by name to the outputs.

    Parameters
    ----------
    node : FusedNode
        Node of the graph.
    graph : Graph
        Graph, for its opsets and types.

    Raises
    ------
    UnsupportedError
        An operator that neither we nor `onnx.reference` know.
    """
    what = node.runs
    if what is None:
        return reference_call(node, graph.opsets, graph.tensors)
    if isinstance(what, CodeOperation):
        return _operation(node, what, graph.opsets)

    narrow = dtypes.numpy_dtype("bf16") if what.weights.dtype == "bf16" else None

    def layer(values: Values) -> tuple[Array, ...]:
        operands = {name: values[tensor] for name, tensor in node.operands.items()}
        src = values[node.srcs[0]]
        return (what(src if narrow is None else src.astype(narrow), **operands),)

    return layer


def _operation(node: FusedNode, what: CodeOperation, opsets: Mapping[str, int]) -> Run:
    if what.row is kinds.MATMUL and len(what.srcs_q) == 2 and not what.post.steps:
        return lambda values: (_product(what, *(values[name] for name in node.srcs)),)
    if what.row.is_quantizer:
        run = quantize_linear if what.row is kinds.QUANTIZE else dequantize_linear
        q = what.srcs_q[0] if what.dst_q is None else what.dst_q
        return lambda values: (run(values[node.srcs[0]], *onnx_numbers(q)),)
    if (pooled := pool(what)) is not None:
        return lambda values: (pooled(values[node.srcs[0]]),)
    if what.moves_codes:
        (moved,) = [part for part in node.parts if part.operator == what.operator]
        return _moving(node, what, moved, opsets)
    calls = [(part, reference_call(part, opsets)) for part in node.parts]

    def by_definition(values: Values) -> tuple[Array, ...]:
        own = dict(values)
        for part, call in calls:
            own.update(zip(part.outputs, call(own), strict=True))
        return (own[node.output],)

    return by_definition


def _moving(
    node: FusedNode, what: CodeOperation, part: GraphNode, opsets: Mapping[str, int]
) -> Run:
    """Return a call that gives a node of real values the codes instead."""
    call = reference_call(part, opsets)
    places = [at for at, name in enumerate(part.inputs) if name and at not in what.constants]

    def moving(values: Values) -> tuple[Array, ...]:
        own = {part.inputs[at]: each for at, each in what.constants.items()}
        own |= {part.inputs[at]: values[name] for at, name in zip(places, node.srcs, strict=True)}
        return call(own)

    return moving


def _product(what: CodeOperation, a: Array, b: Array) -> Array:
    a_q, b_q, y_q = (*what.srcs_q, what.dst_q)
    return qlinear_matmul(a, *onnx_numbers(a_q), b, *onnx_numbers(b_q), *onnx_numbers(y_q))
