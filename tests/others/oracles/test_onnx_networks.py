"""Networks as onnxruntime's quantizer writes them: fused, run, and compared with onnxruntime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx: Any = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from pyonednn_q.native import runtime  # noqa: E402
from pyonednn_q.onnx.fused_node import fused_nodes, report  # noqa: E402
from support.oracles.networks import NETWORKS, SOURCE, dynamic, quantized  # noqa: E402
from support.oracles.node_by_node import compared  # noqa: E402

# How many layers run in INT8, and the nodes that do not because the quantizer left them in floats.
LAYERS = {
    "resnet": 7,
    "mobilenet": 9,
    "unet": 5,
    "perceptron": 4,
    "gated": 8,
    "transformer": 6,
    "detector": 8,
}
LEFT_IN_FLOATS = {
    ("perceptron", "QDQ"): {"Flatten"},
    ("perceptron", "QOperator"): {"Flatten"},
    ("unet", "QOperator"): {"ConvTranspose"},  # with its Relu
    ("gated", "QOperator"): {"GlobalAveragePool", "Flatten"},
    ("transformer", "QDQ"): {"Reshape", "LayerNormalization", "Tanh"},
    ("transformer", "QOperator"): {"Reshape", "LayerNormalization", "Tanh"},
}


@pytest.mark.parametrize("per_channel", [True, False], ids=["per_channel", "per_tensor"])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", NETWORKS)
def test_every_node_beside_onnxruntime(
    network: str, form: str, dtype: str, per_channel: bool, tmp_path: Path
) -> None:
    path = quantized(network, tmp_path, form, dtype, per_channel=per_channel)
    model = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path)))
    nodes = model.nodes
    in_floats = [node for node in nodes if node.how.split()[0] in {"reference", "floats", "FP32"}]
    floats = {str(node).split()[0].replace("Deconv", "ConvTranspose") for node in in_floats}
    assert floats == LEFT_IN_FLOATS.get((network, form), set())
    assert all(bool(node.why) == (node in in_floats) for node in nodes)
    assert not [node for node in nodes if node.how == "reference"]
    layers = sum(node.how.startswith("INT8") for node in nodes)
    assert layers == LAYERS[network] - ("ConvTranspose" in floats)
    counts: Counter[str] = Counter()
    for seed in range(3):
        x = np.random.default_rng(seed).normal(0, 1, SOURCE).astype(np.float32)
        found = compared(model, path, {"x": x})
        assert len(found) == len(nodes)  # every tensor of ours is one of theirs
        assert [each for each in found if each.wrong] == []
        for name in ("codes", "at_ties", "by_table"):
            counts[name] += sum(getattr(each, name) for each in found)
    print(network, form, dtype, dict(counts))  # noqa: T201
    assert counts["at_ties"] + counts["by_table"] < 0.01 * counts["codes"]
    assert counts["by_table"] == 0 or network in {"perceptron", "transformer"}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", ["resnet", "mobilenet", "gated"])
def test_a_whole_run_beside_onnxruntime(network: str, form: str, tmp_path: Path) -> None:
    """Where no mean of codes lies on a tie, nothing differs at all."""
    path = quantized(network, tmp_path, form, "u8", per_channel=True)
    model = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path)))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(7).normal(0, 1, SOURCE).astype(np.float32)
    np.testing.assert_array_equal(model.run({"x": x})["y"], session.run(None, {"x": x})[0])


@pytest.mark.parametrize("per_channel", [True, False], ids=["per_channel", "per_tensor"])
@pytest.mark.parametrize("network", ["resnet", "mobilenet", "perceptron", "gated", "transformer"])
def test_dynamic_layers_beside_onnxruntime(network: str, per_channel: bool, tmp_path: Path) -> None:
    """Sources are quantized by each call; the sums are exact, and floats of the last bits apart."""
    path = dynamic(network, tmp_path, per_channel=per_channel)
    model = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path)))
    layers = [node for node in model.nodes if node.how.startswith("INT8")]
    assert len(layers) == LAYERS[network]
    assert {"DynamicQuantizeLinear", "Cast"}.isdisjoint(str(each) for each in model.nodes)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(0, 1, SOURCE).astype(np.float32)
        found = compared(model, path, {"x": x})
        assert len(found) == len(model.nodes)
        assert [each for each in found if each.wrong] == []


def test_what_onnxruntime_does_not_fuse_runs_in_int8(tmp_path: Path) -> None:
    """A transposed convolution with scales per channel, which onnxruntime computes in floats."""
    path = quantized("unet", tmp_path, "QDQ", "u8", per_channel=True)
    graph = pq.onnx.fuse(pq.onnx.load(path))
    (deconv,) = [each.runs for each in fused_nodes(graph) if isinstance(each.runs, pq.Deconv)]
    assert deconv.weights.scale.channels == 16
    text = report(graph).text()
    assert "INT8 deconvolution" in text
    assert len(text.splitlines()) == 1 + len(graph.nodes)
    # The values that a leaky relu follows are rounded to codes before it, within the same call.
    (leaky,) = [node for node in graph.nodes if "relu(x, 0.1" in str(node)]
    assert "round(x)" in str(leaky)


MEANS = {"AveragePool", "GlobalAveragePool"}


def mean(operation: Any, codes: Any) -> Any:
    """Return what a pool of windows side by side rounds, in float64."""
    n, c, h, w = codes.shape
    kh, kw = operation.attributes.get("kernel_shape", (h, w))
    (src_q,), dst_q = operation.srcs_q, operation.dst_q
    real = (codes.astype(np.float64) - src_q.zero_point) * (src_q.scale / dst_q.scale)
    return real.reshape(n, c, h // kh, kh, w // kw, kw).mean((3, 5)) + dst_q.zero_point


def softmax(operation: Any, codes: Any) -> Any:
    """Return what a softmax of codes along the last axis rounds, in float64."""
    (src_q,), dst_q = operation.srcs_q, operation.dst_q
    assert operation.attributes["axis"] in {-1, codes.ndim - 1}
    powers = np.exp((codes.astype(np.float64) - src_q.zero_point) * src_q.scale)
    return powers / powers.sum(-1, keepdims=True) / dst_q.scale + dst_q.zero_point


def normalized(node: Any, x: Any, gain: Any, shift: Any) -> tuple[Any, Any]:
    """Return a normalization of the last axis in float64, and how far float32 may be from it.

    Of n additions a mean has n half units of the last place of the largest, as have squares.
    """
    assert node.attributes["axis"] == -1
    x = x.astype(np.float64)
    off = x - x.mean(-1, keepdims=True)
    spread = np.sqrt((off**2).mean(-1, keepdims=True) + node.attributes.get("epsilon", 1e-5))
    unit = np.finfo(np.float32).eps * (np.abs(x).max(-1, keepdims=True) / spread + 1)
    return off / spread * gain + shift, x.shape[-1] * unit * np.abs(gain) + unit * np.abs(shift)


def mean_of_floats(x: Any) -> tuple[Any, Any]:
    """Return the mean of all places in float64, and how far float32 sums of any order may be."""
    values = x.astype(np.float64)
    places = tuple(range(2, values.ndim))
    count = np.prod(values.shape[2:])
    size = np.abs(values).mean(axis=places, keepdims=True)
    return values.mean(axis=places, keepdims=True), (count + 1) * 2.0**-24 * size


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_model_as_one_program(network: str, form: str, tmp_path: Path) -> None:
    """Each node gives what its call gives; a mean of codes rounds an exact sum, once."""
    path = quantized(network, tmp_path, form, "u8", per_channel=True)
    model = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path)))
    x = np.random.default_rng(5).normal(0, 1, SOURCE).astype(np.float32)
    program = model.network()
    python = {node.dst for node in program.nodes if isinstance(node.runs, pq.network.PythonCall)}
    kinds = {str(node) for node in model.nodes if python & {*node.outputs}}
    # Products of two tensors of any codes are exact with VNNI only.
    left = set() if runtime.isa().has_vnni() else {"MatMul"}
    assert not kinds - left
    names = [node.dst for node in program.nodes]
    values = {**model.graph.constants, "x": x}
    values.update(pq.network.Network(["x"], program.nodes, names)(x))
    for node, call in zip(model.nodes, model.calls, strict=True):
        for name, want in zip(node.outputs, call(values), strict=True):
            got = values[name]
            assert got.dtype == want.dtype
            if getattr(node.runs, "operator", "") in MEANS and want.dtype.kind in "iu":
                exact = mean(node.runs, values[node.inputs[0]])
                # Roundings of the scale, of the product with it, and of the zero point's addition.
                operation: Any = node.runs
                size = np.abs(exact) + 2 * abs(operation.dst_q.zero_point)
                is_tie = np.abs(exact - np.floor(exact) - 0.5) <= 3 * 2.0**-24 * size
                off = np.abs(got.astype(int) - want.astype(int))
                assert off.max() <= 1
                assert not off[~is_tie].any()
            elif getattr(node.runs, "operator", "") == "Softmax":
                exact = softmax(node.runs, values[node.inputs[0]])
                limits = np.iinfo(got.dtype)
                bounded = np.clip(exact, limits.min, limits.max)
                # As in tests/network/test_rows.py; and a rounding of the zero point's addition.
                units = (exact.shape[-1] + 41) * np.finfo(np.float32).eps
                assert (np.abs(got - bounded) <= 0.5 + units * (np.abs(exact) + 256)).all()
            elif str(node) == "GlobalAveragePool":  # of floats, in another order
                exact, bound = mean_of_floats(values[node.inputs[0]])
                assert (np.abs(got - exact) <= bound).all()
            elif str(node) == "LayerNormalization":
                exact, bound = normalized(node, *(values[name] for name in node.inputs))
                assert (np.abs(got - exact) <= bound).all()
            else:
                np.testing.assert_array_equal(got, want, err_msg=name)
    np.testing.assert_array_equal(program(x)["y"], values["y"])


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_without_roundings_within_chains(form: str, tmp_path: Path) -> None:
    """Codes are others than the model says, and no further from the float network."""
    path = quantized("mobilenet", tmp_path, form, "u8", per_channel=True)
    graph = pq.onnx.load(path)
    rounding = pq.onnx.Model(pq.onnx.fuse(graph))
    limiting = pq.onnx.Model(pq.onnx.fuse(graph, keep_rounding=False))
    assert sum("round(x)" in str(node) for node in rounding.nodes) == 1
    assert sum("round(x)" in str(node) for node in limiting.graph.nodes) == 0
    names = [[node.originals for node in each.nodes] for each in (rounding, limiting)]
    assert names[0] == names[1]
    x = np.random.default_rng(7).normal(0, 1, SOURCE).astype(np.float32)
    block = next(node.output for node in rounding.nodes if "round(x)" in str(node))
    values, apart = {}, []
    for model in (rounding, limiting):
        values = {**model.graph.constants, "x": x}
        for node, call in zip(model.nodes, model.calls, strict=True):
            values.update(zip(node.outputs, call(values), strict=True))
        apart.append(_far(path.with_name("float.onnx"), model, values[block], block, x))
    assert apart[1] <= 1.02 * apart[0]


def _far(path: Path, model: pq.onnx.Model, codes: Any, name: str, x: Any) -> float:
    """Return the mean square of what codes of a float network's addition are off by."""
    proto = onnx.load(path)
    (addition,) = [node.output[0] for node in proto.graph.node if node.op_type == "Add"]
    proto.graph.output.append(onnx.helper.make_empty_tensor_value_info(addition))
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (real,) = session.run([addition], {"x": x})
    q: Any = model.graph.tensors[name].qparams
    return float(np.mean((q.dequantize(codes) - real) ** 2))


