"""Quantized layers of PyTorch on oneDNN, as a custom operator that torch traces.

    codes of x = saturate(rne(x / s_x) + z_x)
    codes of y = what `pq.conv` or `pq.inner_product` stores, with a float bias, and relu if any
    y          = s_y · (codes of y − z_y)

Layers take and return floats on the grid of their codes. So any module of torch may stand between
them, and codes of one layer are those of the next.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import torch
from torch.ao.nn import quantized
from torch.ao.nn.intrinsic import quantized as fused

from pyonednn_q.argument import instance, one_of, real, whole
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.expr.steps import Chain, Eltwise
from pyonednn_q.onnx import dequantize_linear
from pyonednn_q.ops.functional import conv, inner_product
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

_SCHEMA = (
    "(Tensor x, Tensor wei, Tensor wei_scale, Tensor? bias, float src_scale, int src_zero_point, "
    "float dst_scale, int dst_zero_point, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "int groups, bool relu, str saturation) -> Tensor"
)
_LAYERS = (
    *(quantized.Conv1d, quantized.Conv2d, quantized.Conv3d, quantized.Linear),
    *(fused.ConvReLU1d, fused.ConvReLU2d, fused.ConvReLU3d, fused.LinearReLU),
)


@torch.library.custom_op("pyonednn_q::quantized_layer", mutates_args=(), schema=_SCHEMA)
def _quantized_layer(
    x: Any,  # noqa: ANN401 - torch's types are not looked at
    wei: Any,  # noqa: ANN401
    wei_scale: Any,  # noqa: ANN401
    bias: Any,  # noqa: ANN401
    src_scale: float,
    src_zero_point: int,
    dst_scale: float,
    dst_zero_point: int,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    relu: bool,
    saturation: str,
) -> Any:  # noqa: ANN401
    """Compute a layer: a convolution, or a product where weights are a matrix."""
    scales = wei_scale.numpy()
    options = _options(
        (src_scale, src_zero_point), scales.tobytes(), (dst_scale, dst_zero_point), relu, saturation
    )
    src = x.detach().contiguous()
    if wei.dim() == 2:
        rows = src.reshape(-1, x.shape[-1])
        codes = inner_product(rows, wei, bias, **options).reshape(*x.shape[:-1], len(wei))
    else:
        sides = tuple((side, side) for side in padding)
        per_dim = tuple(stride), sides, tuple(dilation)
        window: Any = dict(zip(("stride", "padding", "dilation"), per_dim, strict=True))
        codes = conv(src, wei, bias, groups=groups, **window, **options)
    y = dequantize_linear(codes, np.float32(dst_scale), np.uint8(dst_zero_point))
    return torch.from_numpy(np.ascontiguousarray(y))


@functools.lru_cache(maxsize=1024)
def _options(
    src: tuple[float, int], scales: bytes, dst: tuple[float, int], relu: bool, saturation: str
) -> dict[str, Any]:
    """Return the same options for the same layer: operators are found by them."""
    return {
        "src_q": QParams(*src, "u8"),
        "wei_q": QParams(np.frombuffer(scales, np.float32), 0, "s8", axis=0),
        "dst_q": QParams(*dst, "u8"),
        "post": Chain(Eltwise("relu")) if relu else None,
        "saturation": saturation,
    }


@_quantized_layer.register_fake
def _traced(x: Any, wei: Any, *others: Any) -> Any:  # noqa: ANN401
    """Return a tensor of the result's shape, without values."""
    stride, padding, dilation = others[6:9]  # as in _SCHEMA
    if wei.dim() == 2:
        return x.new_empty((*x.shape[:-1], wei.shape[0]))
    lengths = [
        (x.shape[2 + at] + 2 * pad - step * (wei.shape[2 + at] - 1) - 1) // by + 1
        for at, (pad, step, by) in enumerate(zip(padding, dilation, stride, strict=True))
    ]
    return x.new_empty((x.shape[0], wei.shape[0], *lengths))


