"""Drawn layers as LiteRT's models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.oracles import litert
from support.oracles.litert import Tensor

if TYPE_CHECKING:
    from support.oracles.layers import Layer

Array = np.ndarray[Any, Any]

_VALID = 1


def run(layer: Layer, resolver: str, activation: int = 0) -> Array:
    """Return LiteRT's result in logical order, (N, C, spatial); activations by TFLite's numbers."""
    source = layer.src.transpose(0, 2, 3, 1)
    if layer.op == "inner_product":
        source = source.reshape(len(source), -1)
    given = litert.run(
        _model(layer, source.shape, activation), resolver, np.ascontiguousarray(source)
    )
    if layer.op == "inner_product":
        given = given.reshape(len(given), 1, 1, -1)
    return np.asarray(given.transpose(0, 3, 1, 2))


def _model(layer: Layer, source_dims: tuple[int, ...], activation: int) -> bytes:
    src = Tensor(source_dims, layer.dtype, layer.src_scale, layer.src_zero_point)
    wei = layer.wei.transpose(0, 2, 3, 1)
    axis = 0
    if layer.op == "depthwise":
        wei, axis = layer.wei.transpose(1, 2, 3, 0), 3
    if layer.op == "inner_product":
        wei = layer.wei.reshape(len(layer.wei), -1)
    scale = layer.wei_scale if layer.granularity == "per_channel" else layer.wei_scale[:1]
    weights = Tensor.of(wei, layer.dtype, scale, layer.wei_zero_point, axis)
    bias = Tensor.of(layer.bias, "s32", np.float32(layer.src_scale) * scale)
    batch, channels, *spatial = layer.acc.shape
    dims = (batch, channels) if layer.op == "inner_product" else (batch, *spatial, channels)
    dst = Tensor(dims, layer.dtype, layer.dst_scale, layer.dst_zero_point)
    window = {"padding": _VALID, "strideH": 1, "strideW": 1}
    dense = {"dilationHFactor": 1, "dilationWFactor": 1}
    if layer.op == "deconv":
        shape = Tensor.of(np.array(dims), "s32")
        window |= {"strideH": 2, "strideW": 2}
        return litert.model(
            "TRANSPOSE_CONV", [shape, weights, src, bias], dst, window, op_version=3
        )
    if layer.op == "inner_product":
        return litert.model("FULLY_CONNECTED", [src, weights, bias], dst, {}, op_version=4)
    if layer.op == "depthwise":
        options = {**window, **dense, "depthMultiplier": 1}
        name = "DepthwiseConv2D"
        return litert.model(
            "DEPTHWISE_CONV_2D", [src, weights, bias], dst, options, options_of=name, op_version=3
        )
    options = {**window, **dense, "fusedActivationFunction": activation}
    return litert.model(
        "CONV_2D", [src, weights, bias], dst, options, options_of="Conv2D", op_version=3
    )
