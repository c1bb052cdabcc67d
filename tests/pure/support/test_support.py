"""Threads and ISA support of the tests."""

from __future__ import annotations

import threading
import time

import pytest

from pyonednn_q.primitive.isa import InstructionSet
from support import isa
from support.threads import run_together


def test_threads_run_at_the_same_moment() -> None:
    inside, lock, peak = 0, threading.Lock(), 0

    def work(index: int) -> int:
        nonlocal inside, peak
        with lock:
            inside += 1
            peak = max(peak, inside)
        time.sleep(0.02)
        with lock:
            inside -= 1
        return index * 10

    assert run_together(4, work, rounds=2) == [[0, 0], [10, 10], [20, 20], [30, 30]]
    assert peak == 4


def test_a_failing_thread_is_named_and_stops_the_rest() -> None:
    def work(index: int) -> int:
        if index == 2:
            msg = "broken"
            raise ValueError(msg)
        return index

    with pytest.raises(AssertionError, match=r"thread 2 of 3 failed: ValueError\('broken'\)"):
        run_together(3, work, rounds=1000)


def test_a_thread_that_hangs_is_an_error() -> None:
    release = threading.Event()
    with pytest.raises(AssertionError, match="not finished"):
        run_together(2, lambda index: release.wait(5) if index else True, timeout_s=0.2)
    release.set()


def test_missing_isa_is_skipped_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    avx2 = InstructionSet("AVX2")
    monkeypatch.setenv(isa.LIMIT_VARIABLE, "avx2")
    reason = isa.reason_to_skip(avx2, "AVX512_CORE")
    assert reason == "needs AVX512_CORE; this process runs AVX2 (ONEDNN_MAX_CPU_ISA=AVX2)"
    with pytest.raises(pytest.skip.Exception, match="needs AVX512_CORE"):
        isa.skip_without(avx2, "AVX512_CORE")
    isa.skip_without(InstructionSet("AVX512_CORE_AMX"), "AVX512_CORE")


def test_unavailable_row_says_why() -> None:
    avx2 = InstructionSet("AVX2")
    assert isa.reason_row_is_unavailable(avx2, "AVX2") is None
    amx = InstructionSet("AVX512_CORE_AMX")
    assert isa.reason_row_is_unavailable(amx, "AVX10_1_512_AMX") is None
    assert isa.reason_row_is_unavailable(avx2, "AVX512_CORE") == (
        "row AVX512_CORE: the machine or the library stops at AVX2"
    )
