"""What a run says: a table as plain text or Markdown, totals, what the columns mean, doubts.

Nothing else in this room writes to standard output.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence

from pyonednn_q.argument import flag, instance, whole
from pyonednn_q.bench import standing
from pyonednn_q.bench.ladder import ladder
from pyonednn_q.bench.precision import FLOATS, Precision
from pyonednn_q.bench.probe import PEAK_PROBLEMS
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run, Total
from pyonednn_q.bench.summary import Ratio
from pyonednn_q.native.timing import TAKEN_AGAIN
from pyonednn_q.tables import Column, Table

__all__ = ["commands", "markdown", "notes", "rows", "text", "time", "where", "write"]

Cell = Callable[[Run, Row], str]
_LADDER = "us at each instruction set (over the first type of float there; ~1: not significant)"
# What goes first when the terminal is too narrow.
_OPTIONAL = ("problem", "bound", "±", "paper", "SQNR dB", "GOPS", "peak")
DISTURBED = "disturbed"


def text(run: Run, *, width: int | None = None, repro: bool = False) -> str:
    """Return the run as plain text, at most `width` characters wide if columns can be left out."""
    instance("run", run, Run)
    flag("repro", repro)
    width = None if width is None else whole("width", width, lo=1)
    table = rows(run)
    blank = _without_repeats(table)
    for name in _OPTIONAL:
        if width is not None and blank.width > width:
            blank = blank.without(name)
    parts = [where(run), "", blank.text()]
    steps = ladder(run, time)
    if steps is not None:
        parts += ["", _LADDER, "", steps.text()]
    parts += ["", *notes(run)]
    if repro:
        parts += ["", *commands(run)]
    return "\n".join([*parts, *_doubts(run)])


def markdown(run: Run, *, repro: bool = False) -> str:
    """Return the run as Markdown, with every column."""
    instance("run", run, Run)
    flag("repro", repro)
    parts = [where(run), "", rows(run, verbose=True).markdown()]
    steps = ladder(run, time)
    if steps is not None:
        parts += ["", _LADDER, "", steps.markdown()]
    parts += ["", *(f"- {line}" for line in (*notes(run), *_doubts(run)))]
    if repro:
        parts += ["", "```", *commands(run), "```"]
    return "\n".join(parts)


def notes(run: Run) -> list[str]:
    """Return totals, what other runtimes took together, and what the columns mean."""
    return [*_totals(run), *standing.totals(run), *_legend(run)]


def write(words: str) -> None:
    """Print text and a line end."""
    sys.stdout.write(words + "\n")


def rows(run: Run, *, verbose: bool = False) -> Table:
    """Return the rows as a table; verbose: with every column, and intervals."""
    columns: list[tuple[Column, Cell]] = [
        (Column("line"), lambda _, row: row.name),
        (Column("problem"), lambda _, row: row.problem if row.name != row.problem else ""),
        (Column("dtype"), lambda _, row: row.dtype),
    ]
    columns += [
        (Column(name), _attribute(name))
        for name in ("isa", "threads", "tail", "layout", "cache")
        if len({getattr(row, name) for row in run.rows}) > 1
    ]
    columns += [
        (Column("us", right=True), _measured(_median)),
        (Column("±", right=True), _measured(lambda _, row: f"{row.summary.spread / 2:.1%}")),
        (Column("GOPS", right=True), _measured(lambda _, row: f"{row.gops:.0f}")),
        (Column("peak", right=True), _measured(_part_of_peak(0))),
        (Column("paper", right=True), _measured(_part_of_peak(1))),
        (Column("bound"), _measured(_bound)),
    ]
    if verbose:
        cell = _measured(lambda _, row: f"{row.intensity:.0f}")
        columns.insert(-1, (Column("op/byte", right=True), cell))
    columns += [
        (Column(f"over {name}", right=True), _measured(_over(name, verbose=verbose)))
        for name in run.baselines
        if any(row.dtype != name for row in run.rows)
    ]
    if any(row.sqnr_db is not None for row in run.rows):
        columns.append((Column("SQNR dB", right=True), _sqnr))
    columns += standing.columns(run, time)
    columns.append((Column("implementation"), _implementation))
    cells = [[cell(run, row) for _, cell in columns] for row in run.rows]
    table = Table([column for column, _ in columns], cells)
    named = any(row.name != row.problem for row in run.rows)
    return table if named else table.without("problem")


def _without_repeats(table: Table) -> Table:
    """Leave out line and problem where they are those of the row above."""
    cells = []
    above: Sequence[str] = ()
    names = 2 if table.columns[1].name == "problem" else 1
    for row in table.cells:
        repeats = list(row[:names]) == list(above[:names])
        cells.append([*[""] * names, *row[names:]] if repeats else list(row))
        above = row
    return Table(table.columns, cells)


def _attribute(name: str) -> Cell:
    return lambda _, row: str(getattr(row, name)) or "all"


def _measured(cell: Cell) -> Cell:
    return lambda run, row: cell(run, row) if row.samples_us else "-"


def time(microseconds: float) -> str:
    """Return microseconds as a reader wants them."""
    return f"{microseconds:.0f}" if microseconds >= 1000 else f"{microseconds:.1f}"


def _median(_: Run, row: Row) -> str:
    return time(row.median_us) + ("!" if row.is_disturbed else "")


def _part_of_peak(which: int) -> Cell:
    def cell(run: Run, row: Row) -> str:
        part = run.of_peak(row)[which]
        return "-" if part is None else f"{part:.0%}"

    return cell


def _bound(run: Run, row: Row) -> str:
    limits = run.limits_of(row)
    if limits is None:
        return "-"
    floors = limits.floors_us(row.ops, row.nbytes, Precision.parse(row.dtype))
    return max(floors, key=lambda name: floors[name])


def _over(baseline: str, *, verbose: bool) -> Cell:
    def cell(run: Run, row: Row) -> str:
        is_wider = row.dtype in FLOATS and FLOATS.index(row.dtype) < FLOATS.index(baseline)
        ratio = None if is_wider else run.over(row, baseline)
        if ratio is None:
            return ""
        if run.is_disturbed(row, baseline):
            return DISTURBED
        if not ratio.is_significant:
            return str(ratio)
        return f"{ratio} ({ratio.lo:.2f}..{ratio.hi:.2f})" if verbose else str(ratio)

    return cell


def _sqnr(_: Run, row: Row) -> str:
    return "" if row.sqnr_db is None else f"{row.sqnr_db:.1f}"


def _implementation(_: Run, row: Row) -> str:
    if row.refused:
        return f"refused: {row.refused}"
    return row.impl + (" *" if row.notes else "")


def where(run: Run) -> str:
    """Say where the run was made, in a line."""
    about = run.metadata
    threads = sorted({row.threads for row in run.rows})
    return (
        f"oneDNN {about['onednn']} {about['runtime']}, {about['cpu']}, {about['isa']}, "
        f"{' and '.join(map(str, threads))} thread{'s' if threads != [1] else ''}, {about['time']}"
    )


def _totals(run: Run) -> Iterator[str]:
    """Yield one line per suite and way: the sum over its lines, each as often as it occurs."""
    for total in run.totals:
        setting = [total.isa] if total.isa else []
        setting += [_threads(total.threads)]
        rest = (total.cache, total.tail, total.layout)
        setting += [word for word in rest if word not in _USUAL]
        parts = [
            f"{dtype} {ms:.2f} ms{_over_first(total, dtype)}" for dtype, ms in total.ms.items()
        ]
        lines = "every line as often as it occurs" if total.lines else "no line undisturbed"
        yield f"{total.suite} ({', '.join(setting)}), {lines}" + (
            f": {', '.join(parts)}" if total.lines else ""
        )
        if total.left_out:
            yield f"  left out, being disturbed: {', '.join(total.left_out)}"


def _over_first(total: Total, dtype: str) -> str:
    if dtype not in total.over_first:
        return ""
    value, lo, hi = total.over_first[dtype]
    ratio = Ratio(value, lo, math.inf if hi is None else hi)
    return f" ({ratio})"


_USUAL = ("warm", "none", "channels_last")


def _legend(run: Run) -> Iterator[str]:
    colds = {row.cache for row in run.rows}
    state = "caches warm" if colds == {"warm"} else "as the cache column says"
    state = "caches cold" if colds == {"cold"} else state
    padded = ", none of padding" if any(row.padded_ops != row.ops for row in run.rows) else ""
    yield (
        f"us: median of a C++ loop, {state}; ±: half the distance of the quartiles; GOPS: 10⁹ "
        f"multiplications and additions a second that are computed{padded}; peak, paper: parts of "
        "the two peaks below"
    )
    if any(row.is_disturbed for row in run.rows):
        yield (
            "!, disturbed: more than a quarter of the samples were, by something else on the "
            f"machine, though each was taken again up to {TAKEN_AGAIN} times: the median is no "
            "statement about the primitive"
        )
    for (isa, threads), limits in run.limits:
        peaks = ", ".join(f"{name} {gops:.0f}" for name, gops in limits.peak_gops)
        rates = ", ".join(f"{size >> 20} MiB {rate:.0f}" for size, rate in limits.bandwidth_gbs)
        where = f" at {isa}" if isa else ""
        yield (
            f"peak{where}, {_threads(threads)}: {peaks} GOPS (best of {len(PEAK_PROBLEMS)} large "
            f"problems and of all lines); GB/s over {rates}; a call {limits.call_us:.1f} us"
        )
        if limits.paper_gops and limits.clock_ghz:
            promised = ", ".join(
                f"{name} {gops:.0f} ({gops / limits.cores / limits.clock_ghz:.0f} a cycle)"
                for name, gops in limits.paper_gops
            )
            yield (
                f"on paper{where}: {promised} GOPS: operations a cycle × {_cores(limits.cores)} × "
                f"{limits.clock_ghz:.2f} GHz, a clock that was measured"
            )
    yield from standing.legend(run)
    notes = dict.fromkeys(note for row in run.rows for note in row.notes)
    for note in notes:
        yield f"* {note}"


def _cores(count: int) -> str:
    return f"{count} core" if count == 1 else f"{count} cores"


def _threads(count: object) -> str:
    return f"{count} thread" if count == 1 else f"{count} threads"


def _doubts(run: Run) -> list[str]:
    return [f"WARNING: {doubt}" for doubt in run.warnings]


def commands(run: Run) -> Iterator[str]:
    """Yield two lines for each row that measure it again: ours, and benchdnn's."""
    for row in run.rows:
        yield row.ours
        yield row.benchdnn or f"# {row.refused}"
