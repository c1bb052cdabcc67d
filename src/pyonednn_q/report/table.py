"""A table of text cells: aligned, as Markdown, or as HTML; and rows as CSV.

On a terminal rich fits a table to its width, and colours rows that something is wrong with.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape

__all__ = ["Column", "Table", "csv_text", "on_terminal"]

_GAP = "  "
# Words of cells, and the colour of their rows: the first that is found.
_COLOURS = (
    *(("refused", "red"), ("disturbed", "yellow"), ("!", "yellow")),
    *(("by Python", "magenta"), ("reference", "magenta")),
)
_ON_TERMINAL = ContextVar("on_terminal", default=False)


@contextmanager
def on_terminal(is_terminal: bool) -> Iterator[None]:
    """Let tables that become text fit the terminal, if standard output is one.

    Refused rows are red there, disturbed ones yellow, those by Python magenta.
    """
    token = _ON_TERMINAL.set(is_terminal)
    try:
        yield
    finally:
        _ON_TERMINAL.reset(token)


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
        return max(len(line.rstrip()) for line in self._plain(head=True))

    def without(self, name: str) -> Table:
        """Return the table without a column, if it has one of that name."""
        places = [index for index, column in enumerate(self.columns) if column.name != name]
        return Table(
            [self.columns[index] for index in places],
            [[row[index] for index in places] for row in self.cells],
        )

    def text(self, *, head: bool = True, margin: str = "") -> str:
        """Return aligned columns behind a margin; on a terminal of its width, else of any."""
        lines = self._fitted(head, len(margin)) if _ON_TERMINAL.get() else self._plain(head)
        return "\n".join(f"{margin}{line}".rstrip() for line in lines)

    def _plain(self, head: bool) -> list[str]:
        """Return lines for pipes and files: rich takes 300 times as long, 0.8 s for 1000 rows."""
        rows = [[column.name for column in self.columns]] if head else []
        rows += [list(row) for row in self.cells]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        return [
            _GAP.join(
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(row, widths, self.columns, strict=True)
            )
            for row in rows
        ]

    def _fitted(self, head: bool, margin: int) -> list[str]:
        """Return lines for a terminal: words are wrapped, numbers never."""
        from rich.console import Console
        from rich.table import Table as FittedTable
        from rich.text import Text

        size = shutil.get_terminal_size()
        console = Console(width=size.columns - margin, height=size.lines)
        table = FittedTable(
            box=None,
            padding=(0, len(_GAP), 0, 0),
            pad_edge=False,
            header_style="",
            show_header=head,
        )
        for at, column in enumerate(self.columns):
            least = max([len(column.name), *(len(row[at]) for row in self.cells)])
            table.add_column(
                Text(column.name),
                justify="right" if column.right else "left",
                overflow="fold",
                min_width=least if column.right else None,
            )
        for row in self.cells:
            words = " ".join(row)
            style = next((style for word, style in _COLOURS if word in words), None)
            table.add_row(*map(Text, row), style=style)
        with console.capture() as capture:
            console.print(table, crop=False)
        return capture.get().splitlines()

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


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("*", "\\*")
