"""What follows a layer between quantizers, one thing at a time: in its chain, and right."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import pyonednn_q as pq

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.native import runtime  # noqa: E402
from support.oracles.networks import Network  # noqa: E402
from support.oracles.node_by_node import compared  # noqa: E402

SRC = (2, 8, 9, 9)


class Quantized(Network):
    """A network with its quantizers."""

    def store(self, x: str, scale: float, point: int = 128, dtype: str = "uint8") -> str:
        q = (self.constant(np.float32(scale)), self.constant(np.array(point, dtype)))
        return self.add("DequantizeLinear", self.add("QuantizeLinear", x, *q), *q)

    def codes(self, *dims: int, axis: int | None = 0, dtype: str = "int8", point: int = 0) -> str:
        lo, hi = (-64, 65) if dtype == "int8" else (point - 64, point + 65)
        values = self.rng.integers(lo, hi, dims).astype(dtype)
        size = () if axis is None else (dims[axis],)
        scale = self.rng.uniform(1e-3, 4e-3, size).astype(np.float32)
        given = {} if axis is None else {"axis": axis}
        points = self.constant(np.full(size, point, dtype))
        q = (self.constant(scale), points)
        return self.add("DequantizeLinear", self.constant(values), *q, **given)

    def layer(self, x: str = "", oc: int = 8, **attributes: Any) -> str:
        x = x or self.store("x", 0.03)
        bias = self.constant(self.rng.normal(0, 0.3, oc).astype(np.float32))
        return self.add("Conv", x, self.codes(oc, 8, 3, 3), bias, pads=[1] * 4, **attributes)

    def end(self, x: str, scale: float = 0.02, point: int = 101) -> Any:
        self.store(x, scale, point)
        return self.model("y", ())


all_codes = pytest.mark.skipif(
    not runtime.isa().has_vnni(),
    reason="without VNNI such weights saturate, and the layers stay in floats",
)


def run(model: Any, folder: Path, src: tuple[int, ...] = SRC) -> pq.onnx.Model:
    """Return a model that was compared with onnxruntime."""
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x", 1, src))
    path = folder / "m.onnx"
    onnx.save(model, path)
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path)))
    x = np.random.default_rng(3).normal(0, 1, src).astype(np.float32)
    found = compared(ready, path, {"x": x})
    assert [each for each in found if each.wrong] == []
    assert any(each.how.startswith("INT8") for each in found)
    return ready


def chain(model: pq.onnx.Model) -> str:
    """Return the text of the only layer; no node may run in floats."""
    assert [node.why for node in model.nodes if node.why] == []
    (layer,) = [node for node in model.nodes if node.how.startswith("INT8")]
    assert len(model.nodes) <= 3
    return str(layer)


@pytest.mark.parametrize(
    ("operator", "attributes", "step"),
    [
        ("Relu", {}, "relu(x)"),
        ("LeakyRelu", {"alpha": 0.1}, "relu(x, 0.1"),
        ("LeakyRelu", {}, "relu(x, 0.01"),
        ("Elu", {"alpha": 0.5}, "elu(x, 0.5)"),
        ("Sigmoid", {}, "logistic(x)"),
        ("Tanh", {}, "tanh(x)"),
        ("HardSwish", {}, "hardswish(x"),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, "hardsigmoid(x, 0.3"),
        ("Gelu", {}, "gelu_erf(x)"),
        ("Gelu", {"approximate": "tanh"}, "gelu_tanh(x)"),
        ("Softplus", {}, "soft_relu(x, 1)"),
        ("Mish", {}, "mish(x)"),
        ("Swish", {"alpha": 1.702}, "swish(x, 1.702"),
    ],
)
def test_activations(operator: str, attributes: Any, step: str, tmp_path: Path) -> None:
    net = Quantized(11)
    model = net.end(net.add(operator, net.layer(), **attributes))
    assert step in chain(run(model, tmp_path))


def test_steps_with_constants(tmp_path: Path) -> None:
    net = Quantized(12)
    f = np.float32
    x = net.layer()
    x = net.add("Clip", x, net.constant(f(-2)), net.constant(f(3)))
    x = net.add("PRelu", x, net.constant(net.rng.uniform(0, 1, (8, 1, 1)).astype(f)))
    x = net.add("Mul", net.constant(net.rng.uniform(0.5, 2, (1, 8, 1, 1)).astype(f)), x)
    x = net.add("Add", x, net.constant(f(0.25)))
    x = net.add("Sub", net.constant(f(1)), x)
    x = net.add("Div", x, net.constant(f(2)))
    text = chain(run(net.end(x), tmp_path))
    assert "clip(x, -2, 3) > prelu" in text
    assert text.count(">") == 6


def test_batch_norm(tmp_path: Path) -> None:
    net = Quantized(13)
    given = [net.constant(net.rng.uniform(0.5, 2, 8).astype(np.float32)) for _ in range(4)]
    x = net.add("Relu", net.add("BatchNormalization", net.layer(), *given))
    model = net.end(x, point=0)
    ready = run(model, tmp_path)
    assert "relu(x)" in chain(ready)
    (layer,) = [node.runs for node in ready.nodes if isinstance(node.runs, pq.Conv)]
    assert layer.plan(SRC).post_ops == ()  # it is in scales and bias, and the relu in the store


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_residual(dtype: str, is_first: bool, tmp_path: Path) -> None:
    net = Quantized(14)
    x = net.store("x", 0.03, 3, dtype)
    way = net.layer(x)
    total = net.add("Add", *((way, x) if is_first else (x, way)))
    ready = run(net.end(net.add("Relu", total)), tmp_path)
    assert "(dst" in chain(ready)
    (layer,) = [node for node in ready.nodes if node.how.startswith("INT8")]
    assert layer.operands == {"residual": layer.inputs[0]}


def test_two_residuals_and_a_product_of_tensors(tmp_path: Path) -> None:
    """A second one comes as a tensor of floats; so does what a layer is multiplied with."""
    net = Quantized(15)
    x = net.store("x", 0.03)
    other = net.store("x", 0.01, 7)
    total = net.add("Add", net.add("Add", net.layer(x), x), other)
    ready = run(net.end(net.add("Mul", total, net.add("Relu", "x"))), tmp_path)
    (layer,) = [node for node in ready.nodes if node.how.startswith("INT8")]
    assert set(layer.operands) == {"residual", "operand1", "operand2"}


def test_a_residual_of_a_float_result(tmp_path: Path) -> None:
    net = Quantized(16)
    x = net.store("x", 0.03)
    net.add("Add", net.layer(x), x)
    ready = run(net.model("y", ()), tmp_path)
    (layer,) = [node for node in ready.nodes if node.how.startswith("INT8")]
    assert layer.output == "y"
    assert set(layer.operands) == {"operand1"}


@pytest.mark.parametrize("gate", ["Sigmoid", "HardSigmoid"])
def test_gates_that_read_the_value_twice(gate: str, tmp_path: Path) -> None:
    net = Quantized(17)
    x = net.layer()
    model = net.end(net.add("Mul", net.add(gate, x), x))
    assert "swish(x" in chain(run(model, tmp_path))


def test_values_that_several_read_are_stored(tmp_path: Path) -> None:
    """Nothing that another node needs disappears into a chain."""
    net = Quantized(18)
    x = net.layer()
    left = net.add("Relu", x)
    model = net.end(net.add("Sub", left, net.add("Tanh", x)))
    ready = run(model, tmp_path)
    (layer,) = [node for node in ready.nodes if node.how.startswith("INT8")]
    assert str(layer) == "Conv"
    whys = {str(node): node.why for node in ready.nodes if node.why}
    assert set(whys) == {
        "Relu",
        "Tanh",
        "Sub",
    }
    assert all("quantize it" in why for why in whys.values())


@all_codes
@pytest.mark.parametrize(
    "attributes", [{"strides": [2, 2]}, {"dilations": [2, 2]}, {"auto_pad": "SAME_LOWER"}]
)
@pytest.mark.parametrize("axis", [None, 0])
def test_windows(attributes: dict[str, Any], axis: int | None, tmp_path: Path) -> None:
    net = Quantized(19)
    wei = net.codes(6, 4, 3, 2, axis=axis, dtype="uint8", point=120)  # with a zero point
    x = net.add("Conv", net.store("x", 0.03), wei, group=2, **attributes)
    chain(run(net.end(x), tmp_path))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("axis", [None, 1])
def test_transposed(groups: int, axis: int | None, tmp_path: Path) -> None:
    net = Quantized(20)
    wei = net.codes(8, 3, 3, 3, axis=axis if groups == 1 else None)
    given = {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1], "group": groups}
    x = net.add("ConvTranspose", net.store("x", 0.03), wei, **given)
    assert chain(run(net.end(net.add("Relu", x)), tmp_path)) == "Deconv > relu(x)"


@pytest.mark.parametrize("is_transposed", [0, 1])
def test_gemm(is_transposed: int, tmp_path: Path) -> None:
    net = Quantized(21)
    dims = (12, 20) if is_transposed else (20, 12)
    wei = net.codes(*dims, axis=0 if is_transposed else 1)
    bias = net.constant(net.rng.normal(0, 1, (1, 12)).astype(np.float32))
    x = net.add("Gemm", net.store("x", 0.03), wei, bias, alpha=0.5, beta=2.0, transB=is_transposed)
    chain(run(net.end(x), tmp_path, (5, 20)))


def test_matmuls(tmp_path: Path) -> None:
    """Of constant weights, of three dimensions; and of two tensors that are computed."""
    net = Quantized(22)
    x = net.store("x", 0.03)
    bias = net.constant(net.rng.normal(0, 1, 24).astype(np.float32))
    keys = net.add("Add", net.add("MatMul", x, net.codes(24, 24, axis=1)), bias)
    keys = net.add("Transpose", net.store(keys, 0.02, 90), perm=[0, 2, 1])
    scores = net.add("MatMul", x, net.store(keys, 0.02, 90))
    ready = run(
        net.end(net.add("Softmax", net.store(scores, 0.05), axis=-1), 1 / 255, 0),
        tmp_path,
        (2, 7, 24),
    )
    runs = {str(node): node.how for node in ready.nodes}
    assert runs["MatMul"] == "codes computed"
    assert runs["Transpose"] == "codes moved"
    assert sum(how == "INT8 matmul" for how in runs.values()) == 1


def test_exact_rounding(tmp_path: Path) -> None:
    """Codes at ties, too: scales are powers of two, so that many values are halves."""
    net = Quantized(23)
    wei = net.constant(net.rng.integers(-3, 4, (8, 8, 1, 1)).astype(np.int8))
    half = net.constant(np.float32(0.5))
    real = net.add("DequantizeLinear", wei, half, net.constant(np.int8(0)))
    model = net.end(net.add("Conv", net.store("x", 0.5, 3), real), 1.0, 101)
    run(model, tmp_path)  # neighbours at ties are allowed there
    graph = pq.onnx.load(tmp_path / "m.onnx")
    x = {"x": np.random.default_rng(3).normal(0, 1, SRC).astype(np.float32)}
    theirs = onnx.reference.ReferenceEvaluator(str(tmp_path / "m.onnx")).run(None, x)[0]
    exact = pq.onnx.Model(pq.onnx.fuse(graph, exact_rounding=True)).run(x)["y"]
    np.testing.assert_array_equal(exact, theirs)
    plain = pq.onnx.Model(pq.onnx.fuse(graph)).run(x)["y"]
    assert 0 < np.count_nonzero(plain != theirs) < 0.6 * theirs.size


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("float source", "quantize it"),
        ("float weights", "weights of floats: quantize"),
        ("int16 source", "source codes of int16"),
        ("int4 weights", "weights"),
        ("axis", "axis 0 would do"),
    ],
)
def test_why_not(change: str, why: str) -> None:
    net = Quantized(24)
    x = "x" if change == "float source" else net.store("x", 0.03)
    if change == "int16 source":
        x = net.store("x", 0.001, 0, "int16")
    wei = net.codes(8, 8, 3, 3, axis=1 if change == "axis" else 0)
    if change == "float weights":
        wei = net.weights(8, 8, 3, 3, fan_in=72)
    if change == "int4 weights":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        codes = net.rng.integers(-8, 8, (8, 8, 3, 3)).astype(ml_dtypes.int4)
        point = net.constant(np.zeros((), ml_dtypes.int4))
        wei = net.add("DequantizeLinear", net.constant(codes), net.constant(np.float32(0.1)), point)
    model = net.end(net.add("Conv", x, wei))
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.input[0].CopyFrom(onnx.helper.make_tensor_value_info("x", 1, SRC))
    model.opset_import[0].version = 21
    model.ir_version = 10
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    (conv,) = [node for node in ready.nodes if str(node) == "Conv"]
    assert why in conv.why
    assert conv.how == "FP32 convolution"  # of what its constants mean
    assert conv.why in ready.report()
    given = np.random.default_rng(3).normal(0, 1, SRC).astype(np.float32)
    (theirs,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": given})
    assert (np.abs(ready.run({"x": given})["y"] - theirs) <= 0.021).all()  # a code


def test_a_layer_that_no_kernel_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs as the nodes that it stands for, and says why."""
    net = Quantized(25)
    x = net.store("x", 0.03)
    model = net.end(net.add("Relu", net.add("Add", net.layer(x), x)))
    ours = run(model, tmp_path)

    def refuse(*_: Any) -> None:
        raise pq.UnsupportedError("unimplemented", "create", "a convolution")

    monkeypatch.setattr(pq.Conv, "prepare", refuse)
    graph = pq.onnx.fuse(pq.onnx.load(tmp_path / "m.onnx"))
    plain = pq.onnx.Model(graph)
    conv = next(node for node in plain.nodes if str(node) == "Conv")
    assert "UnsupportedError: create: unimplemented" in conv.why
    assert not any(node.how.startswith("INT8") for node in plain.nodes)
    given = {"x": np.random.default_rng(3).normal(0, 1, SRC).astype(np.float32)}
    apart = np.abs(plain.run(given)["y"] - ours.run(given)["y"])
    assert np.count_nonzero(apart) < 10
    assert apart.max() < 0.021


