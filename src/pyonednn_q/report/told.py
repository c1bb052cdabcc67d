"""Told: what results look like where they are printed: one line as such, all of it in notebooks."""

from __future__ import annotations

from collections.abc import Iterable

from pyonednn_q.report.page import preformatted
from pyonednn_q.report.table import Table
from pyonednn_q.shown import printable, shortened

__all__ = ["Told", "joined"]

_TELLING = ("text", "describe", "report", "summary")  # what a result calls its whole text
_WIDE = 160  # characters of a line: two of a terminal


class Told:
    """A result that users print.

    As itself it is one line, the first of its text; in notebooks all of it, with tables as tables.
    Its text is what the first of its methods `text`, `describe`, `report` and `summary` returns,
    else `str`. What has a short ``repr`` of its own keeps that.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        head = printable(_whole(self).partition("\n")[0])
        return shortened(f"<{type(self).__name__} {head}>", _WIDE)

    def _repr_html_(self) -> str:
        return "\n".join(
            part.html() if isinstance(part, Table) else preformatted(part) for part in self._parts()
        )

    def _parts(self) -> Iterable[str | Table]:
        """Yield the text and the tables that a notebook shows."""
        yield _whole(self)


def joined(parts: Iterable[str | Table]) -> str:
    """Return parts of a result as plain text."""
    return "\n".join(part.text() if isinstance(part, Table) else part for part in parts)


def _whole(result: object) -> str:
    tell = next(filter(None, (getattr(result, name, None) for name in _TELLING)), result.__str__)
    return str(tell())
