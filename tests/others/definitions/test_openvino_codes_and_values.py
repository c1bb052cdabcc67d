"""A FakeQuantize cut in two: codes in u8 or s8 for the producer, values for the consumer.

Accepted: quantizing and then dequantizing equals FakeQuantize within 2 ulp of the largest number
that either passes through; codes are equal but beside ties, where "beside" is what the
float32 roundings of scale, shift, product and sum can move a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.evaluate import evaluate, evaluate_f32
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_forms import codes
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.expr.steps import Chain
from support.definitions import rational

C = 8
LEVELS = (2, 3, 16, 255, 256, 65536)
UNIT = 2.0**-24  # half an ulp, relatively: what one float32 rounding can do


def float32(values: Any) -> Any:
    return np.asarray(values, np.float32).astype(np.float64)


def random_fq(seed: int, levels: int) -> FakeQuantize:
    rng = np.random.default_rng(seed)
    low, out = rng.normal(size=C), rng.normal(size=C)
    width, span = rng.uniform(0.3, 9.0, C), rng.uniform(0.3, 4.0, C) * rng.choice([-1, 1], C)
    il, ih, ol, oh = (float32(v) for v in (low, low + width, out, out + span))
    return FakeQuantize(il, ih, ol, oh, levels)


def bounds(fq: FakeQuantize) -> tuple[Any, ...]:
    vecs = (fq.input_low, fq.input_high, fq.output_low, fq.output_high)
    return tuple(vec.spread(C) for vec in vecs)


def level_of(x: Any, fq: FakeQuantize) -> tuple[Any, Any]:
    """Levels of the definition, and how far each x is from a tie, in levels."""
    il, ih, _, _ = bounds(fq)
    n = fq.levels - 1
    place = (np.clip(x.astype(np.float64), il, ih) - il) * (n / (ih - il))
    return np.rint(place), np.abs(place % 1.0 - 0.5)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(5))
def test_codes_equal_but_beside_ties(seed: int, levels: int, signed: bool) -> None:
    fq = random_fq(seed, levels)
    il, ih, _, _ = bounds(fq)
    cut = codes(fq, signed=signed)
    x = rational.beside_ties(il, ih, levels, (400, C), seed)
    level, tie = level_of(x, fq)
    quantize = Chain(*cut.quantize)
    got64, got32 = (run(quantize, x) - cut.qmin for run in (evaluate, evaluate_f32))
    scale = (levels - 1) / (ih - il)
    inside = np.clip(x, il, ih)
    reach = 2 * abs(inside * scale) + abs(il * scale) + abs(cut.qmin) + levels
    for got, unit in ((got64, 2.0**-52), (got32, UNIT)):
        differs = got != level
        assert (tie[differs] <= (reach * unit)[differs]).all()
        assert (abs(got - level) <= 1).all()
    assert (got32 != level).any() or levels < 255, "no tie was hit: nothing was decided"
    assert cut.qmin == (-(levels // 2) if signed else 0)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("seed", range(5))
def test_two_halves_are_the_whole_within_2_ulp(seed: int, levels: int, signed: bool) -> None:
    """For every code: where the codes agree, so do the values."""
    fq = random_fq(seed, levels)
    il, ih, ol, oh = bounds(fq)
    cut, n = codes(fq, signed=signed), levels - 1
    q = np.arange(0, levels, 1 + levels // 1000)[:, None] + np.zeros(C)
    # The middle of each level's inputs, so that no rounding can make it another level.
    x = (il + q / n * (ih - il)).astype(np.float32)
    stored = evaluate_f32(Chain(*cut.quantize), x)
    np.testing.assert_array_equal(stored, q + cut.qmin)
    y = evaluate_f32(Chain(*cut.dequantize), stored)
    whole = rational.apply(rational.core, x[::7], (il, ih, ol, oh), levels)
    ulp = np.spacing(np.maximum.reduce([abs(ol), abs(oh), abs(oh - ol)]).astype(np.float32))
    assert (abs(y[::7].astype(np.float64) - whole) <= 2 * ulp).all()


@pytest.mark.parametrize(("dtype", "signed"), [("u8", False), ("s8", True)])
def test_codes_fit_their_type(dtype: str, signed: bool) -> None:
    for levels in (2, 16, 255, 256):
        cut = codes(random_fq(1, levels), signed=signed)
        lo, hi = (0, 255) if dtype == "u8" else (-128, 127)
        assert lo <= cut.qmin <= cut.qmax <= hi
        assert cut.qmax - cut.qmin == levels - 1


@pytest.mark.parametrize("dtype", ["u8", "s8"])
def test_parameters_of_both_halves(dtype: str) -> None:
    """Scale and zero point of each side, where the zero points are whole: the same codes."""
    rng = np.random.default_rng(2)
    scale_in, scale_out = (float32(rng.uniform(0.01, 0.1, C)) for _ in range(2))
    zero_in, zero_out = rng.integers(0, 256, (2, C))
    fq = FakeQuantize(
        -zero_in * scale_in, (255 - zero_in) * scale_in,
        -zero_out * scale_out, (255 - zero_out) * scale_out,
    )  # fmt: skip
    into, out_of = (qparams_from_fq(fq, dtype, side=s) for s in ("input", "output"))
    assert into.is_exact()
    assert out_of.is_exact()
    x = rng.uniform(-20, 20, (500, C)).astype(np.float32)
    level, tie = level_of(x, fq)
    assert (tie > 2.0**-40).all(), "float64 can tell every level"
    q = into.qparams.quantize(x)
    np.testing.assert_array_equal(q.astype(int) - into.first, level)
    _, _, ol, oh = bounds(fq)
    whole = level / 255 * (oh - ol) + ol
    ulp = np.spacing(np.maximum.reduce([abs(ol), abs(oh), oh - ol]).astype(np.float32))
    assert (abs(out_of.qparams.dequantize(q) - whole) <= 2 * ulp).all()
