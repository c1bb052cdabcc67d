"""Files whose quantizers stand before a move into a branch: onnxruntime loads them, values stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

# Of the first onnxruntime ends the process, where the file is as it stands here.
MOVED = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1,2,3,4] x, float[2,3,4] z) => (float[2,3,4] y {more})
<float s = {{0.03}}, uint8 p = {{120}}, int64[1] first = {{0}}, float limit = {{0.5}}>
{{
  q = QuantizeLinear(x, s, p)
  d = DequantizeLinear(q, s, p)
  {moves}
  top = ReduceMax<keepdims = 0>(z)
  big = Greater(top, limit)
  y = If(big) <
    then_branch = one () => (float[2,3,4] t) {{ t = Add(m, z) }},
    else_branch = two () => (float[2,3,4] e) {{ e = Mul(m, z) }}>
}}"""
TURNED = "turned = Transpose<perm = [0, 1, 2, 3]>(d)\n  m = Squeeze(turned, first)"
CASES = {
    "one move": ("m = Squeeze(d, first)", "", 1),
    "two moves": (TURNED, "", 1),
    "another reader": ("m = Squeeze(d, first)\n  r = Relu(d)", ", float[1,2,3,4] r", 2),
    "an output": ("m = Squeeze(d, first)", ", float[1,2,3,4] d", 2),
}


def steps(graph: Graph) -> list[str]:
    return [node.operator for node in graph.nodes]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("high", [0.0, 1.0])
def test_a_saved_model_runs_in_onnxruntime(name: str, high: float, tmp_path: Path) -> None:
    moves, more, pairs = CASES[name]
    graph = pq.onnx.load(onnx.parser.parse_model(MOVED.format(moves=moves, more=more)))
    pq.onnx.save(graph, tmp_path / "saved.onnx")
    saved = pq.onnx.load(tmp_path / "saved.onnx")
    assert steps(saved).count("QuantizeLinear") == pairs
    makers = {name: node for node in saved.nodes for name in node.outputs}
    assert makers["m"].row is kinds.DEQUANTIZE
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        tmp_path / "saved.onnx", options, providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(1)
    inputs = {
        "x": rng.normal(0, 2, (1, 2, 3, 4)).astype(np.float32),
        "z": np.full((2, 3, 4), high, np.float32),
    }
    scale = np.float32(0.03)
    codes = np.clip(np.rint(inputs["x"] / scale) + 120, 0, 255) - 120
    real = codes.astype(np.float32)[0] * scale
    right = real + inputs["z"] if high else real * inputs["z"]
    theirs = session.run(None, inputs)[0]
    np.testing.assert_array_equal(theirs, right)
    for own in (graph, saved):
        np.testing.assert_array_equal(pq.onnx.Model(own).run(inputs)["y"], right)


def test_scales_of_channels_stay_where_they_are(tmp_path: Path) -> None:
    text = MOVED.format(moves="m = Squeeze(d, first)", more="")
    text = text.replace("float s = {0.03}", "float[2] s = {0.03, 0.04}")
    text = text.replace("uint8 p = {120}", "uint8[2] p = {120, 130}")
    graph = pq.onnx.load(onnx.parser.parse_model(text))
    pq.onnx.save(graph, tmp_path / "saved.onnx")
    saved = pq.onnx.load(tmp_path / "saved.onnx")
    assert steps(saved) == steps(graph)
