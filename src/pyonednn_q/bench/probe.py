"""Limits of this machine: a peak per data type, bandwidth by size, the cost of an empty call.

The peak is the best of a few large, well-shaped problems through the same library, and of all lines
that were measured: what its kernels reach, not what a data sheet promises, which stands beside it
(see `paper`). Bandwidth is the best of a copy and of a product of a vector with a matrix, whose
data fill the named size. All of it with the threads in force.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from pyonednn_q import native
from pyonednn_q.bench import paper
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import Trial
from pyonednn_q.errors import DTypeError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.primitive.problem import EltwiseProblem, MatMulProblem
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.reading import Count, Number, Rate, Times

if TYPE_CHECKING:
    from pyonednn_q.bench.row import Row

__all__ = ["PEAK_PROBLEMS", "Limits", "probe"]

PEAK_PROBLEMS = (
    "matmul 512x512 512x512",
    "matmul 1024x1024 1024x1024",
    "conv 1x256x56x56 256x256x3x3 padding=1",
)
SIZES_BYTES = (1 << 21, 1 << 24, 1 << 27)
_EMPTY = "matmul 1x16 16x16"
_PROBE_S = 0.06
_F32, INT8 = Precision("f32", "f32", "f32"), Precision("u8", "s8", "u8")


@dataclass(frozen=True, slots=True)
class Limits:
    """Measured limits of a machine.

    Attributes
    ----------
    peak_gops : tuple of (str, float)
        Per pair of multiplied types ("f32", "u8s8"), operations per nanosecond.
    bandwidth_gbs : tuple of (int, float)
        Bytes touched, and gigabytes per second; by rising size.
    call_us : float
        Microseconds of a call of the library for a problem of almost no size.
    paper_gops : tuple of (str, float)
        The peaks on paper: operations a cycle of a core, times `cores`, times `clock_ghz`.
    cores : int
        Physical cores that the threads can use.
    clock_ghz : float
        The clock of a core, as measured; 0: unknown.
    """

    peak_gops: tuple[tuple[str, Rate], ...]
    bandwidth_gbs: Annotated[tuple[tuple[Count, Rate], ...], Meta(min_length=1)]
    call_us: Rate
    paper_gops: tuple[tuple[str, Rate], ...] = ()
    cores: Times = 1
    clock_ghz: Number = 0.0

    def peak(self, precision: Precision) -> float | None:
        """Return the peak of a precision, if it was measured."""
        return dict(self.peak_gops).get(multiplied(precision))

    def paper(self, precision: Precision) -> float | None:
        """Return the peak on paper, if the clock is known."""
        return dict(self.paper_gops).get(multiplied(precision))

    def bandwidth(self, nbytes: int) -> float:
        """Return the bandwidth of data of that size: that of the next larger size measured."""
        fitting = [rate for size, rate in self.bandwidth_gbs if size >= nbytes]
        return fitting[0] if fitting else self.bandwidth_gbs[-1][1]

    def floors_us(self, ops: int, nbytes: int, precision: Precision) -> dict[str, float]:
        """Return the least time by what limits it: "compute", "memory" and "call".

        Without "compute" when the peak is not known.
        """
        peak = self.peak(precision)
        floors = {} if peak is None else {"compute": ops / peak / 1e3}
        floors["memory"] = nbytes / self.bandwidth(nbytes) / 1e3
        floors["call"] = self.call_us
        return floors


def multiplied(precision: Precision) -> str:
    """Return the two types that are multiplied, which is what decides the peak."""
    if precision.group:  # of our kernel, by the same instruction
        return INT8.src + INT8.wei
    return precision.src if precision.src == precision.wei else precision.src + precision.wei


def probe(precisions: Iterable[Precision], tick: Callable[[], object]) -> Limits:
    """Measure the limits for these precisions; `tick` is called after each step."""
    peaks = _peaks(precisions, tick)
    bandwidth = []
    for nbytes in SIZES_BYTES:
        bandwidth.append((nbytes, max(_copying(nbytes), _reading(nbytes))))
        tick()
    shape = Shape.parse(_EMPTY)
    empty = Trial.of(Case(shape, _F32), Sample.of(shape, with_residual=False))
    call_us = _least(empty.seconds, 200) * 1e6
    cores = paper.cores(runtime.get_num_threads())
    return _on_paper(Limits(tuple(peaks.items()), tuple(bandwidth), call_us, cores=cores))


def probe_again(
    before: Limits, precisions: Iterable[Precision], tick: Callable[[], object]
) -> tuple[Limits, float]:
    """Return the limits with the better peaks of two probes, and by how much the peaks moved."""
    peaks_before = dict(before.peak_gops)
    peaks = _peaks(precisions, tick)
    moves = [peaks[name] / gops - 1 for name, gops in peaks_before.items() if name in peaks]
    best = tuple((name, max(gops, peaks.get(name, 0.0))) for name, gops in peaks_before.items())
    limits = _on_paper(replace(before, peak_gops=best))
    return limits, max(moves, key=abs, default=0.0)


def at_least(limits: Limits, rows: Iterable[Row]) -> Limits:
    """Return the limits with peaks no lower than what lines reached: probes are disturbed, too."""
    peaks = dict(limits.peak_gops)
    for row in rows:
        name = multiplied(Precision.parse(row.dtype))
        if row.samples_us and name in peaks:
            peaks[name] = max(peaks[name], row.gops)
    return replace(limits, peak_gops=tuple(peaks.items()))


def _on_paper(limits: Limits) -> Limits:
    """Return the limits with what the highest clock seen so far promises."""
    clock = max(limits.clock_ghz, paper.clock_ghz())
    types = (name for name, _ in limits.peak_gops)
    promised = paper.paper_gops(runtime.isa(), types, limits.cores, clock)
    return replace(limits, paper_gops=promised, clock_ghz=clock)


def _peaks(precisions: Iterable[Precision], tick: Callable[[], object]) -> dict[str, float]:
    peaks: dict[str, float] = {}
    for precision in precisions:
        name = multiplied(precision)
        if name not in peaks:
            # Its own type as dst, so that results do not take more memory than sources.
            own = Precision(precision.src, precision.wei, precision.src)
            gops = _peak(INT8 if precision.group else own)
            peaks |= {name: gops} if gops else {}
        tick()
    return peaks


def steps(precisions: Iterable[Precision]) -> int:
    """Return how often `probe` and `probe_again` tick together."""
    return 2 * len(list(precisions)) + len(SIZES_BYTES)


def _peak(precision: Precision) -> float:
    best = 0.0
    for text in PEAK_PROBLEMS:
        shape = Shape.parse(text)
        try:
            trial = Trial.of(Case(shape, precision), Sample.of(shape, with_residual=False))
        except (UnsupportedError, DTypeError):
            continue
        best = max(best, shape.ops / _least(trial.seconds, 1) / 1e9)
    return best


def _copying(nbytes: int) -> float:
    spec = TensorSpec.dense((nbytes // 8,), "f32")
    prepared = native.prepare(EltwiseProblem(spec, spec, "relu"))
    src, dst = prepared.empty("src"), prepared.empty("dst")
    src[...] = 1
    dst[...] = 0
    calls = max(1, SIZES_BYTES[0] * 4 // nbytes)
    return nbytes / _least(lambda n: prepared.time_calls(src, dst, calls=n), calls) / 1e9


def _reading(nbytes: int) -> float:
    side = math.isqrt(nbytes // 4)
    problem = MatMulProblem.of((1, side), (side, side), src="f32", wei="f32", dst="f32")
    prepared = native.prepare(problem, wei=np.ones((side, side), np.float32))
    src, dst = prepared.empty("src"), prepared.empty("dst")
    src[...] = 1
    calls = max(1, SIZES_BYTES[0] * 4 // nbytes)
    least = _least(lambda n: prepared.time_calls(src, dst, calls=n), calls)
    return 4 * side * side / least / 1e9


def _least(seconds: Callable[[int], float], calls: int) -> float:
    """Return the least seconds per call over a short while, at least three samples."""
    seconds(calls)
    end = time.perf_counter() + _PROBE_S
    samples = [seconds(calls) for _ in range(3)]
    while time.perf_counter() < end:
        samples.append(seconds(calls))
    return min(samples)
