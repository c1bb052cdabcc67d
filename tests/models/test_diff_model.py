"""``diff model.onnx``: what differs from onnxruntime, what explains it, and what does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import onnx
import onnx.parser
from onnx import helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q import cli
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.models.node_difference import NodeDifference, differences
from pyonednn_q.models.peer_sessions import onnxruntime_values
from pyonednn_q.onnx.fused_node import FusedNode
from support.oracles.networks import NETWORKS, SOURCE

Made = Callable[[str, str], Path]


def source(seed: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).normal(0, 1, SOURCE).astype(np.float32)}


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("network", NETWORKS)
def test_every_difference_has_a_name(
    network: str, form: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (3, 4):
        words = ["diff", str(made(network, form)), "--seed", str(seed), "--json"]
        assert cli.main(words) == 0
        said = json.loads(capsys.readouterr().out)
        assert len(said["compared"]) >= said["nodes"] > 5
        for each in said["compared"]:
            assert each["unexplained"] == 0
            assert bool(each["arithmetic"]) == (each["equal"] < each["values"])


@pytest.mark.parametrize("network", ["resnet", "perceptron", "transformer"])
def test_dynamic_models_differ_in_last_places(
    network: str, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["diff", str(made(network, "dynamic")), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    names = {each["arithmetic"] for each in said["compared"]}
    assert names <= {"", "float32, in another order", "float32, another approximation"}
    assert not [each for each in said["compared"] if each["unexplained"]]
    assert not [each for each in said["compared"] if "no error that is known" in each["words"]]


class Pair:
    """A model, and onnxruntime's values of it, which a test may change."""

    def __init__(self, path: Path) -> None:
        graph = pq.onnx.load(path)
        self.model = pq.onnx.Model(pq.onnx.fuse(graph))
        self.inputs = source(7)
        nodes = self.model.nodes
        wanted = {name for node in nodes for name in (*node.reads, *node.outputs)}
        self.theirs = onnxruntime_values(graph, self.inputs, wanted)

    def found(self) -> Iterator[NodeDifference]:
        return (e for e in differences(self.model, self.inputs, self.theirs) if e.differs)


@pytest.mark.parametrize("places", [1, 5])
def test_codes_that_nothing_gives_are_unexplained_and_no_others(places: int, made: Made) -> None:
    """One layer's codes changed: it is the first that differs, and those are not explained."""
    pair = Pair(made("resnet", "QDQ"))
    assert not list(pair.found())
    layer = next(node for node in pair.model.nodes if node.name == "conv3")
    changed = pair.theirs[layer.output].copy()
    inner = np.argwhere((changed > 20) & (changed < 200))[:places]
    for at in map(tuple, inner):
        changed[at] += 9
    pair.theirs[layer.output] = changed
    first = next(pair.found())
    assert (first.name, first.values - first.equal, first.unexplained) == ("conv3", places, places)
    assert first.largest == 9
    assert not first.arithmetic
    # What reads them reads the changed ones on both sides, so that its own values differ, too.
    later = [each.name for each in pair.found()]
    assert "conv5" in later
    assert "conv0" not in later


def test_floats_beyond_any_order_of_roundings_are_unexplained(made: Made) -> None:
    """Of a layer that stores floats: moved by twice its bound, and by nothing."""
    pair = Pair(made("resnet", "dynamic"))
    (layer,) = [node for node in pair.model.nodes if node.name == "conv3_quant"]
    values = {**pair.model.graph.constants, **pair.inputs, **pair.theirs}
    found = float_bound(layer, layer.output, values, pair.model.graph.opsets)
    assert found is not None
    assert found.apart is not None
    before = [each for each in pair.found() if each.name == "conv3_quant"]  # none, if all are equal
    assert all(each.arithmetic == "float32, in another order" for each in before)
    assert not any(each.unexplained for each in before)
    changed = pair.theirs[layer.output].copy()
    for at in ((0, 0, 1, 2), (0, 5, 0, 0), (0, 2, 3, 3)):
        changed[at] = np.float32(found.values[at] + 2 * found.apart[at])
    pair.theirs[layer.output] = changed
    (first,) = [each for each in pair.found() if each.name == "conv3_quant"]
    assert (first.arithmetic, first.unexplained) == ("", 3)


@pytest.mark.parametrize("seed", range(8))
def test_sums_in_every_order_are_within_the_bound(seed: int) -> None:
    """Forwards, backwards and by size; and the bound is what gamma says, not far beyond."""
    rng = np.random.default_rng(seed)
    rows, terms, columns = (int(each) for each in rng.integers(1, (5, 400, 6)))
    a = rng.normal(0, 1, (rows, terms)).astype(np.float32)
    b = rng.normal(0, 1, (terms, columns)).astype(np.float32)
    part = GraphNode("y", "MatMul", ("a", "b"), ("y",))
    node = FusedNode.as_it_is(part)
    found = float_bound(node, "y", {"a": a, "b": b}, {"": 21})
    assert found is not None
    assert found.apart is not None
    products = a[:, :, None] * b[None]
    by_size = np.take_along_axis(products, np.argsort(products, 1), 1)
    for each in (products, products[:, ::-1], by_size):
        total = np.add.accumulate(each, 1, np.float32)[:, -1]
        assert (np.abs(total - found.values) <= found.apart).all()
    sizes = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    count = terms + 4
    gamma = count * 2.0**-24 / (1 - count * 2.0**-24)
    assert (found.apart <= 1.000001 * gamma * sizes + 2.0**-126).all()


