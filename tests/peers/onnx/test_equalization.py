"""Channels between convolutions made alike: the same float32 results, by powers of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]
Step = tuple[str, list[str], dict[str, Any]]
SPREAD = np.exp2(np.linspace(-6, 6, 8)).astype(np.float32)


def proto(nodes: list[Any], arrays: dict[str, Array], channels: int, n: int | str = 2) -> Any:
    ends = [helper.make_tensor_value_info("x", 1, [n, 3, 9, 9])]
    ends.append(helper.make_tensor_value_info("y", 1, [n, channels, None, None]))
    held = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def arrays() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    first = rng.normal(0, 1, (8, 3, 3, 3)) * SPREAD.reshape(-1, 1, 1, 1)
    found = {"w": first, "b": rng.normal(0, 0.1, 8) * SPREAD}
    found |= {"v": rng.normal(0, 1, (4, 8, 1, 1)) / SPREAD.reshape(1, -1, 1, 1)}
    found |= {"d": rng.normal(0, 1, (8, 1, 3, 3)), "e": rng.normal(0, 1, (8, 4, 3, 3))}
    found |= {"scale": rng.uniform(0.5, 2, 8), "shift": rng.normal(0, 0.1, 8)}
    found |= {"mean": rng.normal(0, 0.1, 8) * SPREAD, "var": rng.uniform(0.5, 2, 8)}
    found |= {"slope": rng.uniform(0, 0.3, (8, 1, 1)), "add": rng.normal(0, 1, (1, 8, 1, 1))}
    found |= {"one": np.array([0.25])}
    return {name: each.astype(np.float32) for name, each in found.items()}


def chain(*steps: Step, n: int | str = 2) -> Any:
    """Return a graph of operators one behind the other, each with constants."""
    nodes: list[Any] = []
    used: set[str] = set()
    value = "x"
    for at, (operator, names, attributes) in enumerate(steps):
        result = "y" if at == len(steps) - 1 else f"t{at}"
        name = f"{operator}{at}"
        nodes.append(helper.make_node(operator, [value, *names], [result], name, **attributes))
        value, used = result, used | {*names}
    held = {name: each for name, each in arrays().items() if name in used}
    return proto(nodes, held, 4, n)


FIRST: Step = ("Conv", ["w", "b"], {"pads": [1] * 4})
LAST: Step = ("Conv", ["v"], {})
RELU: Step = ("Relu", [], {})
NORM: Step = ("BatchNormalization", ["scale", "shift", "mean", "var"], {})
DEPTHWISE: Step = ("Conv", ["d"], {"group": 8, "pads": [1] * 4})
POOL: Step = ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2]})
MEAN: Step = ("AveragePool", [], {"kernel_shape": [2, 2], "pads": [1] * 4, "count_include_pad": 1})
MODELS: dict[str, list[Step]] = {
    "relu": [FIRST, RELU, LAST],
    "nothing between": [FIRST, LAST],
    "leaky relu and pools": [FIRST, ("LeakyRelu", [], {"alpha": 0.1}), POOL, MEAN, LAST],
    "prelu": [FIRST, ("PRelu", ["slope"], {}), LAST],
    "batch norm": [FIRST, NORM, RELU, LAST],
    "constants": [FIRST, ("Mul", ["one"], {}), ("Add", ["add"], {}), RELU, LAST],
    "a sum of one number": [FIRST, ("Add", ["one"], {}), LAST],
    "depthwise": [FIRST, RELU, DEPTHWISE, RELU, LAST],
    "norms behind both": [FIRST, NORM, RELU, DEPTHWISE, NORM, RELU, LAST],
    "two groups": [FIRST, RELU, ("Conv", ["e"], {"group": 2}), RELU, LAST],
}


def batches() -> list[Array]:
    rng = np.random.default_rng(5)
    return [rng.normal(0, 1, (2, 3, 9, 9)).astype(np.float32) for _ in range(4)]


def ours(graph: Any, x: Array) -> Array:
    return pq.onnx.Model(pq.onnx.fuse(graph)).run({"x": x})["y"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [2, "n"])
def test_floats_are_the_same_bits(name: str, n: int | str) -> None:
    graph = pq.onnx.load(chain(*MODELS[name], n=n))
    even = pq.onnx.equalized(graph)
    assert even != graph
    for x in batches():
        assert np.array_equal(ours(graph, x), ours(even, x))


@pytest.mark.parametrize("name", MODELS)
def test_codes_hold_more(name: str) -> None:
    graph = pq.onnx.load(chain(*MODELS[name]))
    x = batches()[0]
    want = ours(graph, x)
    sqnr = []
    for each in (graph, pq.onnx.equalized(graph)):
        found = pq.calibrate(each, batches(), bias_correction=False)
        sqnr.append(float(pq.quantize.quality(want, found.model().run({"x": x})["y"]).sqnr))
    # The channels in front of the last layer differ by 12 bits, of which half moves into weights.
    assert sqnr[1] > sqnr[0] + (6.0 if "constants" not in name else -1.0)


def test_powers_are_those_of_the_paper() -> None:
    """sqrt(r1 / r2), rounded to a power of two; here no shift is larger than the weights."""
    graph = pq.onnx.load(chain(*MODELS["relu"]))
    even = pq.onnx.equalized(graph)
    first, last = (node for node in even.nodes if node.operator == "Conv")
    held = arrays()
    tops = np.abs(held["w"]).max(axis=(1, 2, 3))
    reads = np.abs(held["v"]).max(axis=(0, 2, 3))
    assert (np.abs(held["b"]) < tops).all()
    powers = np.exp2(np.round(np.log2(np.sqrt(tops / reads))))
    wide = powers.reshape(-1, 1, 1, 1)
    assert np.array_equal(even.constants[first.inputs[1]], held["w"] / wide)
    assert np.array_equal(even.constants[first.inputs[2]], held["b"] / powers)
    assert np.array_equal(even.constants[last.inputs[1]], held["v"] * powers.reshape(1, -1, 1, 1))


def test_large_shifts_and_dead_channels_do_not_grow() -> None:
    held = arrays()
    held["w"][0] = 0.0  # nothing but its shift
    held["w"][1] *= np.float32(1e-20)
    held["b"][:2] = 1.0
    held["v"][:, 2] = 0.0  # which nobody reads
    steps = MODELS["relu"]
    model = chain(*steps)
    for at, name in enumerate(each.name for each in model.graph.initializer):
        model.graph.initializer[at].CopyFrom(numpy_helper.from_array(held[name], name))
    graph = pq.onnx.load(model)
    even = pq.onnx.equalized(graph)
    for x in batches():
        assert np.array_equal(ours(graph, x), ours(even, x))
    first = next(node for node in even.nodes if node.operator == "Conv")
    assert np.abs(even.constants[first.inputs[2]][:2]).max() < 16.0
    assert np.array_equal(even.constants[first.inputs[1]][2], held["w"][2])


@pytest.mark.parametrize(
    "between",
    [("Sigmoid", [], {}), ("HardSwish", [], {}), ("Clip", [], {}), ("Softmax", [], {"axis": 1})],
)
def test_what_is_between_must_keep_factors(between: Any) -> None:
    graph = pq.onnx.load(chain(FIRST, between, LAST))
    assert pq.onnx.equalized(graph).constants.keys() == graph.constants.keys()


def test_what_others_read_stays() -> None:
    model = chain(*MODELS["relu"])
    model.graph.output.append(helper.make_tensor_value_info("t1", 1, [2, 8, 9, 9]))
    graph = pq.onnx.load(model)
    assert pq.onnx.equalized(graph).constants.keys() == graph.constants.keys()
    # A constant of two nodes is changed for neither but the one that is divided.
    graph = pq.onnx.load(chain(FIRST, NORM, RELU, DEPTHWISE, NORM, LAST))
    even = pq.onnx.equalized(graph)
    norms = [node for node in even.nodes if node.operator == "BatchNormalization"]
    assert norms[0].inputs[1] != norms[1].inputs[1]
    assert norms[0].inputs[3:] == norms[1].inputs[3:]


@pytest.mark.parametrize("n", [2, "n"])
def test_constants_that_are_computed_are_constants(n: int | str) -> None:
    """As exporters reshape a shift to add it."""
    model = chain(FIRST, ("Add", ["add"], {}), RELU, LAST, n=n)
    at = next(at for at, node in enumerate(model.graph.node) if node.op_type == "Add")
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 8, 1, 1]), "dims"))
    flat = next(each for each in model.graph.initializer if each.name == "add")
    flat.CopyFrom(numpy_helper.from_array(arrays()["add"].reshape(-1), "add"))
    model.graph.node.insert(at, helper.make_node("Reshape", ["add", "dims"], ["wide"], "reshape"))
    model.graph.node[at + 1].input[1] = "wide"
    graph = pq.onnx.load(model)
    even = pq.onnx.equalized(graph)
    assert any(name.endswith(":equalized") for name in even.constants)
    for x in batches():
        assert np.array_equal(ours(graph, x), ours(even, x))


def test_errors() -> None:
    graph = pq.onnx.load(chain(*MODELS["relu"]))
    with pytest.raises(ArgumentError, match="graph"):
        pq.onnx.equalized(pq.calibrate(graph, batches()).graph)
    path: Any = "model.onnx"
    with pytest.raises(ArgumentError, match="graph"):
        pq.onnx.equalized(path)
