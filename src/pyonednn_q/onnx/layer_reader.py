"""Conv, ConvTranspose, Gemm and MatMul of dequantized tensors as operators, with what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.onnx import geometry
from pyonednn_q.onnx.chain_reader import ChainReader, LayerTail
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import CodeTensor, GraphView
from pyonednn_q.onnx.saturating_layers import narrowed, saturates
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.windowed import swapped
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.dead_channels import without_dead_channels
from pyonednn_q.shown import shortened


class NoLayer(NamedTuple):
    """Reason why a node is no INT8 layer, and a remedy."""

    why: str


class LayerWeights(NamedTuple):
    """CodeTensor as an operator takes them, what they mean, and how operator and chain see them."""

    make: Callable[..., Operator]
    codes: Array
    q: QParams
    axis: int  # of the channels of the result
    options: Mapping[str, Any]


def int8_layer(
    view: GraphView,
    chains: ChainReader,
    node: GraphNode,
    *,
    exact_rounding: bool,
    saturation: str,
) -> FusedNode | NoLayer:
    """Return a layer with all that follows, or why there is none.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    chains : ChainReader
        Reader of what follows.
    node : GraphNode
        Conv, ConvTranspose, Gemm or MatMul.
    exact_rounding : bool
        Option of the operator.
    saturation : {"f32", "narrow", "allow", "refuse"}
        Option of `fuse`.
    """
    src = view.dequantized(node.inputs[0])
    wei = view.dequantized(node.inputs[1])
    if src is None:
        return _no_source(view, node)
    if wei is None or wei.name not in view.constants:
        have = "weights that are computed" if wei is not None else "weights of floats"
        return NoLayer(f"{have}: quantize constant ones to 8 bits")
    if src.q.axis is not None:
        return NoLayer("a source with a scale per channel: one for the tensor would do")
    codes = view.constants[wei.name]
    try:
        weights = weights_of(node.row, view, node, src.name, wei.q, codes)
    except (ArgumentError, UnsupportedError) as error:
        return NoLayer(shortened(str(error), 300))
    if isinstance(weights, NoLayer):
        return weights
    bias = _bias(view, node, src, wei, weights)
    if isinstance(bias, NoLayer):
        return bias
    tail = chains.tail(node.outputs[0], weights.axis)
    make = partial(_operator, src, exact_rounding=exact_rounding, saturation=saturation)
    why = ""
    alive = with_live_channels(weights, float(np.asarray(src.q.scale)))
    if alive is not weights:
        bias, weights = _real(bias, src, weights), alive
    try:
        operator = make(weights, bias, tail)
        if saturation == "narrow" and saturates(operator, view.dims(src.name)):
            bias = _real(bias, src, weights)
            codes, q, why = narrowed(weights.codes, weights.q)
            weights = weights._replace(codes=codes, q=q)
            operator = make(weights, bias, tail)
    except (ArgumentError, UnsupportedError) as error:
        return NoLayer(shortened(str(error), 300))
    before = [src.node, wei.node, *_makers(view, node, 2)]
    if tail.residual is not None:
        before.append(tail.residual.node)
    own = (*before, node, *tail.parts)
    outputs = (tail.value,)
    return FusedNode.of(node, operator, (src.name,), outputs, own, tail.operands, why)


def _operator(
    src: CodeTensor,
    weights: LayerWeights,
    bias: Array | None,
    tail: LayerTail,
    *,
    exact_rounding: bool,
    saturation: str,
) -> Operator:
    options = {
        "src_q": src.q,
        "wei_q": weights.q,
        "dst_q": tail.dst_q,
        "post": tail.post,
        **weights.options,
    }
    exact = exact_rounding and tail.dst_q is not None
    allowed = "allow" if saturation == "allow" else "refuse"
    return weights.make(weights.codes, bias, exact_rounding=exact, saturation=allowed, **options)


def _no_source(view: GraphView, node: GraphNode) -> NoLayer:
    name = node.inputs[0]
    maker = view.producer.get(name)
    if maker is not None and maker.row is kinds.DEQUANTIZE:
        dtype = view.dtype(maker.inputs[0])
        if dtype not in {"uint8", "int8"}:
            return NoLayer(f"source codes of {dtype}: u8 or s8 would do")
        return NoLayer("scales of the source that are no f32 constants for the tensor")
    made_by = "the model's input" if maker is None else f"{maker.kind} {maker.name}"
    return NoLayer(f"a float source, from {made_by}: quantize it")


def _makers(view: GraphView, node: GraphNode, first: int) -> list[GraphNode]:
    """Return the quantizers of a node's constants."""
    makers = [view.producer.get(name) for name in node.inputs[first:]]
    return [each for each in makers if each is not None and each.row is kinds.DEQUANTIZE]


