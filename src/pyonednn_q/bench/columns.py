"""Columns of a report of bench, a row each: for text, Markdown and HTML, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from functools import partial
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.probe import Limits
from pyonednn_q.bench.row import OURS, Row
from pyonednn_q.bench.summary import Ratio
from pyonednn_q.dtypes import FLOATS

__all__ = ["BenchColumn", "Over", "RowInRun", "columns", "is_race_disturbed", "statistics", "time"]


@dataclass(frozen=True, slots=True)
class Over:
    """Speed-up of a row over the same case in another type, with its interval."""

    value: float
    lo: float
    hi: float | None
    is_significant: bool
    is_disturbed: bool


class RowInRun(NamedTuple):
    """A row, and what follows from the rest of its run: limits, parts of both peaks, ratios."""

    row: Row
    limits: Limits | None
    of_peak: float | None
    of_paper: float | None
    over: Mapping[str, Over]


@dataclass(frozen=True, slots=True)
class BenchColumn:
    """One column of a report.

    Attributes
    ----------
    key : str
        Heading in CSV and name in JSON; empty: in tables only.
    kind : type or None
        Type under `statistics` in JSON; None: not in JSON's statistics.
    value : callable or None
        Function that gives the value in files; None: the attribute of the row.
    name : str
        Heading in tables; empty: in files only.
    text : callable or None
        Function that gives the cell in tables; None: the attribute of the row.
    place : int
        Order in tables, from the left.
    goes : int
        Order in which columns are dropped if a terminal is too narrow; 0: never.
    right : bool
        Whether cells are aligned to the right.
    in_csv : bool
        Whether CSV has it.
    measured : bool
        Whether it follows from samples: a row without samples has no value.
    when : callable
        Function that decides whether tables of these rows have it.
    """

    key: str = ""
    kind: Any = None
    value: Callable[[RowInRun], object] | None = None
    name: str = ""
    text: Callable[[RowInRun], str] | None = None
    place: int = 0
    goes: int = 0
    right: bool = False
    in_csv: bool = True
    measured: bool = False
    when: Callable[[Sequence[Row]], bool] = lambda _: True

    def written(self, at: RowInRun) -> object:
        """Return the value in files; None: not known."""
        if self.measured and not at.row.samples_us:
            return None
        return getattr(at.row, self.key) if self.value is None else self.value(at)

    def cell(self, at: RowInRun) -> str:
        """Return the cell in tables."""
        if self.measured and not at.row.samples_us:
            return "-"
        return str(getattr(at.row, self.key)) or "all" if self.text is None else self.text(at)


def columns(
    rows: Sequence[Row], peers: Sequence[str] = (), *, verbose: bool = False
) -> list[BenchColumn]:
    """Return all columns of a run, in the order of CSV.

    Parameters
    ----------
    rows : sequence of Row
        Rows of the run.
    peers : sequence of str
        Other runtimes that were measured.
    verbose : bool
        Whether to return all columns, with intervals.
    """
    present = {row.dtype for row in rows}
    over = [each for name in FLOATS if name in present for each in _over(name, verbose=verbose)]
    return [*_COLUMNS, *[_INTENSITY] * verbose, *over, *_peers(peers), _NOTES]


def time(microseconds: float) -> str:
    """Return microseconds as text."""
    return f"{microseconds:.0f}" if microseconds >= 1000 else f"{microseconds:.1f}"


def is_race_disturbed(row: Row, peer: str) -> bool:
    """Tell whether our call or that of another runtime was disturbed."""
    rivals = (row.rival(name) for name in (OURS, peer))
    return any(rival is not None and rival.is_disturbed for rival in rivals)


def _bound(at: RowInRun) -> str:
    if at.limits is None:
        return "-"
    floors = at.limits.floors_us(at.row.ops, at.row.nbytes, Precision.parse(at.row.dtype))
    return max(floors, key=lambda name: floors[name])


def _implementation(at: RowInRun) -> str:
    row = at.row
    return f"refused: {row.refused}" if row.refused else row.impl + " *" * bool(row.notes)


def _median(at: RowInRun) -> str:
    return time(at.row.median_us) + "!" * at.row.is_disturbed


_of_peak, _of_paper = attrgetter("of_peak"), attrgetter("of_paper")


def _part(of_peak: float | None) -> str:
    return "-" if of_peak is None else f"{of_peak:.0%}"


def _differs(key: str) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: len({getattr(row, key) for row in rows}) > 1


_C, _M = BenchColumn, partial(BenchColumn, measured=True, right=True)
_COLUMNS = (
    _C("suite"),
    _C("line", name="line", text=lambda at: at.row.name, place=1),
    _C("times"),
    _C(
        "problem",
        name="problem",
        text=lambda at: at.row.problem if at.row.name != at.row.problem else "",
        place=2,
        goes=1,
        when=lambda rows: any(row.name != row.problem for row in rows),
    ),
    _C("dtype", name="dtype", place=3),
    _C("tail", name="tail", place=6, when=_differs("tail")),
    _C("layout", name="layout", place=7, when=_differs("layout")),
    _C("isa", name="isa", place=4, when=_differs("isa")),
    _C("threads", name="threads", place=5, when=_differs("threads")),
    _C("cache", name="cache", place=8, when=_differs("cache")),
    _C("ops"),
    _C("padded_ops"),
    _C("nbytes"),
    _C("impl", name="implementation", text=_implementation, place=99),
    *map(_C, ("attributes", "calls", "taken_again", "disturbed")),
    _C(
        "sqnr_db",
        name="SQNR dB",
        text=lambda at: "" if at.row.sqnr_db is None else f"{at.row.sqnr_db:.1f}",
        place=17,
        goes=5,
        right=True,
        when=lambda rows: any(row.sqnr_db is not None for row in rows),
    ),
    *map(_C, ("refused", "ours", "benchdnn")),
    _C("samples", value=lambda at: len(at.row.samples_us)),
    _M("median_us", float, lambda at: at.row.summary.median, "us", _median, 9),
    _M("q1_us", float, lambda at: at.row.summary.q1, in_csv=False),
    _M("q3_us", float, lambda at: at.row.summary.q3, in_csv=False),
    _M(name="±", text=lambda at: f"{at.row.summary.spread / 2:.1%}", place=10, goes=3),
    _M("lo_us", float, lambda at: at.row.summary.lo),
    _M("hi_us", float | None, lambda at: at.row.summary.hi),
    _M("gops", float, lambda at: at.row.gops, "GOPS", lambda at: f"{at.row.gops:.0f}", 11, 6),
    _M("of_peak", float | None, _of_peak, "peak", lambda at: _part(at.of_peak), 12, 7),
    _M("of_paper", float | None, _of_paper, "paper", lambda at: _part(at.of_paper), 13, 4),
    _M("is_disturbed", bool, lambda at: at.row.is_disturbed),
    _M("over", dict[str, Over], lambda at: dict(at.over), in_csv=False),
    _C(name="bound", text=_bound, place=15, goes=2, measured=True),
)
_INTENSITY = _M(name="op/byte", text=lambda at: f"{at.row.intensity:.0f}", place=14)
_NOTES = _C("notes", value=lambda at: "; ".join(at.row.notes))


def _over(baseline: str, *, verbose: bool) -> Iterator[BenchColumn]:
    """Yield the speed-up over a float type, and the ends of its interval."""

    def text(at: RowInRun) -> str:
        over = at.over.get(baseline)
        is_wider = at.row.dtype in FLOATS and FLOATS.index(at.row.dtype) < FLOATS.index(baseline)
        if over is None or is_wider:
            return ""
        ratio = str(Ratio(over.value, over.lo, inf if over.hi is None else over.hi))
        if verbose and over.is_significant:
            ratio += f" ({over.lo:.2f}..{over.hi:.2f})"
        return "disturbed" if over.is_disturbed else ratio

    def end(at: RowInRun, name: str) -> object:
        return getattr(at.over.get(baseline), name, None)

    column = partial(_M, text=text, place=16)
    yield column(
        f"over_{baseline}",
        value=partial(end, name="value"),
        name=f"over {baseline}",
        when=lambda rows: any(row.dtype != baseline for row in rows),
    )
    yield column(f"over_{baseline}_lo", value=partial(end, name="lo"))
    yield column(f"over_{baseline}_hi", value=partial(end, name="hi"))


def _peers(peers: Sequence[str]) -> Iterator[BenchColumn]:
    """Yield a column of time and one of ratio for each peer, after our own call's."""

    def taken(at: RowInRun, name: str) -> str:
        rival = at.row.rival(name)
        return time(rival.median_us) if rival is not None and rival.samples_us else "-"

    def lead(at: RowInRun, peer: str) -> str:
        ratio = at.row.lead(peer)
        disturbed = ratio is not None and is_race_disturbed(at.row, peer)
        return "disturbed" if disturbed else "" if ratio is None else str(ratio)

    column = partial(BenchColumn, right=True, place=18)
    for at, peer in enumerate(peers):
        if not at:
            yield column(name="call us", text=partial(taken, name=OURS))
        yield column(name=f"{peer} us", text=partial(taken, name=peer))
        yield column(name=f"over {peer}", text=partial(lead, peer=peer))


_DERIVED = [column for column in _COLUMNS if column.kind is not None]
if TYPE_CHECKING:
    RowStatistics = Any
else:
    RowStatistics = make_dataclass(
        "RowStatistics",
        [(column.key, column.kind) for column in _DERIVED],
        frozen=True,
        slots=True,
        namespace={"__doc__": "Statistics of the samples of a row."},
    )


def statistics(at: RowInRun) -> RowStatistics | None:
    """Return the statistics of a row for JSON; None if it was refused."""
    if not at.row.samples_us:
        return None
    return RowStatistics(**{column.key: column.written(at) for column in _DERIVED})
