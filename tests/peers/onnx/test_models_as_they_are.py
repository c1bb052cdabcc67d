"""Models as exporters write them: old opsets, functions, branches, lengths known from Shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.onnx.passes import prepared
from support.peers.small_models import FLATTENED, PARTS, floats, make, model, ready, theirs


def squeezed(opset: int) -> onnx.ModelProto:
    """Return a model whose operators were written otherwise before opset 13."""
    nodes = [
        make("Clip", ["x"], ["clipped"], min=-1.0, max=1.0),
        make("Unsqueeze", ["clipped"], ["wide"], axes=[1]),
        make("Squeeze", ["wide"], ["same"], axes=[1]),
        make("Softmax", ["same"], ["soft"], axis=1),
        make("Split", ["soft"], ["one", "two"], axis=2, split=[1, 3]),
        make("ReduceSum", ["two"], ["sum"], axes=[2], keepdims=1),
        make("Add", ["one", "sum"], ["y"]),
    ]
    if opset > 10:
        nodes[0] = make("Clip", ["x", "lo", "hi"], ["clipped"])
    ends = {"lo": np.float32(-1), "hi": np.float32(1)} if opset > 10 else {}
    return model(nodes, {"x": ["n", 3, 4]}, ends, opset)


@pytest.mark.parametrize("opset", range(7, 13))
def test_old_opsets_are_one(opset: int) -> None:
    proto, x = squeezed(opset), {"x": floats(2, 3, 4)}
    graph = pq.onnx.load(proto)
    assert graph.opset == 13
    found = ready(proto).run(x)["y"]
    np.testing.assert_allclose(found, theirs(proto, x), rtol=1e-6)


def test_what_no_rule_says_keeps_its_opset() -> None:
    scales = {"s": np.array([1, 1, 1.25, 1.25], np.float32)}
    proto = model([make("Upsample", ["x", "s"], ["y"])], {"x": [1, 1, 4, 4]}, scales, 9)
    assert pq.onnx.load(proto).opset == 9


def test_dims_that_follow_from_dims_are_constants() -> None:
    proto = model(FLATTENED, {"x": ["n", 3, 4]}, PARTS)
    form = prepared(pq.onnx.load(proto, dims={"n": 2}))
    assert [node.operator for node in form.nodes] == ["Reshape", "Gemm"]
    assert form.tensors["flat"].dims == (2, 12)


def test_ranges_masks_and_grids_are_constants() -> None:
    nodes = [
        make("Shape", ["x"], ["dims"]),
        make("Gather", ["dims", "last"], ["length"]),
        make("Range", ["zero", "length", "one"], ["steps"]),
        make("Cast", ["steps"], ["places"], to=1),
        make("ConstantOfShape", ["dims"], ["none"]),
        make("Add", ["none", "places"], ["grid"]),
        make("Less", ["grid", "two"], ["mask"]),
        make("Where", ["mask", "x", "grid"], ["y"]),
    ]
    known = {"zero": np.int64(0), "one": np.int64(1), "last": np.int64(1), "two": np.float32(2)}
    proto, x = model(nodes, {"x": ["n", "m"]}, known), {"x": floats(3, 5)}
    form = prepared(pq.onnx.load(proto, dims={"x": (3, 5)}))
    assert [node.operator for node in form.nodes] == ["Where"]
    np.testing.assert_array_equal(ready(proto).run(x)["y"], theirs(proto, x))


def branches() -> onnx.ModelProto:
    """Return a model that squeezes where a dim is 1, as exporters write it."""

    def branch(name: str, node: Any) -> Any:
        out = helper.make_tensor_value_info(node.output[0], 1, None)
        axes = numpy_helper.from_array(np.array([1]), f"{name}_axes")
        return helper.make_graph([node], name, [], [out], [axes])

    one = branch("one", make("Squeeze", ["z", "one_axes"], ["inner"]))
    other = branch("other", make("Identity", ["z"], ["inner2"]))
    nodes = [
        make("Relu", ["x"], ["z"]),
        make("Shape", ["z"], ["dims"]),
        make("Gather", ["dims", "at"], ["length"]),
        make("Equal", ["length", "wanted"], ["is_one"]),
        make("If", ["is_one"], ["r"], then_branch=one, else_branch=other),
        make("Mul", ["r", "factor"], ["y"]),
    ]
    known = {"at": np.int64(1), "wanted": np.int64(1), "factor": np.float32(3)}
    return model(nodes, {"x": ["n", "m", 2]}, known)


@pytest.mark.parametrize("length", [1, 4])
def test_the_branch_that_is_taken_is_put_in(length: int) -> None:
    proto, x = branches(), {"x": floats(3, length, 2)}
    own = ready(proto)
    np.testing.assert_array_equal(own.run(x)["y"], theirs(proto, x))
    names = [str(node) for node in own.nodes]
    assert "If" not in names
    assert ("Squeeze" in names) == (length == 1)


def test_a_graph_with_branches_is_a_value() -> None:
    graph = pq.onnx.load(branches())
    assert type(graph).from_json(graph.to_json()) == graph
    assert graph.symbols == {"x": ("n", "m", 2)}


def own_function(name: str, *called: str) -> Any:
    """Return a function y = called(called(x)), or max(x, 0)."""
    node = make("Relu", ["x"], ["y"])
    nodes = [node] if not called else []
    for at, each in enumerate(called):
        ends = ["x" if not at else f"t{at}"], ["y" if at + 1 == len(called) else f"t{at + 1}"]
        nodes.append(make(each, *ends, domain="own"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["x"], ["y"], nodes, opsets)


def test_functions_are_written_out() -> None:
    functions = [own_function("Outer", "Inner", "Inner"), own_function("Inner")]
    proto = model([make("Outer", ["x"], ["y"], domain="own")], {"x": [2]}, {}, 17, functions)
    assert [node.operator for node in pq.onnx.load(proto).nodes] == ["Relu", "Relu"]
    x = {"x": floats(2)}
    np.testing.assert_array_equal(ready(proto).run(x)["y"], theirs(proto, x))


def test_functions_that_grow_without_end_are_refused() -> None:
    doubling = [own_function(f"F{at}", f"F{at + 1}", f"F{at + 1}") for at in range(40)]
    node = make("F0", ["x"], ["y"], domain="own")
    proto = model([node], {"x": [2]}, {}, 17, [*doubling, own_function("F40")])
    with pytest.raises(ArgumentError, match="nodes with those of functions"):
        pq.onnx.load(proto)
    proto = model([node], {"x": [2]}, {}, 17, [own_function("F0", "F0")])
    with pytest.raises(ArgumentError):
        pq.onnx.load(proto)


def test_indices_conditions_and_scalars_lie_between_nodes() -> None:
    nodes = [
        make("Gather", ["table", "ids"], ["rows"]),
        make("Cast", ["ids"], ["mask"], to=9),
        make("Unsqueeze", ["mask", "axis"], ["wide"]),
        make("Where", ["wide", "rows", "zero"], ["kept"]),
        make("ReduceMean", ["kept"], ["mean"], keepdims=0),
        make("Add", ["kept", "mean"], ["y"]),
    ]
    known = {"table": floats(7, 4), "axis": np.array([2]), "zero": np.float32(0)}
    proto = model(nodes, {"ids": ["n", "m"]}, known, types={"ids": 7})
    own, ids = ready(proto), np.random.default_rng(3).integers(0, 7, (2, 3))
    wanted = theirs(proto, {"ids": ids})
    # A mean of 24 terms below 4, in float32, in another order.
    np.testing.assert_allclose(own.run({"ids": ids})["y"], wanted, rtol=0, atol=24 * 2.0**-22)
    network = own.network()
    np.testing.assert_allclose(network(ids)["y"], wanted, rtol=0, atol=24 * 2.0**-22)
    assert "reference" in own.report()


def test_indices_and_scalars_are_results() -> None:
    nodes = [make("ArgMax", ["x"], ["at"], axis=1), make("ReduceMax", ["at"], ["y"], keepdims=0)]
    proto, x = model(nodes, {"x": [3, 4]}, {}, types={"y": 7}), {"x": floats(3, 4)}
    result = ready(proto).network()(x["x"])["y"]
    assert (result.dtype, result.shape) == (np.int64, ())
    assert result == theirs(proto, x)


def test_a_branch_by_a_value_is_that_of_the_call() -> None:
    def branch(name: str, operator: str) -> Any:
        out = helper.make_tensor_value_info(name, 1, None)
        return helper.make_graph([make(operator, ["x"], [name])], name, [], [out])

    nodes = [
        make("ReduceMax", ["x"], ["most"], keepdims=0),
        make("Greater", ["most", "zero"], ["is_above"]),
        make(
            "If",
            ["is_above"],
            ["y"],
            then_branch=branch("one", "Neg"),
            else_branch=branch("other", "Abs"),
        ),
    ]
    proto = model(nodes, {"x": ["n"]}, {"zero": np.float32(0)})
    own = ready(proto)
    for x in (np.array([1, -2], np.float32), np.array([-1, -2, -3], np.float32)):
        np.testing.assert_array_equal(own.run({"x": x})["y"], theirs(proto, {"x": x}))
    assert len(own.network().nodes) == 1  # the last call chose its branch
