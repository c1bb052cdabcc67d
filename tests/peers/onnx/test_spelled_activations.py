"""Activations that exporters spell out are one step of a layer's chain, and mean what they did."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

# Lines of (operator, inputs, output); x is what a convolution makes, y the activation's result.
SPELLED: dict[str, tuple[list[tuple[str, str, str]], str]] = {
    "hardswish, divided last": (
        [("Add", "x three", "a"), ("Clip", "a zero six", "b"), ("Mul", "x b", "c"),
         ("Div", "c six", "y")],
        "hardswish",
    ),
    "hardswish, divided first": (
        [("Add", "three x", "a"), ("Clip", "a zero six", "b"), ("Div", "b six", "c"),
         ("Mul", "c x", "y")],
        "hardswish",
    ),
    "hardswish, by a sixth": (
        [("Add", "x three", "a"), ("Relu", "a", "r"), ("Min", "r six", "b"), ("Mul", "x b", "c"),
         ("Mul", "c sixth", "y")],
        "hardswish",
    ),
    "gelu by Erf": (
        [("Div", "x root", "a"), ("Erf", "a", "b"), ("Add", "b one", "c"), ("Mul", "x c", "d"),
         ("Mul", "d half", "y")],
        "gelu_erf",
    ),
    "gelu by Erf, halved first": (
        [("Mul", "x half", "h"), ("Mul", "x inverse", "a"), ("Erf", "a", "b"),
         ("Add", "one b", "c"), ("Mul", "h c", "y")],
        "gelu_erf",
    ),
    "gelu by Tanh": (
        [("Pow", "x three", "p"), ("Mul", "p cubic", "q"), ("Add", "x q", "r"),
         ("Mul", "r slope", "s"), ("Tanh", "s", "t"), ("Add", "t one", "u"), ("Mul", "x half", "h"),
         ("Mul", "h u", "y")],
        "gelu_tanh",
    ),
    "silu": ([("Sigmoid", "x", "a"), ("Mul", "x a", "y")], "swish"),
    "silu by Exp": (
        [("Neg", "x", "n"), ("Exp", "n", "e"), ("Add", "e one", "d"), ("Div", "x d", "y")],
        "swish",
    ),
    "mish": ([("Softplus", "x", "a"), ("Tanh", "a", "b"), ("Mul", "x b", "y")], "mish"),
}  # fmt: skip
NUMBERS = {
    "zero": 0.0,
    "one": 1.0,
    "three": 3.0,
    "six": 6.0,
    "sixth": 1 / 6,
    "half": 0.5,
    "root": math.sqrt(2),
    "inverse": 1 / math.sqrt(2),
    "cubic": 0.044715,
    "slope": math.sqrt(2 / math.pi),
}


def model(lines: list[tuple[str, str, str]], numbers: dict[str, float] = NUMBERS) -> Any:
    """Return a convolution, the activation, and a convolution behind it."""
    rng = np.random.default_rng(3)
    arrays = {name: np.float32(value) for name, value in numbers.items()}
    wei = {name: rng.normal(0, 0.5, (8, 8, 1, 1)).astype(np.float32) for name in ("w", "v")}
    nodes = [
        helper.make_node("Conv", ["src", "w"], ["x"], "first"),
        *(helper.make_node(kind, src.split(), [dst], dst) for kind, src, dst in lines),
        helper.make_node("Conv", ["y", "v"], ["dst"], "last"),
    ]
    ends = [[helper.make_tensor_value_info(name, 1, [2, 8, 6, 6])] for name in ("src", "dst")]
    held = [numpy_helper.from_array(np.asarray(each), n) for n, each in {**arrays, **wei}.items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def batch() -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).normal(0, 2, (2, 8, 6, 6)).astype(np.float32)


@pytest.mark.parametrize("name", SPELLED)
def test_it_is_a_step_of_the_layer_before(name: str) -> None:
    lines, alg = SPELLED[name]
    proto, x = model(lines), batch()
    found = pq.calibrate(pq.onnx.load(proto), [x])
    nodes: dict[str, Any] = {node.name: node for node in found.model().nodes}
    assert [node.how for node in nodes.values()].count("INT8 convolution") == 2
    (step,) = nodes["first"].runs.settings.post.steps
    assert step.alg == alg
    assert {line[2] for line in lines} <= set(nodes["first"].originals)
    run_on = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=run_on)
    (want,) = session.run(None, {"src": x})
    floats = found.with_floats(["first", "last"]).model().run({"src": x})["dst"]
    # Sums of 8 products, and a function that is within 2^-20 of the other.
    assert np.abs(floats - want).max() <= 2.0**-18 * max(1.0, np.abs(want).max())


@pytest.mark.parametrize(
    "changed",
    [{"three": 3.01}, {"six": 6.01}],
)
def test_other_constants_are_another_function(changed: dict[str, float]) -> None:
    lines, _ = SPELLED["hardswish, divided last"]
    found = pq.calibrate(pq.onnx.load(model(lines, {**NUMBERS, **changed})), [batch()])
    first = {node.name: node for node in found.model().nodes}["first"]
    assert first.originals == ("first",)


def test_a_tensor_that_others_read_stays() -> None:
    lines, _ = SPELLED["gelu by Erf"]
    proto = model(lines)
    proto.graph.output.append(helper.make_tensor_value_info("c", 1, [2, 8, 6, 6]))
    found = pq.calibrate(pq.onnx.load(proto), [batch()])
    first = {node.name: node for node in found.model().nodes}["first"]
    assert first.originals == ("first",)
