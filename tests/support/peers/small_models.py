"""Small models that tests write, and what onnxruntime and we make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.network import PythonCall

__all__ = ["FLATTENED", "PARTS", "Case", "compiled", "floats", "make", "model", "ready", "theirs"]

Array = np.ndarray[Any, Any]
Case = tuple[list[Any], Mapping[str, Array], Mapping[str, Any]]
RNG = np.random.default_rng(5)
make = helper.make_node


def floats(*dims: int) -> Array:
    """Return normal numbers."""
    return RNG.normal(0, 1, dims).astype(np.float32)


def model(
    nodes: list[Any],
    inputs: Mapping[str, Any],
    constants: Mapping[str, Any],
    opset: int = 17,
    functions: Any = (),
    types: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """Return a model to y, of inputs of float32 unless `types` says otherwise."""
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    known = types or {}
    starts = [helper.make_tensor_value_info(n, known.get(n, 1), dims) for n, dims in inputs.items()]
    end = helper.make_tensor_value_info("y", known.get("y", 1), None)
    graph = helper.make_graph(nodes, "graph", starts, [end], held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)


def theirs(proto: onnx.ModelProto, arrays: Mapping[str, Array]) -> Array:
    """Return what onnxruntime makes of it."""
    data, run_on = proto.SerializeToString(), ["CPUExecutionProvider"]
    (result,) = onnxruntime.InferenceSession(data, providers=run_on).run(None, dict(arrays))
    return np.asarray(result)


def ready(proto: onnx.ModelProto, **dims: Any) -> pq.onnx.Model:
    """Return our model."""
    return pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto, dims=dims)))


def compiled(case: Case, **types: int) -> tuple[Array, Array, pq.onnx.Model]:
    """Return our result in one compiled program, that of onnxruntime, and our model."""
    nodes, inputs, constants = case
    dims = {name: each.shape for name, each in inputs.items()}
    proto = model(nodes, dims, constants, types=types)
    own = ready(proto)
    network = own.network()
    assert not [node.dst for node in network.nodes if isinstance(node.runs, PythonCall)]
    result = network(*inputs.values())["y"]
    np.testing.assert_array_equal(result, own.run(inputs)["y"])
    return result, theirs(proto, inputs), own


FLATTENED = [
    make("Shape", ["x"], ["dims"]),
    make("Gather", ["dims", "zero"], ["batch"]),
    make("Unsqueeze", ["batch", "axis"], ["row"]),
    make("Concat", ["row", "rest"], ["shape"], axis=0),
    make("Reshape", ["x", "shape"], ["flat"]),
    make("Gemm", ["flat", "w", "b"], ["y"], transB=1),
]
PARTS = {
    "zero": np.int64(0),
    "axis": np.array([0]),
    "rest": np.array([-1]),
    "w": floats(5, 12),
    "b": floats(5),
}