def _bias(
    view: GraphView, node: GraphNode, src: CodeTensor, wei: CodeTensor, weights: LayerWeights
) -> Array | NoLayer | None:
    """Return the bias; None where a layer has none."""
    if not node.input(2):
        return None
    channels = _channels(weights)
    beta = node.attributes.get("beta", 1.0) if node.row is kinds.GEMM else 1.0
    bias = _acc_bias(view, node, src, wei, channels) if beta == 1.0 else None
    if bias is not None:
        return bias
    real = view.float_constant(node.input(2))
    if real is None:
        return NoLayer("a bias that is computed: a constant would do")
    if real.size not in {1, channels} or real.shape[-1:] not in {(channels,), (1,), ()}:
        return NoLayer(f"a bias of shape {real.shape}: one value for each channel would do")
    values = np.broadcast_to(real.reshape(-1), (channels,))
    return np.asarray(values * np.float64(beta), np.float32)


def _acc_bias(
    view: GraphView, node: GraphNode, src: CodeTensor, wei: CodeTensor, channels: int
) -> Array | None:
    """Return a bias of codes in units of the accumulator, if that is what its scale says."""
    maker = view.producer.get(node.input(2))
    if maker is None or maker.row is not kinds.DEQUANTIZE or node.attributes.get("alpha", 1) != 1:
        return None
    codes, scale = (view.constants.get(maker.input(at)) for at in (0, 1))
    point = view.constants.get(maker.input(2)) if maker.input(2) else np.int32(0)
    if codes is None or scale is None or point is None or np.any(point):
        return None
    if codes.dtype != np.int32 or codes.shape != (channels,):
        return None
    unit = np.float32(src.q.scale) * np.asarray(wei.q.scale, np.float32).reshape(-1)
    have = scale.reshape(-1)
    same = unit.size == have.size or 1 in {unit.size, have.size}
    # They may be rounded once more than ours.
    if not same or not np.all(np.abs(have - unit) <= np.spacing(unit)):
        return None
    return codes


def _real(bias: Array | None, src: CodeTensor, weights: LayerWeights) -> Array | None:
    """Return a bias in real values, where it counts units of the accumulator."""
    if bias is None or bias.dtype.kind == "f":
        return bias
    unit = float(np.asarray(src.q.scale)) * np.asarray(weights.q.scale, np.float64)
    return np.asarray(bias * unit.reshape(-1), np.float32)


def weights_of(
    kind: Kind, view: GraphView, node: GraphNode, src: str, q: QParams, codes: Array
) -> LayerWeights | NoLayer:
    """Return the weights of a kind of layers, as its operator takes them.

    Parameters
    ----------
    kind : Kind
        Kind of the layer.
    view : GraphView
        View of the graph.
    node : GraphNode
        The layer.
    src : str
        Tensor of its source.
    q : QParams
        Scale and zero point of the codes.
    codes : ndarray
        Codes of the weights, as the node has them; or real values, with `q` per tensor.
    """
    match kind.layer:
        case "convolution":
            return _convolution(view, node, src, q, codes)
        case "deconvolution":
            return _deconvolution(view, node, src, q, codes)
        case "inner_product":
            return _gemm(node, q, codes)
        case _:
            return _matmul(view, src, q, codes)


