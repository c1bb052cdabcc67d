"""Timing: several primitives in turn, so that drift of the machine hits all of them alike.

A sample is the mean over a few calls in a C++ loop, enough of them for the clock. Warm: an untimed
call goes before each sample, because the primitive before it has used the caches. Cold: a sample is
one call, after other memory than its own has gone through the caches.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyonednn_q.argument import real, whole
from pyonednn_q.errors import ArgumentError

Seconds = Callable[[int], float]

MIN_SAMPLE_S = 1e-3
MAX_ROUNDS = 400
_LEAST_ROUNDS = 11
_CALIBRATION_S = 3e-4


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to measure.

    Parameters
    ----------
    min_time_s : float
        Timed seconds of a primitive, on average over those that take turns.
    rounds : int, optional
        Samples of each primitive; None: as many as `min_time_s` takes, from 11 to 400.
    """

    min_time_s: float = 0.15
    rounds: int | None = None

    def __post_init__(self) -> None:
        if real("min_time", self.min_time_s) <= 0:
            raise ArgumentError("min_time", str(self.min_time_s), "a number above 0")
        if self.rounds is not None:
            whole("repeat", self.rounds, lo=1)

    def rounds_of(self, samples_s: Sequence[float]) -> int:
        """Return the number of rounds when one sample of each primitive takes that long."""
        if self.rounds is not None:
            return self.rounds
        wanted = math.ceil(self.min_time_s * len(samples_s) / sum(samples_s))
        return min(max(wanted, _LEAST_ROUNDS), MAX_ROUNDS)


@dataclass(frozen=True, slots=True)
class Timed:
    """Samples of one primitive, in microseconds a call, in the order of the rounds."""

    calls: int
    samples_us: tuple[float, ...]


def interleaved(
    primitives: Sequence[Seconds], budget: Budget, flush: Callable[[], object] | None = None
) -> list[Timed]:
    """Time primitives in turn, in another order each round.

    Parameters
    ----------
    primitives : sequence of callable
        Each takes a number of calls and returns seconds per call.
    budget : Budget
        How long to measure, in seconds or rounds.
    flush : callable, optional
        Cold: called before each timed call.

    Returns
    -------
    list of Timed
        In the order of `primitives`, all with as many samples.
    """
    if not primitives:
        return []
    estimates = [_estimate(seconds) for seconds in primitives]
    calls = [1 if flush else max(1, round(MIN_SAMPLE_S / estimate)) for estimate in estimates]
    lengths = [n * estimate for n, estimate in zip(calls, estimates, strict=True)]
    samples: list[list[float]] = [[] for _ in primitives]
    order = list(range(len(primitives)))
    shuffle = random.Random(5).shuffle
    for _ in range(budget.rounds_of(lengths)):
        shuffle(order)
        for index in order:
            if flush:
                flush()
            else:
                primitives[index](1)
            samples[index].append(primitives[index](calls[index]) * 1e6)
    return [Timed(n, tuple(us)) for n, us in zip(calls, samples, strict=True)]


def _estimate(seconds: Seconds) -> float:
    """Return about how long a call takes, warm."""
    seconds(1)
    calls, per_call = 1, seconds(1)
    while per_call * calls < _CALIBRATION_S:
        calls *= 4
        per_call = seconds(calls)
    return max(per_call, 1e-9)
