"""What torchao's PT2E writes between layers, as ONNX's quantizers: a table for torch's exporter.

torch has no translation of its `quantized_decomposed` operators. Scales and zero points are theirs;
codes that end before their type does become a Clip of real values, which a layer's chain takes.
Source: torch/ao/quantization/fx/_decomposed.py of PyTorch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from onnxscript import opset20 as op
from torch.ao.quantization.fx import _decomposed  # noqa: F401 - it registers the operators

__all__ = ["translations"]

_FLOAT = 1  # of onnx.TensorProto
_CODES = {2: (0, 255), 3: (-128, 127)}  # uint8 and int8 there
_INT32 = 6

# Parameters have no names of ours: the exporter passes what torch's schema has, by these. What is
# annotated as a number is one; the rest are tensors of the model that is made.


def _quantize(x: Any, scale: Any, zero: Any, lo: int, hi: int, dtype: int, axis: int) -> Any:  # noqa: ANN401
    """Return codes: saturate(rne(x / scale) + zero), from lo to hi."""
    if (lo, hi) != _CODES.get(dtype, (lo, hi)):
        least, most = (
            op.Mul(scale, op.Sub(op.Constant(value_float=float(end)), op.Cast(zero, to=_FLOAT)))
            for end in (lo, hi)
        )
        x = op.Min(op.Max(x, least), most)
    return op.QuantizeLinear(x, scale, op.Cast(zero, to=dtype), axis=axis)


def _dequantize(x: Any, scale: Any, zero: Any, dtype: int, axis: int) -> Any:  # noqa: ANN401
    """Return (x − zero) · scale."""
    if zero is None or dtype == _INT32:  # ONNX has no zero points of int32
        return op.DequantizeLinear(x, scale, axis=axis)
    return op.DequantizeLinear(x, scale, op.Cast(zero, to=dtype), axis=axis)


def _quantize_per_tensor(
    input: Any,  # noqa: A002, ANN401
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
) -> Any:  # noqa: ANN401
    step, zero = op.Constant(value_float=scale), op.Constant(value_int=zero_point)
    if (quant_min, quant_max) != _CODES.get(dtype, (quant_min, quant_max)):
        ends = (float((end - zero_point) * scale) for end in (quant_min, quant_max))
        least, most = (op.Constant(value_float=end) for end in ends)
        input = op.Clip(input, least, most)  # noqa: A001
    return op.QuantizeLinear(input, step, op.Cast(zero, to=dtype))


def _dequantize_per_tensor(
    input: Any,  # noqa: A002, ANN401
    scale: float,
    zero_point: int,
    quant_min: int,  # noqa: ARG001
    quant_max: int,  # noqa: ARG001
    dtype: int,
    out_dtype: int = _FLOAT,  # noqa: ARG001
) -> Any:  # noqa: ANN401
    step, zero = op.Constant(value_float=scale), op.Constant(value_int=zero_point)
    return _dequantize(input, step, zero, dtype, 1)


def _quantize_by_tensors(
    input: Any,  # noqa: A002, ANN401
    scale: Any,  # noqa: ANN401
    zero_point: Any,  # noqa: ANN401
    quant_min: int,
    quant_max: int,
    dtype: int,
) -> Any:  # noqa: ANN401
    step = op.Cast(op.Squeeze(scale), to=_FLOAT)
    return _quantize(input, step, op.Squeeze(zero_point), quant_min, quant_max, dtype, 1)


def _dequantize_by_tensors(
    input: Any,  # noqa: A002, ANN401
    scale: Any,  # noqa: ANN401
    zero_point: Any,  # noqa: ANN401
    quant_min: int,  # noqa: ARG001
    quant_max: int,  # noqa: ARG001
    dtype: int,
    out_dtype: int = _FLOAT,  # noqa: ARG001
) -> Any:  # noqa: ANN401
    step = op.Cast(op.Squeeze(scale), to=_FLOAT)
    return _dequantize(input, step, op.Squeeze(zero_point), dtype, 1)


def _quantize_per_channel(
    input: Any,  # noqa: A002, ANN401
    scales: Any,  # noqa: ANN401
    zero_points: Any,  # noqa: ANN401
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: int,
) -> Any:  # noqa: ANN401
    steps, zeros = op.Cast(scales, to=_FLOAT), op.Cast(zero_points, to=dtype)
    codes = op.QuantizeLinear(input, steps, zeros, axis=axis)
    if (quant_min, quant_max) == _CODES.get(dtype, (quant_min, quant_max)):
        return codes
    ends = (op.Cast(op.Constant(value_int=end), to=dtype) for end in (quant_min, quant_max))
    return op.Clip(codes, *ends)


def _dequantize_per_channel(
    input: Any,  # noqa: A002, ANN401
    scales: Any,  # noqa: ANN401
    zero_points: Any,  # noqa: ANN401
    axis: int,
    quant_min: int,  # noqa: ARG001
    quant_max: int,  # noqa: ARG001
    dtype: int,
    out_dtype: int = _FLOAT,  # noqa: ARG001
) -> Any:  # noqa: ANN401
    return _dequantize(input, op.Cast(scales, to=_FLOAT), zero_points, dtype, axis)


def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return what `torch.onnx.export` takes as its custom translation table."""
    ours = torch.ops.quantized_decomposed
    return {
        ours.quantize_per_tensor.default: _quantize_per_tensor,
        ours.quantize_per_tensor.tensor: _quantize_by_tensors,
        ours.quantize_per_channel.default: _quantize_per_channel,
        ours.dequantize_per_tensor.default: _dequantize_per_tensor,
        ours.dequantize_per_tensor.tensor: _dequantize_by_tensors,
        ours.dequantize_per_channel.default: _dequantize_per_channel,
    }
