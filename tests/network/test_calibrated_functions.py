"""Networks of functions between codes, calibrated where the package onnx is and where it is not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import LibraryError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kind import Kind
from pyonednn_q.network import Elementwise, FloatArithmetic, Network, Node, Pool
from pyonednn_q.onnx import reference_call as definitions
from pyonednn_q.onnx import shape_inference
from pyonednn_q.onnx.elementwise_call import elementwise_call
from pyonednn_q.quantize.quality import quality

Array = np.ndarray[Any, Any]

TANH = pq.Eltwise("tanh")
FUNCTIONS = [
    pq.Eltwise("abs"),
    pq.Eltwise("clip_v2", 0.0, 2.0),
    pq.Eltwise("elu", 1.0),
    pq.Eltwise("exp"),
    pq.Eltwise("gelu_erf"),
    pq.Eltwise("hardsigmoid", 0.2, 0.5),
    pq.Eltwise("hardswish", 1 / 6, 0.5),
    pq.Eltwise("logistic"),
    pq.Eltwise("mish"),
    pq.Eltwise("relu", 0.1),
    pq.Eltwise("round"),
    pq.Eltwise("soft_relu", 1.0),
    pq.Eltwise("square"),
    pq.Eltwise("swish", 1.0),
    TANH,
]


@pytest.fixture
def no_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_inference, "_has_onnx", lambda: False)
    monkeypatch.setattr(definitions, "find_spec", lambda _: None)


def network(function: pq.Eltwise, alg: str) -> Network:
    """A function of codes that are read twice, so that no layer takes it, and arithmetic."""
    rng = np.random.default_rng(3)
    first, last = (
        rng.normal(0, 0.3, dims).astype(np.float32) for dims in ((8, 4, 3, 3), (5, 8, 1, 1))
    )
    nodes = [
        Node("a", pq.Conv(first, padding=1), "x"),
        Node("p", Pool("max", 3, stride=1, padding=1), "a"),
        Node("f", Elementwise(function), "p"),
        Node("s", FloatArithmetic(alg), ("f", "p")),
        Node("y", pq.Conv(last), "s"),
    ]
    return Network(["x"], nodes, ["y"])


@pytest.mark.usefixtures("no_onnx")
@pytest.mark.parametrize(
    ("function", "alg"),
    [*((each, "add") for each in FUNCTIONS), *((TANH, alg) for alg in ("mul", "max", "min"))],
    ids=str,
)
def test_functions_of_codes_need_no_package_onnx(function: pq.Eltwise, alg: str) -> None:
    x = np.random.default_rng(4).normal(0, 1, (2, 4, 8, 8)).astype(np.float32)
    floats = network(function, alg)
    found = pq.calibrate(floats, [x])
    assert found.layers == ("a", "y")
    assert quality(floats(x)["y"], found.network(x)["y"]).sqnr > 20
    assert "INT8 convolution" in found.summary()


@pytest.mark.usefixtures("no_onnx")
def test_what_has_a_definition_in_onnx_alone_says_so() -> None:
    node = GraphNode("t", kinds.ATTENTION.name, ("q", "k", "v"), ("y",))
    with pytest.raises(LibraryError, match=r"Attention 't' runs by its definition .*onnx"):
        definitions.reference_call(node, {"": 23})


@pytest.mark.skipif(find_spec("onnx") is None, reason="onnx is not installed")
@pytest.mark.parametrize(
    "row",
    [row for row in vars(kinds).values() if isinstance(row, Kind) and row.elementwise],
    ids=str,
)
def test_a_function_is_that_of_onnx_where_no_tie_is_near(row: Kind) -> None:
    """Codes of both are the same, but where 2^-20 of its value decides which is nearer."""
    x = (np.arange(-128, 128) / 32).astype(np.float32)
    x = np.abs(x) + np.float32(0.25) if row is kinds.RECIPROCAL else x
    values: dict[str, Array] = {
        "x": x,
        "c": np.asarray(np.float32(0.75)),
        "d": np.asarray(np.float32(2)),
    }
    reads = {"div": ("x", "c"), "prelu": ("x", "c"), "clip": ("x", "c", "d")}.get(row.chain)
    is_of_two = row.is_arithmetic or row in {kinds.MAX, kinds.MIN}
    node = GraphNode("n", row.name, reads or (("x", "c") if is_of_two else ("x",)), ("y",))
    if row.is_quantizer:
        return
    call = elementwise_call(node)
    if call is None:
        assert row is kinds.ERF  # no step of a network
        return
    (own,) = call(values)
    (theirs,) = definitions.reference_call(node, {"": 21})(values)
    assert own.dtype == theirs.dtype
    assert own.shape == theirs.shape
    scaled = own.astype(np.float64) / 0.03125
    differing = np.rint(scaled) != np.rint(theirs.astype(np.float64) / 0.03125)
    from_tie = np.abs(scaled - np.floor(scaled) - 0.5)
    assert (from_tie[differing] <= np.abs(scaled[differing]) * 2.0**-20).all()
