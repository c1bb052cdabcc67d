"""Row: what was measured of one case, or why nothing was."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from pyonednn_q.argument import instance
from pyonednn_q.bench.summary import Ratio, Summary, paired_ratio, summarise
from pyonednn_q.native.timing import too_many
from pyonednn_q.reading import Count, Decibels, Rate, Times, Times64

__all__ = ["OURS", "Rival", "Row"]

OURS = "pyonednn_q"
_summary = functools.lru_cache(1024)(summarise)  # reports ask for the same thousands of medians


@dataclass(frozen=True, slots=True)
class Rival:
    """Times of one runtime for a case, or the reason why there are none.

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
        Reason why there are no samples; empty if there are.
    disturbed : int
        Number of samples that are disturbed by other work on the machine, even after a repetition.
    """

    name: str
    way: str
    calls: Count
    samples_us: tuple[Rate, ...]
    refused: str
    disturbed: Count = 0

    @property
    def is_disturbed(self) -> bool:
        """Whether too many samples are disturbed: the median is then unreliable."""
        return too_many(self.disturbed, len(self.samples_us))

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
        Suite and line of the problem; both empty for a problem of the command line.
    times : int
        Number of times that the network has this layer.
    problem, dtype, tail, layout : str
        The case: its problem, data types, tail and layout, as the command line has them.
    isa : str
        The limit that was set; empty: none.
    threads : int
        Number of threads of the library.
    cache : str
        "warm": the arrays are in the cache. "cold": other memory was touched before each call.
    ops, nbytes : int
        Arithmetic operations that a call computes, two for each product of a source and a weight;
        and bytes that it has to read and write at least once.
    padded_ops : int
        The operations as papers count them: those with padding, which kernels leave out, too.
    impl, attributes : str
        oneDNN's name of the implementation that ran, and the primitive's attributes.
    notes : tuple of str
        Notes for the reader: saturation, implementations passed over.
    calls : int
        Number of calls in each sample.
    samples_us : tuple of float
        Microseconds a call. Rows of one problem under one setting were sampled in the same rounds.
    sqnr_db : float or None
        Signal-to-quantization-noise ratio against FP32, in dB; None for FP32 itself.
    ours, benchdnn : str
        Command lines that reproduce the row.
    refused : str
        Reason why there are no samples; empty if there are.
    rivals : tuple of Rival
        Other runtimes on the same arrays, and our own call, each in a process of its own.
    taken_again, disturbed : int
        Number of samples that were repeated because of other work on the machine, and number of
        those that are disturbed even so.
    """

    suite: str
    line: str
    times: Times
    problem: str
    dtype: str
    tail: str
    layout: str
    isa: str
    threads: Times
    cache: str
    ops: Count
    nbytes: Times64
    padded_ops: Count
    impl: str
    attributes: str
    notes: tuple[str, ...]
    calls: Count
    samples_us: tuple[Rate, ...]
    sqnr_db: Decibels | None
    ours: str
    benchdnn: str
    refused: str
    rivals: tuple[Rival, ...] = ()
    taken_again: Count = 0
    disturbed: Count = 0

    @property
    def is_disturbed(self) -> bool:
        """Whether so many samples are disturbed that the median says nothing of the primitive."""
        return too_many(self.disturbed, len(self.samples_us))

    @property
    def key(self) -> tuple[object, ...]:
        """Identity of the row: equal in two runs for the same case and setting."""
        return (self.name, self.problem, self.dtype, self.tail, self.layout, *self.setting)

    @property
    def group(self) -> tuple[object, ...]:
        """Key of the rows that were sampled together."""
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
        """The summary of the samples."""
        return _summary(self.samples_us)

    @property
    def median_us(self) -> float:
        """Median microseconds a call."""
        return float(np.median(self.samples_us))

    def rival(self, name: str, way: str = "call") -> Rival | None:
        """Return the measurement of a runtime, if there is one."""
        instance("name", name, str)
        instance("way", way, str)
        return next((r for r in self.rivals if (r.name, r.way) == (name, way)), None)

    def lead(self, name: str) -> Ratio | None:
        """Return the ratio of another runtime's time to that of our call."""
        ours, theirs = self.rival(OURS), self.rival(name)
        if ours is None or theirs is None or not (ours.samples_us and theirs.samples_us):
            return None
        return paired_ratio(theirs.samples_us, ours.samples_us)

    @property
    def gops(self) -> float:
        """Operations that are computed, per nanosecond."""
        return self.ops / self.median_us / 1e3

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.ops / self.nbytes
