"""Biases that take back what rounding of weights adds, against float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

Array = np.ndarray[Any, Any]


def model(groups: int = 1, *, has_bias: bool = True) -> Any:
    """Return a convolution, and a product with a sum behind it."""
    rng = np.random.default_rng(groups)
    arrays = {
        "w": rng.normal(0, 1, (12, 8 // groups, 1, 1)).astype(np.float32),
        "b": rng.normal(0, 1, 12).astype(np.float32),
        "dims": np.array([-1, 12]),
        "v": rng.normal(0, 1, (12, 5)).astype(np.float32),
        "c": rng.normal(0, 1, 5).astype(np.float32),
    }
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"][: 3 if has_bias else 2], ["a"], "conv", group=groups
        ),
        helper.make_node("Transpose", ["a"], ["t"], "moved", perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["t", "dims"], ["f"], "rows"),
        helper.make_node("MatMul", ["f", "v"], ["p"], "product"),
        helper.make_node("Add", ["p", "c"], ["y"], "sum"),
    ]
    ends = [[helper.make_tensor_value_info("x", 1, [4, 8, 3, 3])]]
    ends.append([helper.make_tensor_value_info("y", 1, [36, 5])])
    held = [numpy_helper.from_array(each, name) for name, each in arrays.items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def batches() -> list[Array]:
    rng = np.random.default_rng(9)
    return [rng.uniform(0, 3, (4, 8, 3, 3)).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_bias_holds_what_rounding_of_weights_adds(groups: int, *, has_bias: bool) -> None:
    graph = pq.onnx.load(model(groups, has_bias=has_bias))
    found = pq.calibrate(graph, batches(), bias_correction=True)
    plain = pq.calibrate(graph, batches(), bias_correction=False)
    mean = np.concatenate(batches()).astype(np.float64).mean(axis=(0, 2, 3))
    wei = graph.constants["w"].astype(np.float64)[:, :, 0, 0]
    layer: Any
    (layer,) = [n for n in plain.model().nodes if n.how == "INT8 convolution"]
    weights = layer.runs.weights
    meant = weights.values.reshape(wei.shape) * weights.scale.spread(12)[:, None]
    rows = mean.reshape(groups, -1).repeat(12 // groups, axis=0)
    shift = ((wei - meant) * rows).sum(axis=1)
    assert np.abs(shift).max() > 1e-4
    (layer,) = [n for n in found.model().nodes if n.how == "INT8 convolution"]
    bias = graph.constants["b"].astype(np.float64) if has_bias else np.zeros(12)
    # One rounding to float32 of the bias, and one of each scale of weights.
    assert np.allclose(layer.runs.bias, bias + shift, rtol=0, atol=2.0**-20)
    # Layers that stay in floats keep their biases.
    x = batches()[0]
    ours = found.with_floats(found.layers).model().run({"x": x})["y"]
    assert np.array_equal(ours, plain.with_floats(plain.layers).model().run({"x": x})["y"])


@pytest.mark.parametrize("has_bias", [True, False])
def test_biases_of_open_lengths_are_corrected_alike(*, has_bias: bool) -> None:
    """The model of open lengths has them, and not only that which the batches were seen by."""
    proto = model(2, has_bias=has_bias)
    wanted = pq.calibrate(pq.onnx.load(proto), batches()).model().run({"x": batches()[1]})["y"]
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    found = pq.calibrate(pq.onnx.load(proto), batches())
    assert found.source.symbols
    np.testing.assert_array_equal(found.model().run({"x": batches()[1]})["y"], wanted)


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_taps_in_padding_do_not_count(rows: int) -> None:
    """Sources that are the same in all places: then the mean of the result is exact."""
    rng = np.random.default_rng(rows)
    wei = rng.normal(0, 1, (6, 4, 5, 3)).astype(np.float32)
    window = {"pads": [2, 1, 2, 1], "strides": [1, 2]}
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv", **window)
    ends = [[helper.make_tensor_value_info("x", 1, [2, 4, rows, 7])]]
    ends.append([helper.make_tensor_value_info("y", 1, [2, 6, rows, 4])])
    held = [numpy_helper.from_array(wei, "w")]
    proto = helper.make_graph([node], "g", *ends, held)
    imports = [helper.make_opsetid("", 17)]
    graph = pq.onnx.load(helper.make_model(proto, opset_imports=imports, ir_version=8))
    image = rng.uniform(1, 3, (2, 4, 1, 1)) * np.ones((2, 4, rows, 7))
    found = pq.calibrate(graph, [image.astype(np.float32)], bias_correction=True)
    (layer,) = [n.runs for n in found.model().nodes if n.how == "INT8 convolution"]
    assert isinstance(layer, pq.Conv)
    meant = layer.weights.values * layer.weights.scale.spread(6)[:, None, None, None]
    padded = np.pad(image.mean(axis=0), ((0, 0), (2, 2), (1, 1)))
    lost = [
        ((wei - meant) * padded[None, :, i : i + 5, j : j + 3]).sum(axis=(1, 2, 3))
        for i in range(rows)
        for j in range(0, 7, 2)
    ]
    assert np.abs(lost).max() > 1e-3
    assert layer.bias is not None
    assert np.allclose(layer.bias, np.mean(lost, axis=0), rtol=0, atol=1e-6)


def test_the_mean_result_is_nearer() -> None:
    graph = pq.onnx.load(model())
    lost = []
    for is_corrected in (False, True):
        found = pq.calibrate(graph, batches(), bias_correction=is_corrected)
        pairs = [
            (
                found.model().run({"x": x})["y"],
                found.with_floats(found.layers).model().run({"x": x})["y"],
            )
            for x in batches()
        ]
        lost.append(np.abs(np.mean([one - other for one, other in pairs], axis=(0, 1))).max())
    assert lost[1] < lost[0] / 2
