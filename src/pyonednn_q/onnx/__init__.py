"""onnx: ONNX's operators, by ONNX's names, argument orders and arithmetic, and its models.

Products run on oneDNN's primitives, and what none takes is refused; `trace` says what ran.
Operators need no package onnx. Models do: `load` reads one that may come from anywhere, `fuse`
makes a list of calls of it, `Model` runs that. ONNX's own tests drive `pyonednn_q.onnx.backend`.
"""

from __future__ import annotations

from pyonednn_q.onnx.batch_norms import renormalized
from pyonednn_q.onnx.calibration import Calibration
from pyonednn_q.onnx.calibrator import calibrate
from pyonednn_q.onnx.code_convolutions import conv_integer, qlinear_conv
from pyonednn_q.onnx.convolutions import conv, conv_transpose
from pyonednn_q.onnx.equalization import equalized
from pyonednn_q.onnx.fusion import fuse
from pyonednn_q.onnx.linear import dequantize_linear, dynamic_quantize_linear, quantize_linear
from pyonednn_q.onnx.matmuls import gemm, matmul, matmul_integer, qlinear_matmul
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.model_reader import load
from pyonednn_q.onnx.model_writer import save
from pyonednn_q.onnx.network_graph import graph_of
from pyonednn_q.onnx.pipeline import PASSES
from pyonednn_q.onnx.smoothing import smoothed
from pyonednn_q.onnx.trace import Call, trace
from pyonednn_q.onnx.weight_groups import grouped_weights

__all__ = [
    "PASSES",
    "Calibration",
    "Call",
    "Model",
    "calibrate",
    "conv",
    "conv_integer",
    "conv_transpose",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "equalized",
    "fuse",
    "gemm",
    "graph_of",
    "grouped_weights",
    "load",
    "matmul",
    "matmul_integer",
    "qlinear_conv",
    "qlinear_matmul",
    "quantize_linear",
    "renormalized",
    "save",
    "smoothed",
    "trace",
]
