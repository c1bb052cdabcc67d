"""Layers in bf16, computed in this process: a child runs them where there is no bf16."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.primitive import TensorSpec

Array = np.ndarray[Any, Any]


def arrays() -> tuple[Array, Array]:
    """Return a source of 4 rows and weights of 8 inputs and 16 outputs: whole numbers."""
    rng = np.random.default_rng(3)
    wei = rng.integers(-1000, 1000, (16, 8)).astype(np.float32)
    x = rng.integers(-1000, 1000, (4, 8)).astype(np.float32)
    return x, wei.T


def operator() -> tuple[str, Array]:
    """Return what a network of one operator says of itself, and its result."""
    x, wei = arrays()
    net = pq.network.sequential(pq.MatMul(wei))
    found = pq.calibrate(net, [x], floats={"matmul1": "bf16"})
    steps = found.network.compile({"x": TensorSpec.of(x, "x")}).describe()
    return f"{found.summary()}\n{steps}", found.network(x)["matmul1"]


def layer() -> tuple[str, Array]:
    """Return what a model of one layer says of itself, and its result."""
    from onnx import helper, numpy_helper

    x, wei = arrays()
    ends = [helper.make_tensor_value_info(*each) for each in (("x", 1, (4, 8)), ("y", 1, (4, 16)))]
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "dense")
    constants = [numpy_helper.from_array(wei, "w")]
    graph = helper.make_graph([node], "layer", ends[:1], ends[1:], constants)
    imports = [helper.make_opsetid("", 20)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    found = pq.calibrate(pq.onnx.load(model), [x], floats={"dense": "bf16"})
    ready = found.model()
    network = ready.network()
    assert np.array_equal(network(x)["y"], ready.run({"x": x})["y"])
    steps = network.compile({"x": TensorSpec.of(x, "x")}).describe()
    return f"{found.summary()}\n{steps}", network(x)["y"]