def test_names_of_a_model_are_its_own() -> None:
    """Steps between a mean's codes have names, which a model may have given to a tensor."""
    make = onnx.helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["y (1)"]),
        make("DequantizeLinear", ["y (1)", "s", "z"], ["y (2)"]),
        make("GlobalAveragePool", ["y (2)"], ["mean"]),
        make("QuantizeLinear", ["mean", "t", "z"], ["y"]),
        make("DequantizeLinear", ["y", "t", "z"], ["out"]),
    ]
    constants = {"s": np.float32(0.02), "t": np.float32(0.01), "z": np.uint8(3)}
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            nodes,
            "names",
            [onnx.helper.make_tensor_value_info("x", 1, [1, 4, 3, 3])],
            [onnx.helper.make_tensor_value_info("out", 1, [1, 4, 1, 1])],
            [onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
        ),
        opset_imports=[onnx.helper.make_opsetid("", 19)],
        ir_version=9,
    )
    x = np.random.default_rng(0).uniform(0, 4, (1, 4, 3, 3)).astype(np.float32)
    fused = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    # 2 ninths of whole numbers: no ties.
    sums = np.rint(x / np.float32(0.02)).astype(int).sum((2, 3), keepdims=True)
    expected = np.rint(2 * sums / 9).clip(-3, 252).astype(np.float32) * np.float32(0.01)
    np.testing.assert_array_equal(fused.network()(x)["out"], expected)
