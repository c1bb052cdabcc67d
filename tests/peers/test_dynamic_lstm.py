"""onnxruntime's LSTM of 8-bit weights, as the LSTM of their real values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
from onnx import helper, numpy_helper

import pyonednn_q as pq
from support.peers.small_models import theirs

Array = np.ndarray[Any, Any]
STEPS, BATCH, INPUTS, HIDDEN, WAYS = 5, 2, 6, 4, 2
RNG = np.random.default_rng(11)


def model(operator: str, reads: list[str], constants: dict[str, Array]) -> onnx.ModelProto:
    """Return a model of one LSTM in two directions."""
    domain = "com.microsoft" if operator != "LSTM" else ""
    how = {"hidden_size": HIDDEN, "direction": "bidirectional"}
    node = helper.make_node(operator, reads, ["y"], "lstm", None, domain, **how)
    start = helper.make_tensor_value_info("x", 1, [STEPS, BATCH, INPUTS])
    end = helper.make_tensor_value_info("y", 1, [STEPS, WAYS, BATCH, HIDDEN])
    held = [numpy_helper.from_array(each, name) for name, each in constants.items()]
    graph = helper.make_graph([node], "graph", [start], [end], held)
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("columns", [1, 4 * HIDDEN])
def test_an_lstm_of_codes_has_their_real_weights(columns: int) -> None:
    along = (WAYS, columns) if columns > 1 else (WAYS,)
    known: dict[str, Array] = {
        "w": RNG.integers(-127, 128, (WAYS, INPUTS, 4 * HIDDEN)).astype(np.int8),
        "r": RNG.integers(-127, 128, (WAYS, HIDDEN, 4 * HIDDEN)).astype(np.int8),
        "b": RNG.normal(0, 0.1, (WAYS, 8 * HIDDEN)).astype(np.float32),
        "ws": RNG.uniform(0.002, 0.005, along).astype(np.float32),
        "wz": np.zeros(along, np.int8),
        "rs": RNG.uniform(0.002, 0.005, along).astype(np.float32),
        "rz": np.zeros(along, np.int8),
    }
    reads = ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"]
    coded = model("DynamicQuantizeLSTM", reads, known)
    real = {
        name: np.ascontiguousarray(
            (known[name] * known[f"{name}s"].reshape(WAYS, 1, -1)).swapaxes(1, 2)
        )
        for name in ("w", "r")
    }
    plain = model("LSTM", ["x", "w", "r", "b"], {**real, "b": known["b"]})
    x = {"x": RNG.normal(0, 1, (STEPS, BATCH, INPUTS)).astype(np.float32)}
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(coded)))
    result = own.run(x)["y"]
    np.testing.assert_allclose(result, theirs(plain, x), rtol=0, atol=2.0**-20)
    # Theirs rounds source and states to 8 bits: a 255th of their ranges, through gates of slope 1.
    assert np.abs(result - theirs(coded, x)).max() < 0.05
    assert own.network().inputs == ("x",)
