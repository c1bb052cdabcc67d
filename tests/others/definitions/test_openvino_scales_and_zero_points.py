"""A FakeQuantize seen as quantizer and dequantizer: S_i, Z_i, S_o, Z_o, and what is whole.

Accepted: q = clamp(round(x/S_i + Z_i)) and y = (q - Z_o)*S_o lead back to FakeQuantize, the codes
equal wherever float64 can tell; whether a zero point counts as whole is decided within a tolerance
that is an argument with a documented default.
"""

from __future__ import annotations

import inspect
from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import fq_params
from support.definitions import rational

LEVELS = (3, 4, 16, 255, 256, 65536)


def random_fq(levels: int, seed: int) -> FakeQuantize:
    rng = np.random.default_rng(seed)
    low, width = rng.normal(size=8), rng.uniform(0.3, 9.0, 8)
    out = rng.normal(size=8)
    return FakeQuantize(low, low + width, out, out + rng.uniform(-4.0, 4.0, 8), levels)


def columns(fq: FakeQuantize) -> list[tuple[Fraction, ...]]:
    """The ranges of every channel, exactly."""
    vecs = (fq.input_low, fq.input_high, fq.output_low, fq.output_high)
    return [tuple(map(Fraction, row)) for row in zip(*(v.spread(8) for v in vecs), strict=True)]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(3))
def test_parameters_are_those_of_the_formula(seed: int, levels: int) -> None:
    """Against S = (high - low)/n and Z = -low/S in rational arithmetic: a few float64 roundings."""
    fq, n = random_fq(levels, seed), levels - 1
    p = fq_params(fq)
    for channel, (il, ih, ol, oh) in enumerate(columns(fq)):
        exact = ((ih - il) / n, -il * n / (ih - il), (oh - ol) / n, -ol * n / (oh - ol))
        found = (p.scale_in, p.zero_in, p.scale_out, p.zero_out)
        for want, vec in zip(exact, found, strict=True):
            got = Fraction(float(vec.spread(8)[channel]))
            assert abs(got - want) <= abs(want) * Fraction(2, 2**52)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(3))
def test_round_trip_gives_the_codes(seed: int, levels: int) -> None:
    fq, n = random_fq(levels, seed), levels - 1
    p = fq_params(fq)
    x = rational.beside_ties(fq.input_low.spread(8), fq.input_high.spread(8), levels, (40, 8), seed)
    level = np.rint(x / p.scale_in.spread(8) + p.zero_in.spread(8))
    codes = np.clip(level, 0, n)
    y = (codes - p.zero_out.spread(8)) * p.scale_out.spread(8)
    for channel, (il, ih, ol, oh) in enumerate(columns(fq)):
        size = float(max(abs(ol), abs(oh)))
        for row, value in enumerate(map(Fraction, x[:, channel].tolist())):
            # float32 values lie on no tie of such a range, and float64 is fine enough to tell.
            assert codes[row, channel] == rational.exact_level(value, il, ih, n)
            exact = rational.exact(value, il, ih, ol, oh, n)
            assert abs(y[row, channel] - float(exact)) <= 8 * np.spacing(size)


def test_ties_of_whole_parameters_go_to_even() -> None:
    """With whole Z and a scale that is a power of two nothing rounds: equality on every tie."""
    fq = FakeQuantize(-1.5, 2.25, -6.0, 9.0, 16)
    p = fq_params(fq)
    assert (p.zero_in_is_integer, p.zero_out_is_integer) == (True, True)
    for k in range(-40, 60):
        x = Fraction(k, 8)  # half a level is 1/8
        level = round(float(x) / p.scale_in.least + p.zero_in.least)
        assert min(max(level, 0), 15) == rational.exact_level(
            x, Fraction(-3, 2), Fraction(9, 4), 15
        )


@pytest.mark.parametrize("side", ["in", "out"])
@pytest.mark.parametrize(("off", "whole"), [(0.9e-4, True), (1.1e-4, False), (-0.9e-4, True)])
def test_default_tolerance(off: float, whole: bool, side: str) -> None:
    """1e-4 of a level, as the signature says."""
    assert inspect.signature(fq_params).parameters["tolerance"].default == 1e-4
    low, plain = -(7 + off), (0.0, 15.0)
    shifted = (low, low + 15.0)
    ranges = (*shifted, *plain) if side == "in" else (*plain, *shifted)
    p = fq_params(FakeQuantize(*ranges, 16))
    flags = {"in": p.zero_in_is_integer, "out": p.zero_out_is_integer}
    assert flags.pop(side) is whole
    assert all(flags.values())
    assert (p.zero_in if side == "in" else p.zero_out).least == pytest.approx(7 + off, abs=1e-12)


def test_tolerance_is_the_callers() -> None:
    fq = FakeQuantize(-7.25, 7.75, 0, 15, 16)
    assert fq_params(fq, tolerance=0.26).zero_in_is_integer
    assert not fq_params(fq, tolerance=0.24).zero_in_is_integer
    assert fq_params(fq, tolerance=0.26).zero_in.least == 7.25  # told, not rounded


def test_one_channel_decides() -> None:
    p = fq_params(FakeQuantize([-7.0, -7.5], [8.0, 7.5], 0, 15, 16))
    assert not p.zero_in_is_integer
    assert p.zero_out_is_integer
