"""The bar: on a terminal it shows steps, their total and the time left; elsewhere nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from pyonednn_q.report.progress import Progress, counted, length

Clock = list[float]
WIPED = "\x1b[2K\x1b[?25h\r"  # an empty line, and the cursor there again


def terminal(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Make standard error a terminal; return a list of one number, the time."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_phase_is_drawn_at_once_and_the_end_wipes_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = terminal(monkeypatch)
    with Progress(2) as progress:
        progress.phase("work [red]")
        clock[0] = 3.0
        progress.tick()
        clock[0] = 6.0
        progress.tick()
    err = capsys.readouterr().err
    words = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", err)
    assert [part in words for part in ("work [red]", "0/2", "1/2", "2/2")] == [True] * 4
    assert err.endswith(WIPED)


def test_it_says_how_long_it_will_take(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = terminal(monkeypatch)
    with Progress(4) as progress:
        progress.phase("work")
        for _ in range(2):
            clock[0] += 45.0
            progress.tick()
    assert "0:01:30" in capsys.readouterr().err


def test_steps_without_a_phase_are_drawn_from_a_second_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = terminal(monkeypatch)
    for _ in counted([1, 2, 3], "short"):
        clock[0] += 0.3
    assert capsys.readouterr().err == ""
    for _ in counted(iter([1, 2, 3]), "long", 3):
        clock[0] += 0.6
    err = capsys.readouterr().err
    assert "long" in err
    assert "1/3" not in err
    assert "2/3" in err


def test_a_bar_inside_of_another_stands_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = terminal(monkeypatch)
    with Progress(3) as progress:
        progress.phase("outer")
        for _ in counted([1, 2], "inner"):
            clock[0] += 2.0
        progress.tick()
        err = capsys.readouterr().err
        assert re.search(r"outer .*\n.*inner .*1/2", err)
        clock[0] += 2.0
        progress.tick()
    err = capsys.readouterr().err
    assert "outer" in err
    assert "inner" not in err


def test_an_error_ends_the_bar_and_warnings_stand_above_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = terminal(monkeypatch)
    stream = sys.stderr

    def fail() -> None:
        for _ in counted([1, 2], "work"):
            clock[0] += 2.0
            if clock[0] > 3.0:
                sys.stderr.write("a doubt\n")
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert sys.stderr is stream
    err = capsys.readouterr().err
    assert re.search(r"\x1b\[2Ka doubt\n", err)
    assert err.endswith(WIPED)


@pytest.mark.parametrize("term", ["dumb", None])
def test_elsewhere_nothing_is_written(
    term: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if term is not None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        monkeypatch.setenv("TERM", term)
    with Progress(2) as progress:
        progress.phase("one")
        progress.tick()
    assert list(counted([5, 6], "two")) == [5, 6]
    assert capsys.readouterr() == ("", "")


class Stream:
    """What torch's loaders of streams are: their `len` raises."""

    def __len__(self) -> int:
        raise TypeError

    def __iter__(self) -> Iterator[int]:
        return iter([1, 2])


def test_what_else_a_length_raises_comes_through() -> None:
    class Lost(list[int]):
        def __len__(self) -> int:
            msg = "the disk is gone"
            raise OSError(msg)

    for asked in (length, lambda items: list(counted(items, "lost"))):
        with pytest.raises(OSError, match="the disk is gone"):
            asked(Lost())


def test_a_stream_has_no_length() -> None:
    assert length([1, 2]) == 2
    assert length(Stream()) is None
    assert list(counted(Stream(), "stream")) == [1, 2]
