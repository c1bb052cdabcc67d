"""Layers that quantize their source in each call, as onnxruntime's dynamic quantizer writes them.

codes, x_scale, x_zero_point = DynamicQuantizeLinear(x)
acc = MatMulInteger or ConvInteger(codes, w, x_zero_point, w_zero_point)
y = Cast(acc) * (x_scale * w_scale)

Up to onnxruntime 1.6 it had the bias b join the sums: acc + Cast(Floor(b / (x_scale * w_scale))).
Here b itself is added to y: what that differs by is less than one unit of acc.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Chain
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.element_types import FLOAT, INT32
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.layer_reader import NoLayer, weights_of, with_live_channels
from pyonednn_q.onnx.saturating_layers import narrowed, saturates
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shortened

__all__ = ["Scaling", "dynamic_layer", "scaling_of"]


class Scaling(NamedTuple):
    """Nodes that make real values of sums of codes.

    Attributes
    ----------
    scale : ndarray of float32
        Scale of the weights.
    value : str
        The tensor of real values.
    before, behind : tuple of GraphNode
        Nodes that compute the product of both scales, and a bias in units of it, which others may
        read; nodes that nobody else reads, the last of which makes the values.
    bias : ndarray of float32 or None
        Bias in real values, one for each channel.
    """

    scale: Array
    value: str
    before: tuple[GraphNode, ...]
    behind: tuple[GraphNode, ...]
    bias: Array | None


def dynamic_layer(
    view: GraphView, node: GraphNode, saturation: str, *, in_floats: bool = False
) -> FusedNode | NoLayer:
    """Return a layer with a dynamic source and all that follows, or why there is none.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    node : GraphNode
        The MatMulInteger or ConvInteger.
    saturation : {"f32", "narrow", "allow", "refuse"}
        Option of `fuse`.
    in_floats : bool
        A layer of float32 on the source itself, whose values are not rounded to codes.
    """
    store = view.producer.get(node.inputs[0])
    if store is None or store.row is not kinds.DYNAMIC_QUANTIZE:
        return NoLayer("codes that no DynamicQuantizeLinear makes: write it with quantizers")
    if node.input(2) != store.outputs[2]:
        return NoLayer("another zero point than that of its source")
    scaling = scaling_of(view, node, store)
    if scaling is None:
        wanted = "Cast to float, and Mul by the product of both scales"
        return NoLayer(f"sums that others read, or that no scales follow: {wanted} would do")
    scale = scaling.scale
    codes = view.constants.get(node.inputs[1])
    point = view.constants.get(node.input(3)) if node.input(3) else np.zeros((), np.int64)
    if codes is None or point is None or codes.dtype.name not in {"uint8", "int8"}:
        return NoLayer("weights that are computed: constant ones would do")
    kind = kind_of(node.row.means)
    axis = 0 if kind is kinds.CONV else 1
    if codes.ndim < 2 or {scale.size, point.size} - {1, codes.shape[axis]}:
        return NoLayer(f"weights of shape {codes.shape}, scales of {scale.shape}: one a column")
    try:
        wei_q = _wei_q(codes, scale, point, axis)
        src = store.inputs[0]
        weights = weights_of(kind, view, node, src, wei_q, codes)
        if isinstance(weights, NoLayer):
            return weights
        weights = with_live_channels(weights)
        tail = ChainReader(view).tail(scaling.value, weights.axis, stores=not in_floats)
        post = tail.post if scaling.bias is None else Chain(Affine(1.0, scaling.bias)) + tail.post
        options: dict[str, Any] = {"post": post, **weights.options}
        why = ""
        if in_floats:
            real = weights.q.dequantize(weights.codes).astype(np.float32)
            operator = weights.make(real, dst="f32", **options)
        else:
            options |= {"src_q": Dynamic("u8"), "dst_q": tail.dst_q}
            options["saturation"] = "allow" if saturation == "allow" else "refuse"
            operator = weights.make(weights.codes, wei_q=weights.q, **options)
            if saturation == "narrow" and saturates(operator, view.dims(src)):
                narrow, narrow_q, why = narrowed(weights.codes, weights.q)
                operator = weights.make(narrow, wei_q=narrow_q, **options)
    except (ArgumentError, UnsupportedError) as error:
        return NoLayer(shortened(str(error), 300))
    own = (store, *scaling.before, node, *scaling.behind, *tail.parts)
    return FusedNode.of(node, operator, (src,), (tail.value,), own, tail.operands, why)


def scaling_of(view: GraphView, node: GraphNode, store: GraphNode) -> Scaling | None:
    """Return what makes real values of a layer's sums; None where that is something else.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    node : GraphNode
        The MatMulInteger or ConvInteger.
    store : GraphNode
        The DynamicQuantizeLinear of its source.
    """
    total, cast = None, view.only_reader(node.outputs[0])
    if cast is not None and cast.row is kinds.ADD:
        total, cast = cast, view.only_reader(cast.outputs[0])
    if cast is None or cast.row is not kinds.CAST or cast.attributes.get("to") != FLOAT:
        return None
    product = view.only_reader(cast.outputs[0])
    if product is None or product.row is not kinds.MUL:
        return None
    name = next((each for each in product.inputs if each != cast.outputs[0]), "")
    known = _product_of_scales(view, name, store)
    if known is None:
        return None
    scale, scales = known
    if total is None:
        return Scaling(scale, product.outputs[0], (scales,), (cast, product), None)
    other = next((each for each in total.inputs if each != node.outputs[0]), "")
    counted = _counted_bias(view, node, other)
    if counted is None:
        return None
    bias, unit, makers = counted
    same = _product_of_scales(view, unit, store)
    if same is None or not np.array_equal(same[0], scale):
        return None
    before = (scales, *(each for each in (same[1],) if each is not scales), *makers)
    return Scaling(scale, product.outputs[0], before, (total, cast, product), bias)


def _product_of_scales(
    view: GraphView, name: str, store: GraphNode
) -> tuple[Array, GraphNode] | None:
    """Return the scale of weights, and the node that multiplies it by that of the source."""
    scales = view.producer.get(name)
    if scales is None or scales.row is not kinds.MUL or store.outputs[1] not in scales.inputs:
        return None
    other = next((each for each in scales.inputs if each != store.outputs[1]), "")
    scale = view.constants.get(other)
    return None if scale is None or scale.dtype != np.float32 else (scale, scales)


def _counted_bias(
    view: GraphView, node: GraphNode, name: str
) -> tuple[Array, str, tuple[GraphNode, ...]] | None:
    """Return a bias whose whole units are added to sums, the tensor of the unit, and what counts.

    Cast(Floor(bias / unit)), in the dims of one value a channel.
    """
    dims, of_sums = view.dims(name), view.dims(node.outputs[0])
    makers: list[GraphNode] = []
    for row in (kinds.RESHAPE, kinds.CAST, kinds.FLOOR, kinds.DIV):
        maker = view.producer.get(name)
        if maker is not None and maker.row is row:
            makers.insert(0, maker)
            name = maker.inputs[0]
        elif row is not kinds.RESHAPE:
            return None
    cast = next(each for each in makers if each.row is kinds.CAST)
    bias, unit = view.constants.get(name), makers[0].inputs[1]
    if bias is None or bias.dtype != np.float32 or cast.attributes.get("to") != INT32:
        return None
    if dims is None or of_sums is None or bias.ndim != 1 or len(dims) > len(of_sums):
        return None
    axis = 1 if node.row is kinds.CONV_INTEGER else len(of_sums) - 1
    channels = tuple(each if at == axis else 1 for at, each in enumerate(of_sums))
    if (1,) * (len(of_sums) - len(dims)) + dims != channels or bias.size != of_sums[axis]:
        return None
    return bias, unit, tuple(makers)


def _wei_q(codes: Array, scale: Array, point: Array, axis: int) -> QParams:
    dtype = dtypes.from_numpy(codes.dtype)
    if scale.size == point.size == 1:
        return QParams(scale.reshape(()), point.astype(np.int64).reshape(()), dtype)
    channels = (codes.shape[axis],)
    values = [np.broadcast_to(each.reshape(-1), channels) for each in (scale, point)]
    return QParams(values[0], values[1].astype(np.int64), dtype, axis=axis)
