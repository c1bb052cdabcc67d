"""onnxruntime's LSTM of 8-bit weights: on codes as there, and as the LSTM of their real values."""

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
from pyonednn_q.onnx.lstm_of_codes import lstm_of_codes
from support.onnx_operators.models import skip_if_theirs_saturate

Array = np.ndarray[Any, Any]
STEPS, BATCH, INPUTS, HIDDEN, WAYS = 5, 2, 6, 4, 2
RNG = np.random.default_rng(11)
Sizes = tuple[int, int, int, int]  # of steps, batch, inputs, hidden
NUMBERS = ("ws", "wz", "rs", "rz")
HELD = ("w", "r", "b")


def model(
    reads: list[str],
    constants: dict[str, Array],
    sizes: Sizes = (STEPS, BATCH, INPUTS, HIDDEN),
    direction: str = "bidirectional",
) -> onnx.ModelProto:
    """Return a model of one LSTM: of codes, if it reads their scales."""
    steps, batch, inputs, hidden = sizes
    ways = len(constants["w"])
    operator, domain = ("DynamicQuantizeLSTM", "com.microsoft") if "ws" in reads else ("LSTM", "")
    how = {"hidden_size": hidden, "direction": direction}
    results = {"y": [steps, ways, batch, hidden], "h": [ways, batch, hidden]}
    results["c"] = results["h"]
    node = helper.make_node(operator, reads, [*results], "lstm", None, domain, **how)
    starts = {"x": [steps, batch, inputs]}
    starts |= {name: [ways, batch, hidden] for name in ("h0", "c0") if name in reads}
    start, end = (
        [helper.make_tensor_value_info(name, 1, dims) for name, dims in each.items()]
        for each in (starts, results)
    )
    held = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    graph = helper.make_graph([node], "graph", start, end, held)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def coded(rng: np.random.Generator, sizes: Sizes, ways: int, columns: int) -> dict[str, Array]:
    """Return codes of weights, and numbers that say what they are worth."""
    _, _, inputs, hidden = sizes
    along = (ways, columns) if columns > 1 else (ways,)
    unit = 1 / (64 * hidden**0.5)
    return {
        "w": rng.integers(-127, 128, (ways, inputs, 4 * hidden)).astype(np.int8),
        "r": rng.integers(-127, 128, (ways, hidden, 4 * hidden)).astype(np.int8),
        "b": rng.normal(0, 0.1, (ways, 8 * hidden)).astype(np.float32),
        "ws": rng.uniform(0.5 * unit, unit, along).astype(np.float32),
        "wz": np.zeros(along, np.int8),
        "rs": rng.uniform(0.5 * unit, unit, along).astype(np.float32),
        "rz": np.zeros(along, np.int8),
    }


@pytest.mark.parametrize("columns", [1, 4 * HIDDEN])
def test_asked_for_floats_it_has_their_real_weights(columns: int) -> None:
    known = coded(RNG, (STEPS, BATCH, INPUTS, HIDDEN), WAYS, columns)
    reads = ["x", *HELD, "", "", "", "", *NUMBERS]
    real = {
        name: np.ascontiguousarray(
            (known[name] * known[f"{name}s"].reshape(WAYS, 1, -1)).swapaxes(1, 2)
        )
        for name in ("w", "r")
    }
    plain = model(["x", *HELD], {**real, "b": known["b"]})
    x = {"x": RNG.normal(0, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)}
    loaded = pq.onnx.load(model(reads, known))
    own = pq.onnx.Model(pq.onnx.fuse(loaded, floats={"lstm": "f32"}))
    assert own.nodes[0].how == "floats"
    np.testing.assert_allclose(own.run(x)["y"], every(plain, x)[0], rtol=0, atol=2.0**-20)


@pytest.mark.parametrize("seed", range(24))
def test_on_codes_it_is_what_onnxruntime_computes(seed: int) -> None:
    """Step by step from the states of each; beside a tie they may go on from other codes."""
    skip_if_theirs_saturate()
    rng = np.random.default_rng(seed)
    direction = ("forward", "reverse", "bidirectional")[seed % 3]
    batch = 1 if seed % 2 else int(rng.integers(2, 10))
    sizes = (int(rng.integers(1, 12)), batch, int(rng.integers(1, 70)), int(rng.integers(1, 80)))
    ways = 1 + (direction == "bidirectional")
    known = coded(rng, sizes, ways, 4 * sizes[3] if seed % 4 > 1 else 1)
    begins = ["h0", "c0"] if seed % 5 == 0 else ["", ""]
    loaded = pq.onnx.load(model(["x", *HELD, "", *begins, "", *NUMBERS], known, sizes, direction))
    feeds = {"x": rng.normal(0, 1, sizes[:3]).astype(np.float32)}
    feeds |= {
        name: rng.normal(0, 1, (ways, batch, sizes[3])).astype(np.float32)
        for name in begins
        if name
    }
    own = pq.onnx.Model(pq.onnx.fuse(loaded))
    (node,) = own.nodes
    assert (node.how, node.why) == ("INT8 lstm", "")
    assert not any(isinstance(each.runs, PythonCall) for each in own.network().nodes)
    values = onnxruntime_values(loaded, feeds, {"y", "h", "c"})
    (found, *_) = differences(own, feeds, values)
    assert (found.output, found.unexplained) == ("y", 0)
    changed = {**values, "y": values["y"] + np.float32(1e-3)}  # a fraction of a code's worth
    (found, *_) = differences(own, feeds, changed)
    assert found.unexplained > 0


