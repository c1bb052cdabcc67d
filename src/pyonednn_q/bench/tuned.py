"""Tuned: a trial on the fastest implementation, if that is surely faster than the first."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from pyonednn_q.bench.trial import Trial
from pyonednn_q.errors import Error
from pyonednn_q.native import implementations
from pyonednn_q.native.timing import Budget, interleaved
from pyonednn_q.ops.gain import ratios_of, sure_gain
from pyonednn_q.ops.tuning import HOPELESS, LEAST_GAIN
from pyonednn_q.primitive.implementation import classify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.bench.data import Sample

__all__ = ["tuned"]

_LOOK = Budget(min_time_s=0.02)
_MATCH = Budget(rounds=41)


def tuned(usual: Trial, sample: Sample) -> Trial:
    """Return the trial to measure, with a note of what was chosen and why.

    Loops in C++ around each implementation that no guard forbids take turns, of the problem and of
    products that mean the same; the fastest then meets the usual one alone, and replaces it where
    the ratio of their times is above `LEAST_GAIN` with 95 % confidence.
    """
    trials = [usual, *_others(usual, sample)]
    count = len(trials)
    first = [min(trial.seconds(1) for _ in range(3)) for trial in trials]
    limit = HOPELESS * min(first)
    trials = [usual, *(t for t, taken in zip(trials[1:], first[1:], strict=True) if taken < limit)]
    looked = interleaved([trial.seconds for trial in trials], _LOOK)
    times = [median(timed.samples_us) for timed in looked]
    best = trials[times.index(min(times))]
    stays = f"tuned: stays, of {count} implementations"
    if best is usual:
        return replace(usual, tuning=stays)
    gain, sure = sure_gain(ratios_of(*interleaved([usual.seconds, best.seconds], _MATCH)))
    if sure <= LEAST_GAIN:
        return replace(usual, tuning=stays)
    as_form = "" if best.form.name == usual.form.name else f"as {best.form.name}, "
    note = f"tuned: {as_form}{gain:.2f} times as fast as {usual.prepared.impl}"
    return replace(best, tuning=note)


def _others(usual: Trial, sample: Sample) -> Iterator[Trial]:
    """Give the case in every form, on every other implementation that may be trusted."""
    for form in (usual.form, *usual.products()):
        first = usual
        if form is not usual.form:
            try:
                first = Trial.of(usual.case, sample, form=form)
            except Error:  # with this chain
                continue
            yield first
        prepared = first.prepared
        offers = implementations(prepared.problem, prepared.attr)
        trusted = (o.impl for o in offers if not o.guards and classify(o.impl) != "reference")
        for impl in dict.fromkeys(trusted):
            if impl != prepared.impl:
                try:
                    yield Trial.of(usual.case, sample, impl, form)
                except Error:  # with these weights
                    continue
