"""Statistics on made-up times and values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pyonednn_q.demo import measure


def test_interval_of_one_hundred_rounds_takes_ranks_40_and_61() -> None:
    float_us = [float(rank) for rank in range(1, 101)]
    pair = measure.paired("layer", float_us, [1.0] * 100)
    assert (pair.lo, pair.speedup, pair.hi) == (40.0, 50.5, 61.0)


def test_faster_slower_and_neither() -> None:
    steady = [10.0] * 20
    assert measure.paired("a", steady, [5.0] * 20).verdict == "2.00x faster (2.00 to 2.00)"
    assert measure.paired("b", steady, [20.0] * 20).verdict == "2.00x slower (2.00 to 2.00)"
    noisy = [5.0, 20.0] * 10
    assert measure.paired("c", steady, noisy).verdict == "not significant"


def test_slower_interval_is_in_order() -> None:
    pair = measure.Pair("layer", 1.0, 2.0, speedup=0.5, lo=0.4, hi=0.8)
    assert pair.verdict == "2.00x slower (1.25 to 2.50)"


@pytest.mark.parametrize("count", [1, 5])
def test_few_rounds_prove_nothing(count: int) -> None:
    pair = measure.paired("layer", [10.0] * count, [1.0] * count)
    assert (pair.lo, pair.hi) == (0.0, math.inf)
    assert pair.verdict == "not significant"


def test_rounds_are_compared_one_by_one() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    pair = measure.paired("layer", [2 * us for us in drift], drift)
    assert (pair.lo, pair.speedup, pair.hi) == (2.0, 2.0, 2.0)
    assert (pair.float_us, pair.int8_us) == (12.0, 6.0)


def test_both_ways_take_turns() -> None:
    order: list[str] = []
    ticks: list[None] = []
    calls = ("layer", lambda: order.append("f"), lambda: order.append("i"))
    pairs = measure.time_interleaved([calls], 4, lambda: ticks.append(None))
    assert "".join(order) == "fi" * measure.WARM_UP + "fi" + "if" + "fi" + "if"
    assert [pair.name for pair in pairs] == ["layer"]
    assert len(ticks) == 1


def test_correct_counts_largest_logits() -> None:
    logits = np.array([[0, 1], [1, 0], [3, 2]], np.float32)
    assert measure.correct(logits, np.array([1, 1, 0])) == 2
