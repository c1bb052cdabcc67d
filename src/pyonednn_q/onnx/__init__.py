"""onnx: ONNX's operators, by ONNX's names, argument orders and arithmetic. Needs no package onnx.

Products run on oneDNN's primitives, and what none takes is refused; `trace` says what ran.
`pyonednn_q.onnx.backend` runs models, with the package onnx.
"""

from __future__ import annotations

from pyonednn_q.onnx.code_convolutions import conv_integer, qlinear_conv
from pyonednn_q.onnx.convolutions import conv, conv_transpose
from pyonednn_q.onnx.linear import dequantize_linear, dynamic_quantize_linear, quantize_linear
from pyonednn_q.onnx.products import gemm, matmul, matmul_integer, qlinear_matmul
from pyonednn_q.onnx.trace import Call, trace

__all__ = [
    "Call",
    "conv",
    "conv_integer",
    "conv_transpose",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "gemm",
    "matmul",
    "matmul_integer",
    "qlinear_conv",
    "qlinear_matmul",
    "quantize_linear",
    "trace",
]
