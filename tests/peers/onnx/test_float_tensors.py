"""Nodes of several tensors, of constants among them: compiled, with onnxruntime's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from support.peers.small_models import compiled, floats, make, model, theirs

Array = np.ndarray[Any, Any]

IMAGE = floats(2, 6, 5, 4)
ONE = {"x": IMAGE}
INT32, BOOL = 6, 9


@pytest.mark.parametrize("names", [["x", "c"], ["c", "x"]])
def test_products_with_a_constant_stack(names: list[str]) -> None:
    x, stack = floats(2, 3, 4, 4), floats(3, 4, 4)
    result, wanted, _ = compiled(([make("MatMul", names, ["y"])], {"x": x}, {"c": stack}))
    # Four products of numbers below 5, in another order.
    np.testing.assert_allclose(result, wanted, rtol=0, atol=4 * 25 * 2.0**-23)


@pytest.mark.parametrize("axis", [1, -1])
def test_logarithms_of_softmax(axis: int) -> None:
    """Where a probability is below float32's numbers, too."""
    x = 50 * IMAGE
    result, _, _ = compiled(([make("LogSoftmax", ["x"], ["y"], axis=axis)], {"x": x}, {}))
    less = x.astype(np.float64) - x.max(axis=axis, keepdims=True)
    real = less - np.log(np.exp(less).sum(axis=axis, keepdims=True))
    # The difference and the last subtraction are rounded; 8 units of the logarithm, as functions.
    bound = 2.0**-24 * (2 * np.abs(real) + 8 * np.log(x.shape[axis]) + 1)
    assert np.all(np.abs(result - real) <= bound)


@pytest.mark.parametrize("mask", [np.array([[True], [False]]), np.array(True)])
@pytest.mark.parametrize("is_first", [True, False])
def test_conditions_that_differ_from_constants(mask: Array, is_first: bool) -> None:
    x = np.array([[True, False, True]])
    names = ["c", "x"] if is_first else ["x", "c"]
    nodes = [make("Xor", names, ["y"])]
    result, wanted, _ = compiled((nodes, {"x": x}, {"c": mask}), x=BOOL, y=BOOL)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("names", [["x", "c"], ["c", "x", "c", "x"]])
def test_constants_are_joined_to_tensors(names: list[str]) -> None:
    known = {"c": floats(2, 3, 5, 4)}
    result, wanted, _ = compiled(([make("Concat", names, ["y"], axis=1)], ONE, known))
    np.testing.assert_array_equal(result, wanted)


def test_rows_are_taken_by_indices_of_32_bits() -> None:
    inputs = {"i": np.array([[3, -1], [0, 6]], np.int32)}
    case = ([make("Gather", ["t", "i"], ["y"])], inputs, {"t": floats(7, 5)})
    result, wanted, _ = compiled(case, i=INT32)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("is_source", [True, False])
def test_a_mask_of_infinity_stays_real(is_source: bool) -> None:
    """Attention, whose scores have a mask added before they are codes; no layer reads that."""
    nodes = [
        make("Cast", ["on"], ["b"], to=BOOL),
        make("Where", ["b", "zero", "least"], ["m"]),
        make("MatMul", ["x", "k"], ["keys"]),
        make("Transpose", ["keys"], ["turned"], perm=[0, 2, 1]),
        make("MatMul", ["x", "turned"], ["scores"]),
        make("Add", ["scores", "m"], ["masked"]),
        make("Softmax", ["masked"], ["p"], axis=-1),
        make("MatMul", ["p", "v"], ["y"]),
    ]
    nodes += [make("MatMul", ["m", "v"], ["of_mask"])] if is_source else []
    held = {"zero": np.float32(0), "least": np.float32(-np.inf), "k": floats(4, 4),
            "v": floats(3, 5)}  # fmt: skip
    proto = model(nodes, {"x": [2, 3, 4], "on": [2, 1, 3]}, held, types={"on": INT32})
    inputs = {"x": floats(2, 3, 4), "on": np.array([[[1, 1, 0]], [[1, 0, 1]]], np.int32)}
    graph = pq.onnx.load(proto)
    if is_source:
        with pytest.raises(ArgumentError, match="m: batch: got values that are not finite"):
            pq.calibrate(graph, [inputs])
        return
    found = pq.calibrate(graph, [inputs])
    assert "m" not in {node.inputs[0] for node in found.graph.nodes if node.kind[0] == "Q"}
    result, wanted = found.model().run(inputs)["y"], theirs(proto, inputs)
    assert np.abs(result - wanted).max() < 0.05 * np.abs(wanted).max()
    assert np.isfinite(result).all()
