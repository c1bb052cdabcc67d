"""Our GRU of 8-bit weights: by calibrate, saved with a function that others run, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.models.node_difference import differences
from pyonednn_q.models.peer_sessions import onnxruntime_values
from pyonednn_q.network import PythonCall
from pyonednn_q.onnx.gru_of_codes import gru_of_codes

Array = np.ndarray[Any, Any]
DIRECTIONS = ("forward", "reverse", "bidirectional")


def model(
    rng: np.random.Generator,
    sizes: tuple[Any, Any, int, int],
    direction: str = "forward",
    outputs: tuple[str, ...] = ("y", "h"),
    begins: bool = False,
    **how: Any,
) -> onnx.ModelProto:
    """Return a model of one GRU of floats; sizes: steps, batch, inputs, hidden."""
    steps, batch, inputs, hidden = sizes
    ways = 1 + (direction == "bidirectional")
    held = {
        "w": rng.normal(0, 0.2, (ways, 3 * hidden, inputs)),
        "r": rng.normal(0, 0.1, (ways, 3 * hidden, hidden)),
        "b": rng.normal(0, 0.1, (ways, 6 * hidden)),
    }
    reads = ["x", "w", "r", "b", *(["", "h0"] if begins else [])]
    node = helper.make_node(
        "GRU", reads, outputs, "gru", hidden_size=hidden, direction=direction, **how
    )
    state = [ways, batch, hidden]
    starts = {"x": [steps, batch, inputs], **({"h0": state} if begins else {})}
    ends = {"y": [steps, ways, batch, hidden], "h": state}
    infos = [
        [helper.make_tensor_value_info(name, 1, dims) for name, dims in each.items()]
        for each in (starts, {name: ends[name] for name in outputs if name})
    ]
    constants = [numpy_helper.from_array(v.astype(np.float32), name) for name, v in held.items()]
    graph = helper.make_graph([node], "graph", *infos, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def every(proto: bytes, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
    return [np.asarray(each) for each in session.run(None, feeds)]


@pytest.mark.parametrize("seed", range(18))
def test_steps_are_those_of_codes_and_differences_are_explained(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    sizes = (int(rng.integers(1, 9)), int(rng.integers(1, 6)), int(rng.integers(1, 70)), 64 + seed)
    begins = seed % 3 == 0
    proto = model(rng, sizes, DIRECTIONS[seed % 3], begins=begins, linear_before_reset=seed % 2)
    feeds = {"x": rng.normal(0, 1, sizes[:3]).astype(np.float32)}
    if begins:
        ways = 1 + (seed % 3 == 2)
        feeds["h0"] = rng.normal(0, 0.5, (ways, sizes[1], sizes[3])).astype(np.float32)
    pq.calibrate(proto, [feeds]).save(tmp_path / "int8.onnx")
    loaded = pq.onnx.load(tmp_path / "int8.onnx")
    own = pq.onnx.Model(pq.onnx.fuse(loaded))
    (node,) = own.nodes
    assert (node.how, node.why) == ("INT8 gru", "")
    assert not any(isinstance(each.runs, PythonCall) for each in own.network().nodes)
    values = onnxruntime_values(loaded, feeds, {"y", "h"})
    (found, *_) = differences(own, feeds, values)
    assert (found.output, found.unexplained) == ("y", 0)
    results = own.run(feeds)["y"]
    of_codes = gru_of_codes(loaded.nodes[0], {**loaded.constants, **feeds}, results)
    assert (np.abs(results - of_codes.results) <= of_codes.apart).all()
    changed = {**values, "y": values["y"] + np.float32(1e-3)}
    (found, *_) = differences(own, feeds, changed)
    assert found.unexplained > values["y"].size / 2


@pytest.mark.parametrize("is_after", [0, 1])
def test_definition_in_float64_is_that_of_its_equations(is_after: int) -> None:
    """By one row whose codes are exact: sources and states of whole 255ths."""
    rng, hidden = np.random.default_rng(2), 3
    codes: dict[str, Array] = {
        "w": rng.integers(-127, 128, (1, 2, 9)).astype(np.int8),
        "r": rng.integers(-127, 128, (1, hidden, 9)).astype(np.int8),
        "b": rng.normal(0, 0.1, (1, 18)).astype(np.float32),
    }
    numbers = {name: np.full((1, 9), 1 / 256, np.float32) for name in ("ws", "rs")}
    numbers |= {name: np.zeros((1, 9), np.int8) for name in ("wz", "rz")}
    reads = ("x", "w", "r", "b", "", "h0", "ws", "wz", "rs", "rz")
    how: dict[str, Any] = {"hidden_size": hidden, "linear_before_reset": is_after}
    node = pq.graph.GraphNode("gru", "DynamicQuantizeGRU", reads, ("y", "h"), how, "pyonednn_q")
    x = np.asarray([[[0.0, 255.0]]], np.float32) / np.float32(64)
    h0 = np.asarray([[[0.0, 1.0, 0.2]]], np.float32)
    result = gru_of_codes(node, {**codes, **numbers, "x": x, "h0": h0})
    w, r = (codes[name][0].astype(np.float64) / 256 for name in ("w", "r"))
    of_x, of_h = codes["b"][0].astype(np.float64).reshape(2, 9)
    gates, h = x[0, 0] @ w + of_x, h0[0, 0].astype(np.float64)
    z, reset = (
        1 / (1 + np.exp(-(gates + h @ r + of_h)[part])) for part in (slice(0, 3), slice(3, 6))
    )
    if is_after:
        fresh = np.tanh(gates[6:] + reset * (h @ r[:, 6:] + of_h[6:]))
    else:
        level = reset * h
        unit = level.max() / 255
        fresh = np.tanh(gates[6:] + np.rint(level / unit) * unit @ r[:, 6:] + of_h[6:])
    want = (1 - z) * fresh + z * h
    np.testing.assert_allclose(result.results[0, 0, 0], want, rtol=0, atol=1e-7)  # 0.2 is rounded
    np.testing.assert_array_equal(result.last, result.results[0])


@pytest.mark.parametrize("outputs", [("y", "h"), ("y",), ("", "h")])
@pytest.mark.parametrize("steps", [7, "t"])
def test_a_file_has_the_same_bits_here_and_is_floats_elsewhere(
    steps: Any, outputs: tuple[str, ...], tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    proto = model(rng, (steps, 2, 24, 64), "bidirectional", outputs)
    batches = [rng.normal(0, 1, (7, 2, 24)).astype(np.float32) for _ in range(3)]
    found = pq.calibrate(proto, batches)
    assert found.layers == ("gru",)
    assert "INT8 gru" in found.summary()
    floats = found.with_floats(["gru"]).model()
    feeds = {"x": batches[0]}
    plain = floats.run(feeds)
    assert floats.nodes[0].how == "floats"
    found.save(tmp_path / "int8.onnx")
    results = found.model().run(feeds)
    loaded = pq.load(tmp_path / "int8.onnx")(feeds)
    again = loaded if isinstance(loaded, dict) else {outputs[-1]: loaded}
    others = every((tmp_path / "int8.onnx").read_bytes(), feeds)
    for name, theirs in zip(filter(None, outputs), others, strict=True):
        np.testing.assert_array_equal(again[name], results[name])
        assert np.linalg.norm(results[name] - plain[name]) < 0.03 * np.linalg.norm(plain[name])
        # Theirs has weights of 8 bits, and no other rounding.
        assert np.linalg.norm(theirs - plain[name]) < 0.015 * np.linalg.norm(plain[name])
    real = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(tmp_path / "int8.onnx"), floats={"gru": "f32"}))
    for name, theirs in zip(filter(None, outputs), others, strict=True):
        np.testing.assert_allclose(real.run(feeds)[name], theirs, rtol=0, atol=2.0**-20)


def test_a_function_of_another_body_is_what_its_body_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    feeds = {"x": rng.normal(0, 1, (3, 1, 8)).astype(np.float32)}
    pq.calibrate(model(rng, (3, 1, 8, 64)), [feeds]).save(tmp_path / "int8.onnx")
    proto = onnx.load(tmp_path / "int8.onnx")
    (function,) = proto.functions
    function.node.append(helper.make_node("Neg", ["Y"], ["Z"]))
    function.output[0] = "Z"
    want = every(proto.SerializeToString(), feeds)
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    for theirs, ours in zip(want, own.run(feeds).values(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2.0**-20)


def test_narrow_ones_stay_in_floats() -> None:
    rng = np.random.default_rng(6)
    proto = model(rng, (3, 1, 8, 32))
    with pytest.raises(ArgumentError, match="no layer"):
        pq.calibrate(proto, [rng.normal(0, 1, (3, 1, 8)).astype(np.float32)])
