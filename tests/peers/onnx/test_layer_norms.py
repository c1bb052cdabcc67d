"""A LayerNormalization that exporters spell out is one node, and means what it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

from pyonednn_q.onnx.passes import prepared  # noqa: E402

# Lines of (operator, inputs, output), from x to y.
_BEGIN = [("ReduceMean", "x", "m"), ("Sub", "x m", "d")]
_END = [("ReduceMean", "p", "v"), ("Add", "v eps", "e"), ("Sqrt", "e", "s"), ("Div", "d s", "n")]
SPELLED: dict[str, list[tuple[str, str, str]]] = {
    "Pow": [*_BEGIN, ("Pow", "d two", "p"), *_END, ("Mul", "n g", "o"), ("Add", "o b", "y")],
    "Mul": [*_BEGIN, ("Mul", "d d", "p"), *_END, ("Mul", "g n", "o"), ("Add", "b o", "y")],
    "two differences": [
        *_BEGIN,
        ("Sub", "x m", "d2"),
        ("Pow", "d2 two", "p"),
        *_END,
        ("Mul", "n g", "o"),
        ("Add", "o b", "y"),
    ],
    "no bias": [*_BEGIN, ("Pow", "d two", "p"), *_END, ("Mul", "n g", "y")],
    "no scale": [*_BEGIN, ("Pow", "d two", "p"), *_END, ("Identity", "n", "y")],
}


def model(lines: list[tuple[str, str, str]], axis: int = -1, opset: int = 13) -> Any:
    """Return the lines as a model of one input of 2 by 5 by 16."""
    rng = np.random.default_rng(0)
    arrays = {
        "two": np.float32(2),
        "eps": np.float32(1e-5),
        "g": rng.normal(0, 1, 16).astype(np.float32),
        "b": rng.normal(0, 1, 16).astype(np.float32),
    }
    nodes = [
        helper.make_node(
            kind, src.split(), [dst], dst, **({"axes": [axis]} if "Mean" in kind else {})
        )
        for kind, src, dst in lines
    ]
    ends = [[helper.make_tensor_value_info(name, 1, [2, 5, 16])] for name in "xy"]
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize("name", SPELLED)
def test_it_is_one_node(name: str) -> None:
    proto = model(SPELLED[name])
    x = np.random.default_rng(1).normal(3, 2, (2, 5, 16)).astype(np.float32)
    graph = prepared(pq.onnx.load(proto))
    kinds = [node.kind for node in graph.nodes if node.kind != "Identity"]
    assert kinds == ["LayerNormalization"]
    assert graph.opset == 17
    run_on = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=run_on)
    (want,) = session.run(None, {"x": x})
    got = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto))).run({"x": x})["y"]
    # Sums of 16 numbers near 3, of which the mean is taken away.
    assert np.abs(got - want).max() <= 16 * 2.0**-23 * np.abs(x).max()


@pytest.mark.parametrize(
    ("lines", "axis"),
    [
        (SPELLED["Pow"], 1),
        ([*SPELLED["Pow"][:2], ("Pow", "d eps", "p"), *SPELLED["Pow"][3:]], -1),
        ([*SPELLED["Pow"][:6], ("Div", "m s", "n"), *SPELLED["Pow"][7:]], -1),
    ],
    ids=["along another dim", "another power", "another quotient"],
)
def test_what_is_none_stays(lines: list[tuple[str, str, str]], axis: int) -> None:
    graph = pq.onnx.load(model(lines, axis))
    again = prepared(graph)
    assert (again, again.changes) == (graph, graph.changes)
