"""Weights rounded by the error of results: never more of it on the samples, and the same codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]
BITS = 5  # errors that are large beside what float32 sums lose

LAYERS: dict[str, tuple[str, tuple[int, ...], tuple[int | str, ...], dict[str, Any]]] = {
    "convolution": (
        "Conv",
        (6, 3, 3, 2),
        (2, 3, 9, 8),
        {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]},
    ),
    "padded alike": ("Conv", (6, 3, 3, 3), (2, 3, 9, 8), {"auto_pad": "SAME_UPPER"}),
    "groups": ("Conv", (4, 2, 3, 3), (2, 4, 7, 7), {"group": 2, "pads": [1] * 4}),
    "depthwise": ("Conv", (4, 1, 3, 3), (2, 4, 7, 7), {"group": 4}),
    "one dim": ("Conv", (4, 3, 5), (2, 3, 20), {}),
    "product": ("MatMul", (8, 6), (2, 5, 8), {}),
    "gemm": ("Gemm", (8, 6), (7, 8), {}),
    "transposed gemm": ("Gemm", (6, 8), (7, 8), {"transB": 1}),
}


def model(name: str, batch: int | str | None = None) -> tuple[Any, Array]:
    """Return a layer as a model, and its weights."""
    operator, dims, src, attributes = LAYERS[name]
    wei = np.random.default_rng(3).normal(0, 1, dims).astype(np.float32)
    node = helper.make_node(operator, ["x", "w"], ["y"], "layer", **attributes)
    first = src[0] if batch is None else batch
    ends = [helper.make_tensor_value_info("x", 1, [first, *src[1:]])]
    ends.append(helper.make_tensor_value_info("y", 1, None))
    held = [numpy_helper.from_array(wei, "w")]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], held)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8), wei


def batches(name: str) -> list[Array]:
    """Return sources whose elements depend on each other, as images and tokens do."""
    rng = np.random.default_rng(4)
    dims = [int(length) for length in LAYERS[name][2]]
    return [np.cumsum(rng.normal(0.3, 1, dims), axis=-1).astype(np.float32) for _ in range(3)]


def real_weights(found: pq.onnx.Calibration) -> Array:
    """Return what the codes of the one layer's weights mean."""
    graph = found.graph
    (pair,) = [
        each
        for each in graph.nodes
        if each.operator == "DequantizeLinear" and each.inputs[0] in graph.constants
    ]
    codes, scale = (graph.constants[each] for each in pair.inputs[:2])
    axis = pair.attributes.get("axis")
    dims = [] if axis is None else [-1 if at == axis else 1 for at in range(codes.ndim)]
    return np.asarray((codes.astype(np.float64) * scale.reshape(dims)).astype(np.float32))


def rounded(proto: Any, samples: list[Array], bits: int = BITS, **options: Any) -> Array:
    """Return the real weights of a layer's codes, by the sources that it has."""
    options = options or {"wei_bits": bits}
    return real_weights(pq.calibrate(pq.onnx.load(proto), samples, passes="rounded", **options))


