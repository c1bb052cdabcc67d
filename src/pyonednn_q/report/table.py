"""A table of text cells: aligned, as Markdown, or as HTML; and rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Column", "Table", "csv_text"]

_GAP = "  "


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
        """Characters of the longest line of `text`."""
        return max(map(len, self.text().splitlines()))

    def without(self, name: str) -> Table:
        """Return the table without a column, if it has one of that name."""
        places = [index for index, column in enumerate(self.columns) if column.name != name]
        return Table(
            [self.columns[index] for index in places],
            [[row[index] for index in places] for row in self.cells],
        )

    def text(self, *, head: bool = True) -> str:
        """Return aligned columns; the last one is as long as it likes."""
        rows = [[column.name for column in self.columns]] if head else []
        rows += [list(row) for row in self.cells]
        widths = [max(len(row[index]) for row in rows) for index in range(len(self.columns))]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if column.right else cell.ljust(width)
                for cell, width, column in zip(row, widths, self.columns, strict=True)
            ]
            lines.append(_GAP.join(cells).rstrip())
        return "\n".join(lines)

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
