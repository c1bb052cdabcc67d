"""A table of text cells: aligned, as Markdown, or as HTML; and rows as CSV.

On a terminal a table fits its width, and rows that something is wrong with have a colour.
"""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape

__all__ = ["Column", "Table", "csv_text", "on_terminal"]

_GAP = "  "
_LEAST, _LEAST_OF_LAST = 12, 24  # characters of a column that is cut, or of the last one
# Words of cells, and the colour of their rows: red, yellow, magenta; the first that is found.
_COLOURS = (("refused", 31), ("disturbed", 33), ("!", 33), ("by Python", 35), ("reference", 35))
_TERMINAL: ContextVar[tuple[int, bool] | None] = ContextVar("terminal", default=None)


@contextmanager
def on_terminal(width: int, *, is_coloured: bool) -> Iterator[None]:
    """Fit tables that become text to a terminal: names are cut, the last column is wrapped.

    Parameters
    ----------
    width : int
        Characters of a line.
    is_coloured : bool
        Whether rows are coloured: refused ones red, disturbed ones yellow, those
        by Python magenta.
    """
    token = _TERMINAL.set((width, is_coloured))
    try:
        yield
    finally:
        _TERMINAL.reset(token)


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and the alignment of its cells."""

    name: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Cells under headings.

    Examples
    --------
    >>> table = Table([Column("line"), Column("us", right=True)], [["conv1", "5.0"]])
    >>> print(table.text())
    line    us
    conv1  5.0
    >>> print(table.markdown())
    | line | us |
    |---|---:|
    | conv1 | 5.0 |
    """

    columns: Sequence[Column]
    cells: Sequence[Sequence[str]]

    @property
    def width(self) -> int:
        """Characters of the longest line of `text`, where no terminal is narrower."""
        return max(len(line) for line in self._lines(None, head=True))

    def without(self, name: str) -> Table:
        """Return the table without a column, if it has one of that name."""
        places = [index for index, column in enumerate(self.columns) if column.name != name]
        return Table(
            [self.columns[index] for index in places],
            [[row[index] for index in places] for row in self.cells],
        )

    def text(self, *, head: bool = True) -> str:
        """Return aligned columns; the last one is as long as it likes, or as a terminal allows."""
        width, is_coloured = _TERMINAL.get() or (None, False)
        lines = self._lines(width, head=head)
        if is_coloured:
            words = ["", *map(" ".join, self.cells)][0 if head else 1 :]
            lines = [_coloured(line, row) for line, row in zip(lines, words, strict=True)]
        return "\n".join(lines)

    def _lines(self, most: int | None, *, head: bool) -> list[str]:
        """Return the text of each row, of several lines where its last cell is wrapped."""
        rows = [[column.name for column in self.columns]] if head else []
        rows += [list(row) for row in self.cells]
        widths = [max(len(row[index]) for row in rows) for index in range(len(self.columns))]
        rights = [column.right for column in self.columns]
        if most is not None:
            _fit(widths, rights, most - len(_GAP) * (len(widths) - 1))
        lines = []
        for row in rows:
            cut = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
            last = [""] if rights[-1] else textwrap.wrap(row[-1], max(widths[-1], 1)) or [""]
            cut[-1] = cut[-1] if rights[-1] else last[0]
            cells = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(cut, widths, rights, strict=True)
            ]
            begin = " " * (sum(widths[:-1]) + len(_GAP) * (len(widths) - 1))
            lines.append(
                "\n".join([_GAP.join(cells).rstrip(), *(begin + each for each in last[1:])])
            )
        return lines

    def markdown(self) -> str:
        """Return a table as Markdown writes it."""
        rules = ["---:" if column.right else "---" for column in self.columns]
        lines = [
            "| " + " | ".join(column.name for column in self.columns) + " |",
            "|" + "|".join(rules) + "|",
        ]
        lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in self.cells]
        return "\n".join(lines)

    def html(self) -> str:
        """Return a table element; right-aligned columns have the class ``right``."""
        kinds = [' class="right"' if column.right else "" for column in self.columns]
        heads = zip(self.columns, kinds, strict=True)
        head = "".join(f'<th scope="col"{kind}>{escape(each.name)}</th>' for each, kind in heads)
        rows = "\n".join(
            "<tr>"
            + "".join(
                f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)
            )
            + "</tr>"
            for row in self.cells
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>"


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return lines of CSV, ended as RFC 4180 has it; None is an empty cell."""
    text = io.StringIO()
    sheet = csv.writer(text)
    sheet.writerow(heads)
    sheet.writerows(rows)
    return text.getvalue()


def _fit(widths: list[int], rights: Sequence[bool], most: int) -> None:
    """Make columns of words narrower, the widest first, until all fit; numbers keep theirs."""
    last = len(widths) - 1
    while sum(widths) > most:
        words = [
            place
            for place, right in enumerate(rights)
            if not right and widths[place] > (_LEAST_OF_LAST if place == last else _LEAST)
        ]
        if not words:
            return
        widths[max(words, key=lambda place: widths[place])] -= 1


def _cut(cell: str, width: int) -> str:
    """Return a cell without its middle, where it is too wide."""
    if len(cell) <= width:
        return cell
    tail = width // 3
    return f"{cell[: width - tail - 1]}…{cell[len(cell) - tail :]}"


def _coloured(line: str, words: str) -> str:
    """Return a line in the colour of the first word of the table of colours that it has."""
    code = next((code for word, code in _COLOURS if word in words), 0)
    return "\n".join(f"\x1b[{code}m{each}\x1b[0m" for each in line.split("\n")) if code else line


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("*", "\\*")
