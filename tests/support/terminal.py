"""A terminal that there is not: what is drawn on it, and a clock that needs no patience."""

from __future__ import annotations

import re
from itertools import count

import pytest

__all__ = ["Bars", "bars", "terminal"]

Bars = dict[str, tuple[int, int]]


def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make standard error a terminal; each look at the clock is a second after the last one.

    To be called in the test itself: fixtures have other streams.
    """
    clock = count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")


def bars(capsys: pytest.CaptureFixture[str]) -> Bars:
    """Return the last step that was drawn of each bar, and the number of its steps, by name."""
    words = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().err)
    seen = re.findall(r"([a-z][a-z ]*[a-z]) +[━╸╺]+ +(\d+)/(\d+)", words)
    return {name: (int(done), int(steps)) for name, done, steps in seen}
