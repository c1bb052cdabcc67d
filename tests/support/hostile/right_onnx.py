"""Right calls of ONNX's operators: names, callables, arguments."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

import pyonednn_q as pq
from support.hostile.right_values import FLOATS, SRC, Calls

_WEI = np.ones((2, 3, 3, 3), np.int8)
_WINDOW: dict[str, Any] = {
    "auto_pad": "NOTSET",
    "dilations": [1, 1],
    "group": 1,
    "kernel_shape": [3, 3],
    "pads": [1, 0, 0, 1],
    "strides": [2, 1],
}
_STEP, _POINT = np.float32(0.5), np.uint8(3)
# Names that need the package onnx.
OF_MODELS = (
    "Decoder",
    "grouped_weights",
    "load",
    "fuse",
    "Model",
    "renormalized",
    "rounded",
    "save",
)
_MATRIX = np.arange(12, dtype=np.uint8).reshape(3, 4)


def onnx_calls() -> Calls:
    src, wei = SRC.astype(np.float32), _WEI.astype(np.float32)
    left, right = _MATRIX.astype(np.float32), _MATRIX.T.astype(np.float32)
    signed = np.zeros(2, np.int8)
    steps = np.full(2, 0.5, np.float32)
    dst = {"y_scale": _STEP, "y_zero_point": _POINT}
    spread = {**_WINDOW, "output_padding": [0, 0]}
    return {
        "onnx.conv": (
            pq.onnx.conv,
            {"X": src, "W": wei, "B": np.ones(2, np.float32), **_WINDOW},
        ),
        "conv_transpose": (
            pq.onnx.conv_transpose,
            {"X": src, "W": wei.swapaxes(0, 1), "B": np.ones(2, np.float32), **spread},
        ),
        "conv_integer": (
            pq.onnx.conv_integer,
            {"x": SRC, "w": _WEI, "x_zero_point": _POINT, "w_zero_point": signed, **_WINDOW},
        ),
        "qlinear_conv": (
            pq.onnx.qlinear_conv,
            {
                "x": SRC,
                "x_scale": _STEP,
                "x_zero_point": _POINT,
                "w": _WEI,
                "w_scale": steps,
                "w_zero_point": signed,
                **dst,
                "B": np.ones(2, np.int32),
                **_WINDOW,
            },
        ),
        "onnx.matmul": (pq.onnx.matmul, {"A": left, "B": right}),
        "gemm": (
            pq.onnx.gemm,
            {
                "A": left,
                "B": right,
                "C": left[:, 0],
                "alpha": 0.5,
                "beta": 2.0,
                "transA": 0,
                "transB": 0,
            },
        ),
        "matmul_integer": (
            pq.onnx.matmul_integer,
            {"A": _MATRIX, "B": _MATRIX.T, "a_zero_point": _POINT, "b_zero_point": _MATRIX[:, 0]},
        ),
        "qlinear_matmul": (
            pq.onnx.qlinear_matmul,
            {
                "a": _MATRIX,
                "a_scale": _STEP,
                "a_zero_point": _POINT,
                "b": _MATRIX.T,
                "b_scale": _STEP,
                "b_zero_point": _POINT,
                **dst,
            },
        ),
        "quantize_linear": (
            pq.onnx.quantize_linear,
            {
                "x": FLOATS,
                "y_scale": steps[:1],
                "y_zero_point": signed[:1],
                "axis": 0,
                "block_size": 0,
                "output_dtype": 3,
                "precision": 1,
                "saturate": 1,
            },
        ),
        "dequantize_linear": (
            pq.onnx.dequantize_linear,
            {
                "x": _MATRIX,
                "x_scale": np.ones((3, 2), np.float32),
                "x_zero_point": np.zeros((3, 2), np.uint8),
                "axis": 1,
                "block_size": 2,
                "output_dtype": "float16",
            },
        ),
        "dynamic_quantize_linear": (pq.onnx.dynamic_quantize_linear, {"x": FLOATS}),
    }


def onnx_models() -> Calls:
    """Return calls of models, where the package onnx is."""
    if find_spec("onnx") is None:
        return {}
    from support.hostile.models import valid_models

    data = valid_models()[1]
    limits = {"max_bytes": 1 << 20, "max_nodes": 1000, "max_elements": 1 << 20}
    graph = pq.onnx.load(data)
    options = {"exact_rounding": True, "keep_rounding": False}
    tokens = np.array([[1, 2]])
    return {
        "save": (pq.onnx.save, {"graph": graph, "file": "saved.onnx"}),
        "load": (pq.onnx.load, {"model": data, "dims": {}, **limits}),
        "fuse": (pq.onnx.fuse, {"graph": graph, **options, "floats": {"dense": "f32"}}),
        "onnx.calibrate": (
            pq.calibrate,
            {
                "model": pq.onnx.load(_float_model()),
                "batches": [FLOATS],
                "floats": {"dense": "bf16"},
                "config": {"algorithm": "quantization", "preset": "mixed"},
                "traces": {"dense": 1.0},
                "metric": lambda model: float(len(model.nodes)),
            },
        ),
        "onnx.equalized": (pq.onnx.equalized, {"graph": pq.onnx.load(_float_model())}),
        "renormalized": (
            pq.onnx.renormalized,
            {"graph": pq.onnx.load(_float_model()), "batches": [FLOATS], "samples": 2},
        ),
        "grouped_weights": (
            pq.onnx.grouped_weights,
            {
                "model": pq.onnx.load(_float_model()),
                "batches": [FLOATS],
                "groups": 2,
                "bits": (4, 8),
                "symmetric": False,
                "method": "awq+gptq",
                "floats": (),
                "mean_bits": 6.0,
                "form": "dequantize",
                "accuracy_level": 4,
            },
        ),
        "Model": (pq.onnx.Model, {"graph": pq.onnx.fuse(graph)}),
        "Decoder": (
            pq.Decoder,
            {"model": _decoder(), "capacity": 16, "batch": 1, "cache": "f32", "blocks": "s8"},
        ),
        "Decoder.call": (_called(pq.Decoder(_decoder(), capacity=2048)), {"tokens": tokens}),
    }


def _called(decoder: pq.Decoder) -> Callable[[object], object]:
    def call(tokens: Any) -> object:
        decoder.reset()
        return decoder(tokens)

    return call


def _decoder() -> bytes:
    """Return an attention on itself, as onnxruntime-genai exports it."""
    import onnx

    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
        decoder (int64[b, n] input_ids, int64[b, t] attention_mask,
                 float[b, 1, p, 8] past_key, float[b, 1, p, 8] past_value)
            => (float[b, n, 8] logits, float[b, 1, t, 8] key,
                float[b, 1, t, 8] value)
        <int64[1] one = {1}, int64 last = {1}>
        {
            total = ReduceSum <keepdims = 0> (attention_mask, one)
            less = Sub (total, one)
            lengths = Cast <to = 6> (less)
            shape = Shape (attention_mask)
            whole = Gather <axis = 0> (shape, last)
            most = Cast <to = 6> (whole)
            x = Gather (table, input_ids)
            logits, key, value = com.microsoft.GroupQueryAttention
                <num_heads = 1, kv_num_heads = 1> (x, x, x, past_key,
                past_value, lengths, most)
        }
    """)
    table = np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    return bytes(model.SerializeToString())


def _float_model() -> bytes:
    import onnx

    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        layers (float[1, 3, 6, 6] x) => (float[1, 2] y)
        <float[2, 3, 1, 1] w = {1.0, -2.0, 3.0, 4.0, 0.5, 0.25},
         float[2, 2] v = {1.0, 2.0, 3.0, 4.0}>
        {
            [conv] c = Conv (x, w)
            r = Relu (c)
            m = GlobalAveragePool (r)
            f = Flatten (m)
            [dense] y = MatMul (f, v)
        }
    """)
    return bytes(model.SerializeToString())