def test_inputs_are_checked(tmp_path: Path) -> None:
    net = Quantized(26)
    ready = run(net.end(net.layer()), tmp_path)
    x = np.zeros(SRC, np.float32)
    wrong: Any
    for wrong in ({}, {"z": x}, {"x": x, "z": x}, {"x": x.astype(int)}, {"x": x[:1]}, [x]):
        with pytest.raises(pq.ArgumentError, match="inputs"):
            ready.run(wrong)
    for wrong in (None, 3, "model"):
        with pytest.raises(pq.ArgumentError, match="graph"):
            pq.onnx.fuse(wrong)


def fake_quantized(x: Any, lo: Any, hi: Any, levels: int) -> Any:
    """OpenVINO's definition, the same range in and out."""
    steps = np.rint((np.clip(x, lo, hi) - lo) / (hi - lo) * (levels - 1))
    return steps / (levels - 1) * (hi - lo) + lo


@all_codes
@pytest.mark.parametrize("per_channel", [True, False])
def test_fake_quantize(per_channel: bool) -> None:
    """NNCF's form: u8 activations with 0 at a level, weights of 255 levels."""
    net = Network(27)
    lo, hi = -128 * np.float64(0.03), 127 * np.float64(0.03)

    def quantize(x: str, lo: Any, hi: Any, levels: int) -> str:
        ends = [net.constant(np.asarray(each, np.float32)) for each in (lo, hi)] * 2
        return net.add("FakeQuantize", x, *ends, domain="org.openvinotoolkit", levels=levels)

    wei = net.rng.normal(0, 0.1, (8, 8, 3, 3)).astype(np.float32)
    top = np.abs(wei).max(axis=(1, 2, 3), keepdims=True) if per_channel else np.abs(wei).max()
    x = quantize("x", lo, hi, 256)
    x = net.add("Conv", x, quantize(net.constant(wei), -top, top, 255), pads=[1] * 4)
    quantize(net.add("Relu", x), 0, 255 * 0.02, 256)
    model = net.model("y", (2, 8, 9, 9), SRC)
    model.opset_import.append(onnx.helper.make_opsetid("org.openvinotoolkit", 1))
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    assert chain(ready) == "Conv > relu(x)"
    given = np.random.default_rng(3).normal(0, 1, SRC)
    source, weights = fake_quantized(given, lo, hi, 256), fake_quantized(wei, -top, top, 255)
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)
    (real,) = onnx.reference.ReferenceEvaluator(node).run(None, {"x": source, "w": weights})
    y = ready.run({"x": given.astype(np.float32)})["y"]
    steps = np.clip(np.maximum(real, 0) / 0.02, 0, 255)
    beside_ties = np.abs(np.abs(steps - np.rint(steps)) - 0.5) < 2**-8
    apart = np.abs(np.rint(y / 0.02) - np.rint(steps))
    assert np.count_nonzero(apart) < 10
    assert (apart <= beside_ties).all()


