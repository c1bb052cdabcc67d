"""graph_of: a network of float operators as a graph, in ONNX's terms: layers and their chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from pyonednn_q.argument import instance, integers, named
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, Value
from pyonednn_q.network import (
    Concat,
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    LayerNorm,
    Network,
    Node,
    Pool,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)
from pyonednn_q.onnx.chain_writer import BINARY, ChainWriter
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.settings import Settings
from pyonednn_q.primitive.window import Padding, PerDim, padding_sides, per_dim
from pyonednn_q.primitive.windowed import swapped
from pyonednn_q.shown import shown

__all__ = ["graph_of"]

_OPSET = 21
_OWN = frozenset({"src_q", "dst_q", "dst", "post"})  # settings that a graph has another way


def graph_of(network: Network, dims: Any) -> Graph:  # noqa: ANN401 - a mapping
    """Return a network of float operators as a graph for `calibrate` and `save`.

    Parameters
    ----------
    network : Network
        Network of float32 operators and float32 operations. A layer keeps the name of its node;
        the steps of its chain become nodes after it, and the last one makes the node's result.
    dims : mapping of str to tuple of (int or str)
        Dims of every input; an open length is a symbol or an empty string.

    Returns
    -------
    Graph
        Graph; constants of chains are rounded to float32.

    Raises
    ------
    ArgumentError
        An operator on codes, or with options other than its window and chain; an operation on
        codes or a function that ONNX has no operator for.
    """
    instance("network", network, Network)
    known = named("dims", dims, tuple)
    if set(known) != set(network.inputs):
        raise ArgumentError("dims", shown(sorted(known)), f"of {shown(network.inputs)}")
    is_open = {name: any(isinstance(n, str) for n in each) for name, each in known.items()}
    inputs = {
        name: Value("float32", None, lengths=each)
        if is_open[name]
        else Value("float32", integers("dims", each))
        for name, each in known.items()
    }
    graph = Graph(
        nodes=(),
        constants={},
        inputs=inputs,
        outputs={name: Value("float32", None) for name in network.outputs},
        opsets={"": _OPSET},
        tensors=inputs,
    )
    writing = _NetworkWriting(graph, network, {name: len(each) for name, each in known.items()})
    for node in network.nodes:
        writing.write(node)
    return replace(graph, nodes=tuple(writing.nodes), constants=writing.constants)


class _NetworkWriting(GraphEdit):
    """The written part of a network, with the number of dims of each tensor."""

    def __init__(self, graph: Graph, network: Network, ranks: dict[str, int]) -> None:
        super().__init__(graph)
        self._taken.update(node.dst for node in network.nodes)
        self.ranks = ranks

    def write(self, node: Node) -> None:
        """Write the ONNX nodes of a node of the network."""
        what = node.runs
        if isinstance(what, Operator):
            self._add_layer(node, what)
            return
        for kind, write in _OPERATIONS.items():
            if isinstance(what, kind):
                self.ranks[node.dst] = write(self, node, self.ranks[node.srcs[0]])
                return
        got = f"{type(what).__name__} makes {shown(node.dst)}"
        raise ArgumentError("model", got, "operators of float32, and what ONNX has of floats")

    def _add_layer(self, node: Node, layer: Operator) -> None:
        _check_layer(node.dst, layer)
        rank = self.ranks[node.srcs[0]]
        steps = layer.settings.post.steps
        value = self.free(f"{node.dst}:sums") if steps else node.dst
        spatial = layer.weights.values.ndim - 2
        if isinstance(layer, (Conv, Deconv)):
            self._windowed(node, layer, spatial, value)
        else:
            self._dense(node, layer, spatial, value)
        self.ranks[node.dst] = 2 if isinstance(layer, InnerProduct) else rank
        is_last = not isinstance(layer, (Conv, Deconv))
        ones = (1,) * (0 if is_last else spatial)  # behind the channels
        others = dict(node.operands)
        if node.residual is not None:
            others["residual"] = node.residual
        for at, step in enumerate(steps, 1):
            dst = node.dst if at == len(steps) else self.free(f"{node.dst}:step{at}")
            value = ChainWriter(self, value, dst, ones, others).write(step)

    def _windowed(self, node: Node, layer: Conv | Deconv, spatial: int, dst: str) -> None:
        wei, groups = layer.weights.values, layer.groups
        kind = kinds.CONV
        if isinstance(layer, Deconv):
            kind, wei = kinds.CONV_TRANSPOSE, swapped(wei, groups)
        reads = self._reads(node, layer, wei)
        window = _window(spatial, **layer.window)
        self.node(kind, reads, dst, node.dst, group=groups, kernel_shape=wei.shape[2:], **window)

    def _dense(self, node: Node, layer: Operator, spatial: int, dst: str) -> None:
        wei = layer.weights.values
        if not isinstance(layer, InnerProduct):
            reads = self._reads(node, layer, wei)
            if len(reads) == 2:
                self.node(kinds.MATMUL, reads, dst, node.dst)
                return
            sums = self.free(f"{node.dst}:products")
            self.node(kinds.MATMUL, reads[:2], sums, node.dst)
            self.node(kinds.ADD, (sums, reads[2]), dst, f"{dst}:bias")
            return
        src, *others = self._reads(node, layer, wei.reshape(len(wei), -1))
        if spatial:
            src = self.node(kinds.FLATTEN, (src,), self.free(f"{node.dst}:flat"), axis=1)
        self.node(kinds.GEMM, (src, *others), dst, node.dst, transB=1)

    def _reads(self, node: Node, layer: Operator, wei: Array) -> tuple[str, ...]:
        reads = [node.srcs[0], self.constant(f"{node.dst}:wei", np.ascontiguousarray(wei))]
        if layer.bias is not None:
            reads.append(self.constant(f"{node.dst}:bias", np.asarray(layer.bias, np.float32)))
        return tuple(reads)


def _check_layer(name: str, layer: Operator) -> None:
    """Refuse options of a layer that a float graph cannot express."""
    settings = layer.settings
    types = {layer.weights.dtype, settings.dst}
    if settings.src_q is not None or settings.dst_q is not None or types != {"f32"}:
        got = f"{shown(name)}, of {' and '.join(sorted(types))}"
        raise ArgumentError("model", got, "operators of float32 weights, sources and results")
    for each in (one for one in fields(Settings) if one.init):
        value = getattr(settings, each.name)
        if each.name not in _OWN and value != each.default:
            got = f"{each.name}={value!r} of {shown(name)}"
            raise ArgumentError("model", got, f"{each.default!r}: a graph has no options of layers")


def _window(
    spatial: int, *, stride: PerDim, padding: Padding, dilation: PerDim
) -> dict[str, tuple[int, ...]]:
    lo, hi = padding_sides(padding, spatial)
    return {
        "strides": per_dim("stride", stride, spatial),
        "pads": (*lo, *hi),
        "dilations": per_dim("dilation", dilation, spatial),
    }


def _pool(at: _NetworkWriting, node: Node, rank: int) -> int:
    what: Pool = node.runs
    is_max = what.alg == "max"
    if what.src_q is not None:
        raise ArgumentError("model", f"a Pool of codes makes {shown(node.dst)}", "one of floats")
    if what.kernel is None:
        at.node(kinds.GLOBAL_MAX_POOL if is_max else kinds.GLOBAL_AVERAGE_POOL, node.srcs, node.dst)
        return rank
    window: dict[str, Any] = {
        **_window(rank - 2, stride=what.stride, padding=what.padding, dilation=what.dilation)
    }
    window["kernel_shape"] = per_dim("kernel", what.kernel, rank - 2)
    if not is_max:
        window["count_include_pad"] = int(what.alg == "avg_include_padding")
    at.node(kinds.MAX_POOL if is_max else kinds.AVERAGE_POOL, node.srcs, node.dst, **window)
    return rank


def _reshape(at: _NetworkWriting, node: Node, _rank: int) -> int:
    dims = node.runs.dims
    if 0 in dims:
        raise ShapeError("model", f"dims {dims} of {shown(node.dst)}", "lengths, or -1")
    shape = at.constant(f"{node.dst}:dims", np.asarray(dims, np.int64))
    at.node(kinds.RESHAPE, (*node.srcs, shape), node.dst)
    return len(dims)


def _concat(at: _NetworkWriting, node: Node, rank: int) -> int:
    if node.runs.tables:
        raise ArgumentError("model", f"tables of codes make {shown(node.dst)}", "floats")
    at.node(kinds.CONCAT, node.srcs, node.dst, axis=node.runs.axis)
    return rank


def _transpose(at: _NetworkWriting, node: Node, rank: int) -> int:
    at.node(kinds.TRANSPOSE, node.srcs, node.dst, perm=node.runs.perm)
    return rank


def _slice(at: _NetworkWriting, node: Node, rank: int) -> int:
    what: Slice = node.runs
    last = what.start + (what.length - 1) * what.step + 1
    numbers = {"starts": what.start, "ends": last, "axes": what.axis, "steps": what.step}
    reads = [at.constant(f"{node.dst}:{n}", np.asarray([v], np.int64)) for n, v in numbers.items()]
    at.node(kinds.SLICE, (*node.srcs, *reads), node.dst)
    return rank


def _softmax(at: _NetworkWriting, node: Node, rank: int) -> int:
    at.node(kinds.SOFTMAX, node.srcs, node.dst, axis=node.runs.axis)
    return rank


def _layer_norm(at: _NetworkWriting, node: Node, rank: int) -> int:
    what: LayerNorm = node.runs
    if not what.is_centered:
        got = f"a LayerNorm that takes no mean off makes {shown(node.dst)}"
        raise ArgumentError("model", got, f"one that does, as ONNX has it at opset {_OPSET}")
    parts = [at.constant(f"{node.dst}:{n}", getattr(what, n)) for n in ("gain", "shift")]
    axis = -np.ndim(what.gain)
    at.node(
        kinds.LAYER_NORM, (*node.srcs, *parts), node.dst, axis=axis, epsilon=float(what.epsilon)
    )
    return rank


def _arithmetic(at: _NetworkWriting, node: Node, rank: int) -> int:
    what: FloatArithmetic = node.runs
    reads = node.srcs
    if what.constant is not None:
        constant = at.constant(f"{node.dst}:constant", np.asarray(what.constant, np.float32))
        reads = (constant, *reads) if what.is_first else (*reads, constant)
        rank = max(rank, np.ndim(what.constant))
    at.node(BINARY[what.alg], reads, node.dst)
    return max(rank, *(at.ranks[name] for name in node.srcs))


def _function(at: _NetworkWriting, node: Node, rank: int) -> int:
    ChainWriter(at, node.srcs[0], node.dst).write(node.runs.step)
    return rank


def _product(at: _NetworkWriting, node: Node, rank: int) -> int:
    at.node(kinds.MATMUL, node.srcs, node.dst)
    return rank


_OPERATIONS: dict[type, Callable[[_NetworkWriting, Node, int], int]] = {
    Pool: _pool,
    Reshape: _reshape,
    Concat: _concat,
    Transpose: _transpose,
    Slice: _slice,
    Softmax: _softmax,
    LayerNorm: _layer_norm,
    FloatArithmetic: _arithmetic,
    Elementwise: _function,
    FloatMatMul: _product,
}
