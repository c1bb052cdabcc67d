"""Numbers about results and times: accuracy, agreement, medians of interleaved calls."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Right answers on the held-out digits, and how often both ways agree."""

    images: int
    float32: int
    int8: int
    same: int


@dataclass(frozen=True, slots=True)
class LayerNoise:
    """SQNR of one INT8 layer in decibels: fed with exact input, and at its place in the network."""

    alone_db: float
    in_network_db: float


@dataclass(frozen=True, slots=True)
class Pair:
    """The same layer timed both ways.

    Attributes
    ----------
    name : str
        The layer's name.
    float_us, int8_us : float
        Median microseconds of a call.
    speedup : float
        Median over the rounds of FP32 time / INT8 time; below 1 INT8 is slower.
    lo, hi : float
        95 % interval of that median.
    """

    name: str
    float_us: float
    int8_us: float
    speedup: float
    lo: float
    hi: float

    @property
    def verdict(self) -> str:
        """Say which one is faster and by how much, unless the interval includes 1."""
        if self.lo > 1:
            return f"{self.speedup:.2f}x faster ({self.lo:.2f} to {self.hi:.2f})"
        if self.hi < 1:
            slower = (1 / self.speedup, 1 / self.hi, 1 / self.lo)
            return "{:.2f}x slower ({:.2f} to {:.2f})".format(*slower)
        return "not significant"


def correct(logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> int:
    """Count the images whose largest logit is the right one.

    Parameters
    ----------
    logits : (N, 10) float32
    labels : (N,) int64

    Returns
    -------
    int
        From 0 to N.
    """
    return int((logits.argmax(axis=1) == labels).sum())


def time_interleaved(
    named: Sequence[tuple[str, Callable[[], object], Callable[[], object]]],
    rounds: int,
    tick: Callable[[], None],
) -> list[Pair]:
    """Time FP32 and INT8 calls in turn, warm, so that drift of the machine hits both alike.

    Parameters
    ----------
    named : sequence of (name, FP32 call, INT8 call)
        What to time.
    rounds : int
        Timed calls of each; every other round swaps the order.
    tick : callable
        Called after each name.

    Returns
    -------
    list of Pair
        In the order of `named`.
    """
    pairs = []
    for name, float32, int8 in named:
        for _ in range(WARM_UP):
            float32()
            int8()
        float_us: list[float] = []
        int8_us: list[float] = []
        for turn in range(rounds):
            ways = [(float32, float_us), (int8, int8_us)]
            for call, times_us in ways[:: -1 if turn % 2 else 1]:
                times_us.append(_time_us(call))
        pairs.append(paired(name, float_us, int8_us))
        tick()
    return pairs


def paired(name: str, float_us: Sequence[float], int8_us: Sequence[float]) -> Pair:
    """Compare times taken side by side, round by round.

    Parameters
    ----------
    name : str
        The layer's name.
    float_us, int8_us : sequence of float
        Equally many times; those of one index were taken one right after the other.

    Returns
    -------
    Pair
        With an interval of (0, inf) below 6 rounds, which can prove nothing at 95 %.
    """
    ratios = sorted(a / b for a, b in zip(float_us, int8_us, strict=True))
    count = len(ratios)
    lo, hi = 0.0, math.inf
    if count >= 6:
        # Ranks n/2 -+ 0.98 sqrt(n), counted from 1, hold the true median 19 times of 20.
        below = max(math.floor(count / 2 - 0.98 * math.sqrt(count)) - 1, 0)
        lo, hi = ratios[below], ratios[count - 1 - below]
    median = statistics.median
    return Pair(name, median(float_us), median(int8_us), median(ratios), lo, hi)


def _time_us(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1e3
