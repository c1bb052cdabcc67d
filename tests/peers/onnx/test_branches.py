"""Branches that the values of a call choose: their layers run compiled, and are INT8 if seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from support.peers.branched_models import WITHOUT, branch, chosen, inputs
from support.peers.small_models import floats, make, model, ready, theirs


@pytest.mark.parametrize("dims", [[1, 2, 12], ["n", 2, "m"]])
def test_values_choose_a_branch(dims: list[Any]) -> None:
    proto = chosen(dims)
    own = ready(proto)
    with pytest.raises(ArgumentError, match=r"an If.* that inputs decide|open ones"):
        own.network()
    for rate in (16000, 8000, 16000):
        arrays = inputs(rate)
        np.testing.assert_allclose(
            own.run(arrays)["y"], theirs(proto, arrays), rtol=1e-4, atol=1e-5
        )
        nodes = own.nodes
        assert {"FP32 convolution"} == {node.how for node in nodes if "conv" in node.name}
        assert own.network().inputs == ("x", "rate")  # though only its condition reads that


@pytest.mark.parametrize("dims", [[1, 2, 12], ["n", 2, "m"]])
def test_layers_of_a_branch_are_int8(dims: list[Any], tmp_path: Path) -> None:
    proto = chosen(dims)
    found = pq.calibrate(pq.onnx.load(proto), [inputs(16000) for _ in range(16)])
    assert len(found.layers) == 4
    own = found.model()
    scale, wei = (found.graph.constants[name] for name in ("g:scale", "k3"))
    one_off = 1.01 * scale * np.abs(wei).sum(axis=1).max()
    found.save(tmp_path / "model.onnx")
    loaded = pq.load(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"], disabled_optimizers=WITHOUT
    )
    for rate, batch in ((16000, 1), (8000, 1), (16000, 1 if dims[0] == 1 else 3)):
        arrays = inputs(rate, batch)
        results = own.run(arrays)["y"]
        np.testing.assert_array_equal(loaded(arrays), results)
        (their_codes,) = session.run(None, arrays)
        # Where sums fall on the other side of a tie, a code of each source of the last is one off.
        assert np.abs(results - their_codes).max() <= one_off
        hows = [node.how for node in own.nodes if "conv" in node.name]
        # The branch that no batch chose stays in floats, with its own weights.
        in_floats = 0 if rate == 16000 else 1
        assert hows.count("FP32 convolution") == in_floats, hows
        assert hows.count("INT8 convolution") == len(hows) - in_floats
    assert found.network.inputs == ("x", "rate")


def test_a_condition_that_layers_compute_is_none_of_these() -> None:
    """It runs by its definition, and its branches with it."""
    both = [make("Conv", ["x", "k"], ["h"]), make("ReduceMax", ["h"], ["top"], keepdims=0)]
    ends = [branch([make(kind, ["h"], [kind])], kind) for kind in ("Relu", "Neg")]
    last = make("If", ["is_on"], ["y"], then_branch=ends[0], else_branch=ends[1])
    nodes = [*both, make("Greater", ["top", "nought"], ["is_on"]), last]
    proto = model(nodes, {"x": [1, 2, 6]}, {"k": floats(2, 2, 3), "nought": np.float32(0)})
    own = ready(proto)
    for x in (floats(1, 2, 6), 0 * floats(1, 2, 6)):
        want = theirs(proto, {"x": x})
        np.testing.assert_allclose(own.run({"x": x})["y"], want, rtol=1e-4, atol=1e-5)
    assert own.network().inputs == ("x",)
