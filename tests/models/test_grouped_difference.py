"""``diff`` on a model with weights in groups: the accuracy level has a name, layer by layer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from onnx import helper, numpy_helper, save

import pyonednn_q as pq
from pyonednn_q.commands import cli


@pytest.mark.needs_isa("AVX512_CORE_VNNI")
def test_a_layer_in_groups_has_the_arithmetic_of_its_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in "ab"}
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "b"], ["y"], "second"),
    ]
    ends = [helper.make_tensor_value_info(name, 1, [5, 64]) for name in "xy"]
    held = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "two", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 21)]
    floats, file = tmp_path / "floats.onnx", tmp_path / "small.onnx"
    save(helper.make_model(graph, opset_imports=opsets, ir_version=10), floats)
    pq.onnx.grouped_weights(floats, groups=32).save(file)
    assert cli.main(["diff", str(file), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    layers = [each for each in said["compared"] if each["name"] in {"first", "second"}]
    assert len(layers) == 2
    assert {each["arithmetic"] for each in layers} == {"ort_matmulnbits_4 [onnxruntime]"}
    assert not [each for each in said["compared"] if each["unexplained"]]