def with_live_channels(weights: LayerWeights, src_scale: float = 1.0) -> LayerWeights:
    """Return weights of which channels that are all but 0 are 0; the same where none is."""
    axis = -1 if weights.make is MatMul else 0
    codes, q = without_dead_channels(weights.codes, weights.q, axis, src_scale)
    return weights if q is weights.q else weights._replace(codes=codes, q=q)


def _channels(weights: LayerWeights) -> int:
    return int(weights.codes.shape[-1] if weights.make is MatMul else weights.codes.shape[0])


def _convolution(
    view: GraphView, node: GraphNode, src: str, q: QParams, codes: Array
) -> LayerWeights | NoLayer:
    dims = view.dims(src)
    if dims is None:
        return NoLayer("a source whose dims are not known")
    how = geometry.convolution(("X", "W"), dims, codes.shape, **window_of(node))
    if q.axis not in {None, 0}:
        return _wrong_axis(q, 0)
    return LayerWeights(Conv, codes, q, 1, dict(how.options))


def _deconvolution(
    view: GraphView, node: GraphNode, src: str, q: QParams, codes: Array
) -> LayerWeights | NoLayer:
    dims = view.dims(src)
    if dims is None:
        return NoLayer("a source whose dims are not known")
    window = window_of(node)
    for name in ("output_padding", "output_shape"):
        window[name] = node.attributes.get(name)
    how = geometry.transposed(dims, codes.shape, **window)
    if min(how.lo + how.hi) < 0:
        return NoLayer("places beyond what the kernel reaches: pads of at least output_padding")
    if q.axis not in {None, 1}:
        return _wrong_axis(q, 1)
    if q.axis is not None:
        scale, point = (np.tile(each, how.groups) for each in (q.scale, q.zero_point))
        q = QParams(scale, point, q.dtype, axis=0)
    return LayerWeights(Deconv, swapped(codes, how.groups), q, 1, dict(how.options))


def _gemm(node: GraphNode, q: QParams, codes: Array) -> LayerWeights | NoLayer:
    attributes = node.attributes
    alpha, is_transposed = attributes.get("alpha", 1.0), bool(attributes.get("transB", 0))
    if attributes.get("transA", 0):
        return NoLayer("transA: transpose the source before it is quantized")
    if not alpha > 0:
        return NoLayer(f"alpha {alpha}: a positive one would do")
    axis = 0 if is_transposed else 1
    if codes.ndim != 2 or (q.axis is not None and q.axis % 2 != axis):
        return _wrong_axis(q, axis)
    scale = np.asarray(q.scale) * alpha
    own = QParams(scale, q.zero_point, q.dtype, axis=None if q.axis is None else 0)
    return LayerWeights(InnerProduct, codes if is_transposed else codes.T, own, 1, {})


def _matmul(view: GraphView, src: str, q: QParams, codes: Array) -> LayerWeights | NoLayer:
    dims = view.dims(src)
    if codes.ndim != 2 or dims is None or len(dims) < 2:
        return NoLayer(f"weights of {codes.ndim} dims: 2 would do")
    if q.axis is not None and q.axis % 2 != 1:
        return _wrong_axis(q, 1)
    if q.axis is not None:
        q = QParams(q.scale, q.zero_point, q.dtype, axis=-1)
    return LayerWeights(MatMul, codes, q, -1, {})


def window_of(node: GraphNode) -> dict[str, Any]:
    """Return the window of a convolution, as `geometry` takes it."""
    names = ("dilations", "kernel_shape", "pads", "strides")
    window: dict[str, Any] = {name: node.attributes.get(name) for name in names}
    window["auto_pad"] = node.attributes.get("auto_pad", "NOTSET")
    window["group"] = node.attributes.get("group", 1)
    return window


def _wrong_axis(q: QParams, axis: int) -> NoLayer:
    return NoLayer(f"scales along axis {q.axis} of the weights: axis {axis} would do")
