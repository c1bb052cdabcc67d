"""Functions of floats: what kernels are off by is measured again, and what is wrong stands out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")

import onnx
import onnxruntime
from onnx import helper
from scipy import special

from function_errors import EXACT
from pyonednn_q import native
from pyonednn_q.dtypes import F32_UNIT
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.models.function_bounds import function_bounds
from pyonednn_q.models.node_bounds import float_bound
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.predict.float_bounds import BOUNDS
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.problem import EltwiseProblem, SoftmaxProblem
from pyonednn_q.primitive.tensor import TensorSpec

Array = np.ndarray[Any, Any]
OPSETS = {"": 20}


def theirs(part: GraphNode, values: dict[str, Array]) -> Array:
    """Return onnxruntime's result of one node."""
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, values[name].shape)
        for name in part.inputs
    ]
    node = helper.make_node(part.kind, [*part.inputs], ["y"], **part.attributes)
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "one", ends, [result])
    opsets = [helper.make_opsetid("", OPSETS[""])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, values)[0])


def bound(part: GraphNode, values: dict[str, Array]) -> tuple[Array, Array]:
    """Return a node's values and how far float32 may be from them."""
    node = FusedNode.as_it_is(part)
    found = float_bound(node, "y", values, OPSETS)
    assert found is not None
    assert found.apart is not None
    return found.values, found.apart


def part_of(kind: str, *inputs: str, **attributes: Any) -> GraphNode:
    return GraphNode("y", kind, inputs or ("x",), ("y",), attributes=attributes)


def grid(kind: str) -> Array:
    """Return floats of every size, and many where functions bend."""
    rng = np.random.default_rng(0)
    wide = np.exp2(rng.uniform(-30, 7, 1 << 17)) * rng.choice([-1.0, 1.0], 1 << 17)
    x = np.concatenate([wide, rng.uniform(-10, 10, 1 << 18)]).astype(np.float32)
    return x[np.abs(x) < 87] if kind == "Exp" else x


MEASURED = [name for name, row in KINDS.items() if row.units]


@pytest.mark.parametrize("kind", MEASURED)
def test_kernels_are_within_their_bounds_and_near_them(kind: str) -> None:
    x = grid(kind)
    exact = EXACT[kind](x.astype(np.float64))
    unit = F32_UNIT * (exact if kind == "Exp" else np.maximum(1.0, np.abs(exact)))
    normal = exact > 2.0**-125 if kind == "Exp" else np.isfinite(exact)
    worst = (np.abs(theirs(part_of(kind), {"x": x}) - exact) / unit)[normal].max()
    assert 0.5 * KINDS[kind].units <= worst <= KINDS[kind].units
    values, apart = bound(part_of(kind), {"x": x})
    np.testing.assert_allclose(values, exact, rtol=1e-13, atol=1e-15)
    if alg := KINDS[kind].alg:
        spec = TensorSpec.dense(x.shape, "f32")
        ours = native.prepare(EltwiseProblem(spec, spec, alg), Attr())(x)
        assert (np.abs(ours - exact) <= apart).all()
        most = max(KINDS[kind].units, *BOUNDS[alg].units)
        if kind != "Exp":  # whose error grows with |x|
            assert (apart <= 1.01 * most * unit + 2.0**-120).all()


ROWS = [(1, 1), (3, 7), (8, 64), (4, 768), (2, 3000)]


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("dims", ROWS)
def test_softmax_of_both_is_within_its_bound(dims: tuple[int, int], spread: float) -> None:
    x = np.random.default_rng(dims[1]).normal(5, spread, dims).astype(np.float32)
    part = part_of("Softmax", axis=-1)
    exact, apart = bound(part, {"x": x})
    np.testing.assert_allclose(exact, special.softmax(x.astype(np.float64), -1), rtol=1e-12)
    spec = TensorSpec.dense(dims, "f32")
    ours = native.prepare(SoftmaxProblem(spec, spec, 1), Attr())(x)
    for each in (ours, theirs(part, {"x": x})):
        assert (np.abs(each - exact) <= apart).all()
    # Another base is far beyond it, wherever it changes a value that float32 has at all.
    powers = np.exp2(x.astype(np.float64) - x.max(-1, keepdims=True))
    other = powers / powers.sum(-1, keepdims=True)
    differs = (np.abs(other - exact) > 2e-3 * exact) & (exact > 1e-30)
    assert (np.abs(other - exact) > apart)[differs].all()


