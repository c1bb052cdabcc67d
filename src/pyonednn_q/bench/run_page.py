"""The run as a page of HTML, with its drawings: speed-up by line, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pyonednn_q.argument import instance
from pyonednn_q.bench import report
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.summary import Ratio
from pyonednn_q.report import plots
from pyonednn_q.report.page import document, folded, legend, wide
from pyonednn_q.report.table import Column, Table

__all__ = ["html", "roofline", "speedups"]


def html(run: Run) -> str:
    """Return the run as a page."""
    instance("run", run, Run)
    suites = dict.fromkeys(row.suite for row in run.rows if row.suite)
    title = "pyonednn-q bench" + (f": {', '.join(suites)}" if suites else "")
    return document(title, report.where(run), _parts(run), run.warnings)


def _parts(run: Run) -> Iterator[tuple[str, str]]:
    measured = [row for row in run.rows if row.samples_us]
    settings = {_where(row): row.setting for row in measured}
    for where, setting in settings.items():
        rows = [row for row in measured if row.setting == setting]
        bars = speedups(run, rows)
        if bars:
            yield f"Times faster than {run.baselines[0]} ({where})", bars
    totals = _totals(run)
    if totals is not None:
        yield "Whole suites", wide(totals)
    yield "Lines", wide(report.rows(run, verbose=True))
    steps = report.ladder(run)
    if steps is not None:
        yield "By instruction set", wide(steps)
    for where, setting in settings.items():
        rows = [row for row in measured if row.setting == setting]
        if run.limits_of(rows[0]) is not None:
            yield f"Roofline ({where})", roofline(run, rows)
    yield "What it means", legend(report.notes(run))
    yield "How to measure each line again", folded("commands", "\n".join(report.commands(run)))


def speedups(run: Run, rows: Sequence[Row]) -> str:
    """Draw a bar for each row that has a like among floats; nothing where none has."""
    if not run.baselines:
        return ""
    base = run.baselines[0]
    bars: list[plots.Bar] = []
    for row in rows:
        ratio = run.over(row, base)
        if row.dtype == base or ratio is None:
            continue
        kind = row.dtype + ("" if row.tail == "none" else f" {row.tail}")
        bars.append(
            plots.Bar(
                *(row.name, kind, ratio.value, ratio.lo, ratio.hi, str(ratio)),
                is_significant=ratio.is_significant,
                is_disturbed=run.is_disturbed(row, base),
            )
        )
    return plots.bars(bars, "speed-up by line")


def roofline(run: Run, rows: Sequence[Row]) -> str:
    """Draw the rows below what their machine allows."""
    limits = run.limits_of(rows[0])
    assert limits is not None
    roofs: dict[str, list[tuple[str, float]]] = {}
    for dtype in dict.fromkeys(row.dtype for row in rows):
        precision = Precision.parse(dtype)
        peaks = (("measured", limits.peak(precision)), ("on paper", limits.paper(precision)))
        roofs[dtype] = [(word, peak) for word, peak in peaks if peak is not None]
    dots = [
        plots.Dot(row.name, row.dtype, row.intensity, row.gops, is_disturbed=row.is_disturbed)
        for row in rows
    ]
    rate = max(rate for _, rate in limits.bandwidth_gbs)
    highest = max([*dict(limits.peak_gops).values(), *dict(limits.paper_gops).values()], default=0)
    return plots.roofline(dots, roofs, rate, highest)


def _where(row: Row) -> str:
    threads = "1 thread" if row.threads == 1 else f"{row.threads} threads"
    return ", ".join(filter(None, [row.isa, threads, row.cache]))


def _totals(run: Run) -> Table | None:
    """Return the sums of suites, a row each type."""
    names = ("suite", "isa", "threads", "cache", "tail", "layout", "dtype")
    columns = [Column(name) for name in names]
    columns += [Column(name, right=True) for name in ("lines", "ms", "over the first")]
    columns.append(Column("left out, being disturbed"))
    cells = []
    for total in run.totals:
        for dtype, ms in total.ms.items():
            ratio = total.over_first.get(dtype)
            over = ""
            if ratio is not None:
                value, lo, hi = ratio
                over = str(Ratio(value, lo, math.inf if hi is None else hi))
                over += f" ({lo:.2f}..{math.inf if hi is None else hi:.2f})" if "x" in over else ""
            where = (total.isa or "all", str(total.threads), total.cache, total.tail, total.layout)
            sums = (f"{total.lines}", f"{ms:.3f}" if total.lines else "-", over)
            cells.append([total.suite, *where, dtype, *sums, ", ".join(total.left_out)])
    return Table(columns, cells) if cells else None
