"""What a large model takes of memory from its file to a call in INT8, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

import onnx
from onnx import helper, numpy_helper

CHILD = """
import resource, sys
import numpy as np
import onnx
import pyonednn_q as pq

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

x = np.ones((2, 1024), np.float32)
warm = pq.InnerProduct(np.ones((8, 1024), np.float32))(x)
before = peak()
graph = pq.onnx.load(sys.argv[1])
loaded = peak()
own = pq.calibrate(graph, [x]).model()
own.run({"x": x})
assert [node.how for node in own.nodes].count("INT8 matmul") == int(sys.argv[2])
print(loaded - before, peak() - before)
"""
SIDE, COUNT = 1024, 24


@pytest.mark.parametrize("is_external", [False, True])
def test_memory_is_in_proportion(is_external: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    nodes, held, value = [], [], "x"
    for at in range(COUNT):
        wei = rng.normal(0, 1 / 32, (SIDE, SIDE)).astype(np.float32)
        held.append(numpy_helper.from_array(wei, f"w{at}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{at}"], [f"h{at}"]))
        nodes.append(helper.make_node("Relu", [f"h{at}"], [f"r{at}"]))
        value = f"r{at}"
    start, end = (helper.make_tensor_value_info(name, 1, ["n", SIDE]) for name in ("x", value))
    graph = helper.make_graph(nodes, "large", [start], [end], held)
    opsets = [helper.make_opsetid("", 17)]
    proto: Any = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path = tmp_path / "large.onnx"
    onnx.save(proto, path, save_as_external_data=is_external, location="large.data")
    command = [sys.executable, "-c", CHILD, str(path), str(COUNT)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    loaded, whole = (int(each) for each in out.split())
    nbytes = 4 * SIDE * SIDE * COUNT
    assert loaded < 2.5 * nbytes
    assert whole < 2.5 * nbytes