@pytest.mark.parametrize("middle", [0.0, 3.0])
@pytest.mark.parametrize("dims", ROWS[1:])
def test_layer_normalization_of_both_is_within_its_bound(
    dims: tuple[int, int], middle: float
) -> None:
    rng = np.random.default_rng(dims[1])
    values = {
        "x": rng.normal(middle, 1, dims).astype(np.float32),
        "gain": rng.normal(1, 0.2, dims[1]).astype(np.float32),
        "shift": rng.normal(0, 0.2, dims[1]).astype(np.float32),
    }
    part = part_of("LayerNormalization", *values, axis=-1, epsilon=1e-5)
    exact, apart = bound(part, values)
    x, gain, shift = (each.astype(np.float64) for each in values.values())

    def normal(epsilon: float, ddof: int) -> Array:
        distance = x - x.mean(-1, keepdims=True)
        root = np.sqrt(x.var(-1, ddof=ddof, keepdims=True) + epsilon)
        return np.asarray(distance / root * gain + shift)

    np.testing.assert_allclose(exact, normal(1e-5, 0), rtol=1e-9, atol=1e-12)
    got = theirs(part, values)
    assert (np.abs(got - exact) <= apart).all()
    floats = values["x"] - values["x"].mean(-1, keepdims=True)
    root = np.sqrt((floats * floats).mean(-1, keepdims=True) + np.float32(1e-5))
    assert (np.abs(floats / root * values["gain"] + values["shift"] - exact) <= apart).all()
    # Another divisor, of few, and a larger epsilon are not taken for roundings.
    assert dims[1] > 64 or (np.abs(normal(1e-5, 1) - exact) > apart).mean() > 0.9
    assert (np.abs(normal(0.1, 0) - exact) > apart).mean() > 0.7


@pytest.mark.parametrize("kind", ["HardSigmoid", "HardSwish"])
def test_lines_with_bounds_are_within_theirs(kind: str) -> None:
    x = grid(kind)
    part = part_of(kind, **({"alpha": 0.3, "beta": 0.4} if kind == "HardSigmoid" else {}))
    exact, apart = bound(part, {"x": x})
    assert (np.abs(theirs(part, {"x": x}) - exact) <= apart).all()
    middle = np.abs(x) < 1
    assert (apart[middle] <= 1e-6).all()


@pytest.mark.parametrize(
    ("part", "opset"), [(part_of("Sin"), 20), (part_of("Softmax", axis=1), 12)]
)
def test_functions_that_nobody_measured_have_no_bound(part: GraphNode, opset: int) -> None:
    node = FusedNode.as_it_is(part)
    found = float_bound(node, "y", {"x": np.ones((2, 3, 4), np.float32)}, {"": opset})
    assert found is not None
    assert found.apart is None
    assert found.function == part.kind


def test_functions_of_what_is_off_by_much_have_no_finite_bound() -> None:
    """Exponentials of arguments that nobody knows to within 1, and quotients by 0: no warning."""
    x = np.zeros((1, 3))
    part = part_of("Softmax", axis=-1)
    far = function_bounds(part, {"x": x}, [np.full((1, 3), 2.0)], np.full((1, 3), 1 / 3))
    assert far is not None
    assert (far == np.inf).all()
    quotient = GraphNode("y", "Div", ("x", "z"), ("y",))
    values = {"x": np.ones(3), "z": np.zeros(3)}
    found = function_bounds(quotient, values, [0.0, 0.0], np.full(3, np.inf))
    assert found is not None
    assert not np.isfinite(found).any()


@pytest.mark.parametrize("seed", range(5))
def test_batch_norms_are_within_their_bound(seed: int) -> None:
    """In onnxruntime's order of operations, and in that of a gain that a layer has taken in."""
    rng = np.random.default_rng(seed)
    dims = (2, 40, 9, 9)
    values = {"x": rng.normal(0, 3, dims), "scale": rng.normal(0, 2, 40), "b": rng.normal(0, 2, 40)}
    values |= {"mean": rng.normal(0, 3, 40), "var": np.exp(rng.normal(0, 2, 40))}
    values = {name: each.astype(np.float32) for name, each in values.items()}
    part = part_of("BatchNormalization", *values, epsilon=1e-5)
    exact, apart = bound(part, values)
    each = [values[name].reshape(-1, 1, 1) for name in ("scale", "b", "mean", "var")]
    scale, shift, mean, var = each
    gain = scale / np.sqrt(var + np.float32(1e-5))
    for result in (theirs(part, values), values["x"] * gain + (shift - mean * gain)):
        assert (np.abs(result - exact) <= apart).all()
    assert (
        apart
        <= 64
        * F32_UNIT
        * (np.abs(values["x"]) + np.abs(mean) + np.abs(shift))
        * np.maximum(1, np.abs(gain))
    ).all()
