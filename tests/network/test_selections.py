"""Selections of networks, and models that read arrays where they lie."""

from __future__ import annotations

import numpy as np
import pytest

import pyonednn_q as pq
from support.children import run_child
from support.chosen_values import selections_differ

onnx = pytest.importorskip("onnx")


def test_every_layout_has_the_bits_of_numpy() -> None:
    assert selections_differ() == []


@pytest.mark.executed
@pytest.mark.parametrize("level", ["SSE41", "AVX2"])
def test_every_instruction_set_has_them(level: str) -> None:
    outcome = run_child(selections_differ, environment={"ONEDNN_MAX_CPU_ISA": level})
    assert outcome.value == []


@pytest.fixture
def model() -> pq.onnx.Model:
    """Return codes of an image, and a convolution of these."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    rng = np.random.default_rng(0)
    wei = rng.integers(-20, 20, (8, 3, 3, 3)).astype(np.int8)
    known = {"s": np.float32(0.125), "z": np.uint8(9), "w": wei, "sw": np.float32(0.5)}
    known["zw"] = np.int8(0)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["e"]),
        helper.make_node("Conv", ["d", "e"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", floats, (2, 3, 9, 7))],
        [helper.make_tensor_value_info("y", floats, (2, 8, 7, 5))],
        [onnx.numpy_helper.from_array(np.asarray(each), name) for name, each in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(made.SerializeToString())))


def test_arrays_are_read_where_they_lie(
    model: pq.onnx.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any layout without gaps nothing is copied before a call; results are the same."""
    x = np.random.default_rng(1).normal(0, 4, (2, 3, 9, 7)).astype(np.float32)
    last = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    want = model.run({"x": x})["y"]
    wide = np.zeros((2, 3, 9, 11), np.float32)
    wide[..., :7] = x
    np.testing.assert_array_equal(model.run({"x": wide[..., :7]})["y"], want)

    def copied(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("pyonednn_q.network.compiled.in_layout", copied)
    for array in (x, last, x, last):
        np.testing.assert_array_equal(model.run({"x": array})["y"], want)
    with pytest.raises(AssertionError):
        model.run({"x": wide[..., :7]})
