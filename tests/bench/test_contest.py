"""A contest on the real library: only ourselves take part, which needs no peer."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from pyonednn_q.bench.case import Case
from pyonednn_q.bench.peers import PeerError, contest
from pyonednn_q.bench.peers.contest import Contest
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Tail
from pyonednn_q.native.timing import Budget

BUDGET = Budget(rounds=6)
SHAPE = Shape.parse("matmul 5x64 64x32")
INT8, F32 = Precision.parse("u8s8u8"), Precision.parse("f32")


def state(pid: int) -> str:
    """State of a process: T is stopped, Z has ended."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def pid_of(taking_part: Contest) -> int:
    (process,) = taking_part._processes.values()
    return process._process.pid


def test_our_call_and_our_loop_are_timed() -> None:
    with Contest((), threads=1) as made:
        for cases in ([Case(SHAPE, INT8), Case(SHAPE, F32)], [Case(SHAPE, INT8, Tail("relu"))]):
            found = made.run(cases, BUDGET)
            assert len(found) == len(cases)
            for rivals in found:
                assert [(r.name, r.way) for r in rivals] == [
                    ("pyonednn_q", "call"),
                    ("pyonednn_q", "loop"),
                ]
                assert all(len(r.samples_us) == 6 and min(r.samples_us) > 0 for r in rivals)
                assert not any(r.refused for r in rivals)


def test_what_cannot_be_made_is_refused_by_name_and_the_rest_is_timed() -> None:
    dense = Case(
        Shape.parse("deconv 1x17x5x5 33x17x2x2 stride=2 out=11x11"), INT8, layout="dense"
    )  # reference loops only
    with Contest((), threads=1) as made:
        (refused,), (timed, _) = made.run([dense, Case(SHAPE, INT8)], BUDGET)
    assert "only reference loops" in refused.refused
    assert refused.samples_us == ()
    assert len(timed.samples_us) == 6


def test_processes_are_stopped_between_turns_and_end_with_the_contest() -> None:
    with Contest((), threads=1) as made:
        made.run([Case(SHAPE, INT8)], BUDGET)
        pid = pid_of(made)
        until = time.monotonic() + 10
        while state(pid) != "T" and time.monotonic() < until:
            time.sleep(0.01)
        assert state(pid) == "T"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_process_that_dies_is_an_error() -> None:
    with Contest((), threads=1) as made:
        made.run([Case(SHAPE, INT8)], BUDGET)
        os.kill(pid_of(made), signal.SIGKILL)
        with pytest.raises(PeerError, match="pyonednn_q ended with exit code -9"):
            made.run([Case(SHAPE, INT8)], BUDGET)


def test_a_peer_that_cannot_be_imported_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = "import sys; sys.modules['torch'] = None; "
    monkeypatch.setattr(contest, "_CHILD", hidden + contest._CHILD)
    with Contest(("torch",), threads=1) as made:
        (rivals,) = made.run([Case(SHAPE, INT8)], BUDGET)
    why = {rival.name: rival.refused for rival in rivals}
    assert why["torch"].startswith("fails: ModuleNotFoundError")
    assert why["pyonednn_q"] == ""
