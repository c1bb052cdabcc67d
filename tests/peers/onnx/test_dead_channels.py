"""A channel of weights that are all but 0 keeps no layer from INT8."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

import onnx
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.quantize.dead_channels import without_dead_channels

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(8)
SHAPES = {"Conv": (4, 3, 3, 3), "ConvTranspose": (3, 4, 2, 2), "Gemm": (6, 4), "MatMul": (6, 4)}


def layer(kind: str, wei: Array, bias: Array) -> onnx.ModelProto:
    """Return a model of one layer and a ReLU."""
    dims = [1, 3, 8, 8] if wei.ndim > 2 else [5, 6]
    reads = ["x", "w"] if kind == "MatMul" else ["x", "w", "b"]
    nodes = [helper.make_node(kind, reads, ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    start = helper.make_tensor_value_info("x", 1, dims)
    end = helper.make_tensor_value_info("y", 1, None)
    held = [numpy_helper.from_array(wei, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "graph", [start], [end], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("dead", [0.0, 1e-45, 1e-38, 5e-37])
@pytest.mark.parametrize("kind", list(SHAPES))
def test_a_dead_channel_stays_in_int8(kind: str, dead: float) -> None:
    wei = RNG.normal(0, 1, SHAPES[kind]).astype(np.float32)
    np.moveaxis(wei, 0 if kind == "Conv" else 1, 0)[2] = np.float32(dead)
    bias = RNG.normal(0, 1, 4).astype(np.float32)
    proto = layer(kind, wei, bias)
    x = RNG.normal(0, 1, [1, 3, 8, 8] if wei.ndim > 2 else [5, 6]).astype(np.float32)
    own = pq.calibrate(pq.onnx.load(proto), [x]).model()
    assert [node.how for node in own.nodes][-1].startswith("INT8 ")
    result = np.moveaxis(own.run({"x": x})["y"], 1, 0)[2]
    np.testing.assert_array_equal(result, 0 if kind == "MatMul" else max(bias[2], 0))


def test_channels_that_say_something_keep_their_codes() -> None:
    codes = RNG.integers(-127, 128, (3, 5)).astype(np.int8)
    q = pq.QParams(np.array([1e-3, 1e-33, 1e-42]), np.zeros(3, np.int64), "s8", axis=0)
    same, fresh = without_dead_channels(codes, q, 0)
    np.testing.assert_array_equal(same[:2], codes[:2])
    assert not same[2].any()
    np.testing.assert_array_equal(fresh.scale, [1e-3, 1e-33, 1e-3])
    assert without_dead_channels(codes, fresh, 0)[1] is fresh
