"""Saturation without VNNI, against a simulation of the instruction."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyonednn_q.acc.pairs import pair_overflow, safe_by_range
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.isa import ISA_ORDER
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.primitive.windowed import Layout

ISAS = ("SSE41", "AVX2", "AVX512_CORE")
weights = st.integers(-128, 127)


def saturates(w0: int, w1: int, largest: int) -> bool:
    """Try the sources that matter: the sum is linear in each, so its ends are at corners."""
    sums = [x0 * w0 + x1 * w1 for x0, x1 in product((0, largest), repeat=2)]
    return min(sums) < -32768 or max(sums) > 32767


def matmul(column: list[int], src: str = "u8") -> tuple[MatMulProblem, Any]:
    wei = np.array(column, np.int8)[:, None]
    return MatMulProblem.of((1, len(column)), wei.shape, src=src), wei


def conv(
    wei: Any, src: str = "u8", cls: type[ConvProblem | DeconvProblem] = ConvProblem
) -> tuple[ConvProblem | DeconvProblem, Any]:
    wei = np.array(wei, np.int8)
    grouped = wei.ndim == 5
    ic = wei.shape[0] * wei.shape[2] if grouped else wei.shape[1]
    return cls.of((1, ic, 9, 9), wei.shape, src=src), wei


@pytest.mark.parametrize("isa", ISAS)
@given(weights, weights, st.integers(0, 255))
def test_a_pair_is_judged_as_the_instruction_computes(
    isa: str, w0: int, w1: int, largest: int
) -> None:
    problem, wei = matmul([w0, w1])
    wanted = (0,) if saturates(w0, w1, largest) else ()
    assert pair_overflow(problem, wei, isa, src_max=largest) == wanted


@pytest.mark.parametrize(
    ("pair", "largest", "exact"),
    [
        ((-128, -128), 128, True),  # -32768 exactly
        ((-128, -128), 129, False),
        ((76, 75), 217, True),  # 32767 exactly
        ((76, 76), 217, False),
        ((64, 64), 255, True),
        ((64, 65), 255, False),
        ((-64, -64), 255, True),
        ((-64, -65), 255, False),
        ((127, -128), 255, True),  # opposite signs never add up
    ],
)
def test_both_ends_are_exact(pair: tuple[int, int], largest: int, exact: bool) -> None:
    problem, wei = matmul([*pair])
    assert (pair_overflow(problem, wei, "AVX2", src_max=largest) == ()) is exact


@given(st.lists(weights, min_size=1, max_size=7))
def test_only_neighbours_2k_and_2k_plus_1_meet(column: list[int]) -> None:
    problem, wei = matmul(column)
    padded = [*column, 0]
    pairs = [(padded[i], padded[i + 1]) for i in range(0, len(column), 2)]
    wanted = (0,) if any(saturates(*pair, 255) for pair in pairs) else ()
    assert pair_overflow(problem, wei, "AVX2") == wanted


@given(st.lists(weights, min_size=1, max_size=6))
def test_s8_sources_of_a_matmul_are_shifted_to_unsigned(column: list[int]) -> None:
    problem, wei = matmul(column, src="s8")
    unsigned = matmul(column)
    assert pair_overflow(problem, wei, "AVX2") == pair_overflow(*unsigned, "AVX2")
    shifted = pair_overflow(problem, wei, "AVX2", src_max=-28)
    assert shifted == pair_overflow(*unsigned, "AVX2", src_max=100)


def test_a_convolution_pairs_the_channels_of_one_tap() -> None:
    wei = np.zeros((4, 4, 3, 3), np.int8)
    wei[0, 0, 0, 0] = wei[0, 1, 0, 1] = 127  # neighbours at different taps
    wei[1, 1, 0, 0] = wei[1, 2, 0, 0] = 127  # one tap, but not (2k, 2k+1)
    wei[2, 2, 2, 2] = wei[2, 3, 2, 2] = -100
    wei[3, 0, 1, 1] = 127
    for cls in (ConvProblem, DeconvProblem):
        for isa in ISAS:
            assert pair_overflow(*conv(wei, cls=cls), isa) == (2,)


def test_groups_are_apart_and_channels_count_over_all() -> None:
    wei = np.zeros((2, 2, 2, 1, 1), np.int8)
    wei[0, 1, 1] = wei[1, 0, 0] = 127  # neighbours only across groups
    wei[1, 1] = -70
    assert pair_overflow(*conv(wei), "AVX2") == (3,)


def test_depthwise_u8_never_saturates() -> None:
    wei = np.full((6, 1, 1, 3, 3), -128)
    for isa in ISAS:
        assert pair_overflow(*conv(wei), isa) == ()
    assert pair_overflow(*conv(wei, cls=DeconvProblem), "AVX2") == ()


def test_channels_of_one_tap_meet_whatever_their_number() -> None:
    wei = np.zeros((1, 3, 3, 3), np.int8)
    wei[0, 2, 0, 0] = wei[0, 0, 0, 1] = 127  # neighbours if taps ran together
    for isa in ISAS:
        assert pair_overflow(*conv(wei), isa) == ()


@pytest.mark.parametrize(
    ("taps", "avx512"),
    [
        (((0, 0), (1, 0)), True),  # column by column: 0 3 | 6 1 | 4 7 | 2 5 | 8
        (((2, 0), (0, 1)), True),
        (((0, 0), (0, 1)), False),
        (((1, 0), (2, 0)), False),
    ],
)
def test_a_single_channel_may_be_walked_by_columns_with_avx512(
    taps: tuple[tuple[int, int], ...], avx512: bool
) -> None:
    wei = np.zeros((1, 1, 3, 3), np.int8)
    for row, column in taps:
        wei[0, 0, row, column] = 127
    assert pair_overflow(*conv(wei), "AVX2") == ()
    assert pair_overflow(*conv(wei), "AVX512_CORE") == ((0,) if avx512 else ())
    assert pair_overflow(*conv(wei), "AVX512_CORE", impl="jit_int8:avx512_core") == ()


@given(st.lists(st.integers(-128, 127), min_size=4, max_size=4))
def test_s8_convolutions_need_even_weights(values: list[int]) -> None:
    wei = np.reshape(values, (2, 2, 1, 1))
    odd = tuple(channel for channel in range(2) if any(v % 2 for v in values[2 * channel :][:2]))
    for cls in (ConvProblem, DeconvProblem):
        for isa in ISAS:
            found = pair_overflow(*conv(wei, "s8", cls), isa, impl="jit_uni_int8:avx2")
            assert found == odd
    depthwise = np.reshape(values, (4, 1, 1, 1, 1))
    wanted = tuple(channel for channel, value in enumerate(values) if value % 2)
    assert pair_overflow(*conv(depthwise, "s8"), "AVX2") == wanted


def test_an_inner_product_pairs_along_the_source_s_memory() -> None:
    wei = np.zeros((3, 4, 1, 2), np.int8)
    wei[0, 0, 0, :] = 127  # neighbours when the width is innermost
    wei[1, :2, 0, 0] = 127  # neighbours when the channels are
    pairs: dict[Layout, tuple[int, ...]] = {"channels_last": (1,), "dense": (0,)}
    for layout, wanted in pairs.items():
        problem = InnerProductProblem.of((1, 4, 1, 2), 3, layout=layout)
        assert pair_overflow(problem, wei, "AVX2") == wanted
        for impl in ("brg_matmul:avx512_core", "x64:gemm_s8u8s32:jit"):
            assert pair_overflow(problem, wei, "AVX512_CORE", impl=impl) == wanted
        # 3.7 has a kernel that goes position by position: channels meet, whatever the layout.
        assert pair_overflow(problem, wei, "AVX512_CORE", impl="brgemm:avx512_core") == (1,)
    undecided = InnerProductProblem(
        TensorSpec((1, 4, 1, 2), "u8"), problem.wei, problem.dst, problem.bias
    )
    assert pair_overflow(undecided, wei, "AVX2") == (0, 1)
    flat = InnerProductProblem.of((1, 8), 3)
    assert pair_overflow(flat, wei.reshape(3, 8), "AVX512_CORE") == (0,)


def test_a_matmul_flags_the_column_of_any_batch() -> None:
    wei = np.zeros((2, 4, 3), np.int8)
    wei[1, 2:, 1] = 127
    assert pair_overflow(MatMulProblem.of((2, 5, 4), (2, 4, 3)), wei, "AVX2") == (1,)


def test_vnni_is_exact() -> None:
    worst = matmul([-128, -128])
    exact = {isa for isa in ISA_ORDER if pair_overflow(*worst, isa) == ()}
    assert exact == set(ISA_ORDER) - {"SSE41", "AVX", "AVX2", "AVX512_CORE"}


def test_other_problems_have_no_pairs() -> None:
    wei = np.full((2, 1), -128, np.int8)
    spec = TensorSpec.dense((2, 2), "f32")
    assert pair_overflow(SoftmaxProblem(spec, spec, 1), wei, "AVX2") == ()
    assert pair_overflow(MatMulProblem.of((1, 2), (2, 1), src="f32"), wei, "AVX2") == ()
    assert pair_overflow(MatMulProblem.of((1, 2), (2, 1), wei="u8"), wei, "AVX2") == ()


def test_arguments_must_fit_the_problem() -> None:
    problem, wei = matmul([1, 2])
    with pytest.raises(DTypeError, match=r"^wei: got int64; wanted int8"):
        pair_overflow(problem, wei.astype(np.int64), "AVX2")
    with pytest.raises(ShapeError, match=r"^wei: got \(1, 2\); wanted \(2, 1\)"):
        pair_overflow(problem, wei.T, "AVX2")
    for largest in (-1, 256):
        with pytest.raises(ArgumentError, match=r"^src_max: "):
            pair_overflow(problem, wei, "AVX2", src_max=largest)


@pytest.mark.parametrize("dtype", ["S1", "U1", "object", "datetime64[s]", "float32", "bool"])
def test_what_are_no_integers_is_never_safe_by_range(dtype: str) -> None:
    assert not safe_by_range(np.ones((4, 4)).astype(dtype))


@given(st.lists(weights, min_size=2, max_size=8))
@example([64, 64])
@example([-64, -64])
@example([65, 65])
@example([-65, -65])
def test_safe_by_range_is_safe_whatever_the_pairs(column: list[int]) -> None:
    wei = np.array(column, np.int8)
    assert safe_by_range(wei) == all(-64 <= value <= 64 for value in column)
    if safe_by_range(wei):
        assert not any(saturates(a, b, 255) for a in column for b in column)


def test_safe_by_range_takes_empty_weights() -> None:
    assert safe_by_range(np.zeros((0, 3), np.int8))
