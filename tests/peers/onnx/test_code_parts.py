"""Operations on codes that no one pass does: compiled as well, with the codes of onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime

import pyonednn_q as pq
from pyonednn_q.network import PythonCall
from support.peers.small_models import floats, make, model, ready

Array = np.ndarray[Any, Any]

SCALES = {"xs": np.float32(0.05), "zs": np.float32(0.031), "ys": np.float32(0.07)}
POINTS = {"xp": np.uint8(120), "zp": np.int8(-3), "yp": np.uint8(131)}
SAME = {"ys": SCALES["xs"], "yp": POINTS["xp"]}
CASES: dict[str, tuple[list[Any], Mapping[str, Array]]] = {
    **{
        f"{operator} of a constant of {'x'.join(map(str, dims))}": (
            [make(operator, ["x", "c"], ["y"])], {"c": floats(*dims)},
        )
        for operator in ("Add", "Sub", "Mul", "Div")
        for dims in ((4, 1, 1), (5,), (2, 4, 3, 5))
    },
    "from a constant": ([make("Sub", ["c", "x"], ["y"])], {"c": floats(4, 1, 1)}),
    "of both, broadcast": ([make("Mul", ["x", "z"], ["y"])], {}),
    "behind a sum": ([make("Add", ["x", "c"], ["s"]), make("Relu", ["s"], ["y"])],
                     {"c": floats(4, 1, 1)}),
    "a mean of rows": ([make("ReduceMean", ["x"], ["y"], axes=[3], keepdims=1)], {}),
    "of the last": ([make("Softmax", ["x"], ["y"], axis=1)], {}),
    "taken": ([make("Gather", ["x", "at"], ["y"], axis=2)], {"at": np.array([2, 0]), **SAME}),
    "one taken": ([make("Gather", ["x", "one"], ["y"], axis=1)], {"one": np.array(-1), **SAME}),
    "space": ([make("DepthToSpace", ["x"], ["y"], blocksize=2)], SAME),
    "backwards": (
        [make("Slice", ["x", "from", "to", "axes", "steps"], ["y"])],
        {"from": np.array([-1]), "to": np.array([-9]), "axes": np.array([3]),
         "steps": np.array([-1]), **SAME},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_codes_are_those_of_onnxruntime(name: str) -> None:
    nodes, constants = CASES[name]
    inputs = {"x_codes": np.random.default_rng(1).integers(0, 256, (2, 4, 3, 5), np.uint8)}
    types = {"x_codes": 2, "z_codes": 3, "y": 2}
    if any("z" in node.input for node in nodes):
        inputs["z_codes"] = np.random.default_rng(2).integers(-128, 128, (4, 1, 5), np.int8)
    around = [
        *(make("DequantizeLinear", [f"{n[0]}_codes", f"{n[0]}s", f"{n[0]}p"], [n[0]])
          for n in inputs),
        *(make(n.op_type, n.input, ["r" if o == "y" else o for o in n.output]) for n in nodes),
        make("QuantizeLinear", ["r", "ys", "yp"], ["y"]),
    ]  # fmt: skip
    for one, other in zip(around[len(inputs) : -1], nodes, strict=True):
        one.attribute.extend(other.attribute)
    dims = {each: array.shape for each, array in inputs.items()}
    proto = model(around, dims, {**SCALES, **POINTS, **constants}, types=types)
    own = ready(proto)
    network = own.network()
    assert not [node.dst for node in network.nodes if isinstance(node.runs, PythonCall)]
    result = network(*inputs.values())["y"]
    np.testing.assert_array_equal(result, own.run(inputs)["y"])
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), plain)
    (wanted,) = session.run(None, inputs)
    steps = np.abs(result.astype(int) - wanted)
    # Sums and exponentials in another order fall on the other side of a tie now and then.
    assert steps.max() <= (0 if nodes[0].op_type not in {"ReduceMean", "Softmax"} else 1)
    assert (steps != 0).mean() < 0.02
    assert pq.onnx.fuse(pq.onnx.load(proto)).nodes
