"""Layers of float weights, and norms, on primitives of f32 or bf16, with what follows them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.layer_reader import NoLayer, weights_of
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shortened

_ONE = QParams(1.0, 0, "s8")  # of floats: nothing is scaled


def float_layer(
    view: GraphView, chains: ChainReader, node: GraphNode, dtype: str = "f32"
) -> FusedNode | NoLayer:
    """Return a layer in floats with what follows up to quantizers, or why there is none.

    Its weights are constants of float32, or what a DequantizeLinear makes of constant codes.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    chains : ChainReader
        Reader of the chains of that graph.
    node : GraphNode
        A layer of the table of kinds.
    dtype : {"f32", "bf16"}
        Data type of weights and source. Products are summed, and the chain computed, in float32
        either way.
    """
    src, wei = node.inputs[:2]
    known = view.float_constant(wei)
    if view.dtype(src) != "float32" or known is None or known.dtype != np.float32:
        return NoLayer("a source or weights that are not float32, or weights that are computed")
    try:
        weights = weights_of(node.row, view, node, src, _ONE, known)
        if isinstance(weights, NoLayer):
            return weights
        values = weights.codes
        if weights.make is InnerProduct:  # of Gemm, alone with a factor
            values = values * np.float32(node.attributes.get("alpha", 1.0))
        values = values.astype(dtypes.numpy_dtype(dtype), copy=False)
        bias = _bias(view, node)
        passes = wei not in view.constants
        tail = chains.tail(node.outputs[0], weights.axis, stores=False, passes=passes)
        operator = weights.make(values, bias, dst="f32", post=tail.post, **weights.options)
    except (ArgumentError, UnsupportedError) as error:
        return NoLayer(shortened(str(error), 300))
    own = (node, *tail.parts)
    return FusedNode.of(node, operator, (src,), (tail.value,), own, tail.operands)


def float_norm(view: GraphView, chains: ChainReader, node: GraphNode) -> FusedNode | NoLayer:
    """Return a batch norm as a convolution of single channels, in floats, or why it is none.

    gain = scale / sqrt(var + epsilon), shift = b - mean * gain, in float64, rounded once.

    Parameters
    ----------
    view, chains
        Arguments of `float_layer`.
    node : GraphNode
        Node that no layer includes.
    """
    if node.row is not kinds.BATCH_NORM:
        return NoLayer("no batch norm")
    dims = view.dims(node.inputs[0])
    weights = norm_weights(node, view.constants)
    if weights is None or dims is None or len(dims) < 3 or view.dtype(node.inputs[0]) != "float32":
        return NoLayer("a norm of two dims, of other floats, or of computed statistics")
    gain, shift = weights
    try:
        tail = chains.tail(node.outputs[0], 1, stores=False)
        wei = gain.reshape(-1, *(1,) * (len(dims) - 1))
        operator = Conv(wei, shift, groups=len(gain), dst="f32", post=tail.post)
    except (ArgumentError, UnsupportedError) as error:
        return NoLayer(shortened(str(error), 300))
    own, why = (node, *tail.parts), "a batch norm behind no layer: INT8 in what `calibrate` makes"
    return FusedNode.of(node, operator, node.inputs[:1], (tail.value,), own, tail.operands, why)


def norm_weights(node: GraphNode, constants: Mapping[str, Array]) -> tuple[Array, Array] | None:
    """Return gain and shift of each channel of a batch norm; None where a call decides on them.

    Parameters
    ----------
    node : GraphNode
        A BatchNormalization.
    constants : mapping of str to ndarray
        Constants of its graph.
    """
    known = [constants.get(name) for name in node.inputs[1:]]
    trains = any(node.outputs[1:]) or node.attributes.get("training_mode", 0)
    if trains or any(each is None or each.ndim != 1 for each in known):
        return None
    scale, shift, mean, var = (np.asarray(each, np.float64) for each in known)
    gain = scale / np.sqrt(var + np.float64(np.float32(node.attributes.get("epsilon", 1e-5))))
    return gain.astype(np.float32), (shift - mean * gain).astype(np.float32)


def _bias(view: GraphView, node: GraphNode) -> Array | None:
    name = node.input(2)
    if not name:
        return None
    known = view.float_constant(name)
    channels = (view.dims(node.outputs[0]) or (0, 0))[1]
    if known is None:
        raise ArgumentError("bias", "values that are computed", "constants")
    if known.size != 1 and not known.shape[-1] == known.size == channels:
        raise ArgumentError("bias", f"{known.shape}", "one value for each channel")
    values = known.reshape(-1)
    beta = node.attributes.get("beta", 1.0) if node.row is kinds.GEMM else 1.0
    return np.asarray(np.broadcast_to(values, (channels,)) * np.float32(beta), np.float32)
