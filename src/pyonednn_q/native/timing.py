"""Timing: several primitives in turn, so that drift of the machine hits all of them alike.

A sample is the mean over a few calls in a C++ loop, enough of them for the clock. Warm: an untimed
call goes before each sample, because the primitive before it has used the caches. Cold: a sample is
one call, after other memory than its own has gone through the caches. Runtimes with threads of
their own rest before each turn, which then has several samples.

A sample is disturbed if something else had the processor meanwhile. Two signs of it hold on every
runtime. It took half as long again as the fastest sample of its primitive. Or it lasted longer than
the scheduler lets a thread run, and its threads waited for a processor a good part of that time.
Counts of context switches are no sign, since threads that spin and yield have thousands
undisturbed. Nor is CPU time against wall time, since threads at a barrier spin for one that does
not run.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from pyonednn_q.argument import real, whole
from pyonednn_q.errors import ArgumentError

Seconds = Callable[[int], float]

MIN_SAMPLE_S = 1e-3
MAX_ROUNDS = 400
_LEAST_ROUNDS = 11
_CALIBRATION_S = 3e-4
SLOW = 1.5  # times the fastest sample: what quiet machines stay below, a lost quantum far above
TAKEN_AGAIN = 3  # times, where a sample was disturbed
# Between runtimes: threads of the one before spin on for work, and would slow this one down.
REST_S = 0.1
_TURN_S = 1e-2  # of samples behind a rest, at least
_TOO_MANY = 0.25  # of the samples, beyond which the median is among what was disturbed
_QUANTUM_S = 3e-3  # what Linux lets a thread run while another one waits
_WAITED = 0.25  # of a sample's time, summed over the threads
_THREADS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a measurement's length.

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
    """Samples of one primitive.

    Attributes
    ----------
    calls : int
        Number of calls in each sample.
    samples_us : tuple of float
        Microseconds a call, in the order of the rounds.
    taken_again : int
        Number of samples that were repeated because they were disturbed.
    disturbed : int
        Number of samples that are still disturbed.
    """

    calls: int
    samples_us: tuple[float, ...]
    taken_again: int = 0
    disturbed: int = 0


class _Reading(NamedTuple):
    us: float
    waited: bool


def looped(call: Callable[[], object]) -> Seconds:
    """Return a timer of a loop of calls from Python, as `interleaved` takes it."""

    def seconds(calls: int) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    return seconds


def medians_us(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return median microseconds of single calls that take turns, each behind one untimed."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, own in zip(calls, samples, strict=True):
            call()
            own.append(looped(call)(1) * 1e6)
    return [median(each) for each in samples]


def too_many(disturbed: int, count: int) -> bool:
    """Tell whether so many of the samples are disturbed that their median may be, too."""
    return disturbed > _TOO_MANY * count


def interleaved(
    primitives: Sequence[Seconds],
    budget: Budget,
    flush: Callable[[], object] | None = None,
    *,
    taken_again: int = 0,
    rest_s: float = 0.0,
) -> list[Timed]:
    """Time primitives in turn, in another order each round.

    Parameters
    ----------
    primitives : sequence of callable
        Each takes a number of calls and returns seconds per call.
    budget : Budget
        Time in seconds, or number of rounds.
    flush : callable, optional
        Cold: called before each timed call.
    taken_again : int
        Largest number of repetitions of a disturbed sample.
    rest_s : float
        Seconds of nothing before each turn. A turn is one sample; behind a rest as many as take ten
        milliseconds.

    Returns
    -------
    list of Timed
        Samples in the order of `primitives`, all with as many samples.
    """
    if not primitives:
        return []
    estimates = [_estimate(seconds) for seconds in primitives]
    calls = [1 if flush else max(1, round(MIN_SAMPLE_S / estimate)) for estimate in estimates]
    lengths = [n * estimate for n, estimate in zip(calls, estimates, strict=True)]

    def turn(index: int, count: int) -> list[_Reading]:
        if rest_s:
            time.sleep(rest_s)
        if flush:
            flush()
        else:
            primitives[index](1)
        return [_sample(primitives[index], calls[index], lengths[index]) for _ in range(count)]

    samples: list[list[_Reading]] = [[] for _ in primitives]
    order = list(range(len(primitives)))
    shuffle = random.Random(5).shuffle
    rounds = budget.rounds_of(lengths)
    of_turn = math.ceil(_TURN_S / min(lengths)) if rest_s else 1
    for begin in range(0, rounds, of_turn):
        shuffle(order)
        for index in order:
            samples[index] += turn(index, min(of_turn, rounds - begin))
    counts = [0] * len(primitives)
    for _ in range(taken_again):
        for at, index in sorted((at, i) for i in order for at in _disturbed(samples[i])):
            (samples[index][at],) = turn(index, 1)
            counts[index] += 1
    return [
        Timed(n, tuple(one.us for one in taken), count, len(_disturbed(taken)))
        for n, taken, count in zip(calls, samples, counts, strict=True)
    ]


def _sample(seconds: Seconds, calls: int, length_s: float) -> _Reading:
    is_long = length_s > _QUANTUM_S
    before = _waiting_s() if is_long else 0.0
    per_call = seconds(calls)
    waited_s = _waiting_s() - before if is_long else 0.0
    return _Reading(per_call * 1e6, waited_s > _WAITED * per_call * calls)


def _disturbed(samples: Sequence[_Reading]) -> list[int]:
    """Return which of a primitive's samples were disturbed."""
    limit = SLOW * min(sample.us for sample in samples)
    return [at for at, sample in enumerate(samples) if sample.waited or sample.us > limit]


def _waiting_s() -> float:
    """Return how long the threads of this process have waited for a processor, as Linux counts."""
    waited = 0
    for thread in _threads():
        try:
            waited += int((thread / "schedstat").read_text().split()[1])
        except (OSError, IndexError, ValueError):  # it has ended, or the kernel does not count
            continue
    return waited / 1e9


def _threads() -> list[Path]:
    try:
        return list(_THREADS.iterdir())
    except OSError:
        return []


def _estimate(seconds: Seconds) -> float:
    """Return about how long a call takes, warm."""
    seconds(1)
    calls, per_call = 1, seconds(1)
    while per_call * calls < _CALIBRATION_S:
        calls *= 4
        per_call = seconds(calls)
    return max(per_call, 1e-9)
