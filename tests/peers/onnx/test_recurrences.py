"""LSTM and GRU inside compiled networks, beside onnxruntime and ONNX's equations in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.network import Network, Node, PythonCall, Recurrence

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]
DIRECTIONS = ("forward", "reverse", "bidirectional")


def recurrence(
    rng: np.random.Generator, operator: str, sizes: tuple[int, int, int, int], **how: Any
) -> tuple[Any, dict[str, Array]]:
    """Return a model of one node and its inputs; sizes: steps, batch, inputs, hidden."""
    steps, batch, inputs, hidden = sizes
    states, has_bias = how.pop("states", ""), how.pop("has_bias", True)
    both = 2 if how.get("direction") == "bidirectional" else 1
    gates, results = (4, ["y", "last", "cell"]) if operator == "LSTM" else (3, ["y", "last"])
    held = {
        "w": rng.normal(0, 0.4, (both, gates * hidden, inputs)),
        "r": rng.normal(0, 0.4, (both, gates * hidden, hidden)),
    }
    if has_bias:
        held["b"] = rng.normal(0, 0.5, (both, 2 * gates * hidden))
    reads = ["x", "w", "r", "b" if has_bias else "", ""]
    reads += [name if name in states else "" for name in "hc"]
    feeds = {"x": rng.normal(0, 1.5, (steps, batch, inputs)).astype(np.float32)}
    feeds |= {name: rng.normal(0, 1, (both, batch, hidden)).astype(np.float32) for name in states}
    while not reads[-1]:
        reads.pop()
    node = helper.make_node(operator, reads, results, "steps", hidden_size=hidden, **how)
    ends = [helper.make_tensor_value_info(name, 1, each.shape) for name, each in feeds.items()]
    outs = [helper.make_tensor_value_info("y", 1, [steps, both, batch, hidden])]
    outs += [helper.make_tensor_value_info(n, 1, [both, batch, hidden]) for n in results[1:]]
    constants = [numpy_helper.from_array(v.astype(np.float32), name) for name, v in held.items()]
    graph = helper.make_graph([node], "g", ends, outs, constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def theirs(model: Any, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


@pytest.mark.parametrize("seed", range(90))
def test_drawn_ones_are_what_onnxruntime_computes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operator, direction = ("LSTM", "GRU")[seed % 2], DIRECTIONS[seed % 3]
    states = str(rng.choice(["", "h", "c", "hc"] if operator == "LSTM" else ["", "h"]))
    after = {} if operator == "LSTM" else {"linear_before_reset": int(rng.integers(2))}
    sizes = [int(rng.integers(1, top)) for top in (9, 10, 40, 70)]
    model, feeds = recurrence(
        rng,
        operator,
        (sizes[0], sizes[1], sizes[2], sizes[3]),
        direction=direction,
        states=states,
        has_bias=bool(rng.integers(2)),
        **after,
    )
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    (node,) = ready.nodes
    assert not [each for each in ready.network().nodes if isinstance(each.runs, PythonCall)]
    results = ready.run(feeds)
    for ours, want in zip(results.values(), theirs(model, feeds), strict=True):
        assert ours.shape == want.shape
        # Both round: some 100 additions of numbers up to 4, and functions to the last places.
        assert np.abs(ours - want).max() <= 1e-5
    assert node.originals == ("steps",)


@pytest.mark.parametrize("operator", ["LSTM", "GRU"])
def test_it_is_as_near_to_float64_as_onnxruntime(operator: str) -> None:
    """ONNX's equations, step by step, with gates from far below 0 to far above."""
    rng = np.random.default_rng(1)
    model, feeds = recurrence(rng, operator, (12, 3, 20, 33))
    feeds["x"] *= np.float32(8)
    held = {
        each.name: numpy_helper.to_array(each).astype(np.float64)[0]
        for each in model.graph.initializer
    }
    h, c, rows = np.zeros((3, 33)), np.zeros((3, 33)), []
    gates = len(held["r"]) // 33
    of_x, of_h = np.split(held["b"], 2)

    def sigmoid(x: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-x)))

    for x in feeds["x"].astype(np.float64):
        given = np.split(x @ held["w"].T + of_x, gates, axis=1)
        own = np.split(h @ held["r"].T + of_h, gates, axis=1)
        if operator == "LSTM":
            i, o, f, g = (one + other for one, other in zip(given, own, strict=True))
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            z, r = (sigmoid(given[at] + own[at]) for at in (0, 1))
            fresh = (r * h) @ held["r"][66:].T + of_h[66:]
            h = (1 - z) * np.tanh(given[2] + fresh) + z * h
        rows.append(h)
    want = np.stack(rows)[:, None]
    ours = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model))).run(feeds)["y"]
    off, other = (np.abs(each - want).max() for each in (ours, theirs(model, feeds)[0]))
    assert off <= max(2 * other, 1e-6)


