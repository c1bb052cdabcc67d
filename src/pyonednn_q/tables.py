"""A table of text cells: aligned, as Markdown, or as HTML; and the page of HTML around it.

Everything that prints one uses these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Column", "Table", "html_page"]

_GAP = "  "
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and on which side its cells stand."""

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
        """Return a table element; columns that stand on the right have the class ``right``."""
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


def html_page(title: str, body: str, *, style: str, script: str = "") -> str:
    """Return a page of HTML that needs nothing else.

    Parameters
    ----------
    title : str
        Plain text, which becomes the heading as well.
    body : str
        HTML below the heading.
    style, script : str
        CSS, and JavaScript that runs when the page has been read.
    """
    if script:
        body = f"{body}\n<script>{script}</script>"
    return _PAGE.format(title=escape(title), style=style, body=body)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("*", "\\*")
