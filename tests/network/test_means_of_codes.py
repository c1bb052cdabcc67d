"""Means of codes over all places: of their exact sum, rounded once, in every layout."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q import QParams
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.network import Network, Node, Pool

Array = np.ndarray[Any, Any]
DIMS = [
    (1, 32, 14, 14),
    (3, 64, 7, 7),
    (2, 130, 5, 3),
    (1, 1, 9, 9),
    (2, 64, 31, 29),  # more places than 16 bits hold sums of
    (1, 200, 1, 1),
    (2, 7, 11),
    (1, 65, 3, 4, 5),
]
TYPES = {"u8": np.uint8, "s8": np.int8}


def expected(x: Array, src_q: QParams, dst_q: QParams) -> Array:
    """Return the codes, in rational numbers; Python rounds ties to even."""
    places = int(np.prod(x.shape[2:]))
    sums = x.astype(np.int64).reshape(*x.shape[:2], -1).sum(axis=2) - places * int(src_q.zero_point)
    by = Fraction(float(np.float32(src_q.scale))) / Fraction(float(np.float32(dst_q.scale)))
    ends = np.iinfo(TYPES[dst_q.dtype])
    codes = [round(Fraction(int(s)) * by / places) + int(dst_q.zero_point) for s in sums.ravel()]
    made = np.clip(codes, ends.min, ends.max).astype(TYPES[dst_q.dtype])
    return np.asarray(made.reshape(*x.shape[:2], *(1,) * (x.ndim - 2)))


def channels_last(x: Array) -> Array:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)


@pytest.mark.parametrize("kind", ["noise", "least", "greatest", "ties"])
@pytest.mark.parametrize("types", [("u8", "u8"), ("s8", "s8"), ("u8", "s8"), ("s8", "u8")])
@pytest.mark.parametrize("dims", DIMS)
def test_means_are_exact(dims: tuple[int, ...], types: tuple[str, str], kind: str) -> None:
    rng = np.random.default_rng(dims[1])
    ends = np.iinfo(TYPES[types[0]])
    x = rng.integers(ends.min, ends.max + 1, dims).astype(TYPES[types[0]])
    if kind != "noise":
        x[...] = {"least": ends.min, "greatest": ends.max, "ties": 3}[kind]
    if kind == "ties":  # every other place one more
        x.reshape(*dims[:2], -1)[..., ::2] += 1
    points = [int(rng.integers(np.iinfo(TYPES[t]).min, np.iinfo(TYPES[t]).max)) for t in types]
    src_q = QParams(0.037, points[0], types[0])
    for dst_q in (QParams(0.0241, points[1], types[1]), QParams(0.037, points[1], types[1])):
        pool = Pool("avg_include_padding", src_q=src_q, dst_q=dst_q)
        net = Network(["x"], [Node("y", pool, "x")], ["y"])
        wanted = expected(x, src_q, dst_q)
        for src in (x, channels_last(x)):
            np.testing.assert_array_equal(net(src)["y"], wanted)
    if types[0] == types[1]:
        same = QParams(1.0, 0, types[0])
        net = Network(["x"], [Node("y", Pool("avg_exclude_padding"), "x")], ["y"])
        np.testing.assert_array_equal(net(x)["y"], expected(x, same, same))


def test_means_of_windows_of_another_scale_are_those_of_floats() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (2, 6, 8, 8)).astype(np.uint8)
    src_q, dst_q = QParams(0.04, 9, "u8"), QParams(0.03, -4, "s8")
    pool = Pool("avg_include_padding", 2, stride=2, src_q=src_q, dst_q=dst_q)
    real = (x.astype(np.float64) - 9) * 0.04
    means = real.reshape(2, 6, 4, 2, 4, 2).mean(axis=(3, 5))
    codes = np.clip(np.rint(means / 0.03) - 4, -128, 127)
    found = Network(["x"], [Node("y", pool, "x")], ["y"])(x)["y"]
    assert found.dtype == np.int8
    near = np.abs(np.abs(means / 0.03 % 1) - 0.5) < 1e-4
    assert (np.abs(found - codes) <= near).all()


def test_what_is_wrong_is_named() -> None:
    q = QParams(0.1, 0, "u8")
    with pytest.raises(ArgumentError, match="src_q"):
        Pool("avg_include_padding", dst_q=q)
    with pytest.raises(ArgumentError, match="dst_q"):
        Pool("avg_include_padding", src_q=q)
    with pytest.raises(ArgumentError, match="src_q"):
        Pool("max", src_q=q, dst_q=q)
    per_channel = QParams(np.ones(4), 0, "u8", axis=0)
    with pytest.raises(ArgumentError, match="dst_q"):
        Pool("avg_include_padding", src_q=q, dst_q=per_channel)
    pool = Pool("avg_include_padding", src_q=q, dst_q=q)
    net = Network(["x"], [Node("y", pool, "x")], ["y"])
    with pytest.raises(DTypeError, match="src"):
        net(np.zeros((1, 4, 2, 2), np.int8))
