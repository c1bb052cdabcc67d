"""Nodes of codes as the float nodes that they mean, between DequantizeLinear and QuantizeLinear.

QLinearConv(x, ...) is QuantizeLinear(Conv(DequantizeLinear(x), ...)); what fuses one form then
fuses both. A bias of QLinearConv, QGemm counts in units of the accumulator: its scale is
f32(x_scale · w_scale). A FakeQuantize of OpenVINO is both quantizers. An LSTM or GRU of codes
stays where its products run on codes, and is that of its real weights elsewhere.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Dims, Graph, GraphNode
from pyonednn_q.onnx.block_weights import block_weights
from pyonednn_q.onnx.dynamic_recurrences import as_real, is_on_codes
from pyonednn_q.onnx.fq_quantizer import fits, fq_quantizer
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.grouped_layers import allows_codes, has_groups
from pyonednn_q.onnx.linear import quantize_linear

_BIAS_OF_BITS = 5  # the place of MatMulNBits' bias
_THEIRS = ("channels_last", "opset")  # attributes of their operators that ONNX's have not


def with_codes_between_quantizers(graph: Graph) -> Graph:
    """Write nodes of codes as float nodes between DequantizeLinear and QuantizeLinear.

    Parameters
    ----------
    graph : Graph
        Graph with computed constants.
    """
    rewriter = _Rewriter(graph)
    for node in graph.nodes:
        if has_form(node) and not node.attributes.get("channels_last", 0):
            _lower(rewriter, node)
        else:
            rewriter.nodes.append(node)
    return rewriter.result()


def has_form(node: GraphNode) -> bool:
    """Return whether a node on codes has a float form that is not just ONNX's of that name."""
    return node.row.form not in {"", "as_onnx", "integer"}


