"""The bar: on a terminal it fills, elsewhere each phase is a line."""

from __future__ import annotations

import sys

import pytest

from pyonednn_q.report.progress import Progress


def test_the_bar_fills_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    progress = Progress(2)
    progress.phase("work")
    progress.tick()
    progress.tick()
    progress.clear()
    half, full = "#" * 15 + "." * 15, "#" * 30
    _, err = capsys.readouterr()
    assert f"[{half}] 1/2 work" in err
    assert f"[{full}] 2/2 work" in err
    assert err.endswith("\r\x1b[K")


def test_a_file_gets_one_line_a_phase(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(2)
    progress.phase("one")
    progress.tick()
    progress.phase("two")
    progress.clear()
    assert capsys.readouterr() == ("", "one ...\ntwo ...\n")


def test_it_says_how_long_it_will_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    clock = iter((0.0, 0.0, 30.0))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    progress = Progress(4)
    progress.phase("work")
    progress.tick()
    assert "work (90 s left)" in capsys.readouterr().err
