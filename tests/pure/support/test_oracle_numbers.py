"""Conversion, ties, masks and float32 error bounds of the oracle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.oracle_numbers import as_float64, convert, distance_to_tie, kept_dims, spread
from support.oracle_tracked import (
    Tracked,
    add,
    divide_or_reciprocal,
    grid,
    lowest_bit,
    mul,
    multiply_add,
    scaled,
    summed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    F64 = NDArray[np.float64]

finite = st.floats(-1e6, 1e6, width=32).filter(lambda x: x == 0 or abs(x) > 1e-6)
positive = st.floats(2.0**-8, 2.0**8, width=32)
f32 = np.float32


@pytest.mark.parametrize(
    ("real", "u8", "s8"),
    [
        (0.5, 0, 0),
        (1.5, 2, 2),
        (2.5, 2, 2),
        (-0.5, 0, 0),
        (-1.5, 0, -2),
        (-2.5, 0, -2),
        (126.5, 126, 126),
        (127.5, 128, 127),
        (254.5, 254, 127),
        (255.5, 255, 127),
        (1e30, 255, 127),
        (-128.5, 0, -128),
        (-math.inf, 0, -128),
        (math.inf, 255, 127),
    ],
)
def test_integer_store_rounds_half_to_even_and_saturates(real: float, u8: int, s8: int) -> None:
    value = np.array([real])
    assert convert(value, "u8").tolist() == [u8]
    assert convert(value, "s8").tolist() == [s8]


def test_s32_store_clamps_at_the_last_float_below_two_to_the_31() -> None:
    value = np.array([2147483520.0, 2147483521.0, 3e9, -3e9])
    expected = [2147483520, 2147483520, 2147483520, -(2**31)]
    assert convert(value, "s32").tolist() == expected
    assert convert(value, "s32", exact_s32=True).tolist()[1:3] == [2147483521, 2147483647]


def test_float_store_casts() -> None:
    value = np.array([1 + 2.0**-9, 1e39])
    assert convert(value, "f32").tolist() == [1 + 2.0**-9, math.inf]
    assert convert(value, "bf16").astype(np.float64).tolist() == [1.0, math.inf]
    assert convert(np.array([1 + 2.0**-11, 65520.0]), "f16").tolist() == [1.0, math.inf]


def test_distance_to_tie() -> None:
    real = np.array([3.0, 3.5, 3.25, -0.25, 300.0, -2.0])
    expected = [0.5, 0.0, 0.25, 0.75, 45.5, 2.5]
    np.testing.assert_array_equal(distance_to_tie(real, "u8"), expected)
    assert np.isinf(distance_to_tie(real, "f32")).all()


@given(real=st.floats(-400, 400), step=st.floats(0, 2))
def test_store_cannot_change_within_the_distance_to_a_tie(real: float, step: float) -> None:
    value = np.array([real])
    room = float(distance_to_tie(value, "s8")[0])
    for near in (value + step * room * 0.499, value - step * room * 0.499):
        assert convert(near, "s8") == convert(value, "s8")


def test_values_are_read_as_the_library_receives_them() -> None:
    assert as_float64(np.array([0.1]), "f32")[0] == float(f32(0.1))
    assert as_float64(np.array([200], np.uint8))[0] == 200.0


def test_spread_by_loops() -> None:
    dims, groups, mask = (3, 4, 6), (2, 3), 6
    kept = kept_dims(mask, groups, dims)
    assert kept == (1, 2, 2)
    values = np.arange(4.0)
    laid = np.broadcast_to(spread(values, mask, groups, dims), dims)
    for a, b, c in np.ndindex(*dims):
        assert laid[a, b, c] == values.reshape(2, 2)[b // 2, c // 3]


@pytest.mark.parametrize(
    ("mask", "kept"), [(0, (1, 1, 1)), (1, (3, 1, 1)), (2, (1, 4, 1)), (7, (3, 4, 6))]
)
def test_mask_bit_keeps_its_dim(mask: int, kept: tuple[int, ...]) -> None:
    assert kept_dims(mask, (), (3, 4, 6)) == kept


def test_lowest_bit_and_grid() -> None:
    values = np.array([0.0, 1.0, 12.0, 0.75, -2.0, 3 * 2.0**-20])
    expected = [0.0, 1.0, 4.0, 0.25, 2.0, 2.0**-20]
    np.testing.assert_array_equal(lowest_bit(values), expected)
    assert grid(values) == 2.0**-20
    assert grid(np.zeros(3)) == math.inf


def within(tracked: Tracked, got: np.float32) -> bool:
    return abs(float(got) - float(tracked.value)) <= float(tracked.error) * (1 + 2.0**-20)


def one(value: float) -> Tracked:
    return Tracked.exact(np.float64(f32(value)))


@given(a=finite, b=finite, c=finite)
def test_bounds_hold_for_float32_in_every_order(a: float, b: float, c: float) -> None:
    x, y, z = f32(a), f32(b), f32(c)
    assert within(add(one(a), one(b)), x + y)
    assert within(mul(one(a), one(b)), x * y)
    both = multiply_add(one(a), one(b), one(c))
    assert within(both, x * y + z)
    assert within(both, f32(float(x) * float(y) + float(z)))


@given(a=st.integers(-(2**30), 2**30), s=positive, w=positive)
def test_scale_bounds_hold_in_every_order(a: int, s: float, w: float) -> None:
    acc = add(Tracked.exact(float(a)), Tracked.exact(0.0))  # conversion rounds above 2**24
    x, first, second = f32(a), f32(s), f32(w)
    tracked = scaled(acc, np.float64(first), np.float64(second))
    for got in ((x * first) * second, x * (first * second), (x * second) * first):
        assert within(tracked, got)


def test_scale_bounds_know_that_orders_round_differently_often() -> None:
    # Small odd numbers: one order rounds once where another rounds twice.
    for second in np.random.default_rng(0).integers(2**22, 2**23, size=200) * 2 + 1:
        for a, first in ((3, 5), (7, 9), (11, 13)):
            x, s, w = f32(a), f32(first), f32(second)
            for one_way, other in ((s, w), (w, s)):
                tracked = scaled(Tracked.exact(float(a)), np.float64(one_way), np.float64(other))
                for got in ((x * s) * w, x * (s * w), (x * w) * s):
                    assert within(tracked, got)


def test_an_inexact_input_rounds_again() -> None:
    moved = add(Tracked(np.asarray(1.0), np.asarray(0.25)), Tracked.exact(1.0))
    assert moved.error > 0.25


@given(a=finite, s=positive)
def test_division_bounds_cover_the_reciprocal(a: float, s: float) -> None:
    tracked = divide_or_reciprocal(one(a), np.float64(f32(s)))
    x, scale = f32(a), f32(s)
    assert within(tracked, x / scale)
    assert within(tracked, x * (f32(1) / scale))


@given(
    a=st.integers(-1000, 1000),
    k=st.integers(-6, 6),
    b=st.integers(-100, 100),
    d=st.integers(-6, 6),
)
def test_clean_numbers_have_no_error(a: int, k: int, b: int, d: int) -> None:
    x = scaled(Tracked.exact(float(a)), np.float64(2.0**k), np.float64(0.5))
    x = add(x, Tracked.exact(b / 4))
    x = divide_or_reciprocal(x, np.float64(2.0**d))
    assert x.error == 0
    assert x.value == (a * 2.0 ** (k - 1) + b / 4) / 2.0**d


@pytest.mark.parametrize(
    ("tracked", "exact"),
    [
        (lambda: mul(one(0.1), one(0.1)), False),
        (lambda: mul(one(0.1), one(0.25)), True),
        (lambda: add(one(2.0**24), one(1.0)), False),
        (lambda: add(one(2.0**24), one(2.0)), True),
        (lambda: divide_or_reciprocal(one(3.0), np.float64(3.0)), False),
        (lambda: scaled(one(3.0), np.float64(f32(0.1)), np.float64(f32(10.0))), False),
    ],
)
def test_error_is_zero_only_where_float32_has_no_choice(
    tracked: Callable[[], Tracked], *, exact: bool
) -> None:
    assert bool(tracked().error == 0) == exact


@given(values=st.lists(finite, min_size=2, max_size=30), seed=st.integers(0, 99))
def test_sum_bound_holds_in_any_order(values: list[float], seed: int) -> None:
    terms = np.array(values, dtype=np.float32)
    exact = np.asarray(math.fsum(terms.tolist()))
    magnitude = np.abs(terms.astype(np.float64)).sum()
    tracked = summed(exact, np.asarray(magnitude), len(values), grid(terms.astype(np.float64)))
    total = f32(0)
    for index in np.random.default_rng(seed).permutation(len(values)):
        total = f32(total + terms[index])
    assert within(tracked, total)
