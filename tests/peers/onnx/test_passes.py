"""Passes before a graph is fused: each keeps what the model means, and says what it did."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

from pyonednn_q.graph.change import Change, traced  # noqa: E402
from pyonednn_q.onnx.passes import prepared  # noqa: E402


def model() -> Any:
    """A convolution behind which a Dropout, and a Reshape whose dims are computed, stand."""
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(0, 1, (8, 3, 3, 3)).astype(np.float32),
        "at": np.array(0),
        "axes": np.array([0]),
        "rest": np.array([-1]),
        "w2": rng.normal(0, 1, (288, 10)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"),
        helper.make_node("Dropout", ["a"], ["d"], "drop"),
        helper.make_node("Shape", ["d"], ["s"], "shape"),
        helper.make_node("Gather", ["s", "at"], ["n"], "gather"),
        helper.make_node("Unsqueeze", ["n", "axes"], ["n1"], "unsqueeze"),
        helper.make_node("Concat", ["n1", "rest"], ["dims"], "concat", axis=0),
        helper.make_node("Reshape", ["d", "dims"], ["f"], "reshape"),
        helper.make_node("Gemm", ["f", "w2"], ["y"], "dense"),
    ]
    ends = [[helper.make_tensor_value_info("x", 1, [2, 3, 8, 8])]]
    ends.append([helper.make_tensor_value_info("y", 1, [2, 10])])
    constants = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "g", *ends, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_every_pass_says_what_it_promises() -> None:
    for each in {each for passes in pq.onnx.PASSES.values() for each in passes}:
        first, _, rest = (each.__doc__ or "").partition("\n")
        assert first.endswith("."), each.__name__
        assert "Parameters" in rest


def test_a_trace_names_what_nodes_became() -> None:
    graph = prepared(pq.onnx.load(model()))
    changes = graph.changes
    assert [node.name for node in graph.nodes] == ["conv", "reshape", "dense"]
    gone = {name: (each.before, each.after) for each in changes for name in each.originals}
    assert gone == {
        "drop": (("Dropout",), ()),
        "shape": (("Shape",), ()),
        "gather": (("Gather",), ()),
        "unsqueeze": (("Unsqueeze",), ()),
        "concat": (("Concat",), ()),
    }
    text = traced(changes)
    assert "  drop: Dropout -> nothing that runs" in text
    again = prepared(graph)
    assert (again, again.changes) == (graph, graph.changes)


def test_a_node_of_codes_is_told_with_its_quantizers() -> None:
    codes = np.array([[1, -2], [3, 4]], np.int8)
    arrays: dict[str, Any] = {
        "s": np.float32(0.5),
        "z": np.uint8(3),
        "w": codes,
        "ws": np.float32(0.25),
        "wz": np.int8(0),
    }
    node = helper.make_node(
        "QLinearMatMul", ["x", "s", "z", "w", "ws", "wz", "s", "z"], ["y"], "product"
    )
    ends = [[helper.make_tensor_value_info(name, 2, [1, 2])] for name in "xy"]
    constants = [numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items()]
    made = helper.make_model(helper.make_graph([node], "g", *ends, constants))
    fused = pq.onnx.fuse(pq.onnx.load(made))
    change, *_, layer = fused.changes
    assert isinstance(change, Change)
    assert change.originals == ("product",)
    assert change.before == ("QLinearMatMul",)
    assert sorted(change.after) == [
        "DequantizeLinear",
        "DequantizeLinear",
        "MatMul",
        "QuantizeLinear",
    ]
    assert (layer.by, layer.originals, layer.after) == ("with_calls", ("product",), ("MatMul",))


def test_what_fuse_makes_is_a_graph() -> None:
    fused = pq.onnx.fuse(pq.onnx.load(model()), exact_rounding=True)
    assert type(fused) is pq.graph.Graph
    assert fused.options["exact_rounding"]
    assert "dense" in str(fused)
    assert fused._repr_html_().count("<svg") == 1
    again = pickle.loads(pickle.dumps(fused))
    x = np.random.default_rng(1).normal(0, 1, (2, 3, 8, 8)).astype("f4")
    results = [pq.onnx.Model(each)(x) for each in (fused, again, pq.onnx.load(model()))]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    with pytest.raises(pq.ArgumentError, match="nodes that run"):
        fused.to_json()


def test_tensors_between_nodes_have_open_lengths() -> None:
    proto = model()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    graph = pq.onnx.load(proto)
    assert graph.tensors[graph.nodes[0].outputs[0]].lengths[0] == "n"
    assert "float32[n, " in str(graph).partition("node")[2]
    data = pq.onnx.load(proto, dims={"n": 2})
    assert data.tensors[data.nodes[0].outputs[0]].lengths == ()


def test_a_calibration_says_why_tensors_become_codes() -> None:
    rng = np.random.default_rng(1)
    found = pq.calibrate(pq.onnx.load(model()), [rng.normal(0, 1, (2, 3, 8, 8)).astype("f4")])
    whys = {each.originals[0]: each.why for each in found.changes}
    assert whys == {"x": "a source of conv", "reshape": "a source of dense", "conv": whys["conv"]}
    assert whys["conv"] == "a source of dense"
    changes = found.model().graph.changes
    assert set(found.changes) <= set(changes)
