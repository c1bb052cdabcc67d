"""Run: rows and where they were made, as an immutable value with a JSON form.

The JSON is that of schema 3, which `run.schema.json` beside this file states: what was measured,
and of each row and suite what follows from that, so that a reader need not know how to take a
median. What follows is not read back but found again.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from inspect import cleandoc
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from pyonednn_q.argument import instance
from pyonednn_q.bench.columns import Over, RowInRun, RowStatistics, columns, statistics
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.probe import Limits
from pyonednn_q.bench.row import OURS, Row
from pyonednn_q.bench.summary import Ratio, paired_ratio, total_ratio
from pyonednn_q.cpu import cpu_name
from pyonednn_q.dtypes import FLOATS
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.reading import Times, converted, decoded
from pyonednn_q.report.table import Column, Table
from pyonednn_q.report.told import Told
from pyonednn_q.shown import package_version, shown

__all__ = ["Run", "Total", "in_run", "joined", "metadata", "rows"]

SCHEMA = 3
_WRITER = "what `pyonednn-q bench --json` writes"


@dataclass(frozen=True, slots=True, repr=False)
class Run(Told):
    """Rows, the limits of the machine, and where it was.

    Attributes
    ----------
    metadata : Mapping of str to str
        CPU, instruction set, library, versions, time.
    limits : tuple of (setting, Limits)
        Per (isa, threads).
    warnings : tuple of str
        Reasons to doubt the numbers.
    rows : tuple of Row
        Rows in the order of the suite.
    """

    metadata: Mapping[str, str]
    limits: tuple[tuple[tuple[str, int], Limits], ...]
    warnings: tuple[str, ...]
    rows: tuple[Row, ...]

    def __hash__(self) -> int:
        return hash((self.limits, self.warnings, self.rows))  # the metadata is a mapping

    def summary(self) -> str:
        """Return the number of rows and the machine, and a line for each row."""
        where = ", ".join(filter(None, map(self.metadata.get, ("cpu", "isa"))))
        medians = [f"{row.median_us:.1f} us" if row.samples_us else "-" for row in self.rows]
        rows = [
            f"  {row.name} {row.dtype}: {median}"
            for row, median in zip(self.rows, medians, strict=True)
        ]
        return "\n".join([f"{len(self.rows)} rows, {where}", *rows])

    def _parts(self) -> Iterator[str | Table]:
        yield from (self.summary().partition("\n")[0], *self.warnings)
        yield rows(self)

    def limits_of(self, row: Row) -> Limits | None:
        """Return the limits under which a row was measured."""
        instance("row", row, Row)
        return dict(self.limits).get((row.isa, row.threads))

    def twin(self, row: Row, dtype: str) -> Row | None:
        """Return the row of the same case in another type, if there is one."""
        instance("row", row, Row)
        instance("dtype", dtype, str)
        for twin in self.rows:
            same = twin.group == row.group and (twin.tail, twin.layout) == (row.tail, row.layout)
            if same and twin.dtype == dtype and twin is not row:
                return twin
        return None

    def over(self, row: Row, dtype: str) -> Ratio | None:
        """Return the speed-up of a row over the same case in another type."""
        twin = self.twin(row, dtype)
        if twin is None or not (row.samples_us and twin.samples_us):
            return None
        return _paired(twin.samples_us, row.samples_us)

    def is_disturbed(self, row: Row, dtype: str) -> bool:
        """Return whether a row, or the row that it is compared with, was disturbed."""
        twin = self.twin(row, dtype)
        return row.is_disturbed or (twin is not None and twin.is_disturbed)

    def of_peak(self, row: Row) -> tuple[float | None, float | None]:
        """Return the parts of the peak that a row reaches: of that measured, of that on paper."""
        limits = self.limits_of(row)
        if limits is None or not row.samples_us:
            return None, None
        precision = Precision.parse(row.dtype)
        peaks = limits.peak(precision), limits.paper(precision)
        measured, paper = (row.gops / peak if peak else None for peak in peaks)
        return measured, paper

    @property
    def totals(self) -> tuple[Total, ...]:
        """Times of whole suites; none where a suite has one line, or no type has all lines."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.rows:
            if row.suite:
                key = (row.suite, *row.setting, row.tail, row.layout)
                groups.setdefault(key, []).append(row)
        totals = (_total(*key, rows=rows) for key, rows in groups.items())
        return tuple(total for total in totals if total is not None)

    @property
    def peers(self) -> tuple[str, ...]:
        """Other runtimes that were measured."""
        names = dict.fromkeys(rival.name for row in self.rows for rival in row.rivals)
        return tuple(name for name in names if name != OURS)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Floating-point types among the rows."""
        present = {row.dtype for row in self.rows}
        return tuple(name for name in FLOATS if name in present)

    def to_json(self) -> str:
        """Return the run as JSON text."""
        document = Document(
            schema=SCHEMA,
            metadata=dict(self.metadata),
            limits=tuple(
                WrittenLimits(**_shallow(peaks), isa=isa, threads=threads)
                for (isa, threads), peaks in self.limits
            ),
            warnings=self.warnings,
            rows=tuple(
                WrittenRow(**_shallow(at.row), statistics=statistics(at)) for at in in_run(self)
            ),
            totals=self.totals,
        )
        # What is infinite, an interval of few samples or the SQNR of no noise, is null in JSON.
        return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Return the run that `to_json` wrote.

        Raises
        ------
        ArgumentError
            Not a run, or of another schema.
        """
        content = decoded("text", text)
        schema = converted("text", content, SchemaNumber).schema
        if schema != SCHEMA:
            wanted = f"{SCHEMA}: made by this version"
            raise ArgumentError("schema", shown(schema), wanted)
        document = converted("text", content, Document)
        for name in ("cpu", "isa", "onednn", "runtime", "time"):
            if name not in document.metadata:
                raise ArgumentError("text", f"metadata without {name}", "where the run was made")
        return cls(
            document.metadata,
            tuple(((each.isa, each.threads), _plain(Limits, each)) for each in document.limits),
            document.warnings,
            tuple(_plain(Row, row) for row in document.rows),
        )


