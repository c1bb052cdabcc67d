"""Layers whose bias is counted in units of their sums, as onnxruntime's quantizer up to 1.6 did.

y = Cast(acc + Cast(Floor(b / s))) * s, with s = x_scale * w_scale of each call. We add b itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import pyonednn_q as pq
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.models.node_difference import differences
from pyonednn_q.models.peer_sessions import onnxruntime_values
from pyonednn_q.onnx.float_form import float_form
from support.peers.small_models import make, model, theirs

Array = np.ndarray[Any, Any]
KINDS = ("ConvInteger", "MatMulInteger")

# Without VNNI such layers may run as floats, on a source that no codes round.
pytestmark = [pytest.mark.executed, pytest.mark.needs_isa("AVX512_CORE_VNNI")]


class Layer(NamedTuple):
    """A drawn layer: nodes up to its sums, nodes behind, constants, and its source."""

    first: list[Any]
    counting: list[Any]
    rest: list[Any]
    constants: dict[str, Array]
    x: Array


def drawn(kind: str, seed: int) -> Layer:
    """Return a layer with a counted bias; its unit is a Mul of its own for odd seeds."""
    rng = np.random.default_rng(seed)
    inner, outer = (int(rng.integers(1, 40)) for _ in range(2))
    is_conv = kind == "ConvInteger"
    dims = (1, inner, 6, 5) if is_conv else (4, inner)
    wei_dims = (outer, inner, 3, 2) if is_conv else (inner, outer)
    is_by_column = not is_conv and seed % 3 == 0
    w_scale = rng.uniform(0.001, 0.02, outer if is_by_column else ()).astype(np.float32)
    constants: dict[str, Array] = {
        "w": rng.integers(-128, 128, wei_dims).astype(np.int8),
        "w_point": np.zeros((), np.int8),
        "w_scale": np.asarray(w_scale),
        "b": rng.normal(0, 0.5, outer).astype(np.float32),
        "dims": np.array([1, -1, 1, 1]),
    }
    unit = "unit" if seed % 2 else "scales"
    first = [
        make("DynamicQuantizeLinear", ["x"], ["codes", "scale", "point"]),
        make(kind, ["codes", "w", "point", "w_point"], ["acc"], name="layer"),
        make("Mul", ["scale", "w_scale"], ["scales"]),
    ]
    count = [make("Mul", ["scale", "w_scale"], ["unit"])] if seed % 2 else []
    count += [
        make("Div", ["b", unit], ["parts"]),
        make("Floor", ["parts"], ["whole"]),
        make("Cast", ["whole"], ["flat" if is_conv else "counted"], to=6),
        *([make("Reshape", ["flat", "dims"], ["counted"])] if is_conv else []),
        make("Add", ["acc", "counted"], ["total"]),
    ]
    rest = [make("Cast", ["total"], ["wide"], to=1), make("Mul", ["wide", "scales"], ["y"])]
    x = rng.normal(rng.choice([0.0, 1.0, -3.0]), 1, dims).astype(np.float32)
    return Layer(first, count, rest, constants, x)


def with_real_bias(layer: Layer, behind: str = "y") -> Any:
    """Return the same model, its bias added to what the sums are worth."""
    rest = [make("Cast", ["acc"], ["wide"], to=1), make("Mul", ["wide", "scales"], ["z"])]
    bias = layer.constants["b"]
    held = {**layer.constants, "real": bias[:, None, None] if layer.x.ndim == 4 else bias}
    return model(
        [*layer.first, *rest, make("Add", ["z", "real"], [behind])], {"x": layer.x.shape}, held
    )


def of(layer: Layer) -> Any:
    nodes = [*layer.first, *layer.counting, *layer.rest]
    return model(nodes, {"x": layer.x.shape}, layer.constants)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_is_added_as_it_is(kind: str, seed: int) -> None:
    layer = drawn(kind, seed)
    graph = pq.onnx.load(of(layer))
    own = pq.onnx.Model(pq.onnx.fuse(graph))
    (node,) = own.nodes
    assert node.how.startswith("INT8")
    result = own.run({"x": layer.x})["y"]

    # The model with the bias as a float: the same bits, and as near to float64 as roundings are.
    proto = with_real_bias(layer)
    real = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    np.testing.assert_array_equal(result, real.run({"x": layer.x})["y"])
    (other,) = real.nodes
    near = float_bound(other, "y", {**real.graph.constants, "x": layer.x}, real.graph.opsets)
    assert near is not None
    assert near.apart is not None
    for each in (result, theirs(proto, {"x": layer.x})):
        assert (np.abs(each - near.values) <= near.apart).all()

    # Of what the model says the floor takes less than a unit of the sums, and `diff` knows it.
    values = onnxruntime_values(graph, {"x": layer.x}, {*node.reads, *node.outputs})
    unit = (max(layer.x.max(), 0) - min(layer.x.min(), 0)) / 255 * layer.constants["w_scale"]
    taken = result.astype(np.float64) - values["y"]
    assert (taken >= -2 * near.apart).all()
    assert (taken <= unit + 2 * near.apart).all()
    (found,) = differences(own, {"x": layer.x}, values)
    assert found.unexplained == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_bias_of_two_units_more_is_told(kind: str) -> None:
    layer = drawn(kind, 2)
    graph = pq.onnx.load(of(layer))
    own = pq.onnx.Model(pq.onnx.fuse(graph))
    (node,) = own.nodes
    values = onnxruntime_values(graph, {"x": layer.x}, {*node.reads, *node.outputs})
    unit = (max(layer.x.max(), 0) - min(layer.x.min(), 0)) / 255 * layer.constants["w_scale"]
    changed = values["y"].copy()
    changed.reshape(-1)[3] += np.float32(3 * unit)
    (found,) = differences(own, {"x": layer.x}, {**values, "y": changed})
    assert found.unexplained == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_float_form_has_the_bias(kind: str) -> None:
    for seed in range(4):
        layer = drawn(kind, seed)
        floats = float_form(pq.onnx.load(of(layer)))
        name = {"ConvInteger": "Conv", "MatMulInteger": "MatMul"}[kind]
        assert [node.operator for node in floats.nodes] == [name, "Add"]
        wei = layer.constants["w"].astype(np.float32) * layer.constants["w_scale"]
        bias = layer.constants["b"]
        held = {"w": wei, "b": bias[:, None, None] if kind == "ConvInteger" else bias}
        nodes = [make(name, ["x", "w"], ["z"]), make("Add", ["z", "b"], ["y"])]
        plain = model(nodes, {"x": layer.x.shape}, held)
        found = onnxruntime_values(floats, {"x": layer.x}, ())["y"]
        np.testing.assert_array_equal(found, theirs(plain, {"x": layer.x}))


OTHERS: dict[str, tuple[str, list[Any]]] = {
    "another unit": ("Mul", [make("Mul", ["scale", "w_scale_2"], ["unit"])]),
    "another rounding": ("Floor", [make("Ceil", ["parts"], ["whole"])]),
    "a bias of the source": ("Div", [make("Div", ["x_bias", "unit"], ["parts"])]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_such_bias_is_left_as_it_is(name: str) -> None:
    layer = drawn("MatMulInteger", 1)
    operator, instead = OTHERS[name]
    kept = [node for node in layer.counting if node.op_type != operator]
    at = next(i for i, node in enumerate(layer.counting) if node.op_type == operator)
    more = {"w_scale_2": 2 * layer.constants["w_scale"]}
    nodes = [*layer.first, *kept[:at], *instead, *kept[at:], *layer.rest]
    if name == "a bias of the source":
        nodes.insert(0, make("ReduceMax", ["x"], ["x_bias"]))
    proto = model(nodes, {"x": layer.x.shape}, {**layer.constants, **more})
    own = pq.onnx.Model(pq.onnx.fuse(pq.onnx.load(proto)))
    assert not [node for node in own.nodes if node.how.startswith("INT8")]
    result = own.run({"x": layer.x})["y"]
    np.testing.assert_array_equal(result, theirs(proto, {"x": layer.x}))
