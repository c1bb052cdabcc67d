"""What no kernel takes as it was asked is asked otherwise, if that means the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ReferenceKernelError, SaturationError
from pyonednn_q.native import prepare
from pyonednn_q.native.runtime import isa
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem
from support.calls.call import Call, Layer, odd_call

RNG = np.random.default_rng(31)
WEI_Q = pq.QParams(0.25, 0, "s8")
LAYERS: dict[str, Layer] = {
    "pooled to one place": ("inner_product", (10, 64, 1, 1), (3, 64, 1, 1), {}),
    "one channel": ("inner_product", (10, 1, 5, 5), (3, 1, 5, 5), {}),
    "one channel of a row": ("inner_product", (5, 1, 35), (5, 1, 35), {}),
    "groups of ten": ("conv", (20, 10, 3, 3), (1, 20, 8, 8), {"groups": 2, "padding": 1}),
    "groups of five": ("conv", (10, 5, 3, 3), (1, 10, 8, 8), {"groups": 2, "padding": 1}),
    "four outputs a channel": ("conv", (12, 1, 3, 3), (1, 3, 8, 8), {"groups": 3, "padding": 1}),
    "two outputs a channel": ("conv", (32, 1, 3, 3), (1, 16, 8, 8), {"groups": 16, "padding": 1}),
    "depthwise volumes": (
        *("conv", (16, 1, 3, 3, 3), (1, 16, 4, 8, 8)),
        {"groups": 16, "padding": 1},
    ),
    "eight taps": ("conv", (8, 1, 2, 2, 2), (1, 8, 4, 4, 4), {"groups": 8}),
    "eight taps back": ("deconv", (16, 1, 2, 2, 2), (1, 16, 4, 4, 4), {"groups": 16}),
}


def call_of(layer: str, src_dtype: str, point: int, **options: Any) -> Call:
    return odd_call(LAYERS[layer], RNG, src_dtype, point, **options)


@pytest.mark.parametrize("point", [0, 7])
@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers_run_and_are_exact(layer: str, src_dtype: str, point: int) -> None:
    call = call_of(layer, src_dtype, point)
    operator = call.operator()
    call.meaning().check_equal(call.run(operator))
    assert operator.prepare(call.src.shape).primitive.kind != "reference"


def test_merged_groups_are_told() -> None:
    call = call_of("groups of ten", "u8", 0)
    problem = ConvProblem.of(call.src.shape, call.wei.shape, groups=2, padding=1)
    wei = call.wei.reshape(problem.wei.dims)
    notes = call.operator().prepare(call.src.shape).notes
    try:
        prepare(problem, wei=wei)
    except ReferenceKernelError:
        assert "asked as 1 group instead of 2, which is the same" in notes
    else:
        assert not any("asked as" in note for note in notes)


@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
def test_a_sum_behind_a_curve_is_left_over_where_no_kernel_takes_both(src_dtype: str) -> None:
    call = call_of("depthwise volumes", src_dtype, 0)
    src, window = call.src, {**call.window, "dilation": (1, 1, 2), "padding": 0}
    wei = np.where(np.arange(call.wei.size).reshape(call.wei.shape) % 27 == 13, 1, 0)
    residual = RNG.integers(0, 9, (1, 16, 2, 6, 4)).astype(np.uint8)
    chain = pq.Chain(pq.Eltwise("relu"), pq.Sum(2.0), pq.Eltwise("tanh"))
    operator = pq.Conv(
        wei.astype(np.int8),
        src_q=pq.QParams(1.0, 0, src_dtype),
        wei_q=pq.QParams(1.0, 0, "s8"),
        dst_q=pq.QParams(1 / 64, 0, "u8"),
        post=chain,
        **window,
    )
    dst = operator(src, residual=residual)
    middle = src[:, :, 1:3, 1:7, 2:6].astype(np.float64)
    # Far from 0 the curve is 1, and at 0 it is 0: 64 and 0 levels.
    expected = np.where(middle + 2.0 * residual >= 10, 64, -1)
    expected = np.where(middle + residual == 0, 0, expected)
    assert (expected >= 0).mean() > 0.5
    np.testing.assert_array_equal(dst[expected >= 0], expected[expected >= 0])


def test_a_chain_apart_is_exact_where_only_old_kernels_take_it_whole() -> None:
    """With VNNI, one in whose sums weights saturate is stepped over for one that has VNNI."""
    wei = np.full((32, 4, 5), 127, np.int8)
    src, residual = np.full((3, 32, 12), 255, np.uint8), np.zeros((3, 32, 25), np.uint8)
    chain = pq.Chain(pq.Eltwise("linear", 2.0**-20), pq.Eltwise("tanh"), pq.Sum(0.1))
    operator = pq.Deconv(
        *(wei,),
        src_q=pq.QParams(1.0, 0, "u8"),
        wei_q=pq.QParams(1.0, 0, "s8"),
        dst_q=pq.QParams(2.0**-8, 0, "u8"),
        groups=8,
        stride=2,
        padding=1,
        post=chain,
    )
    if not isa().has_vnni():
        with pytest.raises(SaturationError):
            operator(src, residual=residual)
        return
    real = pq.Deconv(wei.astype(np.float32), groups=8, stride=2, padding=1)(
        src.astype(np.float32)
    ).astype(np.float64)
    expected = 256 * np.tanh(real * 2.0**-20)
    assert np.abs(operator(src, residual=residual) - expected).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("matrices", [1, 2])
@pytest.mark.parametrize("rows", [1, 3])
def test_slopes_of_batches_of_rows_are_one_a_column(matrices: int, rows: int) -> None:
    """Slopes with a batch of one row are of all of dst, and those run in reference loops."""
    problem = MatMulProblem.of((2, rows, 15), (matrices, 15, 14), src="u8", dst="f32")
    wei = RNG.integers(-64, 65, problem.wei.dims) / 64.0
    wei[:, 0] = 1.0  # so that codes are whole
    slopes = np.array([0.5, 0.25] * 7)
    layer = pq.compose_layer(
        problem,
        wei,
        src_fq=pq.FakeQuantize(-1.0, 127 / 128, -1.0, 127 / 128),
        chain=pq.Chain(pq.PRelu(slopes)),
        wei_levels=129,
    )
    src = RNG.integers(-128, 128, problem.src.dims).astype(np.float32) / 128
    real = src.astype(np.float64) @ wei
    prepared = pq.prepare_layer(layer)
    np.testing.assert_array_equal(prepared(src), np.where(real > 0, real, slopes * real))
    assert prepared.planned.primitive.kind != "reference"


def test_groups_of_floats_stay_apart() -> None:
    """0 times infinity is no 0: weights between groups would spread NaN."""
    chain = pq.Chain(pq.Binary("add", pq.Leaf("a")))
    operator = pq.Conv(np.ones((16, 1, 3), np.float32), groups=16, post=chain)
    src = np.ones((1, 16, 8), np.float32)
    src[0, 0, 2] = np.inf
    try:
        dst = operator(src, a=np.zeros((1, 16, 6), np.float32))
    except ReferenceKernelError:
        return
    np.testing.assert_array_equal(dst[0, 1:], 3.0)


@pytest.mark.parametrize("src_dtype", ["u8", "s8"])
def test_weights_are_blamed_where_smaller_ones_run(src_dtype: str) -> None:
    q: dict[str, Any] = {"src_q": pq.QParams(1.0, 0, src_dtype), "wei_q": WEI_Q}
    src_dims = (2, 44, 7)
    small = pq.Conv(np.full((33, 4, 3), 63, np.int8), groups=11, **q)
    assert small.prepare(src_dims).primitive.kind != "reference"
    large = pq.Conv(np.full((33, 4, 3), 127, np.int8), groups=11, **q)
    if isa().has_vnni():
        assert large.prepare(src_dims).primitive.kind != "reference"
        return
    with pytest.raises(SaturationError, match="saturation='allow'"):
        large.prepare(src_dims)
    assert large.wei_bytes == 0


def test_who_allows_saturation_gets_codes_as_u8_first_if_those_are_exact() -> None:
    if isa().is_beyond_avx2() and not isa().has_vnni():
        pytest.skip("a kernel takes codes of s8 as they are, and halves weights, as it may")
    # Odd, so that halving loses a bit; pairs of them with u8 codes stay within 16 bits.
    wei = (RNG.integers(-20, 20, (18, 1, 3, 3)) * 2 + 1).astype(np.int8)
    src = RNG.integers(-128, 128, (1, 9, 7, 7)).astype(np.int8)
    src_q, options = pq.QParams(0.5, 0, "s8"), {"saturation": "allow"}
    call = Call("conv", src, wei, None, src_q, WEI_Q, window={"groups": 9}, options=options)
    call.meaning().check_equal(call.run())
