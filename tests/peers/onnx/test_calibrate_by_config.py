"""One calibrate for each kind of network, with a configuration of the training tool deciding."""

from __future__ import annotations

import json
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
from pyonednn_q.graph.graph import Graph, GraphNode, Value
from pyonednn_q.network import Network, Node
from pyonednn_q.onnx.fake_quantize_form import fake_quantize_form
from pyonednn_q.onnx.fq_quantizer import fq_quantizer
from support.onnx_operators.models import skip_if_theirs_saturate

Array = np.ndarray[Any, Any]
LAYERS = ("stem", "block", "head")
PLAIN: dict[str, Any] = {"algorithm": "quantization"}


def weights(seed: int = 0) -> dict[str, Array]:
    """Of each output channel the largest magnitude is 1."""
    rng = np.random.default_rng(seed)
    shapes = {"stem": (8, 3, 3, 3), "block": (8, 8, 3, 3), "head": (5, 8, 1, 1)}
    found = {}
    for name, shape in shapes.items():
        rows = rng.uniform(-1, 1, (shape[0], int(np.prod(shape[1:]))))
        rows[:, 0] = 1.0
        found[name] = rows.reshape(shape).astype(np.float32)
    return found


def model() -> Any:
    """Three convolutions, two of them with a relu and an addition between."""
    wei = weights()
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w_stem"], ["a"], "stem", pads=[1] * 4),
        node("Relu", ["a"], ["b"], "relu"),
        node("Conv", ["b", "w_block"], ["c"], "block", pads=[1] * 4),
        node("Add", ["c", "b"], ["d"], "add"),
        node("Conv", ["d", "w_head"], ["y"], "head"),
    ]
    ends = [helper.make_tensor_value_info("x", 1, [2, 3, 6, 6])]
    ends.append(helper.make_tensor_value_info("y", 1, [2, 5, 6, 6]))
    stored = [numpy_helper.from_array(each, f"w_{name}") for name, each in wei.items()]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def network() -> Network:
    """The same of operators."""
    wei = weights()
    stem = pq.Conv(wei["stem"], padding=1, post=pq.Chain(pq.Eltwise("relu")))
    block = pq.Conv(wei["block"], padding=1, post=pq.Chain(pq.Sum()))
    nodes = [
        Node("stem", stem, "x"),
        Node("block", block, "stem", residual="stem"),
        Node("head", pq.Conv(wei["head"]), "block"),
    ]
    return Network(["x"], nodes, ["head"])


def images(count: int = 3, seed: int = 1) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(0, 1, (2, 3, 6, 6)).astype(np.float32) for _ in range(count)]


def calibrated(config: Any, **options: Any) -> pq.onnx.Calibration:
    found = pq.calibrate(pq.onnx.load(model()), images(), config=config, **options)
    assert isinstance(found, pq.onnx.Calibration)
    return found


def operators(found: pq.onnx.Calibration) -> dict[str, Any]:
    return {
        name: node.runs for node in found.model().nodes for name in node.originals if name in LAYERS
    }


def trial(**section: Any) -> dict[str, Any]:
    """A configuration for a device of any widths."""
    return {"target_device": "TRIAL", "compression": {**PLAIN, **section}}


def test_weights_have_the_range_that_the_tool_exports() -> None:
    """Of weights up to 1 it exports [-2.0317, 2.0159]: 255 steps of 1/63, and codes to 63."""
    for operator in operators(calibrated(PLAIN)).values():
        scale = operator.weights.scale.spread(operator.weights.values.shape[0])
        np.testing.assert_allclose(scale, 1 / 63, rtol=1e-6)
        assert operator.weights.values.max() == 63
        assert operator.weights.values.min() >= -64


def test_modes_are_those_of_the_preset() -> None:
    symmetric, mixed = (calibrated({**PLAIN, "preset": each}) for each in ("performance", "mixed"))
    x_q: Any = [each.model().graph.tensors["x:codes"].qparams for each in (symmetric, mixed)]
    assert (x_q[0].dtype, x_q[0].zero_point) == ("s8", 0)
    assert x_q[1].dtype == "u8"
    assert x_q[1].zero_point not in {0, 128}
    # Behind a relu nothing is below 0.
    b_q: Any = symmetric.model().graph.tensors["b:codes"].qparams
    assert b_q.dtype == "u8"


