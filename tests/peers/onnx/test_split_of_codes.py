"""A Split passes codes up whichever of its parts a layer reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]
SIZES = {"a": 6, "b": 4, "c": 6}


def model(used: str) -> Any:
    """Return a layer, a Split, layers of some of its parts, and roots of the others."""
    rng = np.random.default_rng(0)
    held = {"w": rng.normal(0, 0.3, (12, 16)).astype(np.float32), "sizes": np.array([6, 4, 6])}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "first"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("Split", ["r", "sizes"], [*SIZES], "split", axis=1),
    ]
    for name, length in SIZES.items():
        if name in used:
            held[f"v{name}"] = rng.normal(0, 0.3, (length, 5)).astype(np.float32)
            nodes.append(helper.make_node("MatMul", [name, f"v{name}"], [f"y{name}"], name))
        else:
            nodes.append(helper.make_node("Sqrt", [name], [f"y{name}"], name))
    starts = [helper.make_tensor_value_info("x", 1, [3, 12])]
    ends = [helper.make_tensor_value_info(f"y{name}", 1, None) for name in SIZES]
    stored = [numpy_helper.from_array(each, name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "g", starts, ends, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize("used", ["a", "b", "c", "ab", "bc", "abc"])
def test_codes_go_through(used: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    samples = [rng.normal(0, 1, (3, 12)).astype(np.float32) for _ in range(3)]
    found = pq.calibrate(pq.onnx.load(model(used)), samples)
    own = found.model()
    how = {part.name: node.how for node in own.nodes for part in node.parts}
    assert how["split"] == "codes moved"
    assert {how[name] for name in ("first", *used)} == {"INT8 matmul"}
    assert own.graph.tensors["r:codes"].qparams == own.graph.tensors[f"{used[-1]}:codes"].qparams
    found.save(tmp_path / "int8.onnx")
    session = onnxruntime.InferenceSession(
        str(tmp_path / "int8.onnx"), providers=["CPUExecutionProvider"]
    )
    results = own.run({"x": samples[0]})
    for name, wanted in zip(results, session.run(None, {"x": samples[0]}), strict=True):
        assert pq.quantize.quality(wanted, results[name]).sqnr > 35  # codes that part at ties
