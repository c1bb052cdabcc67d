"""Calibration thresholds by maximum, percentile, Kullback-Leibler divergence and OCTAV.

Accepted: closed forms where there are some, the definitions followed value by value elsewhere, and
that thresholds move the right way with outliers, levels and bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.thresholds import (
    Method,
    kl_threshold,
    octav_threshold,
    percentile_threshold,
    threshold,
)

METHODS: tuple[Method, ...] = ("max", "percentile", "kl", "octav")
NORMAL = np.random.default_rng(1).normal(size=20_000)
LAPLACE = np.random.default_rng(2).laplace(size=20_000)


def test_the_greatest_magnitude() -> None:
    assert threshold([[0.5, -2.0], [1.0, 0.0]]) == 2.0


@pytest.mark.parametrize("percent", [0.5, 50.0, 99.99, 100.0])
def test_percentiles_of_a_ramp(percent: float) -> None:
    assert percentile_threshold(np.arange(-10_000, 10_001), percent) == pytest.approx(
        _ranked(percent), rel=1e-12
    )


def _ranked(percent: float) -> float:
    """Of 0, 1, 1, 2, 2, ...: between the neighbours of a place."""
    at = percent / 100 * 20_000
    low = math.floor(at)
    values = [(place + 1) // 2 for place in (low, min(low + 1, 20_000))]
    return values[0] + (values[1] - values[0]) * (at - low)


def test_the_percentile_is_that_of_9999() -> None:
    assert threshold(NORMAL, "percentile") == percentile_threshold(NORMAL, 99.99)


def divergence(counts: list[int], end: int, levels: int) -> float:
    """KL(P ‖ Q) bin by bin."""
    p = counts[:end]
    total = sum(counts)
    p[-1] += sum(counts[end:])
    q = [0.0] * end
    for level in range(levels):
        places = [at for at in range(end) if at * levels // end == level]
        filled = [at for at in places if counts[at]]
        for at in filled:
            q[at] = sum(counts[place] for place in places) / len(filled)
    if p[-1] and not q[-1]:
        q[-1] = 1.0
    pairs = [(each / total, shared / sum(q)) for each, shared in zip(p, q, strict=True) if each]
    return sum(each * math.log(each / shared) for each, shared in pairs)


@pytest.mark.parametrize(("bins", "levels"), [(64, 16), (64, 4), (50, 7), (16, 16), (9, 2)])
@pytest.mark.parametrize(
    "values",
    [NORMAL, LAPLACE, LAPLACE**3, np.rint(LAPLACE * 3) + 0.5],
    ids=["normal", "laplace", "cube", "bins without any"],
)
def test_kl_is_the_least_divergence_of_all_ends(values: Any, bins: int, levels: int) -> None:
    sizes = np.abs(values)
    counts, edges = np.histogram(sizes, bins, (0.0, float(sizes.max())))
    found = [divergence(counts.tolist(), end, levels) for end in range(levels, bins + 1)]
    chosen = round(kl_threshold(values, bins=bins, levels=levels) / edges[1])
    assert chosen - levels in range(len(found))
    # Sums in another order: the least, or as good as the least to rounding.
    assert found[chosen - levels] <= min(found) * (1 + 1e-9) + 1e-15


def test_kl_of_few_values_cuts_nothing_off() -> None:
    """As many values as levels, one in each: nothing is lost at the full range."""
    values = (np.arange(8) + 0.5) / 7.5
    assert kl_threshold(values, bins=8, levels=8) == 1.0


def test_kl_is_that_of_the_values_that_are_not_0() -> None:
    assert kl_threshold(np.append(LAPLACE, np.zeros(50_000))) == kl_threshold(LAPLACE)


def test_kl_cuts_off_an_outlier() -> None:
    values = np.append(NORMAL, 100.0)
    assert threshold(values) == 100.0
    assert np.abs(NORMAL).max() / 2 < kl_threshold(values) < 20.0
    assert threshold(values, "percentile") < 20.0
    assert octav_threshold(values, 4) < 20.0


def error(values: Any, end: float, bits: int, steps: float) -> float:
    """What OCTAV minimises: rounding inside, cutting off outside."""
    sizes = np.abs(values)
    inside = (sizes <= end).sum() * end * end * 4.0**-bits / steps
    return float(inside + ((sizes[sizes > end] - end) ** 2).sum())


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("values", [NORMAL, LAPLACE], ids=["normal", "laplace"])
def test_octav_is_the_fixed_point_and_the_least_error(values: Any, bits: int, signed: bool) -> None:
    end, sizes = octav_threshold(values, bits, signed=signed), np.abs(values)
    steps = 3.0 if signed else 12.0
    beyond = sizes > end
    below = 4.0**-bits / steps * (~beyond).sum()
    assert end == pytest.approx(sizes[beyond].sum() / (below + beyond.sum()), rel=1e-12)
    others = [error(values, end * f, bits, steps) for f in (0.5, 0.8, 0.9, 1.1, 1.25, 2.0)]
    assert error(values, end, bits, steps) < min(others)
    assert others[:3] == sorted(others[:3], reverse=True)


def test_octav_of_laplace_in_closed_form() -> None:
    """The error c · t² · (1 − e^−t) + 2 e^−t of density e^−|x| / 2 on each side."""
    ordered = -np.log1p(-(np.arange(400_000) + 0.5) / 400_000)  # its quantiles
    for bits in (3, 4, 6):
        end = octav_threshold(ordered, bits)
        c = 4.0**-bits / 3
        # The fixed point: t = (t + 1) e^−t / (c (1 − e^−t) + e^−t), so c t (e^t − 1) = 1.
        assert c * end * math.expm1(end) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("values", [NORMAL, LAPLACE], ids=["normal", "laplace"])
def test_more_bits_reach_further(values: Any) -> None:
    ends = [octav_threshold(values, bits) for bits in range(1, 11)]
    assert ends == sorted(ends)
    assert len(set(ends)) > 8
    unsigned = [octav_threshold(values, bits, signed=False) for bits in range(1, 11)]
    assert all(a >= b for a, b in zip(unsigned, ends, strict=True))
    shares = [percentile_threshold(values, p) for p in (50, 90, 99, 99.9, 99.99, 100)]
    assert shares == sorted(shares)
    assert shares[-1] == threshold(values)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method: Method) -> None:
    for values in (NORMAL, LAPLACE, np.array([3.0]), np.array([-3.0, 3.0, 0.0])):
        end = threshold(values, method)
        assert 0.0 < end <= np.abs(values).max()
        # A power of two scales exactly, and signs do not matter.
        assert threshold(values * -4.0, method) == 4.0 * end
    assert threshold(np.zeros(5), method) == 1.0


def test_arguments_are_named() -> None:
    unknown: Any = "variance"
    with pytest.raises(ArgumentError, match=r"^method: got 'variance'; wanted one of max"):
        threshold([1.0], unknown)
    with pytest.raises(ArgumentError, match=r"^values: got no values"):
        threshold([])
    with pytest.raises(ArgumentError, match=r"^values: got values that are not finite"):
        threshold([1.0, float("nan")])
    for percent in (0, 100.5):
        with pytest.raises(ArgumentError, match=rf"^percent: got {percent}"):
            percentile_threshold([1.0], percent)
    with pytest.raises(ArgumentError, match=r"^levels: got 300"):
        kl_threshold([1.0], bins=200, levels=300)
    with pytest.raises(ArgumentError, match=r"^levels: got 1"):
        kl_threshold([1.0], levels=1)
    for bins in (1, 65_537):
        with pytest.raises(ArgumentError, match=rf"^bins: got {bins}"):
            kl_threshold([1.0], bins=bins, levels=2)
    for bits in (0, 17):
        with pytest.raises(ArgumentError, match=rf"^bits: got {bits}"):
            octav_threshold([1.0], bits)
    assert (kl_threshold([1.0], bins=2, levels=2), octav_threshold([1.0], 16)) == (1.0, 1.0)


def test_a_divergence_is_of_2048_bins_unless_told() -> None:
    values = np.random.default_rng(3).standard_t(3, 5000)
    assert (
        kl_threshold(values) == kl_threshold(values, bins=2048) != kl_threshold(values, bins=2049)
    )
