"""Calls as models of one node, run by ONNX's reference, ONNX Runtime and us."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from support.onnx_operators.draw import NodeCall

Array = np.ndarray[Any, Any]

OPERATORS: dict[str, Any] = {
    "Conv": pq.onnx.conv,
    "ConvTranspose": pq.onnx.conv_transpose,
    "ConvInteger": pq.onnx.conv_integer,
    "DequantizeLinear": pq.onnx.dequantize_linear,
    "DynamicQuantizeLinear": pq.onnx.dynamic_quantize_linear,
    "Gemm": pq.onnx.gemm,
    "MatMul": pq.onnx.matmul,
    "MatMulInteger": pq.onnx.matmul_integer,
    "QLinearConv": pq.onnx.qlinear_conv,
    "QLinearMatMul": pq.onnx.qlinear_matmul,
    "QuantizeLinear": pq.onnx.quantize_linear,
}


def ours(call: NodeCall) -> list[Array]:
    """Return what we compute."""
    found: Any = OPERATORS[call.op_type](*call.inputs, **call.attributes)
    return list(found) if isinstance(found, tuple) else [found]


@cache
def exact_sums() -> bool:
    """Tell whether onnxruntime adds products of u8 and s8 codes exactly.

    Its kernels for CPUs without VNNI add pairs in 16 bits, whatever ONEDNN_MAX_CPU_ISA says.
    """
    codes = [np.full((1, 2), 255, np.uint8), np.full((2, 1), 127, np.int8)]
    return int(onnxruntime(NodeCall("MatMulInteger", codes, {}))[0].item()) == 2 * 255 * 127


def skip_if_theirs_saturate() -> None:
    """Skip where onnxruntime's sums of u8 and s8 codes are not those that ONNX defines."""
    if not exact_sums():
        pytest.skip("onnxruntime adds pairs of u8 and s8 codes in 16 bits: no VNNI")


def model(call: NodeCall, outputs: int = 1, opset: int = 21) -> Any:
    """Return the model of one node."""
    from onnx import helper

    names = [f"i{at}" if value is not None else "" for at, value in enumerate(call.inputs)]
    node = helper.make_node(
        call.op_type, names, [f"o{at}" for at in range(outputs)], **call.attributes
    )
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in zip(names, call.inputs, strict=True)
        if name
    ]
    dst = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "one", inputs, dst)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made


def feeds(call: NodeCall) -> dict[str, Array]:
    """Return the inputs by their names in the model."""
    return {f"i{at}": value for at, value in enumerate(call.inputs) if value is not None}


def reference(call: NodeCall, outputs: int = 1) -> list[Array]:
    """Return what ONNX's reference computes."""
    from onnx.reference import ReferenceEvaluator

    found: list[Array] = ReferenceEvaluator(model(call, outputs)).run(None, feeds(call))
    return found


def onnxruntime(call: NodeCall, outputs: int = 1) -> list[Array]:
    """Return what ONNX Runtime computes."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = model(call, outputs).SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, feeds(call))
    return found
