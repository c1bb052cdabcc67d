"""The symmetric range of a signed FakeQuantize, stretched below so that 0 is a level.

Accepted: il = -ih*levels/(levels - 2) for an even number of levels and il = -ih for an odd one, and
0 is mapped to 0 exactly, not to half a level and not to the last bit of something.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate, evaluate_f32
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import codes, fq_params
from pyonednn_q.expr.fq_orders import FqOrder
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec

EVEN, ODD = (4, 6, 16, 100, 254, 256, 65536), (3, 15, 17, 255, 65535)
POWERS = (4, 16, 256, 65536)
HIGH = np.random.default_rng(6).uniform(1.0, 10.0, 400) * 10.0 ** np.arange(-20.0, 20.0, 0.1)
ZERO = np.zeros((1, len(HIGH)))
ORDERS: tuple[FqOrder, ...] = ("core", "fma", "subgraph")


@pytest.mark.parametrize("levels", EVEN)
def test_an_even_number_of_levels_has_one_more_below_zero(levels: int) -> None:
    low = FakeQuantize.symmetric(HIGH, levels).input_low.values()
    for got, high in zip(low.tolist(), HIGH.tolist(), strict=True):
        want = -Fraction(high) * levels / (levels - 2)
        assert abs(Fraction(got) - want) <= 3 * Fraction(np.spacing(-got))


@pytest.mark.parametrize("levels", ODD)
def test_an_odd_number_of_levels_lies_evenly(levels: int) -> None:
    assert FakeQuantize.symmetric(HIGH, levels).input_low == Vec(-HIGH)


@pytest.mark.parametrize("levels", [*EVEN, *ODD])
def test_zero_is_mapped_to_zero(levels: int) -> None:
    fq = FakeQuantize.symmetric(HIGH, levels)
    assert not fq(ZERO).any()
    assert not fq(-ZERO).any()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("levels", [*EVEN, *ODD])
def test_zero_has_its_own_level_in_float32(levels: int, order: FqOrder) -> None:
    """Its level is levels // 2, and its value 0 but for the roundings of the order, 2 ulp."""
    plain = FakeQuantize.symmetric(HIGH, levels)
    as_levels = FakeQuantize(plain.input_low, plain.input_high, 0.0, levels - 1.0, levels)
    level = np.rint(as_levels.evaluate_f32(ZERO, order=order))
    assert (level == levels // 2).all()
    value = plain.evaluate_f32(ZERO, order=order)
    assert (abs(value) <= 2 * np.spacing(HIGH.astype(np.float32))).all()


@pytest.mark.parametrize("levels", POWERS)
def test_zero_is_mapped_to_zero_by_kernels(levels: int) -> None:
    """Lowered to post-ops, level levels/2 times its width is a power of two times it: exact."""
    chain = FakeQuantize.symmetric(HIGH, levels).chain()
    assert not evaluate_f32(chain, ZERO).any()
    for high in HIGH.tolist():
        one = FakeQuantize.symmetric(high, levels).chain()
        assert evaluate_f32(one, [[0.0]]).item() == 0.0


@pytest.mark.parametrize("levels", [*EVEN, *ODD])
def test_zero_points_are_whole(levels: int) -> None:
    fq = FakeQuantize.symmetric(HIGH, levels)
    p = fq_params(fq, tolerance=2.0**-30)
    assert p.zero_in_is_integer
    assert p.zero_out_is_integer
    assert p.zero_in.rint() == Vec(float(levels // 2))


@pytest.mark.parametrize("levels", POWERS[1:])
def test_signed_code_of_zero_is_zero(levels: int) -> None:
    cut = codes(FakeQuantize.symmetric(HIGH, levels), signed=True)
    assert not evaluate(Chain(*cut.quantize), ZERO).any()


def test_without_the_stretch_zero_is_half_a_level() -> None:
    """What that guards against: 256 levels over [-1, 1] give 1/255 for 0."""
    plain: Any = FakeQuantize(-1, 1, -1, 1)(np.zeros((1, 1)))
    assert plain.item() == pytest.approx(1 / 255)


def test_known_ends() -> None:
    assert FakeQuantize.symmetric(127, 256).input_low == Vec(-128.0)
    assert FakeQuantize.symmetric(127, 255).input_low == Vec(-127.0)
    assert FakeQuantize.symmetric(7, 16).input_low == Vec(-8.0)
    assert FakeQuantize.symmetric(1, 256).input_low.least == pytest.approx(-1.00787401574803)


def test_output_range_is_the_input_range_unless_given() -> None:
    fq = FakeQuantize.symmetric([1.0, 2.0])
    assert (fq.output_low, fq.output_high) == (fq.input_low, fq.input_high)
    fq = FakeQuantize.symmetric([1.0, 2.0], output_low=-128, output_high=127)
    assert (fq.output_low, fq.output_high) == (Vec(-128), Vec(127))


def test_two_levels_have_no_zero() -> None:
    with pytest.raises(ArgumentError, match="two levels have no zero"):
        FakeQuantize.symmetric(1, 2)