def results(proto: Any, wei: Array, samples: list[Array]) -> list[Array]:
    """Return what onnxruntime makes of samples, with weights."""
    changed = onnx.ModelProto.FromString(proto.SerializeToString())
    changed.graph.initializer[0].CopyFrom(numpy_helper.from_array(wei, "w"))
    session = onnxruntime.InferenceSession(
        changed.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return [np.asarray(session.run(None, {"x": x})[0], np.float64) for x in samples]


@pytest.mark.parametrize("batch", [None, "n"])
@pytest.mark.parametrize("name", LAYERS)
def test_each_channel_loses_less_on_the_samples(name: str, batch: str | None) -> None:
    proto, wei = model(name, batch)
    found = rounded(proto, batches(name))
    operator, _, _, attributes = LAYERS[name]
    axis = 0 if operator == "Conv" or attributes.get("transB") else 1
    # The codes of one scale for each channel, each a neighbour of the weight.
    most = 2 ** (BITS - 1) - 1
    others = tuple(at for at in range(wei.ndim) if at != axis)
    scale = np.abs(wei).max(axis=others, keepdims=True).astype(np.float64) / most
    steps = found / scale
    assert np.abs(steps - np.rint(steps)).max() < 1e-4
    assert np.abs(steps).max() < most + 1e-4
    assert np.abs(steps - wei / scale).max() < 1 + 1e-4
    # What is lost of the results, by onnxruntime's, against rounding to nearest.
    nearest = (np.rint(wei / scale) * scale).astype(np.float32)
    samples = batches(name)
    want = results(proto, wei, samples)
    lost = []
    for values in (found, nearest):
        errors = zip(results(proto, values, samples), want, strict=True)
        channel = 1 if operator == "Conv" else want[0].ndim - 1
        rest = tuple(at for at in range(want[0].ndim) if at != channel)
        lost.append(sum(np.square(one - other).sum(axis=rest) for one, other in errors))
    assert (lost[0] <= lost[1] * (1 + 1e-5)).all()
    assert lost[0].sum() < 0.8 * lost[1].sum()


CONFIGS: dict[str, dict[str, Any]] = {
    "tensor": {"per_channel": False},
    "channels": {"per_channel": True},
}


@pytest.mark.parametrize("extent", CONFIGS)
@pytest.mark.parametrize("name", ["convolution", "groups", "transposed gemm"])
def test_a_configuration_decides_widths_and_scales(name: str, extent: str) -> None:
    """With the weights of its codes onnxruntime's results lose less than with nearest codes."""
    proto, _ = model(name)
    section = {"algorithm": "quantization", "weights": {"bits": BITS, **CONFIGS[extent]}}
    config = {"target_device": "TRIAL", "compression": section}
    samples = batches(name)
    want = results(proto, model(name)[1], samples)
    lost = []
    for passes in ("rounded", ()):
        found = pq.calibrate(
            pq.onnx.load(proto), samples, config=config, passes=passes, bias_correction=False
        )
        real = real_weights(found)
        got = results(proto, real, samples)
        lost.append(sum(np.square(one - other).sum() for one, other in zip(got, want, strict=True)))
    assert lost[0] < 0.8 * lost[1]


@pytest.mark.parametrize("form", ["qdq", "fake_quantize"])
def test_what_is_saved_is_what_is_loaded(form: str, tmp_path: Any) -> None:
    proto, _ = model("convolution")
    found = pq.calibrate(pq.onnx.load(proto), batches("convolution"), wei_bits=7, passes="rounded")
    found.save(tmp_path / "int8.onnx", form=form)
    (x, *_) = batches("convolution")
    again = pq.load(tmp_path / "int8.onnx")(x)
    np.testing.assert_array_equal(again, found.model().run({"x": x})["y"])


def chain() -> Any:
    """Return two convolutions with a batch norm and a relu between."""
    rng = np.random.default_rng(8)
    spread = np.exp2(np.arange(-4, 4)).astype(np.float32).reshape(-1, 1, 1, 1)
    held = {
        "w": rng.normal(0, 1, (8, 3, 3, 3)).astype(np.float32) * spread,
        "v": rng.normal(0, 1, (4, 8, 3, 3)).astype(np.float32) / spread.reshape(1, -1, 1, 1),
        "gain": np.ones(8, np.float32),
        "shift": rng.normal(0, 1, 8).astype(np.float32),
        "mean": rng.normal(0, 1, 8).astype(np.float32),
        "var": np.ones(8, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first"),
        helper.make_node("BatchNormalization", ["a", *list(held)[2:]], ["b"], "norm"),
        helper.make_node("Relu", ["b"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "v"], ["y"], "second"),
    ]
    ends = [helper.make_tensor_value_info(n, 1, ["n", *d]) for n, d in SIZES.items()]
    stored = [numpy_helper.from_array(each, name) for name, each in held.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SIZES = {"x": [3, 9, 9], "y": [4, 5, 5]}
BEFORE: dict[str, Any] = {
    "renormalized": pq.onnx.renormalized,
    "equalized": lambda graph, _: pq.onnx.equalized(graph),
    "smoothed": pq.onnx.smoothed,
}


@pytest.mark.parametrize("names", [["renormalized"], ["equalized"], ["smoothed"], list(BEFORE)])
@pytest.mark.parametrize("has_config", [False, True])
def test_passes_are_what_functions_make_before(names: list[str], has_config: bool) -> None:
    rng = np.random.default_rng(9)
    samples = [rng.normal(0, 1, (2, 3, 9, 9)).astype(np.float32) for _ in range(3)]
    options: dict[str, Any] = {"wei_bits": 7}
    if has_config:
        if "renormalized" in names:
            return  # which a configuration does by itself
        begin = {"batchnorm_adaptation": {"num_bn_adaptation_samples": 0}}
        options = {"config": {"algorithm": "quantization", "initializer": begin}}
    graph = pq.onnx.load(chain())
    found = pq.calibrate(graph, (x for x in samples), passes=reversed(names), **options)
    for name in names:
        graph = BEFORE[name](graph, samples)
    want = pq.calibrate(graph, samples, **options)
    for x in samples:
        one, other = (each.model().run({"x": x})["y"] for each in (found, want))
        np.testing.assert_array_equal(one, other)
    plain = pq.calibrate(pq.onnx.load(chain()), samples, **options).model()
    assert any(
        (found.model().run({"x": x})["y"] != plain.run({"x": x})["y"]).any() for x in samples
    )


def test_large_images_are_looked_at_in_places() -> None:
    """Of one that is the same everywhere any of them do."""
    wei = np.random.default_rng(6).normal(0, 1, (4, 3, 3, 3)).astype(np.float32)
    x = np.ones((1, 3, 300, 200), np.float32) * np.array([1, 2, 3], np.float32).reshape(1, 3, 1, 1)
    node = helper.make_node("Conv", ["x", "w"], ["y"], "layer")
    ends = [helper.make_tensor_value_info("x", 1, x.shape)]
    ends.append(helper.make_tensor_value_info("y", 1, None))
    held = [numpy_helper.from_array(wei, "w")]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    even = rounded(proto, [x])
    scale = np.abs(wei).max(axis=(1, 2, 3)) / (2 ** (BITS - 1) - 1)
    tap = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    error = ((even - wei) * tap).sum(axis=(1, 2, 3))
    # Of 27 roundings the sum is within half a step of the least tap.
    assert (np.abs(error) <= 0.5 * scale * (1 + 1e-3)).all()


def test_layers_in_floats_have_their_own_weights() -> None:
    proto, _ = model("gemm")
    samples = batches("gemm")
    found = pq.calibrate(pq.onnx.load(proto), samples, passes="rounded", floats=["layer"])
    (want,) = results(proto, model("gemm")[1], samples[:1])
    np.testing.assert_allclose(
        found.model().run({"x": samples[0]})["y"], want, rtol=1e-5, atol=1e-5
    )


def test_errors() -> None:
    graph = pq.onnx.load(model("gemm")[0])
    with pytest.raises(ArgumentError, match="passes"):
        pq.calibrate(graph, batches("gemm"), passes="round")
    number: Any = 3
    with pytest.raises(ArgumentError, match="passes"):
        pq.calibrate(graph, batches("gemm"), passes=["rounded", number])
