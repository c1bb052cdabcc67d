"""ONNX's integer operators on every instruction set: exact sums, and codes rounded as ONNX rounds.

Weights have all codes and any zero points, so that CPUs without VNNI must take them apart.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.native import runtime
from support.onnx_operators import draw, meaning

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_conv_integer(seed: int) -> None:
    drawn = draw.code_convolution(np.random.default_rng(seed))
    inputs = [drawn[name] for name in ("x", "w", "x_zero_point", "w_zero_point")]
    x, w, x_point, w_point = inputs
    with pq.onnx.trace() as calls:
        y = pq.onnx.conv_integer(*inputs, **drawn["attributes"])
    assert y.dtype == np.int32
    exact = meaning.conv_sums([x, x_point, w, w_point, None], drawn["attributes"])
    np.testing.assert_array_equal(y, exact)
    assert [call.operator for call in calls] == ["ConvInteger"]
    assert calls[0].kernels


@pytest.mark.parametrize("seed", SEEDS)
def test_qlinear_conv(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = draw.code_convolution(rng)
    x, x_point, w, w_point, added = (
        drawn[name] for name in ("x", "x_zero_point", "w", "w_zero_point", "B")
    )
    acc = meaning.conv_sums([x, x_point, w, w_point, added], drawn["attributes"])
    channels = (w.shape[0],) if rng.integers(2) else ()
    x_scale, w_scale, y_scale = draw.scales(rng, acc, channels)
    y_point = draw.point(rng, draw.code_type(rng))
    y = pq.onnx.qlinear_conv(
        x, x_scale, x_point, w, w_scale, w_point, y_scale, y_point, added, **drawn["attributes"]
    )
    factor = (x_scale * w_scale / y_scale).reshape(-1, *(1,) * (x.ndim - 2))
    np.testing.assert_array_equal(y, meaning.codes(acc, factor, int(y_point), y_point.dtype))
    assert y.dtype == y_point.dtype


@pytest.mark.parametrize("seed", SEEDS)
def test_matmul_integer(seed: int) -> None:
    drawn = draw.code_product(np.random.default_rng(seed))
    a, a_point, b, b_point = (drawn[name] for name in ("a", "a_zero_point", "b", "b_zero_point"))
    y = pq.onnx.matmul_integer(a, b, a_point, b_point)
    assert y.dtype == np.int32
    np.testing.assert_array_equal(y, meaning.product_sums(a, a_point, b, b_point))


@pytest.mark.parametrize("seed", SEEDS)
def test_qlinear_matmul(seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = draw.code_product(rng)
    a, a_point, b, b_point = (drawn[name] for name in ("a", "a_zero_point", "b", "b_zero_point"))
    acc = meaning.product_sums(a, a_point, b, b_point)
    a_scale, b_scale, y_scale = draw.scales(rng, acc, b_point.shape)
    a_scale = np.broadcast_to(a_scale, a_point.shape) * np.float32(1)
    y_point = draw.point(rng, draw.code_type(rng))
    y = pq.onnx.qlinear_matmul(a, a_scale, a_point, b, b_scale, b_point, y_scale, y_point)
    rows = a_scale[:, None] if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    factor = np.asarray(rows * b_scale / y_scale)
    factor = factor.reshape(factor.shape if factor.size > 1 else ())
    assert y.dtype == y_point.dtype
    np.testing.assert_array_equal(y, meaning.codes(acc, factor, int(y_point), y_point.dtype))


@pytest.mark.parametrize("inner", [64, 2048])
def test_sums_that_float32_does_not_hold(inner: int) -> None:
    """Beyond 2^24 the sums are made first; below, one primitive rounds."""
    rng = np.random.default_rng(inner)
    a, b = draw.code_tensor(rng, (9, inner), np.uint8), np.full((inner, 5), 127, np.int8)
    b[:, 1:] = rng.integers(-8, 9, (inner, 4))
    acc = meaning.product_sums(a, None, b, None)
    one, zero = np.float32(1), np.int8(0)
    y_scale = np.float32(acc.max() / 100)
    with pq.onnx.trace() as calls:
        y = pq.onnx.qlinear_matmul(a, one, np.uint8(0), b, one, zero, y_scale, zero)
    np.testing.assert_array_equal(y, meaning.codes(acc, one / y_scale, 0, np.int8))
    said = any("rounded by a pass of ours" in note for note in calls[0].notes)
    if runtime.isa().has_vnni():
        assert said == (inner > 64)
        assert (acc.max() > 2**24) == (inner > 64)


def test_what_has_no_vnni_takes_weights_apart() -> None:
    rng = np.random.default_rng(0)
    a, b = draw.code_tensor(rng, (9, 64), np.uint8), np.full((64, 5), 127, np.int8)
    with pq.onnx.trace() as calls:
        y = pq.onnx.matmul_integer(a, b)
    np.testing.assert_array_equal(y, meaning.product_sums(a, None, b, None))
    assert len(calls[0].kernels) == (1 if runtime.isa().has_vnni() else 2)


def test_sums_beyond_32_bits_saturate_and_say_so() -> None:
    src, wei = np.full((1, 70_000), 255, np.uint8), np.full((70_000, 2), 127, np.int8)
    wei[:, 1] = 120
    with pq.onnx.trace() as calls:
        dst = pq.onnx.matmul_integer(src, wei)
    assert dst.tolist() == [[2**31 - 1, 255 * 120 * 70_000]]
    said = "saturate" if runtime.isa().has_vnni() else "VNNI"
    assert any(said in note for note in calls[-1].notes)


def test_both_ways_are_drawn() -> None:
    """The fuzz meets one primitive that rounds by itself, and per-channel zero points."""
    found: Counter[str] = Counter()
    for seed in SEEDS:
        drawn = draw.code_convolution(np.random.default_rng(seed))
        found["per channel"] += drawn["w_zero_point"].ndim
        found["groups"] += "group" in drawn["attributes"]
        found["auto_pad"] += "auto_pad" in drawn["attributes"]
        found[f"{drawn['x'].ndim - 2}-d"] += 1
    assert min(found[name] for name in ("per channel", "groups", "auto_pad", "1-d", "3-d")) > 5


def test_scales_are_multiplied_before_they_are_divided() -> None:
    """Sums beside ties, where f32(f32(x · w) / y) and f32(x · f32(w / y)) part."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(300):
        x_scale, w_scale = rng.uniform(0.01, 1, 2).astype(np.float32)
        acc = int(rng.integers(3, 200))
        y_scale = np.float32(float(x_scale) * float(w_scale) * acc / 2.5)
        first, second = x_scale * w_scale / y_scale, x_scale * (w_scale / y_scale)
        sums = np.array([[acc]], np.int64)
        wanted = meaning.codes(sums, first, 0, np.uint8)
        found += int((wanted != meaning.codes(sums, second, 0, np.uint8)).any())
        zero, a, b = np.uint8(0), np.array([[acc]], np.uint8), np.array([[1]], np.uint8)
        y = pq.onnx.qlinear_matmul(a, x_scale, zero, b, w_scale, zero, y_scale, zero)
        np.testing.assert_array_equal(y, wanted)
    assert found > 10
