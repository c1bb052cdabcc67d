"""The oracle against loops, hand-computed numbers and identities."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support import oracle, strategies
from support.oracle_convolution import convolve, deconvolve
from support.oracle_dense import inner_product, matmul

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F64 = NDArray[np.float64]


def whole(seed: int, dims: tuple[int, ...], limit: int = 9) -> F64:
    rng = np.random.default_rng(seed)
    return rng.integers(-limit, limit + 1, size=dims).astype(np.float64)


def item(array: F64, *index: int) -> float:
    return float(array[index])


def split_weights(wei: F64, src: F64) -> F64:
    """Give weights an explicit group axis."""
    return wei if wei.ndim > src.ndim else wei[np.newaxis]


def conv_by_loops(src: F64, wei: F64, problem: ConvProblem) -> F64:
    wei = split_weights(wei, src)
    groups, oc_per_group, ic_per_group = wei.shape[:3]
    dst = np.zeros(problem.dst.dims)
    for n, g, oc in product(range(src.shape[0]), range(groups), range(oc_per_group)):
        for out in np.ndindex(*problem.dst.dims[2:]):
            total = 0.0
            for ic in range(ic_per_group):
                for k in np.ndindex(*wei.shape[3:]):
                    at = [
                        o * s - lo + p * d
                        for o, s, lo, p, d in zip(
                            out,
                            problem.stride,
                            problem.padding_lo,
                            k,
                            problem.dilation,
                            strict=True,
                        )
                    ]
                    if all(0 <= i < size for i, size in zip(at, src.shape[2:], strict=True)):
                        total += item(src, n, g * ic_per_group + ic, *at) * item(wei, g, oc, ic, *k)
            where = (n, g * oc_per_group + oc, *out)
            dst[where] = total
    return dst


def deconv_by_loops(src: F64, wei: F64, problem: DeconvProblem) -> F64:
    wei = split_weights(wei, src)
    groups, oc_per_group, ic_per_group = wei.shape[:3]
    dst = np.zeros(problem.dst.dims)
    for n, g, ic in product(range(src.shape[0]), range(groups), range(ic_per_group)):
        for at in np.ndindex(*src.shape[2:]):
            value = item(src, n, g * ic_per_group + ic, *at)
            for oc in range(oc_per_group):
                for k in np.ndindex(*wei.shape[3:]):
                    out = [
                        i * s - lo + p * d
                        for i, s, lo, p, d in zip(
                            at,
                            problem.stride,
                            problem.padding_lo,
                            k,
                            problem.dilation,
                            strict=True,
                        )
                    ]
                    if all(0 <= o < size for o, size in zip(out, dst.shape[2:], strict=True)):
                        where = (n, g * oc_per_group + oc, *out)
                        dst[where] += value * item(wei, g, oc, ic, *k)
    return dst


@settings(max_examples=40, deadline=None)
@given(problem=strategies.conv_problems, seed=strategies.seeds)
def test_convolution_equals_loops(problem: ConvProblem, seed: int) -> None:
    src, wei = whole(seed, problem.src.dims), whole(seed + 1, problem.wei.dims)
    np.testing.assert_array_equal(convolve(src, wei, problem), conv_by_loops(src, wei, problem))


@settings(max_examples=40, deadline=None)
@given(problem=strategies.deconv_problems, seed=strategies.seeds)
def test_deconvolution_equals_loops(problem: DeconvProblem, seed: int) -> None:
    src, wei = whole(seed, problem.src.dims), whole(seed + 1, problem.wei.dims)
    np.testing.assert_array_equal(deconvolve(src, wei, problem), deconv_by_loops(src, wei, problem))


@settings(max_examples=40, deadline=None)
@given(problem=strategies.deconv_problems, seed=strategies.seeds)
def test_deconvolution_is_the_transpose_of_convolution(problem: DeconvProblem, seed: int) -> None:
    # <deconv(x), y> = <x, conv(y)> when the weights swap their channel axes.
    x, y = whole(seed, problem.src.dims), whole(seed + 1, problem.dst.dims)
    wei = whole(seed + 2, problem.wei.dims)
    swapped = np.swapaxes(wei, 1, 2) if wei.ndim > x.ndim else np.swapaxes(wei, 0, 1)
    conv = ConvProblem.of(
        problem.dst.dims,
        swapped.shape,
        stride=problem.stride,
        dilation=problem.dilation,
        padding=tuple(zip(problem.padding_lo, problem.padding_hi, strict=True)),
    )
    assert conv.dst.dims == problem.src.dims
    left = np.sum(deconvolve(x, wei, problem) * y)
    assert left == np.sum(x * convolve(y, swapped, conv))


@settings(max_examples=40, deadline=None)
@given(problem=strategies.matmul_problems(), seed=strategies.seeds)
def test_matmul_equals_loops(problem: MatMulProblem, seed: int) -> None:
    src, wei = whole(seed, problem.src.dims), whole(seed + 1, problem.wei.dims)
    expected = np.zeros(problem.dst.dims)
    for index in np.ndindex(*problem.dst.dims):
        *batch, m, n = index
        at_src = tuple(0 if size == 1 else b for b, size in zip(batch, src.shape, strict=False))
        at_wei = tuple(0 if size == 1 else b for b, size in zip(batch, wei.shape, strict=False))
        for k in range(src.shape[-1]):
            expected[index] += item(src, *at_src, m, k) * item(wei, *at_wei, k, n)
    np.testing.assert_array_equal(matmul(src, wei), expected)


@settings(max_examples=30, deadline=None)
@given(problem=strategies.inner_product_problems(), seed=strategies.seeds)
def test_inner_product_equals_loops(problem: InnerProductProblem, seed: int) -> None:
    src, wei = whole(seed, problem.src.dims), whole(seed + 1, problem.wei.dims)
    expected = np.zeros(problem.dst.dims)
    for n, oc in np.ndindex(*problem.dst.dims):
        for at in np.ndindex(*problem.src.dims[1:]):
            expected[n, oc] += item(src, n, *at) * item(wei, oc, *at)
    np.testing.assert_array_equal(inner_product(src, wei), expected)


def test_inner_product_is_a_convolution_with_a_full_kernel() -> None:
    src, wei = whole(0, (2, 3, 4, 5)), whole(1, (6, 3, 4, 5))
    problem = ConvProblem.of(src.shape, wei.shape)
    full = convolve(src, wei, problem).reshape(2, 6)
    np.testing.assert_array_equal(inner_product(src, wei), full)


def conv_1x1(dst: str, *, bias: str | None = "f32") -> ConvProblem:
    return ConvProblem.of((1, 2, 1, 2), (2, 2, 1, 1), src="u8", dst=dst, bias=bias)


HAND: dict[str, Any] = {
    "src": np.array([[[[10, 20]], [[3, 7]]]], dtype=np.uint8),
    "wei": np.array([[2, -4], [6, 1]], dtype=np.int8).reshape(2, 2, 1, 1),
    "bias": np.array([1.5, -8.0], dtype=np.float32),
    "src_scale": np.array([0.5], dtype=np.float32),
    "wei_scale": np.array([0.25, 2.0], dtype=np.float32),
    "dst_scale": np.array([0.5], dtype=np.float32),
    "src_zero_point": np.array([4], dtype=np.int32),
    "dst_zero_point": np.array([10], dtype=np.int32),
}
HAND_ATTR = Attr(
    src_scale=Scale(),
    wei_scale=Scale(mask=1),
    dst_scale=Scale(),
    src_zero_point=ZeroPoint(),
    dst_zero_point=ZeroPoint(),
)


def test_whole_formula_by_hand() -> None:
    # src - 4 = (6, 16), (-1, 3); acc = 2*6+4 = 16, 2*16-12 = 20; 6*6-1 = 35, 6*16+3 = 99.
    # x0 = acc * 0.5 * (0.25, 2) + bias = 3.5, 4.0; 27, 91. Over 0.5 plus 10: 17, 18; 64, 192.
    result = oracle.run(conv_1x1("u8"), HAND_ATTR, HAND)
    np.testing.assert_array_equal(result.real.ravel(), [17.0, 18.0, 64.0, 192.0])
    np.testing.assert_array_equal(result.dst.ravel(), np.array([17, 18, 64, 192], np.uint8))
    assert result.is_exact


@pytest.mark.parametrize(
    ("dst", "expected"),
    [("u8", [17, 18, 64, 192]), ("s8", [17, 18, 64, 127]), ("s32", [17, 18, 64, 192])],
)
def test_integer_dst_saturates_by_its_own_range(dst: str, expected: list[int]) -> None:
    result = oracle.run(conv_1x1(dst), HAND_ATTR, HAND)
    assert result.dst.ravel().tolist() == expected


@pytest.mark.parametrize(("zero_point", "stored"), [(1, [2, 2]), (2, [2, 4])])
def test_dst_zero_point_is_added_before_rounding(zero_point: int, stored: list[int]) -> None:
    # acc = 1, 3 over a scale of 2: 0.5 + 1 and 1.5 + 1 are ties of their own.
    problem = MatMulProblem.of((2, 1), (1, 1), dst="u8")
    arrays: dict[str, Any] = {
        "src": np.array([[1], [3]], np.uint8),
        "wei": np.array([[1]], np.int8),
        "dst_scale": np.array([2.0], np.float32),
        "dst_zero_point": np.array([zero_point], np.int32),
    }
    attr = Attr(dst_scale=Scale(), dst_zero_point=ZeroPoint())
    assert oracle.run(problem, attr, arrays).dst.ravel().tolist() == stored


def test_bias_is_not_scaled() -> None:
    attr = Attr(wei_scale=Scale())
    arrays: dict[str, Any] = {**HAND, "wei_scale": np.array([2.0], np.float32)}
    result = oracle.run(conv_1x1("f32"), attr, arrays)
    # acc = 2*10-12 = 8, 2*20-28 = 12; 63, 127.
    assert result.dst.ravel().tolist() == [8 * 2 + 1.5, 12 * 2 + 1.5, 63 * 2 - 8, 127 * 2 - 8]


@pytest.mark.parametrize("padding", [((1, 2), (0, 3)), ((2, 0), (1, 1))])
def test_padding_counts_as_real_zero(padding: tuple[tuple[int, int], ...]) -> None:
    rng = np.random.default_rng(3)
    src = rng.integers(0, 256, size=(1, 3, 5, 4), dtype=np.uint8)
    wei = rng.integers(-9, 10, size=(2, 3, 3, 2), dtype=np.int8)
    zero_point = np.array([77], dtype=np.int32)
    attr = Attr(src_zero_point=ZeroPoint())
    padded = np.pad(src, [(0, 0), (0, 0), *padding], constant_values=77)
    inside = ConvProblem.of(src.shape, wei.shape, dst="s32", padding=padding)
    outside = ConvProblem.of(padded.shape, wei.shape, dst="s32")
    arrays: dict[str, Any] = {"wei": wei, "src_zero_point": zero_point}
    left = oracle.run(inside, attr, {**arrays, "src": src})
    right = oracle.run(outside, attr, {**arrays, "src": padded})
    np.testing.assert_array_equal(left.dst, right.dst)


def test_zero_point_splits_into_a_plain_sum_and_a_map() -> None:
    # sum (s - zp) w = sum s w - zp * sum over valid taps of w, where padding is cut out.
    rng = np.random.default_rng(4)
    problem = ConvProblem.of((1, 2, 4, 4), (3, 2, 3, 3), dst="s32", padding=1)
    src = rng.integers(0, 256, size=problem.src.dims, dtype=np.uint8)
    wei = rng.integers(-9, 10, size=problem.wei.dims, dtype=np.int8)
    arrays: dict[str, Any] = {"src": src, "wei": wei, "src_zero_point": np.array([33], np.int32)}
    with_point = oracle.run(problem, Attr(src_zero_point=ZeroPoint()), arrays).dst
    plain = oracle.run(problem, Attr(), arrays).dst
    ones = convolve(np.ones(src.shape), wei.astype(np.float64), problem)
    np.testing.assert_array_equal(with_point, plain - 33 * ones)


def test_weight_zero_point_shifts_every_weight() -> None:
    src = np.array([[1, 2], [3, 4]], dtype=np.uint8)
    wei = np.array([[5, -6], [7, 8]], dtype=np.int8)
    problem = MatMulProblem.of((2, 2), (2, 2), dst="s32")
    arrays: dict[str, Any] = {"src": src, "wei": wei, "wei_zero_point": np.array([2], np.int32)}
    result = oracle.run(problem, Attr(wei_zero_point=ZeroPoint()), arrays)
    # wei - 2 = (3, -8), (5, 6).
    assert result.dst.tolist() == [[13, 4], [29, 0]]


def test_grouped_weight_scale_along_k_applies_before_the_sum() -> None:
    problem = MatMulProblem.of((1, 4), (4, 1), dst="f32")
    arrays: dict[str, Any] = {
        "src": np.array([[1, 2, 3, 4]], np.uint8),
        "wei": np.array([[1], [1], [1], [1]], np.int8),
        "wei_scale": np.array([[0.5], [4.0]], np.float32),
    }
    attr = Attr(wei_scale=Scale(mask=3, groups=(2, 1)))
    # (1 + 2) * 0.5 + (3 + 4) * 4
    assert oracle.run(problem, attr, arrays).dst.item() == 29.5


def test_per_row_and_per_column_scales_of_matmul() -> None:
    problem = MatMulProblem.of((2, 1), (1, 3), dst="f32")
    arrays: dict[str, Any] = {
        "src": np.array([[1], [2]], np.uint8),
        "wei": np.array([[1, 2, 3]], np.int8),
        "src_scale": np.array([1.0, 10.0], np.float32),
        "wei_scale": np.array([1.0, 0.5, 2.0], np.float32),
    }
    attr = Attr(src_scale=Scale(mask=1), wei_scale=Scale(mask=2))
    expected = [[1.0, 1.0, 6.0], [20.0, 20.0, 120.0]]
    assert oracle.run(problem, attr, arrays).dst.tolist() == expected


@pytest.mark.parametrize("kind", [ConvProblem, DeconvProblem])
def test_grouped_mask_gives_each_output_channel_its_scale(kind: Any) -> None:
    problem = kind.of((1, 4, 1, 1), (2, 2, 2, 1, 1), dst="f32")
    scales = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    arrays: dict[str, Any] = {
        "src": np.ones((1, 4, 1, 1), np.uint8),
        "wei": np.full((2, 2, 2, 1, 1), 3, np.int8),
        "wei_scale": scales,
    }
    result = oracle.run(problem, Attr(wei_scale=Scale(mask=3)), arrays)
    np.testing.assert_array_equal(result.dst.ravel(), 6 * scales)


def test_bare_s32_is_exact_and_a_scaled_one_is_not_promised() -> None:
    problem = MatMulProblem.of((1, 600), (600, 1), dst="s32")
    arrays: dict[str, Any] = {
        "src": np.full((1, 600), 255, np.uint8),
        "wei": np.full((600, 1), 127, np.int8),
        "wei_scale": np.array([1.0], np.float32),
    }
    arrays["src"][0, 0] = 2
    acc = 599 * 255 * 127 + 2 * 127  # above 2**24 and odd
    bare = oracle.run(problem, Attr(), arrays)
    assert bare.dst.item() == acc
    assert bare.is_exact
    scaled = oracle.run(problem, Attr(wei_scale=Scale()), arrays)
    lo, hi = scaled.interval()
    assert lo.item() < acc < hi.item()
    assert hi.item() - lo.item() <= 8


def test_accumulator_rounds_on_its_way_to_float32() -> None:
    src = np.array([[255] * 518 + [14, 9]], np.uint8)
    wei = np.array([127] * 519 + [1], np.int8).reshape(-1, 1)
    problem = MatMulProblem.of((1, 520), (520, 1), dst="f32", bias="f32")
    arrays: dict[str, Any] = {"src": src, "wei": wei, "bias": np.array([[1.0]], np.float32)}
    result = oracle.run(problem, Attr(), arrays)
    assert result.real.item() == 2**24 + 2
    # f32(2**24 + 1) = 2**24; adding 1 is a tie that goes back to 2**24.
    assert result.accepts(np.array([[2.0**24]], np.float32)).all()
    assert not result.accepts(np.array([[2.0**24 - 2]], np.float32)).any()


def test_accepts_only_the_one_answer_of_a_clean_problem() -> None:
    result = oracle.run(conv_1x1("u8"), HAND_ATTR, HAND)
    assert result.accepts(result.dst).all()
    wrong = result.dst.copy()
    wrong.flat[2] += 1
    assert result.accepts(wrong).ravel().tolist() == [True, True, False, True]
    with pytest.raises(AssertionError, match="expected uint8"):
        result.accepts(result.dst.astype(np.int8))
