"""sequential: a torch.nn.Sequential of float layers, as a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from pyonednn_q.argument import instance
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Affine, Clip, Eltwise, PRelu, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.network import Network, Pool, Reshape
from pyonednn_q.network import sequential as in_sequence
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct
from pyonednn_q.primitive.windowed import swapped
from pyonednn_q.shown import shown

Dims: TypeAlias = tuple[int, ...]

_NOTHING = (nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_SIXTH, _HALF = 1 / 6, 0.5

# Activations, each as a step: formulas of PyTorch's documentation.
_ACTIVATIONS: dict[type, Callable[[Any], Step]] = {
    nn.ReLU: lambda _: Eltwise("relu"),
    nn.LeakyReLU: lambda layer: Eltwise("relu", layer.negative_slope),
    nn.ReLU6: lambda _: Clip(0.0, 6.0),
    nn.Hardtanh: lambda layer: Clip(layer.min_val, layer.max_val),
    nn.PReLU: lambda layer: PRelu(_vec(layer.weight)),
    nn.Sigmoid: lambda _: Eltwise("logistic"),
    nn.Tanh: lambda _: Eltwise("tanh"),
    nn.ELU: lambda layer: Eltwise("elu", layer.alpha),
    nn.SiLU: lambda _: Eltwise("swish", 1.0),
    nn.Mish: lambda _: Eltwise("mish"),
    nn.GELU: lambda layer: Eltwise("gelu_tanh" if layer.approximate == "tanh" else "gelu_erf"),
    nn.Hardsigmoid: lambda _: Eltwise("hardsigmoid", _SIXTH, _HALF),
    nn.Hardswish: lambda _: Eltwise("hardswish", _SIXTH, _HALF),
}


def sequential(
    model: Any,  # noqa: ANN401 - torch's types are not looked at
    example: Any,  # noqa: ANN401
) -> Network:
    """Return float layers one behind the other as a network; `pyonednn_q.calibrate` makes it INT8.

    Parameters
    ----------
    model : torch.nn.Sequential
        Convolutions, transposed ones, linear layers of matrices, batch norms with statistics,
        activations, pools, Flatten, Dropout, Identity, and others of its kind. Batch norms and
        activations join the chain of the layer before them. It stays as it is.
    example : Tensor of float32
        An input: the model runs once, and its tensors tell their shapes. Batches may have other
        sizes later.

    Returns
    -------
    Network
        From ``"x"`` to the result of the last layer, in the evaluation mode of the model.

    Raises
    ------
    ArgumentError
        A layer that is none of these, by its name, or has options that no operator of oneDNN has.

    Examples
    --------
    >>> import torch
    >>> import pyonednn_q as pq
    >>> from pyonednn_q.torch import sequential
    >>> layers = torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
    >>> image = torch.ones(1, 1, 8, 8)
    >>> net = sequential(torch.nn.Sequential(*layers), image)
    >>> pq.calibrate(net, [image.numpy()]).layers
    ('conv1',)
    """
    instance("model", model, nn.Sequential)
    instance("example", example, torch.Tensor)
    shapes: dict[str, Dims] = {}

    def noted(name: str) -> Any:  # noqa: ANN401 - a hook
        def note(_module: object, inputs: Any, _result: object) -> None:  # noqa: ANN401
            shapes[name] = tuple(inputs[0].shape)

        return note

    layers = dict(_layers("", model))
    hooks = [layer.register_forward_hook(noted(name)) for name, layer in layers.items()]
    was_training = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            model(example)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in was_training.items():
            module.training = mode
    parts = [
        _read(_at("model", name), layer, shapes[name])
        for name, layer in layers.items()
        if not isinstance(layer, _NOTHING)
    ]
    return in_sequence(*parts)


def _layers(name: str, module: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Give all layers in order, those of nested sequences too."""
    for own, child in module.named_children():
        path = f"{name}.{own}" if name else own
        if isinstance(child, nn.Sequential):
            yield from _layers(path, child)
        else:
            yield path, child


def _read(name: str, layer: Any, dims: Dims) -> Any:  # noqa: ANN401
    """Return the operator, operation or step that computes a layer of an input of those dims."""
    kind = type(layer)
    if kind in _ACTIVATIONS:
        return _ACTIVATIONS[kind](layer)
    if kind not in _READERS:
        known = "a convolution, linear layer, batch norm, activation, pool or Flatten"
        raise ArgumentError(name, kind.__name__, f"{known} that oneDNN has")
    return _READERS[kind](name, layer, dims)


def _linear(name: str, layer: Any, dims: Dims) -> InnerProduct:  # noqa: ANN401
    if len(dims) != 2:
        raise ArgumentError(name, f"a source of dims {dims}", "(N, K): Flatten before it")
    return InnerProduct(_array(layer.weight), _bias(layer))


