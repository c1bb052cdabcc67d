"""torch: the operators of torch.ops.onednn on codes, those of torch.nn.functional on floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from pyonednn_q.bench.peers.peer_layer import PeerError, PeerLayer, PeerRun
from pyonednn_q.dtypes import Array

__all__ = ["ready"]

_NAME = "torch"
_DTYPES = {"u8": torch.uint8, "s8": torch.int8, "f32": torch.float32}
_MEMORY = {4: torch.channels_last, 5: torch.channels_last_3d}


def ready(layer: PeerLayer, threads: int) -> PeerRun:
    """Make tensors and packed weights for a layer.

    Raises
    ------
    PeerError
        There is no operator for it.
    """
    layer.check_types(_NAME, takes_groups=True)
    torch.set_num_threads(threads)
    of_kind = _groups if layer.group else _integers if layer.is_int8 else _floats
    compute = of_kind(layer)

    def run() -> Any:  # noqa: ANN401 - a tensor
        with torch.inference_mode():
            return compute()

    def read(tensor: Any) -> Array:  # noqa: ANN401
        return np.asarray(tensor.numpy())

    return PeerRun(run, read)


def _tensor(values: Array | None, layer: PeerLayer | None = None) -> Any:  # noqa: ANN401
    """Return a tensor; channels-last if the arrays of the layer are."""
    if values is None:
        return None
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if layer is not None and layer.is_windowed and layer.channels_last and tensor.ndim in _MEMORY:
        return tensor.contiguous(memory_format=_MEMORY[tensor.ndim])
    return tensor


def _integers(layer: PeerLayer) -> Callable[[], Any]:
    if layer.kind == "deconv":
        raise PeerError(_NAME, "has no INT8 transposed convolution")
    if layer.wei_zero_point or layer.wei.dtype != np.int8:
        raise PeerError(_NAME, "has no zero points of weights, and s8 weights only")
    if not layer.constant_wei:
        raise PeerError(_NAME, "multiplies by packed weights only")
    if layer.dst not in _DTYPES:
        raise PeerError(_NAME, f"stores no {layer.dst}")
    scales = torch.from_numpy(np.broadcast_to(layer.wei_scale, _channels(layer)).astype(np.float32))
    points = torch.zeros(len(scales), dtype=torch.int64)
    return (_conv if layer.is_windowed else _linear)(layer, scales, points)


def _groups(layer: PeerLayer) -> Callable[[], Any]:
    """Multiply floats with weights of 4 bits in groups, which stay floats in the kernel."""
    if layer.bits != 4:
        raise PeerError(_NAME, "has no product with weights of 8 bits in groups")
    half = 1 << (layer.bits - 1)
    codes = _tensor(layer.wei.T.astype(np.int32) + half)
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)  # noqa: SLF001
    scales = np.asarray(layer.wei_scale, np.float32)
    both = _tensor(np.stack([scales, np.zeros_like(scales)], -1))
    x, bias = _tensor(layer.src), _tensor(layer.bias_real())
    product = torch.ops.aten._weight_int4pack_mm_for_cpu  # noqa: SLF001
    if bias is None:
        return lambda: product(x, packed, layer.group, both)
    return lambda: product(x, packed, layer.group, both).add_(bias)


def _channels(layer: PeerLayer) -> tuple[int]:
    return (layer.wei.shape[-1 if layer.kind == "matmul" else 0],)


def _conv(layer: PeerLayer, scales: Any, points: Any) -> Callable[[], Any]:  # noqa: ANN401
    if layer.src.dtype != np.uint8:
        raise PeerError(_NAME, "convolves u8 sources only")
    if any(lo != hi for lo, hi in layer.padding):
        raise PeerError(_NAME, "pads both sides alike only")
    src, bias = _tensor(layer.src, layer), _tensor(layer.bias_real())
    sx, zx = layer.src_scale, layer.src_zero_point
    pads = [lo for lo, _ in layer.padding]
    window: tuple[Any, ...] = (list(layer.stride), pads, list(layer.dilation), layer.groups)
    ops = torch.ops.onednn
    packed = ops.qconv_prepack(_tensor(layer.wei), scales, sx, zx, *window, list(src.shape))
    head = (src, sx, zx, packed, scales, points)
    out = (layer.dst_scale, layer.dst_zero_point, _DTYPES[layer.dst])
    unary = "relu" if layer.relu else "none"
    if layer.residual is None:
        if layer.relu and layer.src.ndim == 5:
            raise PeerError(_NAME, "fuses no relu into convolutions of three dimensions")
        pointwise = getattr(ops, f"qconv{layer.src.ndim - 2}d_pointwise")
        return lambda: pointwise(*head, bias, *window, *out, unary, [], "")
    if layer.src.ndim != 4:
        raise PeerError(_NAME, "adds to convolutions of two dimensions only")
    added = layer.residual
    # It takes no other layout for this operand, whatever that of src.
    accum = _tensor(added.values.copy()).contiguous(memory_format=torch.channels_last)
    more: tuple[Any, ...] = (
        added.scale,
        added.zero_point,
        "sum",
        1.0,
        "relu" if layer.relu else None,
        [],
        "",
    )
    binary = ops.qconv2d_pointwise.binary
    return lambda: binary(*head, accum, bias, *window, *out, *more)


def _linear(layer: PeerLayer, scales: Any, points: Any) -> Callable[[], Any]:  # noqa: ANN401
    src, wei = _flat(layer)
    x, bias = _tensor(src), _tensor(layer.bias_real())
    ops = torch.ops.onednn
    packed = ops.qlinear_prepack(_tensor(wei), list(x.shape))
    head = (x, layer.src_scale, layer.src_zero_point, packed, scales, points)
    out = (layer.dst_scale, layer.dst_zero_point, _DTYPES[layer.dst])
    unary = "relu" if layer.relu else "none"
    if layer.residual is None:
        return lambda: ops.qlinear_pointwise(*head, bias, *out, unary, [], "")
    added = layer.residual
    accum = _tensor(added.values.copy())
    more: tuple[Any, ...] = (added.scale, added.zero_point, "sum", 1.0, unary, [], "")
    return lambda: ops.qlinear_pointwise.binary(*head, accum, bias, *out, *more)


def _flat(layer: PeerLayer) -> tuple[Array, Array]:
    """Return src with its rows as they are, and weights as (OC, IC)."""
    if layer.kind == "ip":
        return layer.src.reshape(len(layer.src), -1), layer.wei.reshape(len(layer.wei), -1)
    return layer.src, layer.wei.reshape(layer.wei.shape[-2:]).T


def _floats(layer: PeerLayer) -> Callable[[], Any]:
    x, bias = _tensor(layer.src, layer), _tensor(layer.bias)
    compute: Callable[[], Any]
    if layer.is_windowed:
        compute = _float_window(layer, x, bias)
    elif layer.kind == "matmul" and not layer.constant_wei:
        second = _tensor(layer.wei)
        compute = lambda: torch.matmul(x, second)  # noqa: E731
    else:
        src, wei = (_tensor(values) for values in _flat(layer))
        compute = lambda: functional.linear(src, wei, bias)  # noqa: E731
    if layer.residual is None:
        return (lambda: torch.relu_(compute())) if layer.relu else compute
    residual = _tensor(layer.residual.values, layer)
    if layer.relu:
        return lambda: torch.relu_(compute().add_(residual))
    return lambda: compute().add_(residual)


def _float_window(layer: PeerLayer, x: Any, bias: Any) -> Callable[[], Any]:  # noqa: ANN401
    if any(lo != hi for lo, hi in layer.padding):
        raise PeerError(_NAME, "pads both sides alike only")
    pads = [lo for lo, _ in layer.padding]
    strides, dilation, spatial = list(layer.stride), list(layer.dilation), layer.src.ndim - 2
    if layer.kind == "conv":
        wei = _tensor(layer.wei, layer)
        conv = getattr(functional, f"conv{spatial}d")
        return lambda: conv(x, wei, bias, strides, pads, dilation, layer.groups)
    if layer.groups > 1:
        raise PeerError(_NAME, "is not asked for groups of transposed convolutions")
    wei = _tensor(np.swapaxes(layer.wei, 0, 1), layer)
    deconv = getattr(functional, f"conv_transpose{spatial}d")
    more = list(layer.out_padding)
    return lambda: deconv(x, wei, bias, strides, pads, more, layer.groups, dilation)
