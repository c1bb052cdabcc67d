"""Timing with made-up primitives: who runs when, how often, for how long."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import timing
from pyonednn_q.native.timing import MAX_ROUNDS, MIN_SAMPLE_S, REST_S, Budget, interleaved, too_many


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


def test_runtimes_rest_before_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[str, int]] = []
    monkeypatch.setattr("time.sleep", lambda seconds: log.append(("rest", round(seconds))))
    timed = interleaved(
        [Fake("a", 4e-3, log), Fake("b", 4e-3, log)], Budget(rounds=4), rest_s=REST_S
    )
    assert [len(each.samples_us) for each in timed] == [4, 4]
    turns = "".join(name[0] for name, _ in log).split("r")[1:]
    assert REST_S >= 0.1
    assert [len(each) for each in turns] == [1 + 3] * 2 + [1 + 1] * 2  # one is not timed
    assert all(len({*each}) == 1 for each in turns)


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


class Scripted:
    """A primitive whose calls take what a script says, and the last of it from then on."""

    def __init__(self, *seconds: float) -> None:
        self.script = list(seconds)
        self.timed = 0

    def __call__(self, calls: int) -> float:
        if calls == 1:  # the untimed call before a sample, and estimates
            return 1e-4
        self.timed += 1
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


CALIBRATED = 1e-4, 1e-4  # what the estimate takes of a script


def test_a_disturbed_sample_is_taken_again() -> None:
    """As where a scheduler's quantum was lost: 8 ms instead of 0.1."""
    primitive = Scripted(*CALIBRATED[:1], 1e-4, 8e-3, 1e-4, 8e-3, 8e-3, 1.1e-4, 1e-4)
    (timed,) = interleaved([primitive], Budget(rounds=6), taken_again=3)
    assert max(timed.samples_us) == pytest.approx(110.0, abs=1e-6)
    assert (timed.taken_again, timed.disturbed) == (3, 0)
    assert len(timed.samples_us) == 6


def test_what_stays_disturbed_is_said_after_a_bounded_number_of_times() -> None:
    primitive = Scripted(*CALIBRATED[:1], 1e-4, 1e-4, 8e-3)
    (timed,) = interleaved([primitive], Budget(rounds=6), taken_again=3)
    assert (timed.taken_again, timed.disturbed) == (3 * 4, 4)
    assert primitive.timed == 1 + 6 + 3 * 4
    assert too_many(timed.disturbed, 6)


def test_a_fast_sample_shows_that_earlier_ones_were_disturbed() -> None:
    primitive = Scripted(*CALIBRATED[:1], 3e-4, 3e-4, 1e-4, 1e-4)
    (timed,) = interleaved([primitive], Budget(rounds=3), taken_again=1)
    assert timed.samples_us == pytest.approx([100.0] * 3, abs=1e-6)
    assert timed.taken_again == 2


def test_nothing_is_taken_again_unless_it_is_asked_for() -> None:
    (timed,) = interleaved([Scripted(1e-4, 1e-4, 8e-3, 1e-4)], Budget(rounds=3))
    assert (timed.taken_again, timed.disturbed) == (0, 1)


@pytest.mark.parametrize(
    ("disturbed", "count", "many"), [(0, 6, False), (1, 4, False), (2, 6, True)]
)
def test_a_quarter_of_the_samples_may_be_disturbed(disturbed: int, count: int, many: bool) -> None:
    assert too_many(disturbed, count) is many


def test_long_samples_are_judged_by_how_long_threads_waited(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where each sample loses its part of the processor, none is slower than the others."""
    monkeypatch.setattr(timing, "_THREADS", tmp_path)
    clocks = tmp_path / "7"
    clocks.mkdir()
    waited_ns = 0

    def primitive(_: int) -> float:
        nonlocal waited_ns
        waited_ns += 4_000_000
        (clocks / "schedstat").write_text(f"1000 {waited_ns} 3")
        return 10e-3

    (timed,) = interleaved([primitive], Budget(rounds=4), taken_again=1)
    assert (timed.taken_again, timed.disturbed) == (4, 4)
    (clocks / "schedstat").write_text("no numbers")
    (timed,) = interleaved([lambda _: 10e-3], Budget(rounds=4), taken_again=1)
    assert (timed.taken_again, timed.disturbed) == (0, 0)
