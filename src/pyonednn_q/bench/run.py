"""Run: rows and where they were made, as an immutable value with a JSON form.

Schema 2: {"schema": 2, "metadata": {...}, "limits": {...}, "warnings": [...], "rows": [{...}]},
the objects being the fields of `Run`, `Limits` and `Row`.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar

import numpy as np

import pyonednn_q
from pyonednn_q.argument import checked_fields, instance
from pyonednn_q.bench.precision import FLOATS
from pyonednn_q.bench.probe import Limits
from pyonednn_q.bench.summary import Ratio, Summary, paired_ratio, summarise
from pyonednn_q.compose.codec import parsed
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.native.runtime import cpu_name
from pyonednn_q.shown import shown

__all__ = ["OURS", "SCHEMA", "Rival", "Row", "Run", "joined", "metadata"]

SCHEMA = 2
_MOST = 2.0**63  # of anything that is counted or timed
OURS = "pyonednn_q"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rival:
    """What one runtime took for a case, or why it did not.

    Attributes
    ----------
    name : str
        "pyonednn_q", or that of a peer.
    way : str
        "call": from Python; "loop": around our primitive, in C++.
    calls : int
        Number of calls in each sample.
    samples_us : tuple of float
        Microseconds a call; of all rivals of a row in the same rounds.
    refused : str
        Why there are no samples.
    """

    name: str
    way: str
    calls: int
    samples_us: tuple[float, ...]
    refused: str

    @property
    def median_us(self) -> float:
        """Median microseconds a call."""
        return float(np.median(self.samples_us))


@dataclass(frozen=True, slots=True)
class Row:
    """One case under one setting: what was measured, or why not.

    Attributes
    ----------
    suite, line : str
        Where the problem comes from; both empty for one typed in.
    times : int
        How often the network has this layer.
    problem, dtype, tail, layout : str
        The case: its problem, data types, tail and layout, as the command line has them.
    isa : str
        The limit that was set; empty: none.
    threads : int
        Number of threads of the library.
    cache : str
        "warm": the arrays are in the cache. "cold": other memory was touched before each call.
    ops, nbytes : int
        Arithmetic operations of a call, and bytes that it has to read and write at least once.
    impl, attributes : str
        oneDNN's name of the implementation that ran, and the primitive's attributes.
    notes : tuple of str
        What a reader should know: saturation, implementations passed over.
    calls : int
        Number of calls in each sample.
    samples_us : tuple of float
        Microseconds a call. Rows of one problem under one setting were sampled in the same rounds.
    sqnr_db : float or None
        Signal-to-quantization-noise ratio against FP32, in dB; None for FP32 itself.
    ours, benchdnn : str
        Command lines that reproduce the row.
    refused : str
        Why there are no samples.
    rivals : tuple of Rival
        Other runtimes on the same arrays, and our own call, each in a process of its own.
    """

    suite: str
    line: str
    times: int
    problem: str
    dtype: str
    tail: str
    layout: str
    isa: str
    threads: int
    cache: str
    ops: int
    nbytes: int
    impl: str
    attributes: str
    notes: tuple[str, ...]
    calls: int
    samples_us: tuple[float, ...]
    sqnr_db: float | None
    ours: str
    benchdnn: str
    refused: str
    rivals: tuple[Rival, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What the row is of: equal in two runs for the same case and setting."""
        return (self.name, self.problem, self.dtype, self.tail, self.layout, *self.setting)

    @property
    def group(self) -> tuple[object, ...]:
        """What rows have in common that were sampled together."""
        return (self.name, self.problem, *self.setting)

    @property
    def setting(self) -> tuple[object, ...]:
        """ISA limit, threads, cache."""
        return (self.isa, self.threads, self.cache)

    @property
    def name(self) -> str:
        """The line, else the problem."""
        return self.line or self.problem

    @property
    def summary(self) -> Summary:
        """Of the samples."""
        return summarise(self.samples_us)

    @property
    def median_us(self) -> float:
        """Median microseconds a call."""
        return float(np.median(self.samples_us))

    def rival(self, name: str, way: str = "call") -> Rival | None:
        """Return what a runtime took, if it was asked."""
        instance("name", name, str)
        instance("way", way, str)
        return next((r for r in self.rivals if (r.name, r.way) == (name, way)), None)

    def lead(self, name: str) -> Ratio | None:
        """Return how many times faster our call is than that of another runtime."""
        ours, theirs = self.rival(OURS), self.rival(name)
        if ours is None or theirs is None or not (ours.samples_us and theirs.samples_us):
            return None
        return paired_ratio(theirs.samples_us, ours.samples_us)

    @property
    def gops(self) -> float:
        """Operations per nanosecond."""
        return self.ops / self.median_us / 1e3

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.ops / self.nbytes