def test_definition_in_float64_is_that_of_its_equations() -> None:
    """By one row whose codes are exact: sources and states of whole 255ths."""
    hidden = 3
    known = coded(np.random.default_rng(2), (1, 1, 2, hidden), 1, 1)
    x = np.asarray([[[0.0, 255.0]]], np.float32) / np.float32(64)
    h0 = np.asarray([[[0.0, 1.0, 0.2]]], np.float32)
    c0 = np.asarray([[[0.5, -0.25, 2.0]]], np.float32)
    reads = ["x", *HELD, "", "h0", "c0", "", *NUMBERS]
    loaded = pq.onnx.load(model(reads, known, (1, 1, 2, hidden), "forward"))
    values = {**known, "x": x, "h0": h0, "c0": c0}
    result = lstm_of_codes(loaded.nodes[0], values)
    w, r = (known[name][0] * np.float64(known[f"{name}s"][0]) for name in ("w", "r"))
    gates = x[0, 0] @ w + h0[0, 0] @ r + known["b"][0].reshape(2, -1).sum(0, dtype=np.float64)
    i, o, f, fresh = np.split(gates, 4)
    c = c0[0, 0] / (1 + np.exp(-f)) + np.tanh(fresh) / (1 + np.exp(-i))
    want = np.tanh(c) / (1 + np.exp(-o))
    np.testing.assert_allclose(result.results[0, 0, 0], want, rtol=0, atol=1e-7)  # 0.2 is rounded
    np.testing.assert_allclose(result.cells[0, 0], c, rtol=0, atol=1e-7)


def test_unsigned_weights_far_from_their_zero_point_are_floats() -> None:
    known = coded(np.random.default_rng(3), (STEPS, BATCH, INPUTS, HIDDEN), WAYS, 1)
    known |= {name: (known[name].astype(np.int16) + 128).astype(np.uint8) for name in ("w", "r")}
    known |= {name: np.full(WAYS, 100, np.uint8) for name in ("wz", "rz")}
    reads = ["x", *HELD, "", "", "", "", *NUMBERS]
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model(reads, known))))
    assert own.nodes[0].how == "floats"
    known |= {name: np.full(WAYS, 128, np.uint8) for name in ("wz", "rz")}
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model(reads, known))))
    assert own.nodes[0].how == "INT8 lstm"


def test_calibrate_makes_one_that_is_saved_and_read_with_the_same_bits(tmp_path: Path) -> None:
    rng, sizes = np.random.default_rng(4), (7, 1, 24, 64)
    held = {
        "w": rng.normal(0, 0.2, (2, 256, 24)).astype(np.float32),
        "r": rng.normal(0, 0.1, (2, 256, 64)).astype(np.float32),
        "b": rng.normal(0, 0.1, (2, 512)).astype(np.float32),
    }
    graph = pq.onnx.load(model(["x", *HELD], held, sizes))
    batches = [rng.normal(0, 1, sizes[:3]).astype(np.float32) for _ in range(3)]
    found = pq.calibrate(graph, batches)
    assert found.layers == ("lstm",)
    assert "INT8 lstm" in found.summary()
    assert found.with_floats(["lstm"]).model().nodes[0].how == "floats"
    found.save(tmp_path / "int8.onnx")
    feeds = {"x": batches[0]}
    want = found.model().run(feeds)
    again = pq.load(tmp_path / "int8.onnx")(feeds)
    real = dict(zip("yhc", every(onnx.load(tmp_path / "int8.onnx"), feeds), strict=True))
    for name, array in want.items():
        np.testing.assert_array_equal(again[name], array)
        # A code more in a state, 255th of a range below 2, through gates of slope 1.
        assert np.abs(array - real[name]).max() < 0.02
    plain = pq.onnx.Model(pq.onnx.fuse(graph)).run(feeds)["y"]
    assert np.linalg.norm(want["y"] - plain) < 0.02 * np.linalg.norm(plain)


def test_narrow_ones_stay_in_floats() -> None:
    """Of states of 32 numbers codes are slower: benchmarks/recurrences.py."""
    rng, sizes = np.random.default_rng(5), (3, 1, 8, 32)
    held = {
        "w": rng.normal(0, 0.2, (1, 128, 8)).astype(np.float32),
        "r": rng.normal(0, 0.1, (1, 128, 32)).astype(np.float32),
        "b": np.zeros((1, 256), np.float32),
    }
    graph = pq.onnx.load(model(["x", *HELD], held, sizes, "forward"))
    with pytest.raises(ArgumentError, match="no layer"):
        pq.calibrate(graph, [rng.normal(0, 1, sizes[:3]).astype(np.float32)])


def every(proto: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))
