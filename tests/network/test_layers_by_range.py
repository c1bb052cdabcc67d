"""Layers whose sources each call quantizes, as steps of a network, against calls of them alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.network import Network, Node
from pyonednn_q.primitive import TensorSpec

Array = np.ndarray[Any, Any]


def weights(rng: np.random.Generator, *dims: int) -> Array:
    # Within ±32: exact without VNNI as well.
    return rng.integers(-32, 33, dims).astype(np.int8)


def steps_in_python(network: Network, **inputs: Array) -> int:
    compiled = network.compile({name: TensorSpec.of(x) for name, x in inputs.items()})
    return sum(type(step.runs).__name__ == "function" for step in compiled.steps)


def reals(rng: np.random.Generator, *dims: int) -> Array:
    return rng.normal(0.2, 1.5, dims).astype(np.float32)


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("channels", [1, 3, 8])
def test_convolutions_of_any_layout(dtype: str, channels: int) -> None:
    """Rows of channels, and channels apart as images come: codes alone are reordered."""
    rng = np.random.default_rng(channels)
    layer = pq.Conv(
        weights(rng, 16, channels, 3, 3),
        reals(rng, 16),
        src_q=pq.Dynamic(dtype),
        wei_q=pq.QParams(0.02, 0, "s8"),
        post=pq.Chain(pq.Eltwise("relu")),
        padding=1,
    )
    network = Network(["x"], [Node("y", layer, "x")], ["y"])
    for x in (reals(rng, 2, channels, 9, 7), reals(rng, 2, 9, 7, channels).transpose(0, 3, 1, 2)):
        np.testing.assert_array_equal(network(x)["y"], layer(x), strict=True)
        assert steps_in_python(network, x=x) == 0


@pytest.mark.parametrize("kind", ["conv", "grouped", "matmul", "rows"])
def test_weights_in_parts(kind: str) -> None:
    """Weights less their zero point need nine bits: some channels of codes are there twice."""
    rng = np.random.default_rng(5)
    wei_q = pq.QParams(0.01, 131, "u8")
    dynamic = pq.Dynamic("u8", "per_row" if kind == "rows" else "per_tensor")
    options: dict[str, Any] = {"src_q": dynamic, "wei_q": wei_q, "saturation": "allow"}
    layer: Any
    if kind in {"conv", "grouped"}:
        groups = 1 if kind == "conv" else 2
        wei = rng.integers(0, 256, (8, 6 // groups, 3, 3)).astype(np.uint8)
        layer = pq.Conv(wei, reals(rng, 8), groups=groups, padding=1, **options)
        x = reals(rng, 1, 6, 8, 5)
    else:
        wei = rng.integers(0, 256, (12, 8)).astype(np.uint8)
        layer, x = pq.MatMul(wei, reals(rng, 8), **options), reals(rng, 7, 12)
    network = Network(["x"], [Node("y", layer, "x")], ["y"])
    np.testing.assert_array_equal(network(x)["y"], layer(x), strict=True)


def test_codes_of_weights_in_parts() -> None:
    """Codes that a network has already are repeated alike."""
    rng = np.random.default_rng(6)
    src_q = pq.QParams(0.05, 7, "u8")
    wei = rng.integers(0, 256, (8, 6, 3, 3)).astype(np.uint8)
    wei_q = pq.QParams(0.01, 131, "u8")
    layer = pq.Conv(wei, src_q=src_q, wei_q=wei_q, padding=1, saturation="allow")
    assert layer.weights.parts is not None
    network = Network(["x"], [Node("y", layer, "x")], ["y"])
    x = rng.integers(0, 256, (1, 6, 8, 5)).astype(np.uint8)
    np.testing.assert_array_equal(network(x)["y"], layer(x), strict=True)
    assert steps_in_python(network, x=x) == 0


def test_a_sum_and_an_operand() -> None:
    """What comes along beside the codes is read where it lies."""
    rng = np.random.default_rng(7)
    wei, wei_q = weights(rng, 6, 6, 1, 1), pq.QParams(0.02, 0, "s8")
    options: dict[str, Any] = {"src_q": pq.Dynamic("u8"), "wei_q": wei_q}
    sums = pq.Conv(wei, post=pq.Chain(pq.Sum(0.5)), **options)
    adds = pq.Conv(wei, post=pq.Chain(pq.Binary("add", pq.Leaf("other", "f32"))), **options)
    nodes = [
        Node("a", sums, "x", residual="x"),
        Node("y", adds, "a", operands={"other": "x"}),
    ]
    network = Network(["x"], nodes, ["y"])
    x = reals(rng, 1, 6, 5, 4)
    want = adds(sums(x, residual=x), other=x)
    np.testing.assert_array_equal(network(x)["y"], want, strict=True)


@pytest.mark.parametrize("dims", [(5, 16), (1, 16), (2, 3, 16)])
@pytest.mark.parametrize("extent", ["per_tensor", "per_row"])
def test_products(extent: Any, dims: tuple[int, ...]) -> None:
    """Of a matrix, of one row, of a stack; with a range of each row as well."""
    rng = np.random.default_rng(8)
    wei_q = pq.QParams(0.02, 0, "s8")
    layer = pq.MatMul(
        weights(rng, 16, 8), reals(rng, 8), src_q=pq.Dynamic("u8", extent), wei_q=wei_q
    )
    network = Network(["x"], [Node("y", layer, "x")], ["y"])
    for spread in (0.1, 30.0):
        x = reals(rng, *dims) * np.float32(spread)
        np.testing.assert_array_equal(network(x)["y"], layer(x), strict=True)


def test_values_without_a_range_are_refused() -> None:
    rng = np.random.default_rng(9)
    wei_q = pq.QParams(0.02, 0, "s8")
    layer = pq.MatMul(weights(rng, 16, 8), src_q=pq.Dynamic("u8"), wei_q=wei_q)
    network = Network(["x"], [Node("y", layer, "x")], ["y"])
    x = reals(rng, 4, 16)
    for odd in (np.nan, np.inf, -np.inf):
        x[2, 3] = odd
        with pytest.raises(ArgumentError, match=r"^src: "):
            network(x)
    x[2, 3] = 3.4e38
    x[2, 4] = -3.4e38
    with pytest.raises(ArgumentError, match=r"^src: "):
        network(x)
