"""Hostile calls of everything public: a right result, or a typed error of 500 characters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyonednn_q as pq
from support.hostile import chunk, public
from support.hostile.chunk import Report, run_chunk
from support.hostile.public import PublicAttempt, judge_public, one_public
from support.hostile.right_calls import NOT_CALLED, RightCall, public_names, right_calls

CHUNK = 5000


def test_hostile_calls_of_everything_public(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """`--hostile-calls` and `--hostile-seed` say how many, and from which seed on, as for calls."""
    count = request.config.getoption("--hostile-calls")
    first = request.config.getoption("--hostile-seed")
    report = Report()
    end = first + count if count else sys.maxsize
    for start in range(first, end, CHUNK):
        seeds = range(start, min(start + CHUNK, end))
        report.add(run_chunk(seeds, tmp_path / "trace", one_public))
        if not count:
            assert not report.wrong, "\n".join(report.wrong)
    print({name: report.outcomes[name] for name in sorted(report.outcomes)})  # noqa: T201
    assert not report.wrong, "\n".join(report.wrong)
    # Whoever refuses everything is never wrong.
    assert report.plain["right"] > 0.9 * report.plain.total(), report.plain
    if count >= 20_000:
        assert {call.name for call in right_calls()} <= set(report.ways)


def test_every_public_name_is_called() -> None:
    called = {call.name.partition(".")[0] for call in right_calls()}
    assert public_names() - NOT_CALLED - called == set()


@pytest.mark.parametrize("call", right_calls(), ids=lambda call: call.name)
def test_the_calls_that_hostile_ones_start_from_are_right(
    call: RightCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    attempt = PublicAttempt(call.name, call.function, list(call.given), dict(call.named), [])
    verdict = judge_public(attempt)
    too_late = {"load_tuning": "OSError", "limit_isa": "OneDNNError"}
    assert verdict.outcome == too_late.get(call.name, "right"), verdict.text


def judged(function: Callable[..., Any]) -> str:
    return judge_public(PublicAttempt("mine", function, [], {}, [])).text


def test_the_judge_notices_a_bare_error() -> None:
    for error in (KeyError("x"), TypeError("x"), AssertionError(), RecursionError(), OSError("x")):

        def fail(error: Exception = error) -> None:
            raise error

        assert type(error).__name__ in judged(fail)


def test_the_judge_notices_a_message_that_is_too_long() -> None:
    class WordyError(pq.Error):
        def __str__(self) -> str:
            return "x" * 501

    def fail() -> None:
        raise WordyError

    assert "501 characters" in judged(fail)


def test_the_judge_notices_a_result_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pq.primitive.TensorSpec, "__repr__", lambda _: 1 / 0)
    assert "ZeroDivisionError" in judged(lambda: pq.primitive.TensorSpec((1,), "u8"))


def test_the_judge_notices_a_call_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def spin() -> None:
        while True:
            pass

    monkeypatch.setattr(public, "SECONDS", 0.05)
    assert "TooLong" in judged(spin)


def test_a_crash_is_told_with_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chunk.CRASH_AT, "3")
    report = run_chunk(range(5), tmp_path / "trace", one_public)
    assert report.wrong[0].startswith("seed 3: a crash, exit code")
