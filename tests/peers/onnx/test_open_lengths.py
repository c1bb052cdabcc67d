"""Lengths that a model leaves open: bound by calls, calibrated at several, kept when saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, ShapeError
from support.peers.small_models import FLATTENED, PARTS, floats, make, model, ready, theirs


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
        hows = [node.how for node in own.nodes if node.how.startswith("INT8")]
        assert hows == ["INT8 convolution", "INT8 convolution", "INT8 inner_product"]
        assert np.linalg.norm(result - real) < 0.05 * np.linalg.norm(real)
        np.testing.assert_array_equal(again.run(x)["y"], result)
    assert "INT8 inner_product" in found.summary()
    if form == "qdq":
        saved = onnx.load(tmp_path / "int8.onnx")
        real, result = theirs(saved, larger[0]), own.run(larger[0])["y"]
        assert np.linalg.norm(result - real) < 0.05 * np.linalg.norm(real)


@pytest.mark.parametrize("form", ["qdq", "fake_quantize"])
def test_an_output_of_codes_is_written_once(form: str, tmp_path: Path) -> None:
    proto = model(FLATTENED, {"x": ["n", 3, 4]}, PARTS)
    x = {"x": floats(2, 3, 4)}
    config = {"algorithm": "quantization", "quantize_outputs": True}
    found = pq.calibrate(proto, [x], config=config)
    made = [name for node in found.graph.nodes for name in node.outputs]
    assert len(made) == len({*made})
    found.save(tmp_path / "int8.onnx", form=form)
    again = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(tmp_path / "int8.onnx"), keep_rounding=False))
    np.testing.assert_array_equal(again.run(x)["y"], found.model().run(x)["y"])
    assert len(np.unique(again.run({"x": floats(50, 3, 4)})["y"])) <= 256


@pytest.mark.parametrize("is_optimized", [True, False])
def test_a_head_as_the_exporter_of_torch_writes_it(is_optimized: bool) -> None:
    """torch.onnx.export(dynamo=True) with an open batch and Flatten, before and after it folds."""
    dims = [
        make("Shape", ["x"], ["n"], start=0, end=1),
        make("Squeeze", ["n"], ["batch"]),
        make("Constant", [], ["one"], value_ints=[-1]),
        make("Reshape", ["batch", "one"], ["row"], allowzero=0),
        make("Constant", [], ["rest"], value_ints=[64]),
        make("Concat", ["row", "rest"], ["shape"], axis=0),
    ]
    folded = [make("Constant", [], ["shape"], value_ints=[-1, 64])]
    nodes = [
        make("Conv", ["x", "k"], ["h"], pads=[1, 1, 1, 1]),
        make("Relu", ["h"], ["r"]),
        make("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        *(folded if is_optimized else dims),
        make("Reshape", ["p", "shape"], ["flat"], allowzero=1),
        make("Gemm", ["flat", "w", "b"], ["y"], transB=1),
    ]
    known = {"k": floats(4, 3, 3, 3), "w": floats(10, 64), "b": floats(10)}
    proto, x = model(nodes, {"x": ["batch", 3, 8, 8]}, known, opset=20), floats(2, 3, 8, 8)
    found = pq.calibrate(pq.onnx.load(proto), [x])
    assert [node.how for node in found.model().bound({"x": x.shape}).nodes] == [
        *("quantizer", "INT8 convolution", "codes moved", "codes moved", "INT8 inner_product")
    ]
    (result,) = found.network(x).values()
    larger = {"x": np.concatenate([x] * 3)}
    real = theirs(proto, larger)
    np.testing.assert_array_equal(found.model().run(larger)["y"], np.concatenate([result] * 3))
    assert np.linalg.norm(np.concatenate([result] * 3) - real) < 0.05 * np.linalg.norm(real)


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
    assert [n.how for n in own.nodes if "conv" in n.how] == ["INT8 convolution"]


def test_a_model_of_bfloat16_is_read() -> None:
    graph = pq.onnx.load(halves(16))
    assert {each.dtype.name for each in graph.constants.values()} == {"float32"}
    assert graph.inputs["x"].dtype == "bfloat16"


def test_what_the_default_exporter_of_torch_writes_is_int8() -> None:
    """Dims of the batch by Shape and Concat, names and attributes as torch.export has them."""
    window: dict[str, Any] = {"dilations": [1, 1], "strides": [2, 2], "auto_pad": "NOTSET"}
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
    hows = [node.how for node in own.nodes]
    moved = ["codes moved"] * 2
    assert hows == ["quantizer", "INT8 convolution", *moved, "INT8 inner_product"]
    assert len(own.network().nodes) == 5


def test_a_model_is_calibrated_in_every_form_that_load_takes(tmp_path: Path) -> None:
    proto = model(FLATTENED, {"x": ["n", 3, 4]}, PARTS)
    onnx.save(proto, tmp_path / "float.onnx")
    forms = (proto, proto.SerializeToString(), tmp_path / "float.onnx", pq.onnx.load(proto))
    x = {"x": floats(2, 3, 4)}
    first, *others = (pq.calibrate(each, [x]).graph.to_json() for each in forms)
    assert others == [first] * 3
