"""Statistics on samples that were made up."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyonednn_q.bench.summary import LEAST, Ratio, paired_ratio, sqnr_db, summarise, unpaired_ratio
from pyonednn_q.errors import ArgumentError


def test_median_and_quartiles() -> None:
    summary = summarise([5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    assert (summary.median, summary.q1, summary.q3) == (5.0, 3.0, 7.0)
    assert summary.spread == pytest.approx(0.8, abs=0)
    assert summary.lo < 5.0 < summary.hi


def test_few_samples_prove_nothing() -> None:
    few = [1.0] * (LEAST - 1)
    assert (summarise(few).lo, summarise(few).hi) == (0.0, math.inf)
    assert not paired_ratio([10.0] * len(few), few).is_significant
    assert not unpaired_ratio([10.0] * len(few), [1.0] * 50).is_significant


@pytest.mark.parametrize("samples", [[], [1.0, 0.0], [-1.0]])
def test_what_is_no_time_is_refused(samples: list[float]) -> None:
    with pytest.raises(ArgumentError, match="above 0"):
        summarise(samples)


def test_samples_of_the_same_rounds_must_be_as_many() -> None:
    with pytest.raises(ArgumentError, match="one for each above"):
        paired_ratio([1.0, 2.0], [1.0])


def test_the_interval_holds_the_median_about_19_times_of_20() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        summary = summarise(rng.lognormal(0.0, 0.3, 40))
        hits += summary.lo <= 1.0 <= summary.hi
    # 380 are expected; ±4 standard deviations, and one side more for the bootstrap's own error.
    assert 355 <= hits <= 398


def test_no_difference_is_seldom_significant() -> None:
    rng = np.random.default_rng(2)
    alarms = sum(
        unpaired_ratio(rng.lognormal(0, 0.1, 30), rng.lognormal(0, 0.1, 30)).is_significant
        for _ in range(300)
    )
    assert alarms <= 30


def test_a_difference_is_found() -> None:
    rng = np.random.default_rng(3)
    ratio = unpaired_ratio(2 * rng.lognormal(0, 0.1, 30), rng.lognormal(0, 0.1, 30))
    assert ratio.is_significant
    assert ratio.lo < 2.0 < ratio.hi


def test_drift_that_hits_both_alike_does_not_widen_a_paired_ratio() -> None:
    drift = np.linspace(1.0, 3.0, 40)
    paired = paired_ratio(2 * drift, drift)
    assert (paired.lo, paired.value, paired.hi) == (2.0, 2.0, 2.0)
    unpaired = unpaired_ratio(2 * drift, drift)
    assert unpaired.hi - unpaired.lo > 0.3


def test_the_same_samples_give_the_same_verdict() -> None:
    samples = list(np.random.default_rng(4).lognormal(0, 0.2, 25))
    assert summarise(samples) == summarise(samples)
    assert paired_ratio(samples, samples[::-1]) == paired_ratio(samples, samples[::-1])


def test_what_is_not_significant_says_so_instead_of_a_number() -> None:
    assert str(Ratio(1.5, 0.9, 2.0)) == "not significant"
    assert str(Ratio(1.5, 1.1, 2.0)) == "1.50x"
    assert str(Ratio(0.8, 0.7, 0.9)) == "0.80x"


def test_sqnr_counts_power_in_decibels() -> None:
    exact = np.array([10.0, 0.0])
    assert sqnr_db(exact, np.array([11.0, 0.0])) == 20.0


def test_sqnr_does_not_wrap_integers() -> None:
    assert sqnr_db(np.array([200], np.uint8), np.array([0], np.uint8)) == 0.0


def test_sqnr_of_equals_is_infinite() -> None:
    assert sqnr_db(np.ones(3), np.ones(3)) == math.inf