def _maxima(name: str, layer: Any, _: Dims) -> Pool:  # noqa: ANN401
    _only(name, layer, ceil_mode=False, return_indices=False)
    kernel, stride, padding, dilation = _each(layer, "kernel_size", "stride", "padding", "dilation")
    return Pool("max", kernel, stride=stride, padding=padding, dilation=dilation)


def _means(name: str, layer: Any, _: Dims) -> Pool:  # noqa: ANN401
    _only(name, layer, ceil_mode=False)
    if getattr(layer, "divisor_override", None) is not None:
        raise ArgumentError(_at(name, "divisor_override"), "a number", "None")
    alg = "avg_include_padding" if layer.count_include_pad else "avg_exclude_padding"
    kernel, stride, padding = _each(layer, "kernel_size", "stride", "padding")
    return Pool(alg, kernel, stride=stride, padding=padding)


def _mean_of_all(name: str, layer: Any, _: Dims) -> Pool:  # noqa: ANN401
    (sizes,) = _each(layer, "output_size")
    if set(np.atleast_1d(np.asarray(sizes, object)).tolist()) != {1}:
        raise ArgumentError(_at(name, "output_size"), shown(sizes), "1")
    return Pool("avg_include_padding")


def _flatten(name: str, layer: Any, dims: Dims) -> Reshape:  # noqa: ANN401
    _only(name, layer, start_dim=1, end_dim=-1)
    return Reshape((-1, math.prod(dims[1:])))


def _conv(name: str, layer: Any, _: Dims) -> Conv:  # noqa: ANN401
    _only(name, layer, padding_mode="zeros")
    padding: Any = layer.padding
    if padding == "valid":
        padding = 0
    elif padding == "same":
        reaches = zip(layer.kernel_size, layer.dilation, strict=True)
        totals = [(taps - 1) * step for taps, step in reaches]
        padding = tuple((total // 2, total - total // 2) for total in totals)
    return Conv(_array(layer.weight), _bias(layer), padding=_kept(padding), **_steps(layer))


def _deconv(name: str, layer: Any, _: Dims) -> Deconv:  # noqa: ANN401
    _only(name, layer, padding_mode="zeros", output_padding=(0,) * len(layer.kernel_size))
    wei = np.ascontiguousarray(swapped(_array(layer.weight), layer.groups))
    return Deconv(wei, _bias(layer), padding=_kept(layer.padding), **_steps(layer))


def _steps(layer: Any) -> dict[str, Any]:  # noqa: ANN401
    stride, dilation = _each(layer, "stride", "dilation")
    return {"stride": stride, "dilation": dilation, "groups": layer.groups}


def _norm(name: str, layer: Any, _: Dims) -> Affine:  # noqa: ANN401
    """Return (x − mean) / sqrt(var + eps) · weight + bias."""
    if layer.running_mean is None:
        raise ArgumentError(name, "no running statistics", "track_running_stats=True")
    mean, var = (
        _array(each).astype(np.float64) for each in (layer.running_mean, layer.running_var)
    )
    scale = 1 / np.sqrt(var + layer.eps)
    if layer.affine:
        scale = scale * _array(layer.weight)
    shift = -mean * scale
    if layer.affine:
        shift = shift + _array(layer.bias)
    return Affine(Vec(scale), Vec(shift))


def _only(name: str, layer: Any, **wanted: Any) -> None:  # noqa: ANN401
    """Refuse other values of options than those that operators have."""
    for option, value in wanted.items():
        if (got := getattr(layer, option)) != value:
            raise ArgumentError(_at(name, option), shown(got), shown(value))


def _at(name: str, option: str) -> str:
    return f"{name}.{option}"


def _each(layer: Any, *options: str) -> Iterator[Any]:  # noqa: ANN401
    return (_kept(getattr(layer, option)) for option in options)


def _kept(value: Any) -> Any:  # noqa: ANN401
    """Return one number as it is, and several as a tuple."""
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _array(tensor: Any) -> Any:  # noqa: ANN401
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _vec(tensor: Any) -> Vec:  # noqa: ANN401
    return Vec(_array(tensor).astype(np.float64))


def _bias(layer: Any) -> Any:  # noqa: ANN401
    return None if layer.bias is None else _array(layer.bias)


_READERS: dict[type, Callable[[str, Any, Dims], Any]] = {
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _conv),
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), _deconv),
    **dict.fromkeys((nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d), _norm),
    **dict.fromkeys((nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d), _maxima),
    **dict.fromkeys((nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d), _means),
    **dict.fromkeys(
        (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d), _mean_of_all
    ),
    nn.Linear: _linear,
    nn.Flatten: _flatten,
}
