"""Noise: what the kernel's counters say, and when it becomes a warning."""

from __future__ import annotations

import pytest

from pyonednn_q.bench.noise import Load, parse_stat, warnings


def test_own_work_is_no_noise() -> None:
    before = Load(100.0, 60.0, 1.0, 10.0, 0.0)
    after = Load(200.0, 110.0, 1.0, 60.0, 50.0)
    assert after.since(before) == (0.0, 0.0)


def test_stolen_and_others() -> None:
    before = Load(100.0, 60.0, 1.0, 10.0, 0.0)
    after = Load(200.0, 100.0, 6.0, 45.0, 50.0)
    # 100 s of CPU: 40 idle, 5 stolen, 35 own, 20 of others.
    assert after.since(before) == pytest.approx((0.05, 0.2), abs=1e-12)


def test_a_clock_that_stands_still_says_nothing() -> None:
    here = Load(0.0, 0.0, 0.0, 5.0, 1.0)
    assert here.since(Load(0.0, 0.0, 0.0, 1.0, 0.0)) == (0.0, 0.0)


@pytest.mark.parametrize("line", ["", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"])
def test_other_lines_are_zeros(line: str) -> None:
    assert parse_stat(line) == (0.0, 0.0, 0.0)


def test_now_goes_on() -> None:
    first = Load.now()
    second = Load.now()
    assert second.wall_s >= first.wall_s
    assert all(0.0 <= part <= 1.5 for part in second.since(first))


def test_a_quiet_machine_has_no_warnings() -> None:
    assert warnings(0.0, 0.02, 0.01, [0.01] * 20) == ()
    assert warnings(0.0, 0.0, 0.0, []) == ()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0.05, 0.0, 0.0, [0.01]), "steal"),
        ((0.0, 0.3, 0.0, [0.01]), "other processes"),
        ((0.0, 0.0, -0.4, [0.01]), "peak moved by -40%"),
        ((0.0, 0.0, 0.0, [0.3, 0.3, 0.01]), "2 of 3 rows"),
    ],
)
def test_each_cause_has_its_words(
    arguments: tuple[float, float, float, list[float]], word: str
) -> None:
    (text,) = warnings(*arguments)
    assert word in text


def test_what_was_disturbed_and_what_is_beyond_paper_is_named() -> None:
    lines = [f"conv{index}" for index in range(9)]
    (doubt,) = warnings(0.0, 0.0, 0.0, [], lines)
    assert "conv0, conv1" in doubt
    assert "conv5 and 3 more each time" in doubt
    (doubt,) = warnings(0.0, 0.0, 0.0, [], (), ["a u8s8u8"])
    assert doubt.startswith("a u8s8u8 beyond the peak on paper")
