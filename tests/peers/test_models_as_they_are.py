"""Models as exporters write them: old opsets, functions, branches, lengths known from Shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.onnx.qdq_form import qdq_form

Array = np.ndarray[Any, Any]
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


def test_dims_that_follow_from_dims_are_constants() -> None:
    proto = model(FLATTENED, {"x": ["n", 3, 4]}, PARTS)
    form = qdq_form(pq.onnx.load(proto, dims={"n": 2}))
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
    form = qdq_form(pq.onnx.load(proto, dims={"x": (3, 5)}))
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
    names = [str(node) for node in own.bound().graph.nodes]
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


def test_open_lengths_are_bound_by_calls() -> None:
    proto = model(FLATTENED, {"x": ["n", 3, "m"]}, PARTS)
    own = ready(proto)
    for batch in (2, 5, 2):
        x = {"x": floats(batch, 3, 4)}
        np.testing.assert_allclose(own.run(x)["y"], theirs(proto, x), rtol=1e-4, atol=1e-5)
    network = own.network()
    with pytest.raises(ShapeError, match=r"x: got \(5, 3, 4\); wanted \(2, 3, 4\)"):
        network(floats(5, 3, 4))
    assert own.bound({"x": (5, 3, 4)}) is own.bound({"x": (5, 3, 4)})


def test_lengths_that_do_not_fit_name_the_input() -> None:
    nodes = [make("Add", ["x", "z"], ["y"])]
    own = ready(model(nodes, {"x": ["n", 3], "z": ["n", 3]}, {}))
    with pytest.raises(ArgumentError, match=r"dims: got open ones: 'x' of \[n, 3\], 'z' of"):
        own.network()
    with pytest.raises(ShapeError, match=r"inputs\['x'\]: got \(2, 4\); wanted \[n, 3\]"):
        own.run({"x": floats(2, 4), "z": floats(2, 3)})
    with pytest.raises(ShapeError, match=r"inputs\['z'\].* wanted n = 2, as 'x' has"):
        own.run({"x": floats(2, 3), "z": floats(4, 3)})


def test_lengths_of_other_calls_are_dropped_in_turn() -> None:
    own = ready(model(FLATTENED, {"x": ["n", 3, 4]}, PARTS))
    from pyonednn_q.ops.shapes import limit_shapes

    try:
        limit_shapes(count=4)
        first = own.bound({"x": (1, 3, 4)})
        for batch in range(2, 12):
            own.run({"x": floats(batch, 3, 4)})
        assert own.bound({"x": (1, 3, 4)}) is not first
    finally:
        limit_shapes(count=1024)


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
    own, ids = ready(proto), RNG.integers(0, 7, (2, 3))
    wanted = theirs(proto, {"ids": ids})
    np.testing.assert_allclose(own.run({"ids": ids})["y"], wanted, rtol=1e-6)
    network = own.network()
    np.testing.assert_allclose(network(ids)["y"], wanted, rtol=1e-6)
    assert "reference" in own.report()


def test_indices_and_scalars_are_results() -> None:
    nodes = [make("ArgMax", ["x"], ["at"], axis=1), make("ReduceMax", ["at"], ["y"], keepdims=0)]
    proto, x = model(nodes, {"x": [3, 4]}, {}, types={"y": 7}), {"x": floats(3, 4)}
    result = ready(proto).network()(x["x"])["y"]
    assert (result.dtype, result.shape) == (np.int64, ())
    assert result == theirs(proto, x)


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_a_model_without_int8_is_told_of(
    is_calibrated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    proto = model(FLATTENED, {"x": ["n", 3, 4]}, PARTS)
    graph = pq.onnx.load(proto)
    x = {"x": floats(2, 3, 4)}
    own = pq.calibrate(graph, [x]).model() if is_calibrated else ready(proto)
    own.run(x)
    told = [each.getMessage() for each in caplog.records]
    wanted = "none of 1 layers runs in INT8; of most, because of: a float source, from Reshape"
    assert [each.startswith(wanted) for each in told] == ([] if is_calibrated else [True])


@pytest.mark.parametrize("form", ["qdq", "fake_quantize"])
def test_open_lengths_stay_open_in_int8(form: str, tmp_path: Path) -> None:
    """A convolution, a batch norm by itself, and a head behind a Reshape by computed dims."""
    ones = {name: np.abs(floats(3)) + 1 for name in ("s", "m", "v", "b2")}
    nodes = [
        make("Identity", ["x"], ["same"]),
        make("Conv", ["same", "k"], ["h"], pads=[1, 1, 1, 1]),
        make("Relu", ["h"], ["r"]),
        make("Concat", ["r", "same"], ["both"], axis=1),
        make("GlobalAveragePool", ["both"], ["pooled"]),
        make("BatchNormalization", ["pooled", "s", "b2", "m", "v"], ["normal"]),
        *(make(n.op_type, [{"x": "normal"}.get(i, i) for i in n.input], list(n.output), **{
            each.name: helper.get_attribute_value(each) for each in n.attribute
        }) for n in FLATTENED),
    ]  # fmt: skip
    known = {**PARTS, **ones, "k": floats(2, 1, 3, 3), "w": floats(5, 3)}
    proto = model(nodes, {"x": ["n", 1, "height", "width"]}, known)
    batches = [{"x": floats(*dims)} for dims in ((2, 1, 6, 8), (1, 1, 9, 5), (3, 1, 4, 4))]
    found = pq.calibrate(pq.onnx.load(proto), batches)
    own = found.model()
    found.save(tmp_path / "int8.onnx", form=form)
    graph = pq.onnx.load(tmp_path / "int8.onnx")
    assert graph.symbols == {"x": ("n", 1, "height", "width")}
    again = pq.onnx.Model(pq.onnx.fuse(graph, keep_rounding=False))
    larger = [{"x": np.concatenate([each["x"]] * 3)} for each in batches]
    for x in (*batches, *larger):  # a range holds what it came from
        real, result = theirs(proto, x), own.run(x)["y"]
        hows = [node.how for node in own.bound().graph.nodes if node.how.startswith("INT8")]
        assert hows == ["INT8 convolution", "INT8 convolution", "INT8 inner_product"]
        assert np.linalg.norm(result - real) < 0.05 * np.linalg.norm(real)
        np.testing.assert_array_equal(again.run(x)["y"], result)
    assert "INT8 inner_product" in found.summary()
    if form == "qdq":
        saved = onnx.load(tmp_path / "int8.onnx")
        real, result = theirs(saved, larger[0]), own.run(larger[0])["y"]
        assert np.linalg.norm(result - real) < 0.05 * np.linalg.norm(real)


def halves(dtype: int) -> onnx.ModelProto:
    """Return a model whose weights, source and result are of 16 bits."""
    nodes = [
        make("Conv", ["x", "k", "b"], ["h"]),
        make("Relu", ["h"], ["r"]),
        make("Cast", ["r"], ["c"], to=dtype),
        make("Mul", ["c", "two"], ["y"]),
    ]
    known = {"k": floats(4, 3, 3, 3), "b": floats(4), "two": np.float32(2)}
    proto = model(nodes, {"x": ["n", 3, 8, 8]}, {}, types={"x": dtype, "y": dtype})
    stored = helper.tensor_dtype_to_np_dtype(dtype)
    for name, array in known.items():
        proto.graph.initializer.append(numpy_helper.from_array(array.astype(stored), name))
    return proto


def test_a_model_of_float16_is_int8_in_between() -> None:
    proto, x = halves(10), {"x": floats(2, 3, 8, 8).astype(np.float16)}
    graph = pq.onnx.load(proto)
    assert graph.constants["k"].dtype == np.float32
    wanted = theirs(proto, x).astype(np.float64)
    result = ready(proto).run(x)["y"]
    assert result.dtype == np.float16
    # Sums of 27 products and a bias, each stored in 11 bits, against one rounding of the exact sum.
    np.testing.assert_allclose(result, wanted, rtol=2**-9, atol=2**-9)
    own = pq.calibrate(graph, [x]).model()
    codes = own.run(x)["y"]
    assert codes.dtype == np.float16
    assert np.linalg.norm(codes - wanted) < 0.05 * np.linalg.norm(wanted)
    assert [n.how for n in own.bound().graph.nodes if "conv" in n.how] == ["INT8 convolution"]


def test_a_model_of_bfloat16_is_read() -> None:
    graph = pq.onnx.load(halves(16))
    assert {each.dtype.name for each in graph.constants.values()} == {"float32"}
    assert graph.inputs["x"].dtype == "bfloat16"


def test_a_branch_by_a_value_runs_in_python() -> None:
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
    for x in (np.float32([1, -2]), np.float32([-1, -2, -3])):
        np.testing.assert_array_equal(own.run({"x": x})["y"], theirs(proto, {"x": x}))
    assert len(own.network().nodes) == 3


def test_what_the_default_exporter_of_torch_writes_is_int8() -> None:
    """Dims of the batch by Shape and Concat, names and attributes as torch.export has them."""
    window = {"dilations": [1, 1], "strides": [2, 2], "auto_pad": "NOTSET"}
    nodes = [
        make("Conv", ["x", "conv.weight", "conv.bias"], ["conv2d"], group=1, pads=[1] * 4),
        make("Relu", ["conv2d"], ["relu"]),
        make("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], storage_order=0, **window),
        make("Shape", ["x"], ["val_0"], start=0, end=1),
        make("Concat", ["val_0", "val_1"], ["val_2"], axis=0),
        make("Reshape", ["pool", "val_2"], ["view"], allowzero=1),
        make("Gemm", ["view", "fc.weight", "fc.bias"], ["y"], transB=1, alpha=1.0, beta=1.0),
    ]
    known = {
        "conv.weight": floats(8, 3, 3, 3),
        "conv.bias": floats(8),
        "val_1": np.array([128]),
        "fc.weight": floats(10, 128),
        "fc.bias": floats(10),
    }
    proto = model(nodes, {"x": ["s77", 3, 8, 8]}, known, 20)
    batches = [floats(4, 3, 8, 8), floats(2, 3, 8, 8)]
    own = pq.calibrate(pq.onnx.load(proto), batches).model()
    for x in batches:
        real, result = theirs(proto, {"x": x}), own.run({"x": x})["y"]
        assert np.linalg.norm(result - real) < 0.05 * np.linalg.norm(real)
    hows = [node.how for node in own.bound().graph.nodes]
    moved = ["codes moved"] * 2
    assert hows == ["quantizer", "INT8 convolution", *moved, "INT8 inner_product"]
    assert len(own.network().nodes) == 5
