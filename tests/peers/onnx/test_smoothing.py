"""Channels made alike before calibration: the same float32 results, and codes that hold more."""

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
SPREAD = np.exp2(np.linspace(-7, 7, 8)).round(3).astype(np.float32)


def proto(nodes: list[Any], arrays: dict[str, Array], src: list[Any], dst: list[Any]) -> Any:
    ends = [[helper.make_tensor_value_info("x", 1, src)]]
    ends.append([helper.make_tensor_value_info("y", 1, dst)])
    held = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def convolutions(batch: int | str = 2) -> Any:
    """Return two of them with an activation between, whose channels differ by 2^14."""
    rng = np.random.default_rng(3)
    first = rng.normal(0, 1, (8, 3, 3, 3)).astype(np.float32)
    arrays = {
        "w": first * SPREAD.reshape(-1, 1, 1, 1),
        "v": rng.normal(0, 1, (4, 8, 1, 1)).astype(np.float32) / SPREAD.reshape(1, -1, 1, 1),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first"),
        helper.make_node("HardSwish", ["a"], ["h"], "active"),
        helper.make_node("Conv", ["h", "v"], ["y"], "second"),
    ]
    return proto(nodes, arrays, [batch, 3, 9, 9], [batch, 4, 7, 7])


def products() -> Any:
    """Return a norm whose channels differ, and three products that read it."""
    rng = np.random.default_rng(4)
    arrays = {"gain": SPREAD, "shift": SPREAD[::-1].copy() / 64}
    arrays |= {
        name: rng.normal(0, 1, (8, 6)).astype(np.float32) / SPREAD.reshape(-1, 1) for name in "qkv"
    }
    nodes = [helper.make_node("LayerNormalization", ["x", "gain", "shift"], ["n"], "norm")]
    nodes += [helper.make_node("MatMul", ["n", name], [f"{name}o"], name) for name in "qkv"]
    nodes.append(helper.make_node("Sum", ["qo", "ko", "vo"], ["y"], "sum"))
    return proto(nodes, arrays, [2, 5, 8], [2, 5, 6])


def batches(*dims: int) -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.normal(0, 1, dims).astype(np.float32) for _ in range(4)]


MODELS: dict[str, tuple[Any, list[Array]]] = {
    "convolutions": (convolutions(), batches(2, 3, 9, 9)),
    "open": (convolutions("n"), batches(3, 3, 9, 9)),
    "products": (products(), batches(2, 5, 8)),
}


def theirs(model: Any, x: Array) -> Array:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(None, {"x": x})
    return np.asarray(result)


def ours(graph: Any, x: Array) -> Array:
    return pq.onnx.Model(pq.onnx.fuse(graph)).run({"x": x})["y"]


def sqnr(graph: Any, samples: list[Array], want: Array) -> float:
    got = pq.calibrate(graph, samples, bias_correction=False).model().run({"x": samples[0]})["y"]
    return float(pq.quantize.quality(want, got).sqnr)


@pytest.mark.parametrize("name", MODELS)
def test_floats_are_the_same_bits_and_codes_hold_more(name: str) -> None:
    model, samples = MODELS[name]
    graph = pq.onnx.load(model)
    smooth = pq.onnx.smoothed(graph, samples)
    assert smooth.constants.keys() > graph.constants.keys() or smooth != graph
    for x in samples:
        assert np.array_equal(ours(graph, x), ours(smooth, x))
    want = theirs(model, samples[0])
    # Half of the 14 bits between the channels go to the weights, and are gone: 6 dB a bit.
    assert sqnr(smooth, samples, want) > sqnr(graph, samples, want) + 6.0


@pytest.mark.parametrize("name", MODELS)
def test_nothing_more_runs(name: str) -> None:
    """The division is a step of the chain before, or in the gains of a norm."""
    model, samples = MODELS[name]
    graph = pq.onnx.load(model)
    dims = dict.fromkeys(graph.inputs, samples[0].shape)
    plain, smooth = (
        [node.how for node in pq.calibrate(each, samples).model().bound(dims).nodes]
        for each in (graph, pq.onnx.smoothed(graph, samples))
    )
    assert len(plain) > 1
    assert plain == smooth


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_divisors_are_those_of_the_paper_as_powers_of_two(alpha: float) -> None:
    model, samples = MODELS["products"]
    smooth = pq.onnx.smoothed(pq.onnx.load(model), samples, alpha)
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    x = np.concatenate(samples).astype(np.float64)
    spread = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    normed = (x - x.mean(axis=-1, keepdims=True)) / spread * arrays["gain"] + arrays["shift"]
    tops = np.abs(normed).max(axis=(0, 1))
    reads = np.abs(np.concatenate([arrays[each] for each in "qkv"], axis=1)).max(axis=1)
    wanted = np.log2(tops**alpha / reads ** (1 - alpha))
    (norm,) = [node for node in smooth.nodes if node.operator == "LayerNormalization"]
    powers = np.log2(arrays["gain"] / smooth.constants[norm.inputs[1]])
    assert np.array_equal(powers, powers.round())
    assert np.abs(powers - wanted).max() <= 0.5 + 1e-3
    for node in smooth.nodes:
        if node.name in {"q", "k", "v"}:
            own = smooth.constants[node.inputs[1]]
            assert np.array_equal(own, arrays[node.name] * np.exp2(powers)[:, None])


def test_what_others_read_stays() -> None:
    """A source that is an output, too, or that an addition reads, and layers of several groups."""
    model, samples = convolutions(), batches(2, 3, 9, 9)
    model.graph.output.append(helper.make_tensor_value_info("h", 1, [2, 8, 7, 7]))
    graph = pq.onnx.load(model)
    assert pq.onnx.smoothed(graph, samples).constants.keys() == graph.constants.keys()
    model = convolutions()
    model.graph.initializer[1].CopyFrom(
        numpy_helper.from_array(np.ones((8, 1, 1, 1), np.float32), "v")
    )
    model.graph.node[2].attribute.append(helper.make_attribute("group", 8))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 8
    graph = pq.onnx.load(model)
    assert pq.onnx.smoothed(graph, samples).constants.keys() == graph.constants.keys()


def test_errors() -> None:
    graph = pq.onnx.load(convolutions())
    with pytest.raises(ArgumentError, match="batches"):
        pq.onnx.smoothed(graph, [])
    with pytest.raises(ArgumentError, match="alpha"):
        pq.onnx.smoothed(graph, batches(2, 3, 9, 9), 1.5)
    path: Any = "model.onnx"
    with pytest.raises(ArgumentError, match="graph"):
        pq.onnx.smoothed(path, [])
