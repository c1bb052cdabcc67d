"""The EV hardware's multipliers of up to 15 bits, and its rounding to even.

Accepted: 5000 multipliers give the integers of the source's normalisation, followed step by step in
rational arithmetic, and shifts round as the source's expression does.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.multiplier import ev_multiplier
from pyonednn_q.requantize.rounding import shift_round
from support.definitions import requantization


def test_5000_multipliers_are_those_of_the_source() -> None:
    rng = np.random.default_rng(0)
    m = rng.uniform(0.25, 0.5, 5000) * 2.0 ** rng.integers(-40, 1, 5000)
    m[::5] = rng.integers(1, 2**15, 1000) * 2.0 ** -rng.integers(16, 60, 1000).astype(float)
    k, r = ev_multiplier(m)
    wanted = [requantization.ev_constants(Fraction(value)) for value in m]
    assert list(zip(k.tolist(), r.tolist(), strict=True)) == wanted
    assert k.max() < 2**15
    assert ((k % 2 == 1) | (r == 1)).all()


def test_the_bound_keeps_the_multiplier_within_15_bits() -> None:
    """32767.5 would round to 2^15: from a little below it, one bit less is kept."""
    for m in (32767.4, 32767.49, 32767.495, 32767.5, 32767.9, 32768.0):
        k, r = ev_multiplier(m / 2**20)
        assert (int(k), int(r)) == requantization.ev_constants(Fraction(m / 2**20))
        assert k < 2**15
    assert (int(ev_multiplier(32767.4 / 2**20)[0]), int(ev_multiplier(0.03125)[0])) == (32767, 1)


def test_what_63_bits_of_shift_do_not_reach_is_0() -> None:
    k, r = ev_multiplier([2.0**-65, 2.0**-64, 0.0])
    assert k.tolist() == [0, 1, 0]
    assert r.tolist() == [63, 63, 15]


def test_shifts_round_as_the_source_s_expression() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**46), 2**46, 20000) >> rng.integers(0, 44, 20000)
    r = rng.integers(1, 40, 20000)
    wanted = [
        (v + ((v >> s) & 1) + (1 << (s - 1)) - 1) >> s
        for v, s in zip(x.tolist(), r.tolist(), strict=True)
    ]
    assert shift_round(x, r, "half_to_even").tolist() == wanted


def test_multipliers_without_a_right_shift_are_refused() -> None:
    ev_multiplier(16383.0)
    with pytest.raises(ArgumentError, match=r"^multiplier: got 16384"):
        ev_multiplier(16384.0)
    with pytest.raises(ArgumentError, match=r"^multiplier: got -0.5"):
        ev_multiplier(-0.5)
