"""Means of windows whose pads count: a pad is 0 in real values, whatever the zero point is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import ArgumentError, Conv, QParams
from pyonednn_q.network import Network, Node, Pool

TYPES = {"u8": np.uint8, "s8": np.int8}


def expected(real: Any, lo: tuple[int, int], hi: tuple[int, int]) -> Any:
    """Return the mean of each 3 x 3 window in float64, pads among its nine places."""
    sides = [(0, 0), (0, 0), *zip(lo, hi, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(real, sides), (3, 3), axis=(2, 3))
    return windows.mean(axis=(4, 5))


@pytest.mark.parametrize("point", [0, 7, 100, 127])
@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("padding", [1, ((1, 0), (2, 1)), (0, 2)])
def test_a_pad_is_the_zero_point(dtype: str, point: int, padding: Any) -> None:
    ends = np.iinfo(TYPES[dtype])
    x = np.random.default_rng(point).integers(ends.min, ends.max + 1, (2, 5, 6, 7))
    x = x.astype(TYPES[dtype])
    q = QParams(0.25, point, dtype)
    pool = Pool("avg_include_padding", 3, padding=padding, src_q=q, dst_q=q)
    codes = Network(["x"], [Node("y", pool, "x")], ["y"])(x)["y"]
    both = padding if isinstance(padding, tuple) else (padding,) * 2
    sides = [each if isinstance(each, tuple) else (each, each) for each in both]
    lo, hi = zip(*sides, strict=True)
    means = expected(x.astype(np.float64) - point, lo, hi)
    beside = np.abs(np.abs(means - np.floor(means)) - 0.5) < 1e-4
    apart = np.abs(codes - (np.rint(means) + point).clip(ends.min, ends.max))
    assert (apart <= beside).all()


def test_without_a_meaning_of_codes_it_is_refused() -> None:
    net = Network(["x"], [Node("y", Pool("avg_include_padding", 3, padding=1), "x")], ["y"])
    with pytest.raises(ArgumentError, match="src_q: got None"):
        net(np.zeros((1, 4, 5, 5), np.uint8))
    assert net(np.zeros((1, 4, 5, 5), np.float32))["y"].shape == (1, 4, 5, 5)


def test_a_calibrated_network_pads_with_zeros() -> None:
    """Values from -3 to 1: a code of 0 would be -3."""
    rng = np.random.default_rng(1)
    wei = rng.normal(0, 0.3, (4, 4, 1, 1)).astype(np.float32)
    nodes = [
        Node("a", Conv(wei, rng.normal(-1, 0.2, 4).astype(np.float32)), "x"),
        Node("b", Pool("avg_include_padding", 3, padding=1), "a"),
        Node("c", Conv(wei), "b"),
    ]
    net = Network(["x"], nodes, ["c"])
    x = rng.normal(0, 1, (2, 4, 8, 8)).astype(np.float32)
    real, quantized = net(x)["c"], pq.calibrate(net, [x]).network(x)["c"]
    noise = np.square(real - quantized).mean()
    assert 10 * np.log10(np.square(real).mean() / noise) > 35  # 3.5 where pads are code 0
