"""Samples that take several branches: ranges and layers of each, and files of all of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnxruntime
from onnx import ModelProto

import pyonednn_q as pq
from support.peers.branched_models import INT64, WITHOUT, branch, chosen, inputs
from support.peers.small_models import RNG, floats, make, model, theirs

Array = np.ndarray[Any, Any]
RATES = (16000, 8000)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Give each test the same numbers, whichever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(5).bit_generator.state


def both(count: int = 8) -> list[dict[str, Any]]:
    return [inputs(rate) for rate in RATES for _ in range(count)]


def sqnr(reals: Array, result: Array) -> float:
    lost = np.square(np.asarray(reals, np.float64) - result).sum()
    return float(10 * np.log10(np.square(np.asarray(reals, np.float64)).sum() / lost))


def same_of_file(found: pq.onnx.Calibration, folder: Path, samples: Any) -> list[Array]:
    """Return results, which the saved model has bit for bit, and onnxruntime nearly."""
    found.save(folder / "model.onnx")
    loaded, own = pq.load(folder / "model.onnx"), found.model()
    session = onnxruntime.InferenceSession(
        folder / "model.onnx", providers=["CPUExecutionProvider"], disabled_optimizers=WITHOUT
    )
    results = []
    for each in samples:
        results.append(own.run(each)["y"])
        np.testing.assert_array_equal(loaded(each), results[-1])
        (others,) = session.run(None, each)
        # Ties that fall to the other side are one code of a source each.
        assert sqnr(others, results[-1]) > 20
    return results


@pytest.mark.parametrize("dims", [[1, 2, 12], ["n", 2, "m"]])
def test_layers_of_all_branches_are_int8(dims: list[Any], tmp_path: Path) -> None:
    proto = chosen(dims)
    samples = both()
    found = pq.calibrate(proto, samples)
    assert len(found.layers) == 5  # conv in both branches, under names of their own
    for each, result in zip(samples, same_of_file(found, tmp_path, samples), strict=True):
        assert sqnr(theirs(proto, each), result) > 20
        model = found.model()
        model.run(each)
        hows = [node.how for node in model.nodes if "conv" in node.name]
        assert set(hows) == {"INT8 convolution"}
    assert found.network.inputs == ("x", "rate")


@pytest.mark.parametrize("order", [1, -1])
def test_ranges_are_those_of_all_samples_that_have_a_tensor(order: int) -> None:
    proto, samples = chosen([1, 2, 12]), both()
    found = pq.calibrate(proto, samples[::order])
    alone = [pq.calibrate(proto, [e for e in samples if e["rate"] == rate]) for rate in RATES]
    for name, (lo, hi) in found.ranges.items():
        known = [each.ranges[name] for each in alone if name in each.ranges]
        assert (lo, hi) == (min(e[0] for e in known), max(e[1] for e in known))
    assert {*found.ranges} == {*alone[0].ranges, *alone[1].ranges}
    assert len(alone[0].ranges) > len(alone[1].ranges)


def handed_on(times: float) -> ModelProto:
    """Return a model of which one branch hands a tensor on, and the other multiplies it."""
    same = branch([make("Identity", ["h"], ["same"])], "same")
    more = branch([make("Mul", ["h", "times"], ["more"])], "more", times=np.float32(times))
    nodes = [
        make("Equal", ["rate", "wanted"], ["is_fast"]),
        make("Conv", ["x", "k0"], ["h"], "conv0", pads=[1, 1]),
        make("If", ["is_fast"], ["g"], then_branch=same, else_branch=more),
        make("Conv", ["g", "k1"], ["y"], "conv1"),
    ]
    constants = {"wanted": np.int64(16000), "k0": floats(3, 2, 3), "k1": floats(2, 3, 1)}
    return model(nodes, {"x": [1, 2, 12], "rate": []}, constants, types={"rate": INT64})


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_branch_hands_on_has_the_range_of_all(order: int, tmp_path: Path) -> None:
    proto = handed_on(8)
    samples = both()
    found = pq.calibrate(proto, samples[::order])
    results = same_of_file(found, tmp_path, samples)
    for each, result in zip(samples, results, strict=True):
        # Of the narrow one an eighth of the codes is left; of the wide one nothing is cut off.
        assert sqnr(theirs(proto, each), result) > (25 if each["rate"] == 8000 else 8)


def test_another_branch_has_its_own_values_where_one_hands_a_tensor_on(tmp_path: Path) -> None:
    proto = handed_on(0.5)
    samples = [inputs(16000) for _ in range(8)]
    found = pq.calibrate(proto, samples)
    others = [{**each, "rate": np.asarray(8000)} for each in samples]
    results = same_of_file(found, tmp_path, [*samples, *others])
    for each, result in zip([*samples, *others], results, strict=True):
        assert sqnr(theirs(proto, each), result) > 20


def shared_weights() -> ModelProto:
    """Return a model whose branches use the same weights on other sources."""
    first = branch([make("Conv", ["h", "k"], ["a"], "conv", pads=[1, 1])], "a")
    parts = [make("Abs", ["h"], ["p"]), make("Conv", ["p", "k"], ["b"], "conv", pads=[1, 1])]
    second = branch(parts, "b")
    nodes = [
        make("Equal", ["rate", "wanted"], ["is_fast"]),
        make("Conv", ["x", "k0"], ["h"], "conv0", pads=[1, 1]),
        make("If", ["is_fast"], ["g"], then_branch=first, else_branch=second),
        make("Conv", ["g", "k1"], ["y"], "conv1"),
    ]
    constants = {
        "wanted": np.int64(16000), "k0": floats(3, 2, 3), "k": floats(3, 3, 3),
        "k1": floats(2, 3, 1),
    }  # fmt: skip
    return model(nodes, {"x": [1, 2, 12], "rate": []}, constants, types={"rate": INT64})


@pytest.mark.parametrize("passes", ["", "rounded", "smoothed", "equalized"])
def test_weights_of_several_branches(passes: str, tmp_path: Path) -> None:
    """Codes that are searched differ by branch: each layer has its own."""
    proto = shared_weights()
    samples = both()
    found = pq.calibrate(proto, samples, passes=[passes] if passes else ())
    for each, result in zip(samples, same_of_file(found, tmp_path, samples), strict=True):
        assert sqnr(theirs(proto, each), result) > 25


def test_layers_of_any_branch_stay_in_floats_by_name(tmp_path: Path) -> None:
    proto = chosen([1, 2, 12])
    found = pq.calibrate(proto, both())
    inner = [name for name in found.layers if name.startswith("conv.") or name == "conv"]
    assert len(inner) == 2
    for name in inner:
        some = found.with_floats([name])
        same_of_file(some, tmp_path, both(1))
        again = pickle.loads(pickle.dumps(some))
        for each in both(1):
            np.testing.assert_array_equal(again.model().run(each)["y"], some.model().run(each)["y"])
    lost = found.sensitivity()
    assert {*lost} == {*found.layers}
    assert "INT8" in found.summary()


def test_a_configuration_decides_over_layers_of_all_branches(tmp_path: Path) -> None:
    found = pq.calibrate(
        chosen([1, 2, 12]),
        both(),
        config={"algorithm": "quantization", "ignored_scopes": ["conv2"]},
    )
    assert tuple(found.floats) == ("conv2",)
    same_of_file(found, tmp_path, both(1))
