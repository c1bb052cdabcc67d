"""Models with weights in blocks: layers of groups where sources may become codes, beside peers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize import from_matmul_nbits, group_codes, pack4

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper
F = np.float32
K, N, BLOCK = 96, 20, 32


def model(nodes: list[Any], constants: dict[str, Any], dims: list[Any]) -> Any:
    """Return a model from x to y."""
    held = [
        each if isinstance(each, onnx.TensorProto) else onnx.numpy_helper.from_array(each, name)
        for name, each in constants.items()
    ]
    ends = [helper.make_tensor_value_info(*each) for each in (("x", 1, dims), ("y", 1, None))]
    graph = helper.make_graph(nodes, "one", [ends[0]], [ends[1]], held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def theirs(proto: Any, x: Any) -> Any:
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def nbits(
    rng: np.random.Generator, dims: list[Any], bits: int = 4, *, k: int = K, **changes: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a model of one MatMulNBits of powers of two, and its constants."""
    blocks = -(-k // BLOCK)
    constants = {
        "b": rng.integers(0, 256, (N, blocks, BLOCK * bits // 8)).astype(np.uint8),
        "s": np.exp2(rng.integers(-4, 0, N * blocks)).astype(F) * rng.choice([F(-1), F(1)]),
        "z": rng.integers(0, 256, N * -(-blocks * bits // 8)).astype(np.uint8),
        "c": rng.integers(-9, 9, N).astype(F),
    }
    points: str = changes.pop("z", "z")
    told = {"K": k, "N": N, "bits": bits, "block_size": BLOCK, "accuracy_level": 4, **changes}
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s", points, "", "c"], ["y"], domain="com.microsoft", **told
    )
    return model([node], constants, dims), constants


def whole_source(rng: np.random.Generator, *dims: int) -> Any:
    """Return values that are codes of s8 by the range of any block, eighths of them."""
    x = rng.integers(-127, 128, dims).astype(F) / 8
    x[..., ::BLOCK] = 127 / 8
    return x


@pytest.mark.parametrize("has_points", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_accuracy_level_4_has_onnxruntimes_codes(bits: int, has_points: bool) -> None:
    rng = np.random.default_rng(bits)
    proto, _ = nbits(rng, [2, 3, K], bits, z="z" if has_points else "")
    x = whole_source(rng, 2, 3, K)
    loaded = pq.load(proto)
    assert f"INT{bits} matmul" in loaded.report()
    # Sums that float32 holds: their order does not matter.
    np.testing.assert_array_equal(loaded(x), theirs(proto, x))


def test_a_loaded_layer_is_the_layer_of_groups() -> None:
    rng = np.random.default_rng(1)
    proto, constants = nbits(rng, ["rows", K])
    codes, wei_q = from_matmul_nbits(
        constants["b"], constants["s"], constants["z"], k=K, n=N, block_size=BLOCK
    )
    src_q = pq.Dynamic("s8", "per_group")
    layer = pq.MatMul(codes, constants["c"], src_q=src_q, wei_q=wei_q)
    loaded = pq.load(proto)
    twin = pickle.loads(pickle.dumps(loaded))
    for rows in (1, 5):  # lengths that calls bind
        x = rng.standard_normal((rows, K)).astype(F)
        np.testing.assert_array_equal(loaded(x), layer(x))
        np.testing.assert_array_equal(twin(x), layer(x))


@pytest.mark.parametrize(
    ("changes", "blocks", "is_group"),
    [
        ({}, "model", True),
        ({}, "f32", False),
        ({"accuracy_level": 0}, "model", False),
        ({"accuracy_level": 1}, "model", False),
        ({"accuracy_level": 0}, "s8", True),
        ({"k": 80}, "s8", False),  # the last block is cut short
    ],
)
def test_who_decides_what_the_source_becomes(
    changes: dict[str, Any], blocks: str, is_group: bool
) -> None:
    rng = np.random.default_rng(2)
    proto, _ = nbits(rng, [4, changes.get("k", K)], **changes)
    x = whole_source(rng, 4, changes.get("k", K))
    loaded = pq.load(proto, blocks=blocks)
    assert ("INT4 matmul" in loaded.report()) == is_group
    assert ("weights of few bits in blocks" in loaded.report()) != is_group
    np.testing.assert_array_equal(loaded(x), theirs(proto, x))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
def test_blocked_dequantize_linear_becomes_a_layer_if_asked_for(bits: int, symmetric: bool) -> None:
    rng = np.random.default_rng(3)
    codes, wei_q = group_codes(
        rng.standard_normal((K, N)), BLOCK, bits, axis=-1, symmetric=symmetric
    )
    proto_type = onnx.TensorProto
    dtypes = {
        (4, True): proto_type.INT4,
        (4, False): proto_type.UINT4,
        (8, True): proto_type.INT8,
        (8, False): proto_type.UINT8,
    }

    def tensor(name: str, values: Any) -> Any:
        packed = pack4(values) if bits == 4 else values.astype(codes.dtype)
        return helper.make_tensor(
            name, dtypes[bits, symmetric], values.shape, packed.tobytes(), raw=True
        )

    constants = {
        "q": tensor("q", codes),
        "s": np.asarray(wei_q.scale, F),
        "z": tensor("z", np.asarray(wei_q.zero_point)),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    proto = model(nodes, constants, [3, K])
    x = rng.standard_normal((3, K)).astype(F)
    layer = pq.MatMul(codes, src_q=pq.Dynamic("s8", "per_group"), wei_q=wei_q)
    np.testing.assert_array_equal(pq.load(proto, blocks="s8")(x), layer(x))
    floats = pq.load(proto)
    assert "blocks='s8' makes codes of the source" in floats.report()
    real = wei_q.dequantize(codes)
    # Sums of K products, each rounded once in any order.
    most = K * 2.0**-24 * (np.abs(x.astype(float)) @ np.abs(real)).max()
    assert np.abs(floats(x) - x.astype(float) @ real).max() <= most


def test_another_word_is_refused() -> None:
    proto, _ = nbits(np.random.default_rng(0), [1, K])
    with pytest.raises(ArgumentError, match=r"^blocks: got 'int8'"):
        pq.load(proto, blocks="int8")
