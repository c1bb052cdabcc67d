"""Products of codes beside exact integers; softmax and normalization beside float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.network import CodeMatMul, LayerNorm, Network, Node, Softmax, Transpose
from support.one_operation import one_operation

Array = np.ndarray[Any, Any]
EPS = np.finfo(np.float32).eps


def params(rng: np.random.Generator, dtype: str, scale: float) -> pq.QParams:
    lo, hi = (0, 256) if dtype == "u8" else (-128, 128)
    point = 0 if rng.integers(3) == 0 else int(rng.integers(lo, hi))
    return pq.QParams(float(np.float32(scale * rng.uniform(0.5, 2))), point, dtype)


def codes(rng: np.random.Generator, q: pq.QParams, dims: tuple[int, ...]) -> Array:
    every = rng.integers(0, 256, dims).astype(np.uint8)
    return every if q.dtype == "u8" else every.view(np.int8)


def product(a: Array, b: Array, a_q: pq.QParams, b_q: pq.QParams, y_q: pq.QParams) -> Array:
    """Return QLinearMatMul as ONNX Runtime defines it, from exact integers."""
    acc = (a.astype(np.int64) - a_q.zero_point) @ (b.astype(np.int64) - b_q.zero_point)
    scale = np.float32(a_q.scale) * np.float32(b_q.scale) / np.float32(y_q.scale)
    whole = np.rint(acc.astype(np.float32) * scale) + np.float32(y_q.zero_point)
    limits = np.iinfo(np.uint8 if y_q.dtype == "u8" else np.int8)
    result: Array = np.clip(whole, limits.min, limits.max).astype(limits.dtype)
    return result


@pytest.mark.parametrize("seed", range(40))
def test_a_product_rounds_exact_sums_as_onnx_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = ("u8", "s8")
    a_q, b_q = params(rng, types[seed % 2], 0.01), params(rng, types[seed // 2 % 2], 0.01)
    y_q = params(rng, types[seed // 4 % 2], 0.05)
    m, k, n = (int(each) for each in rng.integers(1, 40, 3))
    k = 258 if seed % 7 == 0 else k
    lead = tuple(int(each) for each in rng.integers(1, 4, seed % 3))
    a, b = codes(rng, a_q, (*lead, m, k)), codes(rng, b_q, (*lead, k, n))
    if seed % 5 == 0:  # another layout
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    want = product(a, b, a_q, b_q, y_q)
    one = CodeMatMul(a_q, b_q, y_q)
    np.testing.assert_array_equal(one_operation(one, a, b), want, strict=True)


def test_a_product_of_turned_heads() -> None:
    """Attention: heads are views of one tensor, and stay views until a kernel reads them."""
    rng = np.random.default_rng(3)
    q = pq.QParams(0.02, 131, "u8")
    y_q = pq.QParams(0.4, 120, "u8")
    x = codes(rng, q, (2, 16, 2, 24))
    one = CodeMatMul(q, q, y_q)
    nodes = [
        Node("rows", Transpose((0, 2, 1, 3)), "x"),
        Node("columns", Transpose((0, 2, 3, 1)), "x"),
        Node("y", one, ("rows", "columns")),
    ]
    want = product(x.transpose(0, 2, 1, 3), x.transpose(0, 2, 3, 1), q, q, y_q)
    np.testing.assert_array_equal(Network(["x"], nodes, ["y"])(x)["y"], want)


@pytest.mark.parametrize("seed", range(12))
def test_softmax_is_near_float64(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = tuple(int(each) for each in rng.integers(1, 30, 1 + seed % 4))
    axis = int(rng.integers(-len(dims), len(dims)))
    x = rng.normal(0, 3, dims).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    want = powers / powers.sum(axis, keepdims=True)
    # Powers of e within 4 units, exponents of up to 32 within half of one, and the sum's roundings.
    assert (np.abs(one_operation(Softmax(axis), x) - want) <= (dims[axis] + 40) * EPS * want).all()


@pytest.mark.parametrize("seed", range(12))
def test_normalization_is_near_float64(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = (int(rng.integers(1, 50)), int(rng.integers(1, 5)), int(rng.integers(2, 900)))
    count = 1 + seed % 2
    gain, shift = (rng.normal(1, 1, dims[-count:]).astype(np.float32) for _ in range(2))
    x = (rng.normal(0, 3, dims) + rng.normal(0, 10)).astype(np.float32)
    axes = tuple(range(-count, 0))
    off = x.astype(np.float64) - x.mean(axes, keepdims=True, dtype=np.float64)
    spread = np.sqrt((off**2).mean(axes, keepdims=True) + 1e-5)
    got = one_operation(LayerNorm(gain, shift, 1e-5), x)
    # The mean is off by a unit of its own and a few roundings of partial sums.
    size = int(np.prod(dims[-count:]))
    unit = EPS * (np.abs(x).max(axes, keepdims=True) / spread + 1) * (4 + size / 32)
    bound = unit * (1 + np.abs(off / spread)) * np.abs(gain) + EPS * np.abs(shift)
    assert (np.abs(got - (off / spread * gain + shift)) <= bound).all()


@pytest.mark.parametrize("columns", [32_769, 50_003, 1_000_000])
def test_long_rows_are_as_near(columns: int) -> None:
    """Summed in parts, which are the same for any number of threads; with one factor for all."""
    rng = np.random.default_rng(columns)
    x = (rng.normal(0, 3, (2, columns)) + 20).astype(np.float32)
    off = x.astype(np.float64) - x.mean(-1, keepdims=True, dtype=np.float64)
    exact = off / np.sqrt((off**2).mean(-1, keepdims=True) + 1e-5)
    ones, gain = np.ones(columns, np.float32), rng.normal(1, 1, columns).astype(np.float32)
    got = one_operation(LayerNorm(ones, ones * 0), x)
    assert np.abs(got - exact).max() <= 64 * EPS * 20
    shifted = one_operation(LayerNorm(gain, ones), x)
    np.testing.assert_allclose(shifted, exact * gain + 1, rtol=0, atol=64 * EPS * 20 * 6)
    with runtime.threads(1):
        np.testing.assert_array_equal(one_operation(LayerNorm(ones, ones * 0), x), got)


def test_what_does_not_fit_is_refused_by_name() -> None:
    q = pq.QParams(0.1, 0, "u8")
    one = CodeMatMul(q, q, q)
    x = np.zeros((2, 3, 4), np.uint8)
    with pytest.raises(ShapeError, match="258"):
        one_operation(one, np.zeros((1, 259), np.uint8), np.zeros((259, 1), np.uint8))
    with pytest.raises(ShapeError, match="src"):
        one_operation(one, x, x)
    with pytest.raises(DTypeError, match="src"):
        one_operation(one, x, np.zeros((2, 4, 3), np.int8))
    with pytest.raises(ArgumentError, match="src"):
        one_operation(one, x)
    with pytest.raises(ArgumentError, match="wei_q"):
        CodeMatMul(q, pq.QParams((0.1, 0.2), 0, "u8", axis=0), q)
    with pytest.raises(DTypeError, match="src"):
        one_operation(Softmax(), x)
    with pytest.raises(ArgumentError, match="axis"):
        one_operation(Softmax(3), x.astype(np.float32))
    ones = np.ones(4, np.float32)
    with pytest.raises(ShapeError, match="gain"):
        one_operation(LayerNorm(ones[:3], ones[:3]), x.astype(np.float32))
    with pytest.raises(ShapeError, match="shift"):
        LayerNorm(ones, ones[:3])
    with pytest.raises(DTypeError, match="gain"):
        LayerNorm(np.ones(4), ones)
    with pytest.raises(ArgumentError, match="epsilon"):
        LayerNorm(ones, ones, -1.0)