# A report, a page and JSON of one run need the same intervals, each of thousands of medians.
_paired = functools.lru_cache(1024)(paired_ratio)
_totalled = functools.lru_cache(64)(total_ratio)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of what `Run.to_json` writes; `run.schema.json` holds it."""
    schema = msgspec.json.schema(Document)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": _WRITER}
    # Descriptions are docstrings, whose indentation Python takes away from 3.13 on.
    for of_type in schema["$defs"].values():
        of_type["description"] = cleandoc(of_type.get("description", ""))
    return about | schema


@dataclass(frozen=True, slots=True)
class Total:
    """The time of a whole suite: the sum over its lines, each as often as it occurs.

    Attributes
    ----------
    suite, isa, threads, cache, tail, layout
        Labels of the measurement, as in its rows.
    ms : Mapping of str to float
        Milliseconds by type; types of which a line was refused are left out.
    over_first : Mapping of str to (float, float, float or None)
        Ratio for each type but the first: how many times faster the sum is than that of the first,
        and the interval that holds the true ratio 19 times of 20.
    lines : int
        Number of lines in the sum.
    left_out : tuple of str
        Lines that are in no sum, since something disturbed them in one type or another.
    """

    suite: str
    isa: str
    threads: int
    cache: str
    tail: str
    layout: str
    ms: Mapping[str, float]
    over_first: Mapping[str, tuple[float, float, float | None]]
    lines: int
    left_out: tuple[str, ...]


def _total(
    suite: str, isa: str, threads: int, cache: str, tail: str, layout: str, *, rows: list[Row]
) -> Total | None:
    by_type: dict[str, list[Row]] = {}
    for row in rows:
        by_type.setdefault(row.dtype, []).append(row)
    if len(next(iter(by_type.values()))) < 2:
        return None
    left_out = tuple(dict.fromkeys(row.name for row in rows if row.is_disturbed))
    kept = {
        dtype: [row for row in of_type if row.name not in left_out]
        for dtype, of_type in by_type.items()
        if all(row.samples_us for row in of_type)
    }
    ms = {
        dtype: sum(row.times * row.median_us for row in of_type) / 1e3
        for dtype, of_type in kept.items()
    }
    if not kept:
        return None
    lines = len(next(iter(kept.values())))
    over: dict[str, tuple[float, float, float | None]] = {}
    if lines:
        first, *others = kept
        for dtype in others:
            above, below = (
                tuple((row.times, row.samples_us) for row in kept[name]) for name in (first, dtype)
            )
            ratio = _totalled(above, below)
            over[dtype] = (ratio.value, ratio.lo, ratio.hi)
    return Total(suite, isa, threads, cache, tail, layout, ms, over, lines, left_out)


# The forms that are written. What follows from samples is there for other readers, and not read.


@dataclass(frozen=True, slots=True)
class WrittenRow(Row):
    """A row, and what follows from its samples; null where it was refused."""

    statistics: RowStatistics | None = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class WrittenLimits(Limits):
    """Limits of the machine, for one instruction set and number of threads."""

    isa: str = field(kw_only=True)
    threads: Times = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SchemaNumber:
    """Number of the schema by which the rest is written."""

    schema: int


@dataclass(frozen=True, slots=True)
class Document:
    """A run of `pyonednn-q bench`."""

    schema: Annotated[int, Meta(ge=SCHEMA, le=SCHEMA)]
    metadata: dict[str, str]
    limits: tuple[WrittenLimits, ...]
    warnings: tuple[str, ...]
    rows: tuple[WrittenRow, ...]
    totals: tuple[Total, ...]


def _shallow(value: Limits | Row) -> dict[str, Any]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _plain(kind: type[Any], written: Any) -> Any:  # noqa: ANN401 - a row or limits
    return kind(**{each.name: getattr(written, each.name) for each in fields(kind)})


def in_run(run: Run) -> Iterator[RowInRun]:
    """Yield the rows, each with what the others and the machine say of it."""
    for row in run.rows:
        over = {}
        for dtype in run.baselines:
            ratio = run.over(row, dtype)
            if ratio is not None:
                disturbed = run.is_disturbed(row, dtype)
                over[dtype] = Over(ratio.value, ratio.lo, ratio.hi, ratio.is_significant, disturbed)
        yield RowInRun(row, run.limits_of(row), *run.of_peak(row), over)


def rows(run: Run, *, verbose: bool = False) -> Table:
    """Return the rows as a table; verbose: with every column, and intervals."""
    every = columns(run.rows, run.peers, verbose=verbose)
    shown = [column for column in every if column.name and column.when(run.rows)]
    shown.sort(key=lambda column: column.place)
    cells = [[column.cell(at) for column in shown] for at in in_run(run)]
    return Table([Column(column.name, column.right) for column in shown], cells)


def joined(about: Mapping[str, str], parts: Sequence[Run]) -> Run:
    """Return runs as one, made where `about` says; each doubt says whose it is."""
    doubts = tuple(f"{part.metadata['isa']}: {doubt}" for part in parts for doubt in part.warnings)
    limits = tuple(limit for part in parts for limit in part.limits)
    return Run(about, limits, doubts, tuple(row for part in parts for row in part.rows))


def metadata() -> dict[str, str]:
    """Return facts about this machine and process that a reader must know."""
    return {
        "cpu": cpu_name(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "isa": runtime.isa().text(),
        "onednn": ".".join(map(str, runtime.version())),
        "runtime": runtime.threading_runtime(),
        "pyonednn_q": package_version(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
