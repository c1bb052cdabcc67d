"""Operators whose meaning changed with opset 13, as onnxruntime has them in each."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper

import pyonednn_q as pq

DIMS = (2, 3, 4, 5)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, 3, -1, -2])
@pytest.mark.parametrize("opset", [8, 11, 12, 13, 20])
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "Hardmax"])
def test_axes_are_those_of_the_opset(kind: str, opset: int, axis: int | None) -> None:
    if axis is not None and axis < 0 and opset < 11:
        pytest.skip("axes count from the end since opset 11")
    given = {} if axis is None else {"axis": axis}
    node = helper.make_node(kind, ["x"], ["y"], **given)
    ends = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, DIMS) for n in "xy"]
    graph = helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    x = np.random.default_rng(0).normal(0, 1, DIMS).astype(np.float32)
    theirs = onnxruntime.InferenceSession(model).run(None, {"x": x})[0]
    ours = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    np.testing.assert_allclose(ours.run({"x": x})["y"], theirs, rtol=2e-6)
    np.testing.assert_allclose(ours.network()(x)["y"], theirs, rtol=2e-6)