class QuantizedLayer(torch.nn.Module):
    """A quantized convolution or linear layer of torch, computed by oneDNN; floats in and out.

    Parameters
    ----------
    layer : module of torch.ao.nn.quantized
        Conv1d, Conv2d, Conv3d, Linear, or one of these with ReLU, as `convert` makes them.
    src_scale : float
        The scale of the codes that come in, above 0.
    src_zero_point : int
        Zero point of the source: quint8, from 0 to 255.
    saturation : {"refuse", "allow"}
        Treatment of weights that can overflow: see `Conv`. "allow" is right for observers with
        reduce_range, as in torch's "x86".

    Raises
    ------
    ArgumentError, DTypeError
        Another layer; or padding that is not of zeros, weights that are not qint8.
    """

    def __init__(
        self,
        layer: Any,  # noqa: ANN401 - a module
        src_scale: float,
        src_zero_point: int,
        saturation: str = "refuse",
    ) -> None:
        super().__init__()
        instance("layer", layer, *_LAYERS)
        if getattr(layer, "padding_mode", "zeros") != "zeros":
            raise ArgumentError("layer", f"padding_mode {layer.padding_mode!r}", "'zeros'")
        weight = layer.weight()
        if weight.dtype != torch.qint8:
            raise DTypeError("layer", f"weights of {weight.dtype}", "torch.qint8")
        self.saturation = one_of("saturation", saturation, ("refuse", "allow"))
        self.src_scale = real("src_scale", src_scale)
        if self.src_scale <= 0.0:
            raise ArgumentError("src_scale", shown(src_scale), "a number above 0")
        self.src_zero_point = whole("src_zero_point", src_zero_point, lo=0, hi=255)
        self.dst_scale, self.dst_zero_point = float(layer.scale), int(layer.zero_point)
        self.relu = "ReLU" in type(layer).__name__
        codes = weight.int_repr()
        if weight.qscheme() == torch.per_tensor_affine:
            scales, points = torch.tensor(weight.q_scale()), torch.tensor(weight.q_zero_point())
        else:
            scales, points = weight.q_per_channel_scales(), weight.q_per_channel_zero_points()
        if points.any():
            raise ArgumentError("layer", "zero points of weights", "symmetric ones")
        scales = scales.float().expand(len(codes)).contiguous()
        self.window = ([], [], [], 1) if codes.dim() == 2 else _window(layer)
        self.register_buffer("wei", codes)
        self.register_buffer("wei_scale", scales)
        added = layer.bias()
        self.register_buffer("bias", None if added is None else added.detach().float())

    def forward(self, x: Any) -> Any:  # noqa: ANN401
        """Return the layer's result in float32.

        Parameters
        ----------
        x : Tensor of float32
            (N, C, spatial), or (..., K) of a linear layer.
        """
        stride, padding, dilation, groups = self.window
        return torch.ops.pyonednn_q.quantized_layer(
            x,
            self.wei,
            self.wei_scale,
            self.bias,
            self.src_scale,
            self.src_zero_point,
            self.dst_scale,
            self.dst_zero_point,
            stride,
            padding,
            dilation,
            groups,
            self.relu,
            self.saturation,
        )


def swap(
    model: Any,  # noqa: ANN401 - torch's types are not looked at
    example: Any,  # noqa: ANN401
    *,
    saturation: str = "refuse",
) -> Any:  # noqa: ANN401
    """Return a copy of a quantized model whose convolutions and linear layers are oneDNN's.

    Modules that quantize and dequantize become the identity: floats go in and come out, those on
    the grids of their codes in between.

    Parameters
    ----------
    model : torch.nn.Module
        After `torch.ao.quantization.convert`; it stays as it is.
    example : Tensor of float32
        An input: the model runs once, and its quantized tensors tell their scales.
    saturation : {"refuse", "allow"}
        Option of `QuantizedLayer`.

    Returns
    -------
    torch.nn.Module
        Module with `QuantizedLayer`, which `torch.compile` and `torch.export` trace.

    Raises
    ------
    ArgumentError
        No model, no layer to swap, one that the example does not reach, or one that is reached by
        tensors of several scales.
    """
    instance("model", model, torch.nn.Module)
    layers = {name: each for name, each in model.named_modules() if isinstance(each, _LAYERS)}
    if not layers:
        wanted = "quantized convolutions or linear layers, as torch.ao.quantization.convert makes"
        raise ArgumentError("model", "none that can be swapped", wanted)
    scales: dict[str, set[tuple[float, int]]] = {name: set() for name in layers}

    def noted(name: str) -> Any:  # noqa: ANN401 - a hook
        def note(_module: object, inputs: Any) -> None:  # noqa: ANN401
            scales[name].add((inputs[0].q_scale(), inputs[0].q_zero_point()))

        return note

    hooks = [layer.register_forward_pre_hook(noted(name)) for name, layer in layers.items()]
    try:
        with torch.no_grad():
            model(example)
    finally:
        for hook in hooks:
            hook.remove()
    swapped = copy.deepcopy(model)
    for name, params in scales.items():
        if len(params) != 1:
            got = f"{shown(name)} reached by tensors of {len(params)} scales"
            raise ArgumentError("example", got, "one that reaches each layer with one scale")
        _put(swapped, name, QuantizedLayer(layers[name], *next(iter(params)), saturation))
    for name, module in model.named_modules():
        if isinstance(module, (quantized.Quantize, quantized.DeQuantize)):
            _put(swapped, name, torch.nn.Identity())
    return swapped


def _put(model: Any, name: str, module: Any) -> None:  # noqa: ANN401
    parent, _, own = name.rpartition(".")
    setattr(model.get_submodule(parent), own, module)


def _window(layer: Any) -> tuple[list[int], list[int], list[int], int]:  # noqa: ANN401
    """Return stride, padding, dilation, one value per spatial dimension, and groups."""
    sides = (layer.stride, layer.padding, layer.dilation)
    stride, padding, dilation = ([int(value) for value in values] for values in sides)
    return stride, padding, dilation, int(layer.groups)
