"""Ten ways of rounding a shift or a real number, and QDM mode.

Accepted: closed forms in rational arithmetic, for every remainder of small shifts, both signs, and
at the ends of 64 bits; QDM is TFLite's multiplier with two roundings, and 0.999999 from 1 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.requantize import requantizer
from pyonednn_q.requantize.multiplier import quantize_multiplier
from pyonednn_q.requantize.rounding import ROUNDINGS, round_real, shift_round

HALF = Fraction(1, 2)


def to_odd(v: Fraction) -> int:
    return round(v + 1) - 1 if v - math.floor(v) == HALF else math.floor(v + HALF)


def away(v: Fraction) -> int:
    return math.ceil(v) if v > 0 else math.floor(v)


FORMS: dict[str, Callable[[Fraction], int]] = {
    "half_away_from_zero": lambda v: math.floor(v + HALF) if v > 0 else math.ceil(v - HALF),
    "half_up": lambda v: math.floor(v + HALF),
    "half_down": lambda v: math.ceil(v - HALF),
    "half_to_even": round,
    "half_to_odd": to_odd,
    "half_towards_zero": lambda v: math.ceil(v - HALF) if v > 0 else math.floor(v + HALF),
    "towards_zero": math.trunc,
    "away_from_zero": away,
    "up": math.ceil,
    "down": math.floor,
}


def test_there_are_ten() -> None:
    assert set(ROUNDINGS) == set(FORMS)
    assert len(ROUNDINGS) == 10


@pytest.mark.parametrize(
    ("rounding", "of_half", "of_minus_half", "of_three_halves"),
    [
        ("half_away_from_zero", 1, -1, 2),
        ("half_up", 1, 0, 2),
        ("half_down", 0, -1, 1),
        ("half_to_even", 0, 0, 2),
        ("half_to_odd", 1, -1, 1),
        ("half_towards_zero", 0, 0, 1),
        ("towards_zero", 0, 0, 1),
        ("away_from_zero", 1, -1, 2),
        ("up", 1, 0, 2),
        ("down", 0, -1, 1),
    ],
)
def test_halves(rounding: str, of_half: int, of_minus_half: int, of_three_halves: int) -> None:
    assert shift_round([1, -1, 3], 1, rounding).tolist() == [
        of_half,
        of_minus_half,
        of_three_halves,
    ]


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_every_remainder_of_small_shifts(rounding: str) -> None:
    values = np.arange(-70, 71)
    for shift in range(7):
        wanted = [FORMS[rounding](Fraction(int(v), 2**shift)) for v in values]
        assert shift_round(values, shift, rounding).tolist() == wanted
        assert round_real(values / 2**shift, rounding).tolist() == wanted


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_ends_of_64_bits(rounding: str) -> None:
    values = [2**63 - 1, -(2**63), 2**62, -(2**62), 2**62 + 1, 0, 1, -1]
    for shift in (0, 1, 2, 31, 61, 62, 63, 64, 99):
        wanted = [FORMS[rounding](Fraction(v, 2 ** min(shift, 63))) for v in values]
        assert shift_round(np.array(values, np.int64), shift, rounding).tolist() == wanted


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_random_reals_and_their_halves(rounding: str) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(scale=50, size=500), rng.integers(-90, 90, 200) + 0.5])
    values = np.append(values, [np.nextafter(0.5, 0), -np.nextafter(0.5, 0), 2.0**52 + 1, -0.0])
    wanted = [FORMS[rounding](Fraction(v)) for v in values.tolist()]
    assert round_real(values, rounding).tolist() == wanted
    assert round_real([np.inf, -np.inf], rounding).tolist() == [np.inf, -np.inf]


def test_negative_shifts_multiply() -> None:
    assert shift_round([3, -3], [-4, -1], "half_up").tolist() == [48, -6]
    assert shift_round([-1, 0], -63, "half_up").tolist() == [-(2**63), 0]
    for shift in (-62, -64, -99, -(2**63)):
        with pytest.raises(ArgumentError, match=rf"^shift: got {shift}; "):
            shift_round([3], shift, "half_up")
        assert shift_round([0], shift, "half_up").tolist() == [0]


def test_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"^rounding: got 'stochastic'"):
        shift_round([1], 1, "stochastic")
    with pytest.raises(DTypeError, match=r"^values: got float64"):
        shift_round([1.5], 1, "half_up")


@pytest.mark.parametrize(("wei", "counts_as"), [(0.3, 0.3), (1.0, 0.999999), (7.0, 0.999999)])
def test_qdm_is_q31_below_one(wei: float, counts_as: float) -> None:
    made = requantizer("tpu_mlir_qdm", src_scale=1.0, wei_scale=wei, dst_scale=1.0)
    q, exponent = quantize_multiplier(counts_as)
    assert (made.kind, made.rounding) == ("two_step", "half_away_from_zero")
    assert (made.multiplier.tolist(), made.shift.tolist()) == ([int(q)], [int(exponent)])