OTHERS: dict[str, dict[str, Any]] = {
    "activations": {"activations": ["Relu", "Tanh", "Tanh"]},
    "clip": {"clip": 0.5},
    "input_forget": {"input_forget": 1},
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_refused_or_right(name: str) -> None:
    model, feeds = recurrence(np.random.default_rng(2), "LSTM", (4, 2, 5, 6), **OTHERS[name])
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    try:
        results = ready.run(feeds)
    except pq.Error:
        return
    for ours, want in zip(results.values(), theirs(model, feeds), strict=True):
        assert np.abs(ours - want).max() <= 1e-5


def coded_rows(rng: np.random.Generator, alg: str, ways: int, hidden: int) -> tuple[Array, Array]:
    rows = (4 if alg == "lstm" else 3) * hidden
    codes = rng.integers(-128, 128, (ways, rows, hidden)).astype(np.int8)
    return codes, rng.uniform(0.2, 1, (ways, rows)).astype(np.float32) / np.float32(
        64 * hidden**0.5
    )


def product(h: Array, wei: Array, scale: Array) -> Array:
    """Return what ONNX's DynamicQuantizeLinear makes of each row, times codes."""
    rows = []
    for row in h.astype(np.float32):
        lo, hi = min(row.min(), np.float32(0)), max(row.max(), np.float32(0))
        unit = (hi - lo) / np.float32(255) if hi > lo else np.float32(1)
        point = np.clip(np.rint(-lo / unit), 0, 255)
        whole = np.clip(np.rint(row / unit) + point, 0, 255) - point
        rows.append((wei.astype(np.float64) @ whole) * np.float64(unit) * scale)
    return np.stack(rows)


@pytest.mark.parametrize("batch", [1, 4, 7])
@pytest.mark.parametrize("hidden", [1, 33, 64])
@pytest.mark.parametrize("how", ["lstm", "gru", "gru, reset after"])
def test_of_codes_it_is_its_equations(how: str, hidden: int, batch: int) -> None:
    """A step each from states as given: what rounds them is told by them alone."""
    rng = np.random.default_rng(hidden + batch)
    alg = how[:4].rstrip(",")
    wei, scale = coded_rows(rng, alg, 2, hidden)
    rows = wei.shape[1]
    shift = rng.normal(0, 1, (2, hidden)).astype(np.float32) if "after" in how else None
    sums = rng.normal(0, 1, (1, batch, 2 * rows)).astype(np.float32)
    h = rng.normal(0, 1, (2, batch, hidden)).astype(np.float32)
    c = rng.normal(0, 1, (2, batch, hidden)).astype(np.float32)
    states = {"h": h, "c": c} if alg == "lstm" else {"h": h}
    one = Recurrence(alg, wei, ("forward", "reverse"), shift, "".join(states), scale)
    network = Network(["x", *states], [Node("y", one, ("x", *states))], ["y"])
    ours = network(sums, *states.values())["y"][: h.size].reshape(h.shape)

    def sigmoid(x: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-x)))

    for way in range(2):
        own = sums[0, :, way * rows : (way + 1) * rows].astype(np.float64)
        if alg == "lstm":
            i, o, f, g = np.split(own + product(h[way], wei[way], scale[way]), 4, axis=1)
            want = sigmoid(o) * np.tanh(sigmoid(f) * c[way] + sigmoid(i) * np.tanh(g))
        else:
            first = 2 * hidden
            of_h = product(h[way], wei[way, :first], scale[way, :first])
            z, r = np.split(sigmoid(own[:, :first] + of_h), 2, axis=1)
            last = wei[way, first:], scale[way, first:]
            if shift is None:
                # In float32 as the loop has it: its codes are of that.
                gate = np.float32(1) / (np.float32(1) + np.exp(-(own[:, :first] + of_h)))
                reset = gate.astype(np.float32)[:, hidden:] * h[way]
                fresh = product(reset, *last)
            else:
                fresh = r * (product(h[way], *last) + shift[way])
            want = (1 - z) * np.tanh(own[:, first:] + fresh) + z * h[way]
        # Where a product with r lies beside a tie, it is a code more: 255th of its range.
        apart = 2.0**-7 if how == "gru" else 2.0**-20
        assert np.abs(ours[way] - want).max() <= apart


