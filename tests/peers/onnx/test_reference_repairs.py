"""Operators that onnx.reference computes otherwise than ONNX says, as onnxruntime has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import UnsupportedError

DIMS = (2, 3, 4, 5)
# Two runtimes, each of which may round after adding each of these numbers, and thrice behind that.
ROUNDINGS = 2 * (math.prod(DIMS) + 3) * 2.0**-24


def one_node(
    kind: str, opset: int, constants: dict[str, Any], given: dict[str, Any], outputs: str = "y"
) -> bytes:
    """Return the model of one node of x and constants."""
    node = helper.make_node(kind, ["x", *constants], [*outputs], **given)
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, DIMS) for n in "xy"]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", opset)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    return made


def check(model: bytes) -> None:
    """Compare both ways of running a model with onnxruntime."""
    x = np.random.default_rng(0).normal(0, 1, DIMS).astype(np.float32)
    theirs = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
    ours = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    for got in (ours.run({"x": x})["y"], ours.network()(x)["y"]):
        assert np.abs(got - theirs).max() <= ROUNDINGS * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -2])
@pytest.mark.parametrize("opset", [8, 11, 12, 13, 20])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_axes_are_those_of_the_opset(kind: str, opset: int, axis: int | None) -> None:
    if axis is not None and axis < 0 and opset < 11:
        pytest.skip("axes count from the end since opset 11")
    check(one_node(kind, opset, {}, {} if axis is None else {"axis": axis}))


def statistics() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "scale": rng.normal(1, 0.3, 3).astype(np.float32),
        "bias": rng.normal(0, 1, 3).astype(np.float32),
        "mean": rng.normal(0, 1, 3).astype(np.float32),
        "var": rng.uniform(0.2, 3, 3).astype(np.float32),
    }


@pytest.mark.parametrize("given", [{}, {"epsilon": 0.1}, {"momentum": 0.5}])
@pytest.mark.parametrize("opset", [7, 8, 9, 11, 13, 14, 15, 20])
def test_batch_norms_are_of_the_statistics_given(opset: int, given: dict[str, float]) -> None:
    check(one_node("BatchNormalization", opset, statistics(), given))


def test_batch_norms_of_training_are_refused() -> None:
    model = one_node("BatchNormalization", 9, statistics(), {}, "ymvst")
    with pytest.raises(UnsupportedError, match="the mean and variance of channels"):
        pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model))).run({"x": np.zeros(DIMS, np.float32)})


@pytest.mark.parametrize("given", [{}, {"alpha": 0.3, "beta": 1.5, "bias": 2.0}])
@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("opset", [7, 13, 20])
def test_responses_are_normalized_in_every_channel(
    opset: int, size: int, given: dict[str, float]
) -> None:
    check(one_node("LRN", opset, {}, {"size": size, **given}))
