"""Ladder: one line a problem, one column an instruction set."""

from __future__ import annotations

from collections.abc import Callable

from pyonednn_q.bench.precision import FLOATS
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run
from pyonednn_q.tables import Column, Table

__all__ = ["ladder"]


def ladder(run: Run, time: Callable[[float], str]) -> Table | None:
    """Return time and speed-up over the first type of float at each instruction set.

    Parameters
    ----------
    run : Run
        Rows of integer types are shown; those of floats are what they are compared with.
    time : callable
        How microseconds are written.

    Returns
    -------
    Table or None
        ``None`` where there is one instruction set, or nothing but floats. A star is a note, for
        example that sums of pairs can saturate without VNNI.
    """
    steps = tuple(dict.fromkeys(row.isa for row in run.rows))
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in run.rows:
        if row.dtype not in FLOATS:
            key = (row.name, row.dtype, row.tail, row.layout, str(row.threads), row.cache)
            lines.setdefault(key, {})[row.isa] = row
    if len(steps) < 2 or not lines:
        return None
    varying = [place for place in range(6) if len({key[place] for key in lines}) > 1 or not place]
    names = ("line", "dtype", "tail", "layout", "threads", "cache")
    columns = [Column(names[place]) for place in varying]
    columns += [Column(step or "no limit", right=True) for step in steps]
    cells = [
        [key[place] for place in varying]
        + [_cell(run, by_isa[step], time) if step in by_isa else "-" for step in steps]
        for key, by_isa in lines.items()
    ]
    return Table(columns, cells)


def _cell(run: Run, row: Row, time: Callable[[float], str]) -> str:
    if not row.samples_us:
        return "refused"
    ratio = run.over(row, run.baselines[0]) if run.baselines else None
    over = "" if ratio is None else f" ({ratio if ratio.is_significant else '~1'})"
    if run.is_disturbed(row, run.baselines[0] if run.baselines else ""):
        over = " (disturbed)"
    return time(row.median_us) + over + (" *" if row.notes else "")
