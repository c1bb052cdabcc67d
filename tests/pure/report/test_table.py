"""Tables on a terminal: as wide as that, nothing of the last column lost, and colours of rows."""

from __future__ import annotations

import re

import pytest

from pyonednn_q.report.table import Column, Table, on_terminal

NOTE = "the quick brown fox jumps over the lazy dog, and back again, until somebody stops it"
TABLE = Table(
    [Column("line"), Column("us", right=True), Column("note")],
    [
        ["a/very/long/name/of/a/layer/in/a/deep/network", "12.5", NOTE],
        ["b", "7.0!", ""],
        ["c", "-", "refused: no kernel"],
        ["d", "3.0", "INT8, by Python"],
    ],
)


@pytest.mark.parametrize("width", [50, 60, 80, 100])
def test_a_table_fits_a_terminal(width: int) -> None:
    with on_terminal(width, is_coloured=False):
        text = TABLE.text()
    assert max(map(len, text.splitlines())) <= width
    column = text.splitlines()[0].index("note")
    wrapped = [line[column:] for line in text.split("\nb ")[0].splitlines()[1:]]
    assert " ".join(wrapped) == NOTE
    assert "12.5" in text
    assert text.splitlines()[1].startswith("a/very")
    assert "\x1b" not in text


def test_elsewhere_nothing_is_cut() -> None:
    assert TABLE.cells[0][0] in TABLE.text()
    assert TABLE.width == max(map(len, TABLE.text().splitlines()))
    with on_terminal(50, is_coloured=True):
        assert TABLE.width == max(
            map(len, Table(TABLE.columns, TABLE.cells)._lines(None, head=True))
        )
        assert NOTE in TABLE.html()
        assert NOTE in TABLE.markdown()
    assert "\x1b" not in TABLE.text()


def test_rows_that_something_is_wrong_with_have_a_colour() -> None:
    with on_terminal(200, is_coloured=True):
        lines = TABLE.text().splitlines()
    codes = [re.match(r"\x1b\[(\d+)m", line) for line in lines]
    assert [match and match[1] for match in codes] == [None, None, "33", "31", "35"]
    assert [line.endswith("\x1b[0m") for line in lines] == [match is not None for match in codes]


def test_a_terminal_that_is_too_narrow_keeps_what_is_needed() -> None:
    with on_terminal(5, is_coloured=False):
        assert "12.5" in TABLE.text()
        assert Table([Column("n", right=True)], [["123456789"]]).text() == "        n\n123456789"
