"""A run as text: a table as plain text, Markdown or CSV, totals, a legend, doubts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pyonednn_q.argument import flag, instance, whole
from pyonednn_q.bench.bench_run import Run, Total, in_run, rows
from pyonednn_q.bench.columns import columns, is_race_disturbed, time
from pyonednn_q.bench.probe import PEAK_PROBLEMS
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.summary import Ratio
from pyonednn_q.dtypes import FLOATS
from pyonednn_q.native.timing import TAKEN_AGAIN
from pyonednn_q.report import table as tables
from pyonednn_q.report.table import Column, Table

__all__ = ["commands", "csv_text", "ladder", "markdown", "notes", "rows", "text", "where"]

_LADDER = "us at each instruction set (over the first type of float there; ~1: not significant)"


def text(run: Run, *, width: int | None = None, repro: bool = False) -> str:
    """Return the run as plain text, at most `width` characters wide if columns can be left out."""
    instance("run", run, Run)
    flag("repro", repro)
    width = None if width is None else whole("width", width, lo=1)
    table = rows(run)
    blank = _without_repeats(table)
    optional = [column for column in columns(run.rows) if column.goes]
    for column in sorted(optional, key=lambda column: column.goes):
        if width is not None and blank.width > width:
            blank = blank.without(column.name)
    parts = [where(run), "", blank.text()]
    steps = ladder(run)
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
    steps = ladder(run)
    if steps is not None:
        parts += ["", _LADDER, "", steps.markdown()]
    parts += ["", *(f"- {line}" for line in (*notes(run), *_doubts(run)))]
    if repro:
        parts += ["", "```", *commands(run), "```"]
    return "\n".join(parts)


def notes(run: Run) -> list[str]:
    """Return totals, what other runtimes took together, and what the columns mean."""
    return [*_totals(run), *_races(run), *_legend(run)]


def csv_text(run: Run) -> str:
    """Return the run as CSV, its lines ended as RFC 4180 has it; what is not known is empty."""
    instance("run", run, Run)
    written = [column for column in columns(run.rows) if column.key and column.in_csv]
    cells = ([column.written(at) for column in written] for at in in_run(run))
    return tables.csv_text([column.key for column in written], cells)


def ladder(run: Run) -> Table | None:
    """Return time and speed-up over the first type of float at each instruction set.

    Parameters
    ----------
    run : Run
        Rows of integer types are shown; those of floats are what they are compared with.

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
        + [_step(run, by_isa[step]) if step in by_isa else "-" for step in steps]
        for key, by_isa in lines.items()
    ]
    return Table(columns, cells)


def _step(run: Run, row: Row) -> str:
    if not row.samples_us:
        return "refused"
    ratio = run.over(row, run.baselines[0]) if run.baselines else None
    over = "" if ratio is None else f" ({ratio if ratio.is_significant else '~1'})"
    if run.is_disturbed(row, run.baselines[0] if run.baselines else ""):
        over = " (disturbed)"
    return time(row.median_us) + over + (" *" if row.notes else "")


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


def _races(run: Run) -> Iterator[str]:
    """Yield one line per type and other runtime: geometric mean of ratios, and number of wins."""
    for dtype in dict.fromkeys(row.dtype for row in run.rows):
        for peer in run.peers:
            rows = [row for row in run.rows if row.dtype == dtype and row.lead(peer) is not None]
            left_out = [row.name for row in rows if is_race_disturbed(row, peer)]
            all_leads = [row.lead(peer) for row in rows if not is_race_disturbed(row, peer)]
            leads = [lead for lead in all_leads if lead is not None]
            if left_out:
                yield f"{dtype} over {peer}: left out, being disturbed: {', '.join(left_out)}"
            if not leads:
                continue
            mean = math.exp(sum(math.log(lead.value) for lead in leads) / len(leads))
            faster = sum(lead.is_significant and lead.value > 1 for lead in leads)
            slower = sum(lead.is_significant and lead.value < 1 for lead in leads)
            yield (
                f"{dtype} over {peer}: {mean:.2f}x (geometric mean of {len(leads)}; "
                f"faster in {faster}, slower in {slower}, undecided in "
                f"{len(leads) - faster - slower})"
            )


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
    yield from _race_legend(run)
    notes = dict.fromkeys(note for row in run.rows for note in row.notes)
    for note in notes:
        yield f"* {note}"


def _race_legend(run: Run) -> Iterator[str]:
    """Yield what the columns mean, the versions, and why a peer has no time."""
    if not run.peers:
        return
    versions = ", ".join(f"{peer} {run.metadata.get(peer, '?')}" for peer in run.peers)
    yield (
        "call us: our prepared call from Python; each runtime in a process of its own on the same "
        f"arrays, in turn, caches warm; over ...: its time in parts of ours ({versions})"
    )
    why: dict[tuple[str, str], int] = {}
    for row in run.rows:
        for rival in row.rivals:
            if rival.refused:
                key = (rival.name, rival.refused)
                why[key] = why.get(key, 0) + 1
    for (name, refused), count in why.items():
        yield f"{name} {refused} ({count} row{'s' if count > 1 else ''})"


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
