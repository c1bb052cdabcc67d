"""The largest of windows, dilated and not, in one pass: what NumPy has, of floats and of codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import Error, ShapeError
from pyonednn_q.native import Prepared
from pyonednn_q.native.program import Pass
from pyonednn_q.network import Network, Node, Pool
from pyonednn_q.primitive.tensor import TensorSpec

DTYPES = {"f32": np.float32, "u8": np.uint8, "s8": np.int8}


def largest(x: Any, window: Any) -> Any:
    """Return the largest of each window, one dimension after the other."""
    for axis, (kernel, stride, dilation, (lo, hi)) in enumerate(window, 2):
        length = x.shape[axis]
        count = (length + lo + hi - (kernel - 1) * dilation - 1) // stride + 1
        parts = []
        for at in range(count):
            taps = at * stride - lo + dilation * np.arange(kernel)
            there = taps[(taps >= 0) & (taps < length)]
            parts.append(x.take(there, axis=axis).max(axis=axis, keepdims=True))
        x = np.concatenate(parts, axis=axis)
    return x


def drawn(
    rng: np.random.Generator, length: int, furthest: int
) -> tuple[int, int, int, tuple[int, int]]:
    """Return kernel, stride, dilation and pads of a dimension, each window with a value."""
    while True:
        kernel, stride, dilation = (int(rng.integers(1, 1 + most)) for most in (4, 3, furthest))
        reach = (kernel - 1) * dilation + 1
        lo, hi = (int(each) for each in rng.integers(0, reach, 2))
        count = (length + lo + hi - reach) // stride + 1
        taps = [at * stride - lo + dilation * np.arange(kernel) for at in range(max(count, 0))]
        if taps and all(((each >= 0) & (each < length)).any() for each in taps):
            return kernel, stride, dilation, (lo, hi)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(120))
def test_drawn_windows(seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    count = 1 + seed % 3
    lengths = [int(each) for each in rng.integers(1, (40, 14, 8)[count - 1], count)]
    dims = (int(rng.integers(1, 3)), int(rng.choice([1, 3, 4, 15, 16, 17, 64, 65, 83])), *lengths)
    window = [drawn(rng, length, 4 if seed % 2 else 1) for length in lengths]
    x = rng.integers(-120, 120, dims).astype(np.int8).view(np.uint8).astype(DTYPES[dtype])
    kernel, stride, dilation, padding = zip(*window, strict=True)
    pool = Pool("max", kernel, stride=stride, padding=padding, dilation=dilation)
    network = Network(["x"], [Node("y", pool, "x")], ["y"])
    np.testing.assert_array_equal(network(x)["y"], largest(x, window))


def test_nan_is_the_largest_and_infinities_are_numbers() -> None:
    x = np.array([[[1, np.nan, 3, -np.inf, -np.inf, 7, np.inf]]], np.float32)
    pool = Pool("max", 2, dilation=2)
    network = Network(["x"], [Node("y", pool, "x")], ["y"])
    np.testing.assert_array_equal(network(x)["y"], np.maximum(x[..., :-2], x[..., 2:]))


def test_no_primitive_runs_for_dilated_windows() -> None:
    pool = Pool("max", 3, dilation=2, padding=2)
    network = Network(["x"], [Node("y", pool, "x")], ["y"])
    compiled = network.compile({"x": TensorSpec.channels_last((1, 8, 9, 9), "u8")})
    texts = [step.runs.text for step in compiled.steps if isinstance(step.runs, Pass)]
    assert texts == ["the largest of 3x3 for 1x8x9x9"]
    assert not [step for step in compiled.steps if isinstance(step.runs, Prepared)]


def test_windows_that_reach_beyond_the_source_are_refused() -> None:
    network = Network(["x"], [Node("y", Pool("max", 4, dilation=3), "x")], ["y"])
    with pytest.raises(ShapeError, match="kernel"):
        network(np.zeros((1, 1, 9), np.float32))


def test_windows_of_padding_alone_are_refused() -> None:
    network = Network(["x"], [Node("y", Pool("max", 2, dilation=3, padding=1), "x")], ["y"])
    with pytest.raises(ShapeError, match="padding"):
        network(np.zeros((1, 1, 2), np.float32))


@pytest.mark.parametrize("dims", [(2,), (2, 3), (1, 1, 2, 2, 2, 2)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_a_source_without_spatial_dims_is_refused(dims: tuple[int, ...], dilation: int) -> None:
    net = Network(["x"], [Node("y", Pool("max", 2, dilation=dilation), "x")], ["y"])
    with pytest.raises(Error):
        net(np.zeros(dims, np.float32))
