"""Layers that quantize their source in each call, as onnxruntime's dynamic quantizer writes them.

codes, x_scale, x_zero_point = DynamicQuantizeLinear(x)
acc = MatMulInteger or ConvInteger(codes, w, x_zero_point, w_zero_point)
y = Cast(acc) * (x_scale * w_scale)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kinds import kind_of
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.layer_reader import NoLayer, weights_of, with_live_channels
from pyonednn_q.onnx.quantizers import GraphView
from pyonednn_q.onnx.saturating_layers import narrowed, saturates
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shortened

Array = np.ndarray[Any, Any]

_FLOAT = 1  # TensorProto's number


def dynamic_layer(
    view: GraphView, node: GraphNode, saturation: str, *, in_floats: bool = False
) -> FusedNode | NoLayer:
    """Return a layer with a dynamic source and all that follows, or why there is none.

    Parameters
    ----------
    view : GraphView
        Of the graph.
    node : GraphNode
        The MatMulInteger or ConvInteger.
    saturation : {"f32", "narrow", "allow", "refuse"}
        As of `fuse`.
    in_floats : bool
        A layer of float32 on the source itself, whose values are not rounded to codes.
    """
    store = view.producer.get(node.inputs[0])
    if store is None or store.row is not kinds.DYNAMIC_QUANTIZE:
        return NoLayer("codes that no DynamicQuantizeLinear makes: write it with quantizers")
    if node.input(2) != store.outputs[2]:
        return NoLayer("another zero point than that of its source")
    scaling = _scaling(view, node, store)
    if scaling is None:
        wanted = "Cast to float, and Mul by the product of both scales"
        return NoLayer(f"sums that others read, or that no scales follow: {wanted} would do")
    scale, value, before, parts = scaling
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
        tail = ChainReader(view).tail(value, weights.axis, stores=not in_floats)
        options: dict[str, Any] = {"post": tail.post, **weights.options}
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
    own = (store, before, node, *parts, *tail.parts)
    return FusedNode(node.name, operator, (src,), tail.operands, (tail.value,), own, why)


def _scaling(
    view: GraphView, node: GraphNode, store: GraphNode
) -> tuple[Array, str, GraphNode, list[GraphNode]] | None:
    """Return the scales of weights, the tensor of real values, and the nodes that make it.

    The product of both scales comes first: others may read it.
    """
    cast = view.only_reader(node.outputs[0])
    if cast is None or cast.row is not kinds.CAST or cast.attributes.get("to") != _FLOAT:
        return None
    product = view.only_reader(cast.outputs[0])
    if product is None or product.row is not kinds.MUL:
        return None
    name = next((each for each in product.inputs if each != cast.outputs[0]), "")
    scales = view.producer.get(name)
    if scales is None or scales.row is not kinds.MUL or store.outputs[1] not in scales.inputs:
        return None
    other = next((each for each in scales.inputs if each != store.outputs[1]), "")
    scale = view.constants.get(other)
    if scale is None or scale.dtype != np.float32:
        return None
    return scale, product.outputs[0], scales, [cast, product]


def _wei_q(codes: Array, scale: Array, point: Array, axis: int) -> QParams:
    dtype = dtypes.from_numpy(codes.dtype)
    if scale.size == point.size == 1:
        return QParams(scale.reshape(()), point.astype(np.int64).reshape(()), dtype)
    channels = (codes.shape[axis],)
    values = [np.broadcast_to(each.reshape(-1), channels) for each in (scale, point)]
    return QParams(values[0], values[1].astype(np.int64), dtype, axis=axis)