def test_a_rounding_has_its_name(made: Made) -> None:
    """Codes that are cut off, of a layer without a chain."""
    pair = Pair(made("resnet", "QDQ"))
    layer = next(node for node in pair.model.nodes if node.name == "conv3")
    assert isinstance(layer.runs, pq.Conv)
    why = pq.explain_difference(layer.runs, pair.theirs[layer.inputs[0]], pair.theirs[layer.output])
    down = np.clip(np.floor(why.values), 0, 255).astype(np.uint8)
    pair.theirs[layer.output] = down
    first = next(pair.found())
    ours = pair.model.calls[pair.model.nodes.index(layer)](
        {**pair.model.graph.constants, **pair.theirs}
    )
    assert (first.name, first.unexplained) == ("conv3", 0)
    assert first.equal == int((ours[0] == down).sum()) < first.values
    assert "without rounding" in first.words or "down" in first.arithmetic


def one_layer(rows: int) -> onnx.ModelProto:
    """Return a product whose every other value is a tie, with an odd zero point."""
    codes = {"s": np.float32(0.5), "z": np.uint8(0), "ws": np.float32(1), "wz": np.int8(0)}
    codes |= {"t": np.float32(1), "u": np.uint8(7), "w": np.array([[1]], np.int8)}
    make = helper.make_node
    nodes = [
        make("DequantizeLinear", ["x", "s", "z"], ["r"], "real"),
        make("DequantizeLinear", ["w", "ws", "wz"], ["wr"], "weights"),
        make("MatMul", ["r", "wr"], ["c"], "product"),
        make("QuantizeLinear", ["c", "t", "u"], ["y"], "store"),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", 2, [rows, 1])],
        [helper.make_tensor_value_info("y", 2, [rows, 1])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in codes.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def test_a_zero_point_before_the_rounding_is_found_and_avoided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """We add it before: of values k / 2 with zero point 7, one in four is another code."""
    path, x = tmp_path / "ties.onnx", tmp_path / "x.npz"
    onnx.save(one_layer(200), path)
    np.savez(x, x=np.arange(200, dtype=np.uint8).reshape(200, 1))
    assert cli.main(["diff", str(path), "--input", str(x), "--json"]) == 0
    (product,) = json.loads(capsys.readouterr().out)["compared"]
    assert product["values"] - product["equal"] == 100
    assert product["largest"] == 1
    assert "onnxruntime" in product["arithmetic"].lower() or "ONNX" in product["arithmetic"]
    assert cli.main(["diff", str(path), "--input", str(x), "--exact-rounding"]) == 0
    assert "1 beside onnxruntime: 1 equal in every bit" in capsys.readouterr().out


def test_an_unexplained_difference_is_a_finding(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyonednn_q.models import peer_sessions

    def other(*words: Any) -> dict[str, Any]:
        theirs = onnxruntime_values(*words)
        name = next(each for each in theirs if theirs[each].dtype == np.uint8)
        theirs[name] = theirs[name] ^ np.uint8(64)
        return theirs

    monkeypatch.setattr(peer_sessions, "onnxruntime_values", other)
    assert cli.main(["diff", str(made("resnet", "QDQ"))]) == 1
    assert "unexplained" in capsys.readouterr().out


def test_a_leaky_relu_that_leaves_alpha_out_has_that_of_onnx() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        leaky (uint8[1, 256] x) => (uint8[1, 256] y)
        <float s = {0.05}, uint8 z = {128}, float t = {0.02}, uint8 p = {9}> {
            real = DequantizeLinear (x, s, z)
            active = LeakyRelu (real)
            y = QuantizeLinear (active, t, p)
        }
    """)
    ready = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(model)))
    x = np.arange(256, dtype=np.uint8).reshape(1, 256)
    theirs = ready.run({"x": x})["y"].copy()
    theirs[0, 0] += 1
    (node,) = differences(ready, {"x": x}, {"y": theirs})
    assert (node.values - node.equal, node.unexplained) == (1, 1)


@pytest.mark.parametrize("seed", range(4))
def test_a_softmax_of_another_scale_is_onnxruntimes_table(seed: int) -> None:
    """Their 1 / scale is rounded down: some codes are others, and some lie beside its ties."""
    rng = np.random.default_rng(seed)
    points = {
        "s": np.float32(0.0875),
        "z": np.uint8(149),
        "t": np.float32(0.0024),
        "n": np.uint8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["r"]),
        helper.make_node("Softmax", ["r"], ["p"], axis=1),
        helper.make_node("QuantizeLinear", ["p", "t", "n"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "t", "n"], ["y"]),
    ]
    dims = [1, 16, 4, 525]
    ends = [[helper.make_tensor_value_info(name, 1, dims)] for name in "xy"]
    held = [numpy_helper.from_array(np.asarray(each), name) for name, each in points.items()]
    graph = helper.make_graph(nodes, "softmax", *ends, held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    loaded = pq.onnx.load(proto)
    feeds = {"x": rng.normal(0, 4, dims).astype(np.float32)}
    own = pq.onnx.Model(pq.onnx.fuse(loaded))
    theirs = onnxruntime_values(loaded, feeds, {"q", "c", "y"})
    (codes,) = [each for each in differences(own, feeds, theirs) if each.output == "c"]
    assert codes.equal < codes.values
    assert codes.unexplained == 0
    assert codes.arithmetic == "softmax of onnxruntime_table"
    changed = theirs["c"].copy()
    changed[changed == 0] = 1
    (codes,) = [e for e in differences(own, feeds, {**theirs, "c": changed}) if e.output == "c"]
    assert codes.unexplained > 0
