"""Codes counted from Z_0 = levels/2, so that they fit a signed type.

Accepted: signed codes plus Z_0 are the unsigned codes, on every tie as well; inside the rounding
only an even Z_0 may be subtracted, and where the view would need an odd one it is refused.
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
from pyonednn_q.expr.steps import Affine, Chain, Round
from support.definitions import rational

EVEN, ODD = (4, 8, 16, 256, 65536), (2, 6, 14, 254)
HALF = (3, 15, 255)  # levels/2 is not whole; codes are counted from levels // 2


def ties(levels: int) -> Any:
    """Every quarter of a level of a range with step 1/4, up to 999 of them."""
    return (np.arange(-8, 4 * levels + 8, 1 + levels // 256)[None] - levels) / 16.0


def quarter(levels: int) -> FakeQuantize:
    """A range with whole zero point and a step of 1/4: float32 computes it exactly."""
    low = -(levels // 4) / 4
    return FakeQuantize(low, low + (levels - 1) / 4, -3, 5, levels)


@pytest.mark.parametrize("levels", [*EVEN, *ODD, *HALF])
def test_signed_codes_are_unsigned_codes_less_the_offset(levels: int) -> None:
    fq, x = quarter(levels), ties(levels)
    for run in (evaluate, evaluate_f32):
        plain, signed = (run(Chain(*codes(fq, signed=s).quantize), x) for s in (False, True))
        np.testing.assert_array_equal(signed + levels // 2, plain)
    low, high = (Fraction(v.least) for v in (fq.input_low, fq.input_high))
    exact = [rational.exact_level(Fraction(v), low, high, levels - 1) for v in x[0].tolist()]
    np.testing.assert_array_equal(plain[0], exact)


@pytest.mark.parametrize("levels", EVEN)
def test_an_even_offset_is_inside_the_round(levels: int) -> None:
    cut = codes(quarter(levels), signed=True)
    assert (cut.qmin, cut.qmax) == (-levels // 2, levels // 2 - 1)
    # One affine step before the round: the offset is inside.
    assert [type(step) for step in cut.quantize[-2:]] == [Affine, Round]


@pytest.mark.parametrize("levels", [*ODD, *HALF])
def test_an_odd_offset_stays_behind_the_round(levels: int) -> None:
    cut, offset = codes(quarter(levels), signed=True), levels // 2
    moved = offset % 2 == 1
    assert (cut.quantize[-1] == Affine(1.0, -float(offset))) == moved


def test_an_odd_offset_inside_turns_ties() -> None:
    """Why the guard: round(0.5 + 127) - 127 is 1, and round(0.5) is 0."""
    x = ties(254)
    outside = evaluate(Chain(Affine(4.0), Round(), Affine(1.0, -127.0)), x)
    inside = evaluate(Chain(Affine(4.0, -127.0), Round()), x)
    is_tie = (4 * x) % 1 == 0.5
    assert (outside != inside)[is_tie].all()
    np.testing.assert_array_equal(outside[~is_tie], inside[~is_tie])


@pytest.mark.parametrize("levels", [*ODD, *HALF])
def test_view_with_an_odd_offset_is_refused(levels: int) -> None:
    with pytest.raises(ArgumentError, match="levels divisible by 4: an even offset"):
        fq_params(quarter(levels), signed=True)


@pytest.mark.parametrize("levels", EVEN)
def test_view_with_an_even_offset(levels: int) -> None:
    fq = quarter(levels)
    plain, signed = (fq_params(fq, signed=s) for s in (False, True))
    assert (plain.offset, signed.offset) == (0, levels // 2)
    assert signed.zero_in + levels / 2 == plain.zero_in
    assert signed.zero_out + levels / 2 == plain.zero_out
    assert (signed.scale_in, signed.scale_out) == (plain.scale_in, plain.scale_out)
    x = ties(levels)
    view = np.rint(x / signed.scale_in.least + signed.zero_in.least)
    held = np.clip(view, -levels // 2, levels // 2 - 1)
    np.testing.assert_array_equal(held, evaluate(Chain(*codes(fq, signed=True).quantize), x))