@dataclass(frozen=True, slots=True)
class Run:
    """Rows, the limits of the machine, and where it was.

    Attributes
    ----------
    metadata : Mapping of str to str
        CPU, instruction set, library, versions, time.
    limits : tuple of (setting, Limits)
        Per (isa, threads).
    warnings : tuple of str
        What makes the numbers doubtful.
    rows : tuple of Row
        In the order of the suite.
    """

    metadata: Mapping[str, str]
    limits: tuple[tuple[tuple[str, int], Limits], ...]
    warnings: tuple[str, ...]
    rows: tuple[Row, ...]

    def __hash__(self) -> int:
        return hash((self.limits, self.warnings, self.rows))  # the metadata is a mapping

    def limits_of(self, row: Row) -> Limits | None:
        """Return the limits under which a row was measured."""
        instance("row", row, Row)
        return dict(self.limits).get((row.isa, row.threads))

    def over(self, row: Row, dtype: str) -> Ratio | None:
        """Return how many times faster a row is than its like in another type."""
        instance("row", row, Row)
        instance("dtype", dtype, str)
        for twin in self.rows:
            same = twin.group == row.group and (twin.tail, twin.layout) == (row.tail, row.layout)
            if same and twin.dtype == dtype and twin is not row:
                if not (row.samples_us and twin.samples_us):
                    return None
                return paired_ratio(twin.samples_us, row.samples_us)
        return None

    @property
    def peers(self) -> tuple[str, ...]:
        """Other runtimes that were asked."""
        names = dict.fromkeys(rival.name for row in self.rows for rival in row.rivals)
        return tuple(name for name in names if name != OURS)

    @property
    def baselines(self) -> tuple[str, ...]:
        """Floating-point types among the rows."""
        present = {row.dtype for row in self.rows}
        return tuple(name for name in FLOATS if name in present)

    def to_json(self) -> str:
        """Return the run as JSON text."""
        limits = [
            {"isa": isa, "threads": threads, **asdict(peaks)}
            for (isa, threads), peaks in self.limits
        ]
        content = {
            "schema": SCHEMA,
            "metadata": dict(self.metadata),
            "limits": limits,
            "warnings": self.warnings,
            "rows": [_finite(asdict(row)) for row in self.rows],
        }
        return json.dumps(content, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Run:
        """Return the run that `to_json` wrote.

        Raises
        ------
        ArgumentError
            Not a run, or of another schema.
        """
        try:
            content = parsed("text", text)
            if content["schema"] != SCHEMA:
                wanted = f"{SCHEMA}: made by this version"
                raise ArgumentError("schema", shown(content["schema"]), wanted)
            limits = tuple(
                ((entry.pop("isa"), entry.pop("threads")), _made(Limits, entry))
                for entry in content["limits"]
            )
            rows = tuple(_made(Row, _with_rivals(row)) for row in content["rows"])
            fields = {
                "metadata": content["metadata"],
                "limits": limits,
                "warnings": tuple(content["warnings"]),
                "rows": rows,
            }
            return _checked(cls(**checked_fields(cls, fields)))
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            got = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ArgumentError("text", got, "what `pyonednn-q bench --json` writes") from None


def joined(about: Mapping[str, str], parts: Sequence[Run]) -> Run:
    """Return runs as one, made where `about` says; each doubt says whose it is."""
    doubts = tuple(f"{part.metadata['isa']}: {doubt}" for part in parts for doubt in part.warnings)
    limits = tuple(limit for part in parts for limit in part.limits)
    return Run(about, limits, doubts, tuple(row for part in parts for row in part.rows))


def metadata() -> dict[str, str]:
    """Return what a reader must know of this machine and process."""
    return {
        "cpu": cpu_name(),
        "cpus": str(len(os.sched_getaffinity(0))),
        "isa": runtime.isa().text(),
        "onednn": ".".join(map(str, runtime.version())),
        "runtime": runtime.threading_runtime(),
        "pyonednn_q": pyonednn_q.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "time": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    sqnr = row["sqnr_db"]
    return row | {"sqnr_db": sqnr if sqnr is None or math.isfinite(sqnr) else None}


def _checked(run: Run) -> Run:
    """Return a run that was read, if it says where it was made and can be divided by."""
    for name in ("cpu", "isa", "onednn", "runtime", "time"):
        if name not in run.metadata:
            raise ArgumentError("text", f"metadata without {name}", "where the run was made")
    rates = [
        rate for _, limits in run.limits for _, rate in limits.peak_gops + limits.bandwidth_gbs
    ]
    if any(not limits.bandwidth_gbs for _, limits in run.limits) or min(rates, default=1) <= 0:
        raise ArgumentError("text", "limits of nothing", "rates above 0")
    if any(row.nbytes <= 0 for row in run.rows):
        raise ArgumentError("text", "a row that moves no bytes", "nbytes above 0")
    return run


def _with_rivals(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's fields with its rivals made; runs without peers may lack the field."""
    return row | {"rivals": [_made(Rival, rival) for rival in row.get("rivals", ())]}


def _made(make: type[T], values: Mapping[str, Any]) -> T:
    frozen = {name: _frozen(value) for name, value in values.items()}
    return make(**checked_fields(make, frozen))


def _frozen(value: Any) -> Any:  # noqa: ANN401 - whatever JSON holds
    if isinstance(value, (int, float)) and not abs(value) < _MOST:
        raise ArgumentError("text", "a number that is none or too large", "what was measured")
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
