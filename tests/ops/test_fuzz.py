"""Hostile calls: a typed error or the right result; never a crash, a hang or silent nonsense."""

from __future__ import annotations

import gc
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.native import runtime
from pyonednn_q.ops.functional import operator_cache_clear
from support.hostile import chunk
from support.hostile.attempt import Attempt
from support.hostile.chunk import Report, run_chunk
from support.hostile.draw import attempt_of, ways
from support.hostile.verdict import judge

CHUNK = 500


def test_hostile_calls(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """`--hostile-calls` and `--hostile-seed` say how many, and from which seed on.

    Without a number, 0, it goes on until it is stopped, or something is wrong.
    """
    count = request.config.getoption("--hostile-calls")
    first = request.config.getoption("--hostile-seed")
    report = Report()
    end = first + count if count else sys.maxsize
    for start in range(first, end, CHUNK):
        report.add(run_chunk(range(start, min(start + CHUNK, end)), tmp_path / "trace"))
        if not count:
            assert not report.wrong, "\n".join(report.wrong)
    assert not report.wrong, "\n".join(report.wrong)
    # Whoever refuses everything is never wrong. Without VNNI, wide weights must be refused.
    may_be_right = report.plain.total()
    if not runtime.isa().has_vnni():
        may_be_right -= report.plain["SaturationError"]
    assert report.plain["right"] > 0.6 * may_be_right, report.plain
    assert report.outcomes["unknown"] < 0.1 * count
    if count >= 2000:
        assert set(report.ways) == set(ways())


@pytest.mark.stress
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_hostile_calls_leak_nothing() -> None:
    """The same attempts again: primitives come from the library's cache, memory from the pool."""

    def all_once() -> int:
        for seed in range(300):
            judge(attempt_of(seed))
        operator_cache_clear()
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(3):
        before = all_once()
    for _ in range(4):
        after = all_once()
    # A page of every attempt would be 4.7 MiB.
    assert after - before < 2 << 20, f"{after - before} bytes more after 1200 attempts"


@pytest.fixture
def plain() -> Attempt:
    """An attempt with nothing wrong, that comes out right."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)  # of a matrix
        attempts = (attempt_of(seed) for seed in range(100))
        return next(a for a in attempts if not a.wrong and judge(a).outcome == "right")


def test_the_judge_notices_a_wrong_result(plain: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [result - np.asarray(9, result.dtype) for result in plain.run()]
    monkeypatch.setattr(Attempt, "run", lambda _: wrong)
    assert not judge(plain).is_allowed


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), ZeroDivisionError()])
def test_the_judge_notices_a_bare_error(
    plain: Attempt, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Attempt) -> None:
        raise error

    monkeypatch.setattr(Attempt, "run", fail)
    assert "bare" in judge(plain).text


def test_the_judge_notices_an_input_that_was_written(
    plain: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = plain.run()

    def write(attempt: Attempt) -> list[Any]:
        attempt.src = attempt.src + np.asarray(1, attempt.src.dtype)
        return results

    monkeypatch.setattr(Attempt, "run", write)
    assert "src was changed" in judge(plain).text


def test_the_judge_notices_nonsense_that_is_accepted(
    plain: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = plain.run()
    monkeypatch.setattr(Attempt, "run", lambda _: results)
    for name, value in (("strict", "no"), ("relu", True), ("src_q", 0.5)):
        worse = replace(plain, settings={**plain.settings, name: value})
        assert "accepted" in judge(worse).text


def test_a_crash_is_told_with_its_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chunk.CRASH_AT, "3")
    report = run_chunk(range(5), tmp_path / "trace")
    assert report.wrong[0].startswith("seed 3: a crash, exit code")
