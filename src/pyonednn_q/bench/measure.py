"""Measure lines: prepare every case of a line, time them in turn, make rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from pyonednn_q import native
from pyonednn_q.bench import noise, probe
from pyonednn_q.bench.bench_run import Run, metadata
from pyonednn_q.bench.case import Case, Setting, repro
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.grouped_trial import GroupedTrial
from pyonednn_q.bench.peers.contest import Contest
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.summary import sqnr_db
from pyonednn_q.bench.trial import Trial
from pyonednn_q.errors import DTypeError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import TAKEN_AGAIN, Budget, Timed, interleaved
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyonednn_q.bench.suite import Line
    from pyonednn_q.bench.tail import Tail
    from pyonednn_q.primitive.windowed import Layout
    from pyonednn_q.report.progress import Progress

__all__ = ["Request", "measure"]

F32 = Precision("f32", "f32", "f32")
FLUSH_BYTES = 1 << 29

AnyTrial = Trial | GroupedTrial


@dataclass(frozen=True, slots=True)
class Request:
    """Settings of a measurement.

    Attributes
    ----------
    lines : tuple of Line
        The layers to measure, batch included.
    precisions, tails, layouts
        Every combination of them on every line.
    settings : tuple of Setting
        Threads, cache and instruction set, measured one after the other.
    budget : Budget
        Time or number of samples for each primitive.
    peers : tuple of str
        Other runtimes to time on the same cases.
    tune : bool
        Measure the fastest implementation of each case, not the library's first.
    """

    lines: tuple[Line, ...]
    precisions: tuple[Precision, ...]
    tails: tuple[Tail, ...]
    layouts: tuple[Layout, ...]
    settings: tuple[Setting, ...]
    budget: Budget
    peers: tuple[str, ...] = ()
    tune: bool = False

    def cases(self, line: Line) -> tuple[Case, ...]:
        """Return the cases of a line; matrices have one layout."""
        layouts = self.layouts if line.shape.kind in {"conv", "deconv"} else self.layouts[:1]
        return tuple(
            Case(line.shape, precision, tail, layout)
            for tail in self.tails
            for layout in layouts
            for precision in self.precisions
        )

    @property
    def steps(self) -> int:
        """Number of ticks of `measure`."""
        contests = len(self.lines) if self.peers else 0
        return (probe.steps(self.precisions) + len(self.lines) + contests) * len(self.settings)


def measure(request: Request, progress: Progress) -> Run:
    """Measure a request in this process."""
    before = noise.Load.now()
    limits, rows, drifts = [], [], []
    for setting in request.settings:
        with runtime.threads(setting.threads):
            progress.phase(f"probing the machine with {setting.threads} thread(s)")
            ceiling = probe.probe(request.precisions, progress.tick)
            flush = flusher() if setting.cache == "cold" else None
            for line in request.lines:
                progress.phase(line.label)
                rows += list(_rows(line, request, setting, flush))
                progress.tick()
            if request.peers:
                first = len(rows) - sum(len(request.cases(line)) for line in request.lines)
                rows[first:] = _with_rivals(request, setting, rows[first:], progress)
            key = (setting.isa, setting.threads)
            progress.phase("probing again")
            ceiling, drift = probe.probe_again(ceiling, request.precisions, progress.tick)
            reached = [row for row in rows if row.setting == (*key, setting.cache)]
            limits.append((key, probe.at_least(ceiling, reached)))
            drifts.append(drift)
    stolen, others = noise.Load.now().since(before)
    spreads = [row.summary.spread for row in rows if row.samples_us]
    about = metadata() | {peer: version(peer) for peer in request.peers}
    run = Run(about, tuple(limits), (), tuple(rows))
    disturbed = dict.fromkeys(row.name for row in rows if row.is_disturbed)
    doubts = noise.warnings(
        stolen,
        others,
        max(drifts, key=abs, default=0.0),
        spreads,
        tuple(disturbed),
        tuple(_beyond_paper(run)),
    )
    return replace(run, warnings=doubts)


def _beyond_paper(run: Run) -> Iterator[str]:
    """Yield what is above 100 % of the peak on paper."""
    for _, limits in run.limits:
        promised = dict(limits.paper_gops)
        for name, gops in limits.peak_gops:
            if gops > promised.get(name, math.inf):
                yield f"the peak of {name}"
    for row in run.rows:
        part = run.of_peak(row)[1]
        if part is not None and part > 1:
            yield f"{row.name} {row.dtype}"


def _with_rivals(
    request: Request, setting: Setting, rows: Sequence[Row], progress: Progress
) -> list[Row]:
    """Return rows with what other runtimes take; rows are those of the lines, in their order."""
    compared: list[Row] = []
    with Contest(request.peers, setting.threads) as contest:
        for line in request.lines:
            progress.phase(f"{line.label}: {', '.join(request.peers)}")
            rivals = contest.run(request.cases(line), request.budget)
            part = rows[len(compared) : len(compared) + len(rivals)]
            for row, row_rivals in zip(part, rivals, strict=True):
                ours = f"{row.ours} --peers {','.join(request.peers)}"
                compared.append(replace(row, rivals=row_rivals, ours=ours))
            progress.tick()
    return compared


def _rows(
    line: Line, request: Request, setting: Setting, flush: Callable[[], object] | None
) -> Iterator[Row]:
    cases = request.cases(line)
    sample = Sample.of(line.shape, with_residual=any(case.tail.has_residual for case in cases))
    attempts = [_trial(case, sample, tune=request.tune) for case in cases]
    noises = list(_noises(cases, attempts, sample))
    trials = [trial for trial in attempts if not isinstance(trial, str)]
    seconds = [trial.seconds for trial in trials]
    timed = iter(interleaved(seconds, request.budget, flush, taken_again=TAKEN_AGAIN))
    for case, trial, sqnr in zip(cases, attempts, noises, strict=True):
        if not isinstance(trial, str):
            row = _row(line, setting, trial, next(timed), sqnr)
        else:
            row = _refused(line, setting, case, trial)
        yield replace(row, ours=f"{row.ours} --tune") if request.tune else row


def _trial(case: Case, sample: Sample, *, tune: bool = False) -> AnyTrial | str:
    """Return the trial, or why there is none."""
    try:
        if case.precision.group:
            return GroupedTrial.of(case, sample)
        return Trial.of(case, sample, tune=tune)
    except UnsupportedError as error:
        # What follows a semicolon is advice to callers of a function.
        return error.detail.partition(";")[0] or f"{error.call}: {error.status}"
    except DTypeError as error:
        return str(error)


def _noises(
    cases: Sequence[Case], attempts: Sequence[AnyTrial | str], sample: Sample
) -> Iterator[float | None]:
    """Yield the SQNR of each case against FP32 with the same tail; None for FP32 itself."""
    exact: dict[Tail, NDArray[np.float32] | None] = {}
    for case, trial in zip(cases, attempts, strict=True):
        if case.precision == F32 or isinstance(trial, str):
            yield None
            continue
        if case.tail not in exact:
            exact[case.tail] = _exact(case, attempts, sample)
        reference = exact[case.tail]
        yield None if reference is None else sqnr_db(reference, trial.real_result())


def _exact(
    case: Case, attempts: Sequence[AnyTrial | str], sample: Sample
) -> NDArray[np.float32] | None:
    """Return what FP32 makes of the sample, by the trial that is there already if there is one."""
    alike = (t for t in attempts if not isinstance(t, str) and t.case.precision == F32)
    same_tail = next((t for t in alike if t.case.tail == case.tail), None)
    reference = same_tail or _trial(Case(case.shape, F32, case.tail), sample)
    return reference.real_result() if not isinstance(reference, str) else None


def _row(line: Line, setting: Setting, trial: AnyTrial, timed: Timed, sqnr: float | None) -> Row:
    return replace(
        _refused(line, setting, trial.case, ""),
        calls=timed.calls,
        samples_us=timed.samples_us,
        taken_again=timed.taken_again,
        disturbed=timed.disturbed,
        sqnr_db=sqnr,
        **trial.told(setting),
    )


def _refused(line: Line, setting: Setting, case: Case, why: str) -> Row:
    return Row(
        suite=line.suite,
        line=line.name,
        times=line.times,
        problem=case.shape.text(),
        dtype=case.precision.name,
        tail=case.tail.name,
        layout=case.layout,
        isa=setting.isa,
        threads=setting.threads,
        cache=setting.cache,
        ops=case.shape.ops,
        nbytes=case.nbytes,
        padded_ops=case.shape.padded_ops,
        impl="",
        attributes="",
        notes=(),
        calls=0,
        samples_us=(),
        sqnr_db=None,
        ours=repro(case, setting),
        benchdnn="",
        refused=why,
    )


def flusher() -> Callable[[], object]:
    """Return a function that sends half a gigabyte through the caches of all threads."""
    spec = TensorSpec.dense((FLUSH_BYTES // 8,), "f32")
    prepared = native.prepare(EltwiseProblem(spec, spec, "relu"))
    src, dst = prepared.empty("src"), prepared.empty("dst")
    src[...] = 1
    dst[...] = 0
    return lambda: prepared(src, out=dst)