def test_both_kinds_of_networks_have_the_same_codes() -> None:
    for config in (PLAIN, {**PLAIN, "preset": "mixed"}, trial(weights={"bits": 4})):
        graph = operators(calibrated(config))
        found = pq.calibrate(network(), images(), config=config)
        for node in found.network.nodes:
            name = node.dst.removesuffix(":codes")
            if name in LAYERS and isinstance(node.runs, pq.Conv):
                one, other = graph[name], node.runs
                np.testing.assert_array_equal(one.weights.values, other.weights.values)
                params = one.settings.src_q, other.settings.src_q
                assert isinstance(params[0], pq.QParams)
                assert isinstance(params[1], pq.QParams)
                assert params[0].dtype == params[1].dtype
                np.testing.assert_allclose(params[0].scale, params[1].scale, rtol=1e-5)


def test_scopes_decide_what_stays_in_floats() -> None:
    found = calibrated({**PLAIN, "ignored_scopes": ["{re}^(stem|block)$"]})
    how = {name: each.settings.is_int8 for name, each in operators(found).items()}
    assert how == {"stem": False, "block": False, "head": True}
    assert "the configuration leaves its weights in floats" in found.summary()
    again = found.with_floats(["head"])
    assert set(again.floats) == {"head"}


def test_widths_by_scope() -> None:
    """Of the graph: without VNNI a layer of all codes runs in float32."""
    section = {"scope_overrides": {"weights": {"stem": {"bits": 4}}}}
    constants = calibrated(trial(**section)).graph.constants
    stem, block = (constants[f"w_{name}:codes"].astype(int) for name in ("stem", "block"))
    assert stem.min() >= -8
    assert stem.max() <= 7
    assert np.abs(block).max() == 127


def test_linked_scopes_share_a_scale() -> None:
    linked = {"activations": {"unified_scale_ops": [["relu", "add"]]}}
    known = calibrated({**PLAIN, "preset": "mixed", **linked}).model().graph.tensors
    assert known["b:codes"].qparams == known["d:codes"].qparams
    alone = calibrated({**PLAIN, "preset": "mixed"}).model().graph.tensors
    assert alone["b:codes"].qparams != alone["d:codes"].qparams


def test_what_cannot_be_linked_is_refused() -> None:
    linked = {"activations": {"unified_scale_ops": [["relu", "nothing"]]}}
    with pytest.raises(ArgumentError, match=r"unified_scale_ops.*nothing"):
        calibrated({**PLAIN, **linked})


def test_inputs_and_outputs_are_quantized_as_asked() -> None:
    assert not operators(calibrated({**PLAIN, "quantize_inputs": False}))["stem"].settings.is_int8
    found = calibrated({**PLAIN, "quantize_outputs": True})
    (x,) = images(1, seed=5)
    y = found.model().run({"x": x})["y"]
    assert len(np.unique(y)) <= 256
    exact = found.with_floats(found.layers).model().run({"x": x})["y"]
    assert pq.quantize.quality(exact, y).sqnr > 20


def test_samples_end_where_the_configuration_says() -> None:
    section = {"initializer": {"range": {"num_init_samples": 4, "type": "min_max"}}}
    seen = []

    def batches() -> Any:
        for image in images(9):
            seen.append(image)
            yield image

    pq.calibrate(pq.onnx.load(model()), batches(), config={**PLAIN, **section})
    assert len(seen) == 2  # of two samples each


def test_widths_by_traces_keep_to_the_ratio() -> None:
    precision = {"type": "hawq", "bits": [4, 8], "compression_ratio": 1.5}
    config = trial(initializer={"precision": precision})
    found = calibrated(config, traces={"stem": 100.0, "block": 1.0, "head": 50.0})
    known = {name: each.weights for name, each in found.quantizers.layers.items()}
    bits = {name: each.bits for name, each in known.items() if each is not None}
    taps = {"stem": 27 * 8, "block": 72 * 8, "head": 8 * 5}
    cost = sum(taps[name] * bits[name] for name in LAYERS)
    assert cost <= sum(taps.values()) * 8 / 1.5
    assert bits["block"] == 4  # most of the products, and the least sensitive
    asked = calibrated(config, traces={"stem": 100.0, "block": 1.0, "head": 50.0}.__getitem__)
    assert dict(asked.quantizers.layers) == dict(found.quantizers.layers)
    with pytest.raises(ArgumentError, match="traces"):
        calibrated(config)
    with pytest.raises(ArgumentError, match=r"^traces: got 'many'"):
        calibrated(config, traces=lambda _: "many")


