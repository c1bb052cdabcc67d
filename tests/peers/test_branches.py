"""Branches that the values of a call choose: their layers run compiled, and are INT8 if seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime
from onnx import ModelProto, helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from support.peers.small_models import floats, make, model, ready, theirs

# Their pass that moves quantizers ends the process where an If reads what was dequantized.
_WITHOUT = ["QDQPropagationTransformer"]
INT64 = 7


def branch(nodes: list[Any], output: str, **constants: Any) -> Any:
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    end = helper.make_empty_tensor_value_info(output)
    return helper.make_graph(nodes, "branch", [], [end], held)


def squeezed(name: str, result: str) -> list[Any]:
    """Return what exporters write for squeeze(0): an If on the length, which hands a tensor on."""
    same = branch([make("Identity", [name], ["as_it_is"])], "as_it_is")
    less = branch([make("Squeeze", [name, "first"], ["less"])], "less")
    return [
        make("Shape", [name], ["dims"]),
        make("Gather", ["dims", "nought"], ["length"]),
        make("Equal", ["length", "one"], ["is_one"]),
        make("If", ["is_one"], [result], then_branch=less, else_branch=same),
    ]


def chosen(dims: list[Any]) -> ModelProto:
    """Return a model of two rates, whose layers have the same names in both branches."""
    wei = {"k": floats(4, 3, 3)}
    fast = [
        make("Conv", ["h", "k"], ["c"], "conv", pads=[1, 1]),
        make("Relu", ["c"], ["r"]),
        *squeezed("r", "s"),
        make("Conv", ["r", "k2"], ["d"], "conv2", pads=[1, 1]),
        make("Add", ["d", "s"], ["e"]),
    ]
    slow = [make("Conv", ["h", "k"], ["c"], "conv", pads=[1, 1])]
    parts = {"first": np.array([0]), "nought": np.int64(0), "one": np.int64(1)}
    nodes = [
        make("Equal", ["rate", "wanted"], ["is_fast"]),
        make("Conv", ["x", "k0"], ["h0"], "conv0", pads=[1, 1]),
        make("Relu", ["h0"], ["h"]),
        make(
            "If",
            ["is_fast"],
            ["g"],
            then_branch=branch(fast, "e", **wei, k2=floats(4, 4, 3), **parts),
            else_branch=branch(slow, "c", k=floats(4, 3, 3)),
        ),
        make("Conv", ["g", "k3"], ["y"], "conv3"),
    ]
    constants = {"wanted": np.int64(16000), "k0": floats(3, 2, 3), "k3": floats(2, 4, 1)}
    return model(nodes, {"x": dims, "rate": []}, constants, types={"rate": INT64})


def inputs(rate: int, batch: int = 1) -> dict[str, Any]:
    return {"x": floats(batch, 2, 12), "rate": np.asarray(rate)}


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
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"], disabled_optimizers=_WITHOUT
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


def test_batches_choose_one_branch() -> None:
    graph = pq.onnx.load(chosen([1, 2, 12]))
    with pytest.raises(ArgumentError, match="batches: got inputs that choose another branch"):
        pq.calibrate(graph, [inputs(16000), inputs(8000)])


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
