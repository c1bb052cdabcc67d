"""Timing with made-up primitives: who runs when, how often, for how long."""

from __future__ import annotations

import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.native.timing import MAX_ROUNDS, MIN_SAMPLE_S, Budget, interleaved


class Fake:
    """A primitive that takes always as long, and writes down that it ran."""

    def __init__(self, name: str, seconds: float, log: list[tuple[str, int]]) -> None:
        self.name = name
        self.seconds = seconds
        self.log = log

    def __call__(self, calls: int) -> float:
        self.log.append((self.name, calls))
        return self.seconds


def test_samples_are_the_times() -> None:
    log: list[tuple[str, int]] = []
    slow, fast = interleaved([Fake("a", 4e-3, log), Fake("b", 1e-5, log)], Budget(rounds=7))
    assert slow.samples_us == pytest.approx([4000.0] * 7, abs=1e-9)
    assert fast.samples_us == pytest.approx([10.0] * 7, abs=1e-9)


def test_a_sample_is_long_enough_for_the_clock() -> None:
    log: list[tuple[str, int]] = []
    slow, fast = interleaved([Fake("a", 4e-3, log), Fake("b", 1e-5, log)], Budget(rounds=1))
    assert slow.calls == 1
    assert fast.calls == round(MIN_SAMPLE_S / 1e-5)


def test_primitives_take_turns_in_changing_order_each_after_a_call_of_its_own() -> None:
    log: list[tuple[str, int]] = []
    names = "abc"
    interleaved([Fake(name, 4e-3, log) for name in names], Budget(rounds=30))
    timed = [name for name, _ in log[-2 * 3 * 30 :]]
    assert timed[0::2] == timed[1::2]  # the untimed call, and the sample
    rounds = ["".join(timed[start : start + 6 : 2]) for start in range(0, len(timed), 6)]
    assert {"".join(sorted(each)) for each in rounds} == {names}
    assert len(set(rounds)) == 6


def test_cold_calls_are_single_and_each_after_a_flush() -> None:
    log: list[tuple[str, int]] = []
    timed = interleaved(
        [Fake("a", 1e-5, log), Fake("b", 1e-5, log)],
        Budget(rounds=5),
        flush=lambda: log.append(("flush", 0)),
    )
    assert [each.calls for each in timed] == [1, 1]
    assert [name for name, _ in log[-20::2]] == ["flush"] * 10
    assert {calls for name, calls in log[-20:] if name != "flush"} == {1}


def test_rounds_follow_the_time() -> None:
    assert Budget(min_time_s=1.0).rounds_of([0.02, 0.005]) == 80
    assert Budget(min_time_s=1e-6).rounds_of([1.0]) == 11
    assert Budget(min_time_s=1e6).rounds_of([1e-3]) == MAX_ROUNDS
    assert Budget(min_time_s=1.0, rounds=3).rounds_of([1.0]) == 3


def test_nothing_takes_no_time() -> None:
    assert interleaved([], Budget()) == []


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="min_time"):
        Budget(min_time_s=0.0)
    with pytest.raises(ArgumentError, match="repeat"):
        Budget(rounds=0)
