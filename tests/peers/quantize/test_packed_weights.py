"""What readers of packed weights return is what onnxruntime computes of the same arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.quantize import from_matmul_nbits, from_onnx, group_codes, pack4

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
F = np.float32


def run(
    node: Any, constants: dict[str, Any], inputs: dict[str, Any], opset: int = 21
) -> tuple[Any, Any]:
    """Return the first result of a model of one node, and the model."""
    starts = [helper.make_tensor_value_info(name, 1, each.shape) for name, each in inputs.items()]
    ends = [helper.make_tensor_value_info(node.output[0], 1, None)]
    held = [
        each if isinstance(each, onnx.TensorProto) else onnx.numpy_helper.from_array(each, name)
        for name, each in constants.items()
    ]
    graph = helper.make_graph([node], "one", starts, ends, held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)[0], model


@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (8, 32)])
def test_matmul_nbits(bits: int, block: int, has_points: bool) -> None:
    rng = np.random.default_rng(bits + block + has_points)
    k, n = 96, 20
    blocks = k // block
    b = rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(-0.1, 0.1, n * blocks).astype(F)
    scales[3] = 0.0
    points = rng.integers(0, 256, n * (-(-blocks * bits // 8))).astype(np.uint8)
    constants = {"b": b, "s": scales, **({"z": points} if has_points else {})}
    node = helper.make_node(
        "MatMulNBits",
        ["x", *constants],
        ["y"],
        domain="com.microsoft",
        K=k,
        N=n,
        bits=bits,
        block_size=block,
    )
    real, _ = run(node, constants, {"x": np.eye(k, dtype=F)})
    codes, wei_q = from_matmul_nbits(
        b, scales, points if has_points else None, k=k, n=n, bits=bits, block_size=block
    )
    # Each of its sums has one term that is not 0.
    np.testing.assert_array_equal(wei_q.dequantize(codes).astype(F), real)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocked_dequantize_linear_of_4_bits(axis: int, symmetric: bool) -> None:
    rng = np.random.default_rng(axis)
    codes, made = group_codes(
        rng.standard_normal((24, 32)), 8, axis=0 if axis == 1 else -1, symmetric=symmetric
    )
    dtype = onnx.TensorProto.INT4 if symmetric else onnx.TensorProto.UINT4

    def tensor(name: str, values: Any) -> Any:
        packed = pack4(values).tobytes()
        return helper.make_tensor(name, dtype, values.shape, packed, raw=True)

    scale = np.asarray(made.scale, F)
    constants = {"q": tensor("q", codes), "s": scale, "z": tensor("z", np.asarray(made.zero_point))}
    node = helper.make_node("DequantizeLinear", [*constants], ["y"], axis=axis, block_size=8)
    real, _ = run(node, constants, {})
    holder = np.int8 if symmetric else np.uint8
    point = np.asarray(made.zero_point).astype(holder)
    wei_q = from_onnx(scale, point, axis=axis, block_size=8)
    np.testing.assert_array_equal(wei_q.dequantize(codes).astype(F), real)
