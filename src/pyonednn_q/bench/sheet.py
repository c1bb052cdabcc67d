"""The run as a sheet of CSV: a line for each case, what was measured and what follows from it."""

from __future__ import annotations

import csv
import io

from pyonednn_q.argument import instance
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run

__all__ = ["csv_text"]

_FIELDS = (
    *("suite", "line", "times", "problem", "dtype", "tail", "layout", "isa", "threads", "cache"),
    *("ops", "padded_ops", "nbytes", "impl", "attributes", "calls", "taken_again", "disturbed"),
    *("sqnr_db", "refused", "ours", "benchdnn"),
)
_FOUND = ("median_us", "lo_us", "hi_us", "gops", "of_peak", "of_paper", "is_disturbed")


def csv_text(run: Run) -> str:
    """Return the run as CSV, its lines ended as RFC 4180 has it; what is not known is empty."""
    instance("run", run, Run)
    over = [f"over_{dtype}{end}" for dtype in run.baselines for end in ("", "_lo", "_hi")]
    text = io.StringIO()
    sheet = csv.writer(text)
    sheet.writerow([*_FIELDS, "samples", *_FOUND, *over, "notes"])
    for row in run.rows:
        cells = [getattr(row, name) for name in _FIELDS]
        cells += [len(row.samples_us), *_found(run, row), *_over(run, row)]
        sheet.writerow([*cells, "; ".join(row.notes)])
    return text.getvalue()


def _found(run: Run, row: Row) -> list[object]:
    if not row.samples_us:
        return [None] * len(_FOUND)
    summary = row.summary
    times = (summary.median, summary.lo, summary.hi)
    return [*times, row.gops, *run.of_peak(row), row.is_disturbed]


def _over(run: Run, row: Row) -> list[object]:
    cells: list[object] = []
    for dtype in run.baselines:
        ratio = run.over(row, dtype)
        cells += [None] * 3 if ratio is None else [ratio.value, ratio.lo, ratio.hi]
    return cells
