"""Graphs and models are values: pickled and copied, they run the same; and what is empty runs."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")

FLOAT = 1


def written(path: Path, nodes: list[Any], dims: tuple[int, ...], constants: list[Any]) -> Path:
    helper = onnx.helper
    ends = [helper.make_tensor_value_info(name, FLOAT, dims) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path
    )
    return path


def quantized(path: Path) -> Path:
    """A convolution and its addition, between quantizers."""
    rng = np.random.default_rng(0)
    known = {
        "s": np.float32(0.05),
        "z": np.uint8(128),
        "w": rng.integers(-63, 64, (4, 4, 3, 3)).astype(np.int8),
        "ws": np.full(4, 0.01, np.float32),
        "wz": np.zeros(4, np.int8),
    }
    node = onnx.helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        node("Conv", ["xd", "wd"], ["c"], pads=[1, 1, 1, 1]),
        node("Add", ["c", "xd"], ["a"]),
        node("QuantizeLinear", ["a", "s", "z"], ["yq"]),
        node("DequantizeLinear", ["yq", "s", "z"], ["y"]),
    ]
    constants = [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in known.items()]
    return written(path, nodes, (1, 4, 5, 5), constants)


@pytest.mark.parametrize(
    "again",
    [lambda value: pickle.loads(pickle.dumps(value)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deepcopy"],
)
def test_a_copy_runs_the_same(again: Callable[[Any], Any], tmp_path: Path) -> None:
    graph = pq.onnx.load(quantized(tmp_path / "model.onnx"))
    fused = pq.onnx.fuse(graph)
    model = pq.onnx.Model(fused)
    x = {"x": np.random.default_rng(1).normal(0, 1, (1, 4, 5, 5)).astype(np.float32)}
    want = model.run(x)["y"]
    copied = again(graph)
    assert not copied.constants["w"].flags.writeable
    for each in (pq.onnx.fuse(copied), again(fused), again(model).graph):
        np.testing.assert_array_equal(pq.onnx.Model(each).run(x)["y"], want)
    with pytest.raises(TypeError):
        copied.constants["w"] = 0


def test_stacked_weights_say_why_they_are_no_layer(tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    wei = np.random.default_rng(0).normal(0, 1, (2, 8, 8)).astype(np.float32)
    before, path = tmp_path / "float.onnx", tmp_path / "dynamic.onnx"
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])]
    written(before, nodes, (2, 8, 8), [onnx.numpy_helper.from_array(wei, "w")])
    quantization.quantize_dynamic(str(before), str(path), per_channel=True)
    report = pq.onnx.Model(pq.onnx.load(path)).report()
    assert "MatMulInteger" in report
    assert "weights of" in report
