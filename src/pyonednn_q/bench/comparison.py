"""Two runs compared: what became slower, what faster.

A ratio counts when its interval leaves out 1, and as a regression when all of it is beyond the
threshold: two processes differ by a few per cent, because memory lies elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyonednn_q.argument import instance, real
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.summary import Ratio, unpaired_ratio
from pyonednn_q.errors import ArgumentError
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import shown

__all__ = [
    "CONFIDENCE",
    "THRESHOLD",
    "Comparison",
    "compare",
    "differences",
    "lost",
    "plain",
    "text",
]

THRESHOLD = 0.05
CONFIDENCE = 0.99
_MUST_AGREE = ("cpu", "isa", "onednn", "runtime")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A row of two runs.

    Attributes
    ----------
    before, after : Row
        The row of the first and of the second run.
    ratio : Ratio
        Time after over time before: above 1 is slower.
    threshold : float
        Relative change of time below which a row counts as the same: 0.05 is 5 %.
    """

    before: Row
    after: Row
    ratio: Ratio
    threshold: float

    @property
    def verdict(self) -> str:
        """slower, faster, same, not significant, or disturbed in one of the runs."""
        if self.before.is_disturbed or self.after.is_disturbed:
            return "disturbed"
        if self.ratio.lo > 1 + self.threshold:
            return "slower"
        if self.ratio.hi < 1 / (1 + self.threshold):
            return "faster"
        return "same" if self.ratio.is_significant else "not significant"

    @property
    def changed_kernel(self) -> bool:
        """Whether another implementation ran."""
        return self.before.impl != self.after.impl


def compare(
    before: Run, after: Run, *, threshold: float = THRESHOLD, confidence: float = CONFIDENCE
) -> tuple[Comparison, ...]:
    """Return the rows that both runs measured, regressions first, then by falling ratio."""
    instance("before", before, Run)
    instance("after", after, Run)
    threshold = real("threshold", threshold)
    confidence = real("confidence", confidence)
    if not 0.0 < confidence < 1.0:
        raise ArgumentError("confidence", shown(confidence), "a number between 0 and 1")
    rows_before = {row.key: row for row in before.rows if row.samples_us}
    comparisons = [
        Comparison(
            rows_before[row.key],
            row,
            unpaired_ratio(row.samples_us, rows_before[row.key].samples_us, confidence),
            threshold,
        )
        for row in after.rows
        if row.samples_us and row.key in rows_before
    ]
    return tuple(sorted(comparisons, key=lambda c: (c.verdict != "slower", -c.ratio.value)))


def lost(before: Run, after: Run) -> tuple[Row, ...]:
    """Return the rows that the first run measured and the second refused."""
    refused = {row.key for row in after.rows if row.refused}
    return tuple(row for row in before.rows if row.samples_us and row.key in refused)


def differences(before: Run, after: Run) -> tuple[str, ...]:
    """Return the conditions in which the two runs differ."""
    return tuple(
        f"{name}: {before.metadata.get(name)} before, {after.metadata.get(name)} after"
        for name in _MUST_AGREE
        if before.metadata.get(name) != after.metadata.get(name)
    )


def text(
    comparisons: Sequence[Comparison],
    gone: Sequence[Row],
    differing: Sequence[str],
    threshold: float,
) -> str:
    """Return the comparison as a table with a verdict below it."""
    columns = [
        *(Column("verdict"), Column("line"), Column("dtype"), Column("tail")),
        *(Column(name, right=True) for name in ("before us", "after us", "ratio", "interval")),
        Column("implementation"),
    ]
    cells = [_cells(c) for c in comparisons]
    verdicts = [c.verdict for c in comparisons]
    counts = ", ".join(
        f"{verdicts.count(name)} {name}"
        for name in ("slower", "faster", "same", "not significant", "disturbed")
        if name in verdicts
    )
    counted = [c.ratio.value for c in comparisons if c.verdict != "disturbed"]
    parts = [Table(columns, cells).text(), ""] if cells else []
    parts += [f"refused now: {row.name} {row.dtype} {row.tail}" for row in gone]
    if comparisons:
        mean = math.exp(sum(map(math.log, counted)) / len(counted)) if counted else math.nan
        over = "; geometric mean " + (f"{mean:.3f}" if counted else "of nothing")
        parts.append(f"{counts} (threshold {threshold:.0%}){over}")
    parts += [f"WARNING: {difference}" for difference in differing]
    return "\n".join(parts)


def plain(
    comparisons: Sequence[Comparison],
    gone: Sequence[Row],
    differing: Sequence[str],
    threshold: float,
) -> dict[str, object]:
    """Return the comparison for JSON; the end of an interval that has none is None."""
    return {
        "schema": 1,
        "threshold": threshold,
        "rows": [
            {
                "verdict": each.verdict,
                "line": each.after.name,
                "dtype": each.after.dtype,
                "tail": each.after.tail,
                "before_us": each.before.median_us,
                "after_us": each.after.median_us,
                "ratio": each.ratio.value,
                "lo": each.ratio.lo,
                "hi": each.ratio.hi if math.isfinite(each.ratio.hi) else None,
                "implementations": [each.before.impl, each.after.impl],
            }
            for each in comparisons
        ],
        "refused": [f"{row.name} {row.dtype} {row.tail}" for row in gone],
        "differences": list(differing),
    }


def _cells(comparison: Comparison) -> list[str]:
    ratio = comparison.ratio
    impl = comparison.after.impl
    return [
        comparison.verdict,
        comparison.after.name,
        comparison.after.dtype,
        comparison.after.tail,
        f"{comparison.before.median_us:.1f}",
        f"{comparison.after.median_us:.1f}",
        f"{ratio.value:.3f}",
        f"{ratio.lo:.3f}..{ratio.hi:.3f}",
        f"{comparison.before.impl} > {impl}" if comparison.changed_kernel else impl,
    ]