def test_of_codes_nan_stays_in_its_row() -> None:
    rng = np.random.default_rng(6)
    wei, scale = coded_rows(rng, "lstm", 1, 8)
    one = Recurrence("lstm", wei, ("forward",), None, "", scale)
    sums = rng.normal(0, 1, (3, 5, 32)).astype(np.float32)
    sums[1, 2, 3] = np.nan
    y = Network(["x"], [Node("y", one, "x")], ["y"])(sums)["y"][: 3 * 5 * 8].reshape(3, 5, 8)
    assert np.isnan(y[2, 2]).all()
    assert np.isfinite(y[:, [0, 1, 3, 4]]).all()


def test_nan_stays() -> None:
    model, feeds = recurrence(np.random.default_rng(3), "LSTM", (3, 2, 5, 6))
    feeds["x"][1, 0, 2] = np.nan
    y = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model))).run(feeds)["y"]
    assert np.isfinite(y[0]).all()
    assert np.isfinite(y[:, :, 1]).all()
    assert np.isnan(y[1:, :, 0]).all()


def test_arguments() -> None:
    wei = np.zeros((1, 16, 4), np.float32)
    with pytest.raises(ArgumentError, match="alg"):
        Recurrence("rnn", wei, ("forward",))
    with pytest.raises(ArgumentError, match="directions"):
        Recurrence("lstm", wei, ("both",))
    with pytest.raises(ShapeError, match="wei"):
        Recurrence("gru", wei, ("forward",))
    with pytest.raises(DTypeError, match="wei"):
        Recurrence("lstm", wei.astype(np.float64), ("forward",))
    with pytest.raises(ArgumentError, match="states"):
        Recurrence("gru", np.zeros((1, 12, 4), np.float32), ("forward",), states="hc")
    with pytest.raises(ArgumentError, match="shift"):
        Recurrence("lstm", wei, ("forward",), np.zeros((1, 4), np.float32))
    with pytest.raises(DTypeError, match="wei"):
        Recurrence("lstm", wei, ("forward",), wei_scale=np.ones((1, 16), np.float32))
    codes = wei.astype(np.int8)
    with pytest.raises(ShapeError, match="wei_scale"):
        Recurrence("lstm", codes, ("forward",), wei_scale=np.ones((1, 4), np.float32))
    one = Recurrence("lstm", wei, ("forward",))
    network = Network(["x"], [Node("y", one, "x")], ["y"])
    assert network(np.zeros((3, 2, 16), np.float32))["y"].shape == (3 * 8 + 16,)
    with pytest.raises(ShapeError, match="src"):
        network(np.zeros((3, 2, 15), np.float32))
