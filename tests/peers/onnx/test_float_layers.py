"""Layers that cannot be INT8: primitives of float32 and what follows, as onnxruntime has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from support.peers.small_models import floats, make, model, ready, theirs

Array = np.ndarray[Any, Any]

SOURCE = floats(2, 8, 9, 9)
NORM = {"scale": floats(8), "shift": floats(8), "mean": floats(8), "var": floats(8) ** 2}
# By name: nodes from x to t, their constants, the source.
LAYERS: dict[str, tuple[list[Any], dict[str, Array], Array]] = {
    "convolution": (
        [make("Conv", ["x", "w", "b"], ["t"], pads=[1, 1, 0, 1], strides=[2, 1])],
        {"w": floats(12, 8, 3, 3), "b": floats(12)},
        SOURCE,
    ),
    "of groups, one per channel": (
        [make("Conv", ["x", "w"], ["t"], group=8, pads=[1, 1, 1, 1])],
        {"w": floats(8, 1, 3, 3)},
        SOURCE,
    ),
    "transposed": (
        [make("ConvTranspose", ["x", "w", "b"], ["t"], strides=[2, 2], group=2)],
        {"w": floats(8, 3, 2, 2), "b": floats(6)},
        SOURCE,
    ),
    "product": (
        [make("MatMul", ["x", "w"], ["m"]), make("Add", ["m", "b"], ["t"])],
        {"w": floats(9, 5), "b": floats(5)},
        SOURCE,
    ),
    "rows with factors": (
        [make("Gemm", ["x", "w", "b"], ["t"], alpha=0.5, beta=-2.0, transB=1)],
        {"w": floats(5, 12), "b": floats(5)},
        floats(3, 12),
    ),
    "rows and one number": (
        [make("Gemm", ["x", "w", "b"], ["t"])],
        {"w": floats(12, 5), "b": floats(1)},
        floats(3, 12),
    ),
    "a norm alone": ([make("BatchNormalization", ["x", *NORM], ["t"], epsilon=0.01)], NORM, SOURCE),
    "a norm of rows": ([make("BatchNormalization", ["x", *NORM], ["t"])], NORM, floats(2, 8, 31)),
    "a norm of volumes": (
        [make("BatchNormalization", ["x", *NORM], ["t"])],
        NORM,
        floats(2, 8, 3, 4, 5),
    ),
}
TAILS: dict[str, list[Any]] = {
    "alone": [make("Identity", ["t"], ["y"])],
    "gate": [make("Sigmoid", ["t"], ["g"]), make("Mul", ["t", "g"], ["y"])],
    "limits": [make("Relu", ["t"], ["r"]), make("Mul", ["r", "half"], ["y"])],
}


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("layer", LAYERS)
def test_results_are_those_of_onnxruntime(layer: str, tail: str) -> None:
    nodes, constants, x = LAYERS[layer]
    proto = model([*nodes, *TAILS[tail]], {"x": x.shape}, {**constants, "half": np.float32(0.5)})
    own = ready(proto)
    found, wanted = own.run({"x": x})["y"], theirs(proto, {"x": x})
    # At most 72 products, of numbers below 6, in another order.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=72 * 36 * 2.0**-24)
    (layer_node,) = [node for node in own.nodes if node.how.startswith("FP32")]
    is_norm = layer.startswith("a norm")
    why = "a batch norm behind no layer" if is_norm else "a float source, from the model's input"
    assert layer_node.why.startswith(why)


def test_a_bias_for_each_row_stays_as_it_is() -> None:
    known = {"w": floats(12, 5), "b": floats(5, 1)}
    proto, x = model([make("Gemm", ["x", "w", "b"], ["y"])], {"x": [5, 12]}, known), floats(5, 12)
    own = ready(proto)
    found, wanted = own.run({"x": x})["y"], theirs(proto, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=72 * 36 * 2.0**-24)
    assert [node.how for node in own.nodes] == ["reference"]


def test_a_norm_that_trains_normalizes_by_its_batch() -> None:
    nodes = [make("BatchNormalization", ["x", *NORM], ["y", "m", "v"], training_mode=1)]
    proto = model(nodes, {"x": SOURCE.shape}, NORM)
    own = ready(proto)
    mean, var = SOURCE.mean((0, 2, 3), np.float64), SOURCE.var((0, 2, 3), np.float64)
    gain = NORM["scale"] / np.sqrt(var + 1e-5)
    want = (SOURCE - mean.reshape(-1, 1, 1)) * gain.reshape(-1, 1, 1)
    want += NORM["shift"].reshape(-1, 1, 1)
    np.testing.assert_allclose(own.run({"x": SOURCE})["y"], want, rtol=1e-5, atol=1e-4)
