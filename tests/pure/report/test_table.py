"""Tables on a terminal: as wide as that, nothing lost, and colours of rows; elsewhere plain."""

from __future__ import annotations

import re

import pytest

from pyonednn_q.report.table import Column, Table, on_terminal

NOTE = "the quick brown fox jumps over the lazy dog, and back again, until somebody stops it"
NAME = "a/very/long/name/of/a/layer/in/a/deep/network"
TABLE = Table(
    [Column("line"), Column("us", right=True), Column("note")],
    [
        [NAME, "12.5", NOTE],
        ["b", "7.0!", ""],
        ["c[red]", "-", "refused: no kernel"],
        ["d", "3.0", "INT8, by Python"],
    ],
)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # standard output is pytest's
    monkeypatch.delenv("NO_COLOR", raising=False)


def shown(width: int, monkeypatch: pytest.MonkeyPatch, table: Table = TABLE) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    with on_terminal(True):
        return table.text()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[\d*m", "", text)


@pytest.mark.parametrize("width", [30, 50, 60, 80, 100])
def test_a_table_fits_a_terminal_and_loses_nothing(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = plain(shown(width, monkeypatch)).splitlines()
    assert max(map(len, lines)) <= width
    us, note = lines[0].index("us"), lines[0].index("note")
    (end,) = (at for at, line in enumerate(lines) if line.startswith("b "))
    assert "".join(line[:us].strip() for line in lines[1:end])[: len(NAME)].startswith("a/very")
    assert " ".join(line[note:].strip() for line in lines[1:end]) == NOTE
    assert "12.5" in lines[1]
    assert lines[end].split() == ["b", "7.0!"]


def test_names_are_folded_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(shown(60, monkeypatch)).splitlines()
    (end,) = (at for at, line in enumerate(lines) if line.startswith("b "))
    width = lines[0].index("us") - 4
    assert "".join(line[:width].strip() for line in lines[1:end]) == NAME


def test_elsewhere_nothing_is_cut_or_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = TABLE.text().splitlines()
    assert lines[1] == f"{NAME}  12.5  {NOTE}"
    assert lines[2].split() == ["b", "7.0!"]
    assert [line.rstrip() for line in lines] == lines
    assert TABLE.width == max(map(len, lines))
    with on_terminal(False):
        assert TABLE.text().splitlines() == lines
    with on_terminal(True):
        assert TABLE.width == max(map(len, lines))
        assert NOTE in TABLE.html()
        assert NOTE in TABLE.markdown()


def test_a_wide_terminal_has_what_a_pipe_has(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(shown(500, monkeypatch)).splitlines()
    assert [line.rstrip() for line in lines] == TABLE.text().splitlines()


def test_rows_that_something_is_wrong_with_have_a_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [re.match(r"\x1b\[(\d+)m", line) for line in shown(200, monkeypatch).splitlines()]
    assert [match and match[1] for match in codes] == [None, None, "33", "31", "35"]
    assert shown(200, monkeypatch).endswith("\x1b[0m")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_off(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    text = shown(60, monkeypatch)
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) == 60


def test_numbers_are_whole_on_any_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "12.5" in shown(5, monkeypatch)
    number = Table([Column("n", right=True)], [["123456789"]])
    assert shown(5, monkeypatch, number) == "        n\n123456789"


def test_a_margin_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with on_terminal(True):
        lines = plain(TABLE.text(margin="    ")).splitlines()
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("    ") for line in lines)
    assert TABLE.text(margin="  ").splitlines()[1].startswith(f"  {NAME}")