@pytest.mark.parametrize("change", ["another range out", "no level at 0", "16 levels"])
def test_fake_quantize_that_is_no_quantizer(change: str) -> None:
    net = Network(28)
    lo, hi = (-1.01, 2.0) if change == "no level at 0" else (-1.28, 1.27)
    ends = [net.constant(np.float32(each)) for each in (lo, hi, lo, hi)]
    if change == "another range out":
        ends[3] = net.constant(np.float32(2.0))
    levels = 16 if change == "16 levels" else 256
    net.add("FakeQuantize", "x", *ends, domain="org.openvinotoolkit", levels=levels)
    model = net.model("y", SRC, SRC)
    model.opset_import.append(onnx.helper.make_opsetid("org.openvinotoolkit", 1))
    graph = pq.onnx.fuse(pq.onnx.load(model))
    assert repr(graph.nodes[0]).endswith("reference>")
    with pytest.raises(pq.UnsupportedError, match="FakeQuantize"):
        pq.onnx.Model(graph)


def test_codes_that_two_layers_add_are_there_for_what_each_stands_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = Quantized(8)
    shared = net.codes(8, 1, 1, axis=None)
    first = net.store(net.add("Add", net.layer(), shared), 0.05)
    ready = run(net.end(net.add("Add", net.layer(first), shared)), tmp_path)
    x = np.random.default_rng(3).normal(0, 1, SRC).astype(np.float32)
    expected = ready.run({"x": x})["y"]
    no_kernel = Mock(side_effect=pq.errors.UnsupportedError("refused", "preparing", "it", "none"))
    monkeypatch.setattr(pq.Conv, "prepare", no_kernel)
    parts = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(tmp_path / "m.onnx")))
    assert not [node for node in parts.nodes if node.how.startswith("INT8")]
    np.testing.assert_allclose(parts.run({"x": x})["y"], expected, atol=0.0201)  # sums at ties