def test_widths_by_trying_are_the_best_of_a_metric() -> None:
    precision = {"type": "autoq", "bits": [4, 8], "compression_ratio": 0.2, "iter_number": 12}
    config = trial(initializer={"precision": precision})
    (x,) = images(1, seed=3)
    exact = calibrated(PLAIN).with_floats(LAYERS).model().run({"x": x})["y"]
    scores = []

    def metric(tried: pq.onnx.Model) -> float:
        scores.append(pq.quantize.quality(exact, tried.run({"x": x})["y"]).sqnr)
        return scores[-1]

    found = calibrated(config, metric=metric)
    best = pq.quantize.quality(exact, found.model().run({"x": x})["y"]).sqnr
    assert best == max(scores)
    assert len(set(scores)) > 1
    with pytest.raises(ArgumentError, match="metric"):
        calibrated(config)


@pytest.mark.parametrize("form", ["qdq", "fake_quantize"])
@pytest.mark.parametrize(
    "section",
    [{}, {"preset": "mixed"}, {"quantize_outputs": True}, {"weights": {"mode": "asymmetric"}}],
)
def test_what_is_saved_is_what_is_loaded(section: Any, form: str, tmp_path: Path) -> None:
    found = calibrated({**PLAIN, **section})
    (x,) = images(1, seed=4)
    want = found.model().run({"x": x})["y"]
    path = tmp_path / "int8.onnx"
    found.save(path, form=form)
    again = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(path), keep_rounding=False))
    np.testing.assert_array_equal(again.run({"x": x})["y"], want)
    kinds = {node.op_type for node in onnx.load(path).graph.node}
    if form == "fake_quantize":
        assert "FakeQuantize" in kinds
        assert "QuantizeLinear" not in kinds
        return
    skip_if_theirs_saturate()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (theirs,) = session.run(None, {"x": x})
    assert pq.quantize.quality(theirs, want).sqnr > 30  # codes that part at ties


def test_scales_come_back_from_the_ends_of_fake_quantize() -> None:
    """Rounded by themselves they give a neighbour of every thirtieth scale."""
    rng = np.random.default_rng(0)
    scale = np.exp(rng.uniform(-9, 2, 4096)).astype(np.float32)
    point = rng.integers(-127, 127, 4096).astype(np.int8)
    codes = np.arange(4096, dtype=np.int8).reshape(4096, 1)
    back = GraphNode("d", "DequantizeLinear", ("c", "s", "z"), ("y",), {"axis": 0})
    known: dict[str, Any] = {"c": codes, "s": scale, "z": point}
    ends = {"y": Value("float32", (4096, 1))}
    graph = fake_quantize_form(Graph((back,), known, {}, ends, {"": 20}, ends))
    (fake,) = graph.nodes
    found = fq_quantizer([graph.constants[name] for name in fake.inputs[1:]], 256)
    assert found is not None
    np.testing.assert_array_equal(found.scale, scale)
    np.testing.assert_array_equal(found.point, point)


def test_a_path_is_a_model_and_a_configuration(tmp_path: Path) -> None:
    path, config = tmp_path / "float.onnx", tmp_path / "config.json"
    onnx.save(model(), path)
    config.write_text(json.dumps({"compression": PLAIN}))
    found = pq.calibrate(path, images(), config=config)
    assert found.layers == LAYERS


def test_what_the_configuration_decides_is_not_said_twice() -> None:
    for option in ({"wei_bits": 7}, {"estimators": lambda: pq.quantize.estimator("percentile")}):
        with pytest.raises(ArgumentError, match=f"{next(iter(option))}.*configuration"):
            calibrated(PLAIN, **option)
    nothing: Any = 7
    with pytest.raises(ArgumentError, match="nothing"):
        calibrated({**PLAIN, "ignored_scopes": ["nothing"]})
    with pytest.raises(ArgumentError, match="model"):
        pq.calibrate(nothing, images())


def test_what_no_kernel_has_is_told() -> None:
    section = {"activations": {"bits": 4, "per_channel": True}}
    found = calibrated(trial(**section))
    assert "a source of 4 bits runs in 8" in found.summary()
    assert "one range of its source" in found.summary()
