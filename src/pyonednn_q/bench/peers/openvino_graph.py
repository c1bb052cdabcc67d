"""OpenVINO: a graph of dequantization, layer and FakeQuantize, which its CPU plugin makes INT8.

Whether it did is read from the compiled graph: a layer that runs on floats is not what was asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
from openvino import opset13

from pyonednn_q import dtypes
from pyonednn_q.bench.peers.peer_layer import PeerError, PeerLayer, PeerRun
from pyonednn_q.dtypes import Array

__all__ = ["compiled", "ready"]

_NAME = "openvino"
_LAYERS = ("Convolution", "Deconvolution", "FullyConnected", "MatMul")
_CORE = openvino.Core()


def ready(layer: PeerLayer, threads: int) -> PeerRun:
    """Compile a graph of a layer, and bind its source and result.

    Raises
    ------
    PeerError
        The plugin does not run it, or not on integers.
    """
    layer.check_types(_NAME)
    try:
        model = compiled(layer, threads)
        return _bound(layer, model)
    except RuntimeError as error:
        # The last line says what went wrong, those before where.
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise PeerError(_NAME, f"fails: {lines[-1].strip() if lines else error}") from None


def compiled(layer: PeerLayer, threads: int) -> Any:  # noqa: ANN401 - OpenVINO's
    """Return the compiled graph.

    Raises
    ------
    PeerError
        A layer of integers that runs on floats.
    """
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = _CORE.compile_model(_graph(layer), "CPU", settings)
    if layer.is_int8:
        for node in model.get_runtime_model().get_ordered_ops():
            about = node.get_rt_info()
            kind, runs_in = about["layerType"].value, about["runtimePrecision"].value
            if kind in _LAYERS and not about["primitiveType"].value.lower().endswith("i8"):
                kernel = f"{about['primitiveType'].value}, {runs_in}"
                raise PeerError(_NAME, f"runs the {kind} on floats: {kernel}")
    return model


def _graph(layer: PeerLayer) -> Any:  # noqa: ANN401
    """Return the model. Transposes of real values make inputs and result channels-last.

    The plugin turns those into formats of its kernels; transposes of codes it would execute, and
    take the layer off integers.
    """
    parameters = []

    def fed(values: Array, scale: Any, point: int) -> Any:  # noqa: ANN401
        """Add an input and return its real values, in logical dims."""
        parameter = opset13.parameter(_held(layer, values).shape, values.dtype)
        parameters.append(parameter)
        return _transposed(layer, _real(parameter, values, scale, point), to_last=False)

    x = fed(layer.src, layer.src_scale, layer.src_zero_point)
    if layer.constant_wei:
        y = _layer(layer, x, _weights(layer))
    else:
        y = _layer(layer, x, fed(layer.wei, layer.wei_scale, layer.wei_zero_point))
    bias = layer.bias_real()
    if bias is not None:
        dims = (1, -1, *(1,) * (layer.src.ndim - 2)) if layer.is_windowed else (1, -1)
        y = opset13.add(y, opset13.constant(bias.reshape(dims)))
    if layer.residual is not None:
        added = layer.residual
        y = opset13.add(y, fed(added.values, added.scale, added.zero_point))
    if layer.relu:
        y = opset13.relu(y)
    if dtypes.is_integer(layer.dst):
        y = opset13.convert(_transposed(layer, _codes(layer, y), to_last=True), layer.dst_dtype)
    else:
        y = _transposed(layer, y, to_last=True)
    return openvino.Model([opset13.result(y)], parameters)


def _held(layer: PeerLayer, values: Array) -> Array:
    """Return the array that is passed to OpenVINO."""
    if layer.kind == "ip":
        return values.reshape(len(values), -1)
    moves = layer.is_windowed and layer.channels_last
    return np.ascontiguousarray(np.moveaxis(values, 1, -1) if moves else values)


def _transposed(layer: PeerLayer, x: Any, *, to_last: bool) -> Any:  # noqa: ANN401
    if not (layer.is_windowed and layer.channels_last):
        return x
    ndim = layer.src.ndim
    order = (0, *range(2, ndim), 1) if to_last else (0, ndim - 1, *range(1, ndim - 1))
    return opset13.transpose(x, opset13.constant(np.array(order)))


def _real(codes: Any, values: Array, scale: Any, point: int) -> Any:  # noqa: ANN401
    """Return what codes are worth, in the form that the plugin recognises; floats as they are."""
    if values.dtype.kind == "f":
        return codes
    x = opset13.convert(codes, "f32")
    if point:
        x = opset13.subtract(x, opset13.constant(np.float32(point)))
    return opset13.multiply(x, opset13.constant(np.asarray(scale, np.float32)))


def _weights(layer: PeerLayer) -> Any:  # noqa: ANN401
    """Return the weights as OpenVINO orders them, with their scales."""
    wei = layer.wei.reshape(len(layer.wei), -1) if layer.kind == "ip" else layer.wei
    axis = wei.ndim - 1 if layer.kind == "matmul" else 0
    if layer.kind == "deconv":
        wei, axis = np.swapaxes(wei, 0, 1), 1
    if layer.groups > 1:
        if layer.kind == "deconv":
            raise PeerError(_NAME, "is not asked for groups of transposed convolutions")
        wei, axis = wei.reshape(layer.groups, -1, *wei.shape[1:]), 0
    dims = [1] * wei.ndim
    if np.size(layer.wei_scale) > 1:
        dims[axis] = wei.shape[axis]
        if layer.groups > 1:
            dims[1] = wei.shape[1]
    constant = opset13.constant(np.ascontiguousarray(wei))
    scale = np.reshape(layer.wei_scale, dims)
    return _real(constant, wei, scale, layer.wei_zero_point)


def _layer(layer: PeerLayer, x: Any, wei: Any) -> Any:  # noqa: ANN401
    if not layer.is_windowed:
        return opset13.matmul(x, wei, transpose_a=False, transpose_b=layer.kind == "ip")
    lows, highs = (list(side) for side in zip(*layer.padding, strict=True))
    strides, dilation = list(layer.stride), list(layer.dilation)
    if layer.kind == "deconv":
        return opset13.convolution_backprop_data(
            x,
            wei,
            strides=strides,
            pads_begin=lows,
            pads_end=highs,
            dilations=dilation,
            output_padding=list(layer.out_padding),
        )
    make = opset13.group_convolution if layer.groups > 1 else opset13.convolution
    return make(x, wei, strides, lows, highs, dilation)


def _codes(layer: PeerLayer, y: Any) -> Any:  # noqa: ANN401
    if layer.dst not in {"u8", "s8"}:
        raise PeerError(_NAME, f"stores no {layer.dst}")
    least, greatest = dtypes.qmin(layer.dst), dtypes.qmax(layer.dst)
    ends = ((end - layer.dst_zero_point) * layer.dst_scale for end in (least, greatest))
    lo, hi, low, high = (opset13.constant(np.float32(end)) for end in (*ends, least, greatest))
    return opset13.fake_quantize(y, lo, hi, low, high, 256)


def _bound(layer: PeerLayer, model: Any) -> PeerRun:  # noqa: ANN401
    inputs = [_held(layer, layer.src)]
    inputs += [] if layer.constant_wei else [layer.wei]
    inputs += [] if layer.residual is None else [_held(layer, layer.residual.values)]
    request = model.create_infer_request()
    for index, values in enumerate(inputs):
        request.set_input_tensor(index, openvino.Tensor(values, shared_memory=True))
    dst = np.zeros(model.output(0).shape, layer.dst_dtype)
    request.set_output_tensor(0, openvino.Tensor(dst, shared_memory=True))

    def run() -> None:
        request.infer()

    def read(_: object) -> Array:
        values = dst.copy()
        moves = layer.is_windowed and layer.channels_last
        return np.moveaxis(values, -1, 1) if moves else values

    run()  # what the plugin cannot run shows now
    return PeerRun(run, read, (*inputs, dst))
