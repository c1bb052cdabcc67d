"""Networks of float operators as graphs: what onnxruntime makes of the saved graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.network import (
    Concat,
    Elementwise,
    FloatArithmetic,
    FloatMatMul,
    LayerNorm,
    Network,
    Node,
    Pool,
    PythonCall,
    Quantize,
    Reshape,
    Slice,
    Softmax,
    Transpose,
    sequential,
)
from pyonednn_q.primitive import TensorSpec

onnxruntime: Any = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

Array = np.ndarray[Any, Any]
IMAGE = (2, 4, 9, 8)
CHANNELS = np.linspace(0.25, 1.5, 4)

STEPS = [
    pq.Affine(1.5, -0.25),
    pq.Affine(2.0),
    pq.Affine(1.0, 0.5),
    pq.Affine(1.0),
    pq.Affine(CHANNELS, CHANNELS - 1),
    pq.Clip(-0.5, 1.0),
    pq.Clip(lo=0.0),
    pq.Clip(hi=0.75),
    pq.Clip(-CHANNELS, CHANNELS),
    pq.Round(),
    pq.PRelu(CHANNELS),
    pq.PRelu(0.2),
    pq.Binary("add", CHANNELS),
    pq.Binary("sub", 0.5),
    pq.Binary("mul", CHANNELS),
    pq.Binary("div", 3.0),
    pq.Binary("max", 0.1),
    pq.Binary("min", CHANNELS),
    pq.Eltwise("abs"),
    pq.Eltwise("clip", -0.5, 0.5),
    pq.Eltwise("clip_v2", -0.5, 0.5),
    pq.Eltwise("elu", 0.7),
    pq.Eltwise("exp"),
    pq.Eltwise("gelu_erf"),
    pq.Eltwise("gelu_tanh"),
    pq.Eltwise("hardsigmoid", 0.3, 0.4),
    pq.Eltwise("hardswish", 1 / 6, 0.5),
    pq.Eltwise("hardswish", 0.3, 0.4),
    pq.Eltwise("linear", 0.5, 0.125),
    pq.Eltwise("logistic"),
    pq.Eltwise("mish"),
    pq.Eltwise("relu"),
    pq.Eltwise("relu", 0.1),
    pq.Eltwise("round"),
    pq.Eltwise("soft_relu", 1.0),
    pq.Eltwise("square"),
    pq.Eltwise("swish", 1.0),
    pq.Eltwise("swish", 1.7),
    pq.Eltwise("tanh"),
]


def theirs(network: Network, x: Array, path: Path, dims: Any = None) -> dict[str, Array]:
    """Return what onnxruntime, without rewrites, makes of the graph."""
    graph = pq.onnx.graph_of(network, {"x": x.shape if dims is None else dims})
    pq.onnx.save(graph, path / "net.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path / "net.onnx", options, ["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    assert names == list(network.outputs)
    return dict(zip(names, session.run(None, {"x": x}), strict=True))


def compare(network: Network, x: Array, path: Path, dims: Any = None) -> None:
    """Sums of at most 64 products, and functions that are within 2^-18 of the largest value."""
    own = network(x)
    for name, right in theirs(network, x, path, dims).items():
        assert own[name].shape == right.shape
        assert np.abs(own[name] - right).max() <= 2.0**-17 * max(1.0, np.abs(right).max())


def image(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1, IMAGE).astype(np.float32)


def weights(*dims: int) -> Array:
    return np.random.default_rng(sum(dims)).normal(0, 0.5, dims).astype(np.float32)


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_mean_the_same(step: Any, tmp_path: Path) -> None:
    x = image()
    if isinstance(step, pq.Round) or "round" in str(step):  # whole sums: ties are far
        wei = np.eye(4, dtype=np.float32).reshape(4, 4, 1, 1)
        x = (np.round(4 * x) / 4 + 0.125).astype(np.float32)
    else:
        wei = weights(4, 4, 1, 1)
    compare(sequential(pq.Conv(wei, post=pq.Chain(step))), x, tmp_path)
    dense = sequential(pq.InnerProduct(np.ascontiguousarray(wei[:, :, 0, 0]), post=pq.Chain(step)))
    compare(dense, np.ascontiguousarray(x[:, :, 0, 0]), tmp_path)


@pytest.mark.parametrize(
    "layers",
    [
        [pq.Conv(weights(6, 2, 3, 2), stride=(2, 1), padding=((1, 0), (2, 1)), groups=2)],
        [pq.Conv(weights(4, 4, 3, 3), weights(4), padding=2, dilation=2)],
        [pq.Deconv(weights(6, 2, 3, 2), weights(6), stride=2, padding=1, groups=2)],
        [pq.Deconv(weights(3, 4, 3, 3), stride=(1, 3), dilation=(2, 1))],
        [pq.InnerProduct(weights(5, 4, 9, 8), weights(5))],
        [pq.MatMul(weights(8, 5), weights(5)), pq.Eltwise("relu")],
        [pq.MatMul(weights(8, 5))],
        [Pool("max", 3, stride=2, padding=1)],
        [Pool("max", (2, 3), stride=(1, 2))],
        [Pool("avg_include_padding", 3, padding=1)],
        [Pool("avg_exclude_padding", (3, 2), stride=2, padding=((1, 0), (1, 0)))],
        [Pool("avg_include_padding")],
        [Pool("max")],
        [Reshape((2, -1)), Elementwise(pq.Eltwise("tanh"))],
        [Transpose((0, 2, 3, 1)), Softmax(-1)],
        [Slice(2, 1, 4, 2), Slice(-1, 3, 5)],
        [LayerNorm(weights(9, 8), weights(9, 8), 1e-3)],
        [FloatArithmetic("sub", weights(4, 1, 1), is_first=True)],
        [FloatArithmetic("div", np.full((1,), 3, np.float32))],
    ],
    ids=lambda layers: " ".join(type(each).__name__ for each in layers),
)
def test_layers_and_operations_mean_the_same(layers: list[Any], tmp_path: Path) -> None:
    compare(sequential(*layers), image(), tmp_path)


def test_branches_residuals_and_operands_are_edges(tmp_path: Path) -> None:
    leaf = pq.Leaf("other")
    steps = pq.Chain(pq.Sum(0.5, 3), pq.Eltwise("relu"), pq.Binary("mul", leaf))
    nodes = [
        Node("a", pq.Conv(weights(4, 4, 1, 1)), "x"),
        Node("b", pq.Conv(weights(4, 4, 3, 3), padding=1), "a"),
        Node("c", pq.Conv(weights(4, 4, 1, 1), post=steps), "b", "a", {"other": "x"}),
        Node("d", Concat(1), ("c", "a")),
        Node("e", FloatArithmetic("add"), ("a", "c")),
        Node("t", Transpose((0, 1, 3, 2)), "a"),
        Node("f", FloatMatMul(), ("e", "t")),
    ]
    compare(Network(["x"], nodes, ["d", "f"]), image(), tmp_path)


def test_open_lengths_are_kept(tmp_path: Path) -> None:
    layers = (
        pq.Conv(weights(4, 4, 3, 3)),
        Pool("max"),
        Reshape((-1, 4)),
        pq.InnerProduct(weights(3, 4)),
    )
    network = sequential(*layers)
    for batch in (1, 3):
        x = np.concatenate([image(), image(1)])[:batch]
        compare(network, x, tmp_path, ("", 4, "height", "width"))


def test_a_calibrated_network_is_saved_and_runs_in_any_batch(tmp_path: Path) -> None:
    relu = pq.Eltwise("relu")
    network = sequential(
        pq.Conv(weights(8, 4, 3, 3)), relu, Pool("max", 2), Reshape((-1, 8 * 6 * 5)),
        pq.InnerProduct(weights(3, 8 * 6 * 5)),
    )  # fmt: skip
    found = pq.calibrate(network, [image(), image(1)], wei_bits=7)
    assert found.layers == ("conv1", "innerproduct1")
    found.save(tmp_path / "int8.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "int8.onnx", providers=["CPUExecutionProvider"]
    )
    again = pq.load(tmp_path / "int8.onnx")
    for batch in (1, 2, 4):
        x = np.concatenate([image(2), image(3)])[:batch]
        own = found.model().run({"x": x})["innerproduct1"]
        assert np.array_equal(found.network(x)["innerproduct1"], own)
        assert np.array_equal(np.asarray(again(x)), own)
        (right,) = session.run(None, {"x": x})
        assert pq.quantize.quality(right, own).sqnr > 30


@pytest.mark.parametrize(
    ("node", "error", "told"),
    [
        (Quantize(pq.QParams(1.0, 0, "u8")), ArgumentError, "model: got Quantize makes 'y'"),
        (
            PythonCall(np.copy, TensorSpec.dense(IMAGE, "f32")),
            ArgumentError,
            "model: got PythonCall makes 'y'",
        ),
        (Reshape((0, -1)), ShapeError, r"model: got dims \(0, -1\) of 'y'"),
        (pq.Conv(weights(4, 4, 1, 1), layout="dense"), ArgumentError, "model: got layout='dense'"),
        (
            pq.Conv(weights(4, 4, 1, 1), post=pq.Chain(pq.Binary("ge", 0.5))),
            ArgumentError,
            "model: got .* in the chain of 'y'; wanted a step of ONNX",
        ),
        (
            pq.Conv(weights(4, 4, 1, 1), post=pq.Chain(pq.Eltwise("pow", 1.0, 2.0))),
            ArgumentError,
            "model: got pow.* in the chain of 'y'",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_a_graph_has_no_word_for_is_refused(node: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=f"^{told}"):
        pq.onnx.graph_of(Network(["x"], [Node("y", node, "x")], ["y"]), {"x": IMAGE})


def test_dims_are_those_of_all_inputs() -> None:
    network = sequential(pq.Conv(weights(4, 4, 1, 1)))
    with pytest.raises(ArgumentError, match=r"^dims: got \[\]; wanted of \('x',\)"):
        pq.onnx.graph_of(network, {})


def test_constants_of_a_graph_cannot_be_written_those_of_the_layer_can() -> None:
    gain = np.linspace(1.0, 2.0, 8, dtype=np.float32)
    network = Network(["x"], [Node("y", LayerNorm(gain, gain * 0), "x")], ["y"])
    constants = pq.onnx.graph_of(network, {"x": IMAGE}).constants
    assert np.array_equal(constants["y:gain"], gain)
    assert not any(value.flags.writeable for value in constants.values())
    assert gain.flags.writeable