class _Rewriter(GraphEdit):
    """The new graph, and the parts that float nodes between quantizers have."""

    def name(self, node: GraphNode, part: str) -> str:
        """Return a name that no tensor has."""
        return self.free(f"{node.outputs[0]}:{part}")

    def real(self, node: GraphNode, at: int, part: str, axis: int | None = None) -> str:
        """Return the real values of codes, scale and zero point at an index of inputs."""
        name = self.name(node, part)
        inputs = (node.input(at), node.input(at + 1), node.input(at + 2))
        attributes = {} if axis is None else {"axis": axis}
        self.add(node, kinds.DEQUANTIZE.name, inputs, name, attributes)
        return name

    def bias(self, node: GraphNode, at: int, scales: tuple[str, str], alpha: float = 1.0) -> str:
        """Return the real values of an s32 bias; empty where there is none."""
        if not node.input(at):
            return ""
        known = [self.constants.get(name) for name in scales]
        if known[0] is None or known[1] is None:
            return ""
        values = np.float32(alpha) * known[0].reshape(-1) * known[1].reshape(-1)
        scale = self.name(node, "bias scale")
        self.constants[scale] = np.asarray(values if values.size > 1 else values.reshape(()))
        real = self.name(node, "bias")
        self.add(node, kinds.DEQUANTIZE.name, (node.input(at), scale), real, {"axis": 0})
        return real

    def end(
        self,
        node: GraphNode,
        operator: str,
        inputs: tuple[str, ...],
        dst: tuple[str, str],
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        """Add the float node, and the quantizer of its result if there is a scale."""
        inputs = inputs if inputs[-1] else inputs[:-1]
        result = self.name(node, "real") if dst[0] else node.outputs[0]
        self.add(node, operator, inputs, result, attributes)
        if dst[0]:
            self.add(node, kinds.QUANTIZE.name, (result, *dst), node.outputs[0], {})

    def move(self, node: GraphNode, src: str, dst: str, perm: list[int] | None, dims: Dims) -> None:
        """Add a Transpose, or a Reshape where there is no order of dims."""
        if perm is not None:
            self.add(node, kinds.TRANSPOSE.name, (src,), dst, {"perm": tuple(perm)})
            return
        name = self.name(node, "dims")
        self.constants[name] = np.array(dims, np.int64)
        self.add(node, kinds.RESHAPE.name, (src, name), dst, {})

    def can_scale_bias(self, node: GraphNode, at: int, scales: tuple[str, str]) -> bool:
        """Tell whether the scales of a bias are known, or there is no bias."""
        return not node.input(at) or all(name in self.constants for name in scales)


def _lower(rewriter: _Rewriter, node: GraphNode) -> None:
    """Write a node of codes as float nodes between quantizers."""
    match node.row.form:
        case "unary":
            _unary(rewriter, node)
        case "binary":
            _binary(rewriter, node)
        case "conv":
            _conv(rewriter, node)
        case "matmul":
            _matmul(rewriter, node)
        case "gemm":
            _gemm(rewriter, node)
        case "softmax":
            _softmax(rewriter, node)
        case "concat":
            _concat(rewriter, node)
        case "recurrence":
            is_kept = is_on_codes(node, rewriter.constants)
            rewriter.nodes.append(node if is_kept else as_real(rewriter, node))
        case "blocks":
            _of_bits(rewriter, node)
        case _:
            _fake_quantize(rewriter, node)


def _conv(rewriter: _Rewriter, node: GraphNode) -> None:
    scales = (node.input(1), node.input(4))
    if not rewriter.can_scale_bias(node, 8, scales):
        rewriter.nodes.append(node)
        return
    reals = (rewriter.real(node, 0, "x"), rewriter.real(node, 3, "w", 0))
    inputs = (*reals, rewriter.bias(node, 8, scales))
    rewriter.end(node, node.row.means, inputs, (node.input(6), node.input(7)), **node.attributes)


def _matmul(rewriter: _Rewriter, node: GraphNode) -> None:
    wei = rewriter.constants.get(node.input(3))
    scale = rewriter.constants.get(node.input(4))
    if wei is None or scale is None or scale.ndim > 1:
        is_scalar = scale is not None and scale.size == 1
        if not is_scalar:
            rewriter.nodes.append(node)
            return
    axis = None if wei is None else wei.ndim - 1
    inputs = (rewriter.real(node, 0, "a"), rewriter.real(node, 3, "b", axis))
    rewriter.end(node, node.row.means, inputs, (node.input(6), node.input(7)))


def _gemm(rewriter: _Rewriter, node: GraphNode) -> None:
    scales = (node.input(1), node.input(4))
    if not rewriter.can_scale_bias(node, 6, scales):
        rewriter.nodes.append(node)
        return
    attributes = dict(node.attributes)
    axis = 0 if attributes.get("transB", 0) else 1
    reals = (rewriter.real(node, 0, "a"), rewriter.real(node, 3, "b", axis))
    inputs = (*reals, rewriter.bias(node, 6, scales, attributes.get("alpha", 1.0)))
    rewriter.end(node, node.row.means, inputs, (node.input(7), node.input(8)), **attributes)


def _unary(rewriter: _Rewriter, node: GraphNode) -> None:
    attributes = {name: each for name, each in node.attributes.items() if name not in _THEIRS}
    dst = (node.input(3), node.input(4))
    rewriter.end(node, node.row.means, (rewriter.real(node, 0, "x"),), dst, **attributes)


def _softmax(rewriter: _Rewriter, node: GraphNode) -> None:
    """Write a QLinearSoftmax as one along the last axis, which means the same in all opsets.

    Its own attribute says whether it is of one axis, or of all from there on, as one.
    """
    dims = rewriter.graph.dims(node.inputs[0])
    if not dims:
        rewriter.nodes.append(node)
        return
    last, (codes, stored) = len(dims) - 1, (node.inputs[0], node.outputs[0])
    axis = node.attributes.get("axis", -1) % len(dims)
    is_moved = axis != last and 0 not in dims
    since = kinds.SOFTMAX.axis_since
    is_of_one = node.attributes.get("opset", since) >= since
    perm = [last if at == axis else axis if at == last else at for at in range(len(dims))]
    rows = (prod(dims[:axis]), prod(dims[axis:]))
    if is_moved:
        codes, stored = rewriter.name(node, "moved"), rewriter.name(node, "codes")
        rewriter.move(node, node.inputs[0], codes, perm if is_of_one else None, rows)
    real, result = rewriter.name(node, "x"), rewriter.name(node, "real")
    rewriter.add(node, kinds.DEQUANTIZE.name, (codes, node.input(1), node.input(2)), real, {})
    along = 1 if is_moved and not is_of_one else last
    rewriter.add(node, node.row.means, (real,), result, {"axis": along})
    rewriter.add(node, kinds.QUANTIZE.name, (result, node.input(3), node.input(4)), stored, {})
    if is_moved:
        rewriter.move(node, stored, node.outputs[0], perm if is_of_one else None, dims)


def _of_bits(rewriter: _Rewriter, node: GraphNode) -> None:
    """Write a MatMulNBits as a float product, unless `fuse` makes a layer on codes of it."""
    blocks = rewriter.graph.options.get("blocks", "f32")
    if allows_codes(node, blocks) and has_groups(node, rewriter.constants):
        rewriter.nodes.append(node)
        return
    wei = block_weights(node, rewriter.constants)
    if wei is None:
        rewriter.nodes.append(node)
        return
    name = rewriter.name(node, "weights")
    wei.flags.writeable = False
    rewriter.constants[name] = wei
    bias = node.input(_BIAS_OF_BITS)
    result = rewriter.name(node, "product") if bias else node.outputs[0]
    rewriter.add(node, node.row.means, (node.inputs[0], name), result, {})
    if bias:
        rewriter.add(node, kinds.ADD.name, (result, bias), node.outputs[0], {})


def _binary(rewriter: _Rewriter, node: GraphNode) -> None:
    inputs = (rewriter.real(node, 0, "a"), rewriter.real(node, 3, "b"))
    rewriter.end(node, node.row.means, inputs, (node.input(6), node.input(7)))


def _concat(rewriter: _Rewriter, node: GraphNode) -> None:
    places = range(2, len(node.inputs), 3)
    inputs = tuple(rewriter.real(node, at, f"x{at // 3}") for at in places)
    rewriter.end(node, node.row.means, inputs, (node.input(0), node.input(1)), **node.attributes)


def _fake_quantize(rewriter: _Rewriter, node: GraphNode) -> None:
    """Write a FakeQuantize as quantizers, if its range goes in as it comes out and holds a 0."""
    ranges = [rewriter.constants.get(name) for name in node.inputs[1:5]]
    quantizer = fq_quantizer(ranges, node.attributes.get("levels", 256))
    values = rewriter.constants.get(node.inputs[0])
    if quantizer is None or not fits(quantizer, values, ranges[0]):
        rewriter.nodes.append(node)
        return
    q = quantizer
    scale, point = rewriter.name(node, "scale"), rewriter.name(node, "zero point")
    rewriter.constants[scale], rewriter.constants[point] = q.scale, q.point
    codes = rewriter.name(node, "codes")
    attributes = {} if q.axis is None else {"axis": q.axis}
    if values is None:
        rewriter.add(node, kinds.QUANTIZE.name, (node.inputs[0], scale, point), codes, {})
    else:
        lo, hi = ranges[0], ranges[1]
        assert lo is not None
        assert hi is not None
        clipped = np.clip(values, lo, hi).astype(np.float32)
        rewriter.constants[codes] = quantize_linear(clipped, q.scale, q.point, **attributes)
    rewriter.add(node, kinds.DEQUANTIZE.name, (codes, scale, point), node.outputs[0], attributes)
