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
    graph = pq.onnx.rounded(pq.onnx.load(proto), batches(name), BITS)
    (node,) = graph.nodes
    found = graph.constants[node.inputs[1]]
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


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("bits", [5, 7, 8])
def test_calibration_makes_the_same_codes_again(name: str, bits: int) -> None:
    graph = pq.onnx.rounded(pq.onnx.load(model(name)[0]), batches(name), bits)
    (node,) = graph.nodes
    found = pq.calibrate(graph, batches(name), wei_bits=bits, bias_correction=False)
    again = found.graph
    (pair,) = [
        each
        for each in again.nodes
        if each.operator == "DequantizeLinear" and each.inputs[0] in again.constants
    ]
    codes, scale = (again.constants[each] for each in pair.inputs[:2])
    axis = pair.attributes.get("axis", 1)
    dims = [-1 if at == axis else 1 for at in range(codes.ndim)]
    real = codes.astype(np.float64) * scale.reshape(dims)
    np.testing.assert_allclose(real, graph.constants[node.inputs[1]], rtol=1e-6, atol=0)


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
    even = pq.onnx.rounded(pq.onnx.load(proto), [x], BITS)
    (changed,) = even.nodes
    scale = np.abs(wei).max(axis=(1, 2, 3)) / (2 ** (BITS - 1) - 1)
    tap = np.array([1.0, 2.0, 3.0]).reshape(1, 3, 1, 1)
    error = ((even.constants[changed.inputs[1]] - wei) * tap).sum(axis=(1, 2, 3))
    # Of 27 roundings the sum is within half a step of the least tap.
    assert (np.abs(error) <= 0.5 * scale * (1 + 1e-3)).all()


def test_errors() -> None:
    graph = pq.onnx.load(model("gemm")[0])
    with pytest.raises(ArgumentError, match="batches"):
        pq.onnx.rounded(graph, [])
    with pytest.raises(ArgumentError, match="wei_bits"):
        pq.onnx.rounded(graph, batches("gemm"), 9)
    with pytest.raises(ArgumentError, match="graph"):
        pq.onnx.rounded(pq.calibrate(graph, batches("gemm")).graph, batches("gemm"))
