"""Drawn layers as calls of ours, with the requantization of another runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from pyonednn_q.ops.operator import Operator
    from support.oracles.layers import Layer

Array = np.ndarray[Any, Any]


def operator(layer: Layer, rule: str) -> Operator:
    """Return the layer's operator, its codes made by a rule."""
    per_tensor = layer.granularity == "per_tensor"
    scale = layer.wei_scale[0] if per_tensor else layer.wei_scale
    parameters: dict[str, Any] = {
        "src_q": QParams(float(layer.src_scale), layer.src_zero_point, layer.dtype),
        "wei_q": QParams(scale, layer.wei_zero_point, layer.dtype, None if per_tensor else 0),
        "dst_q": QParams(float(layer.dst_scale), layer.dst_zero_point, layer.dtype),
        "requantize": rule,
    }
    if layer.op == "inner_product":
        return InnerProduct(layer.wei[:, :, 0, 0], layer.bias, **parameters)
    if layer.op == "deconv":
        return Deconv(layer.wei, layer.bias, stride=2, **parameters)
    groups = layer.channels if layer.op == "depthwise" else 1
    return Conv(layer.wei, layer.bias, groups=groups, **parameters)


def run(layer: Layer, rule: str) -> Array:
    """Return the layer's codes in logical order, (N, C, spatial)."""
    made = operator(layer, rule)
    if layer.op == "inner_product":
        return made(layer.src[:, :, 0, 0])[:, :, np.newaxis, np.newaxis]
    return made(layer.src)
