"""Several callers at once: what each of them waits for its call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyonednn_q.native import runtime
from pyonednn_q.native.timing import REST_S

__all__ = ["waits_at_once"]

_ROUNDS = 3
_LEAST = 5  # calls of each caller in a round


def waits_at_once(
    runtimes: Sequence[Sequence[Callable[[], object]]], seconds: float, threads: int
) -> list[list[float]]:
    """Return the waiting times of each runtime's callers when all call at once, in microseconds.

    Parameters
    ----------
    runtimes : sequence of sequence of callable
        Functions that each caller of each runtime calls. Runtimes take turns: three rounds of all,
        with a rest before each turn.
    seconds : float
        Time of each runtime, in seconds, all rounds together; each caller makes at least five calls
        in a round.
    threads : int
        Number of threads of a call.
    """
    waits: list[list[float]] = [[] for _ in runtimes]
    for _ in range(_ROUNDS):
        for calls, own in zip(runtimes, waits, strict=True):
            time.sleep(REST_S)
            start = threading.Barrier(len(calls))
            with ThreadPoolExecutor(len(calls)) as pool:
                work = [
                    pool.submit(_waits, call, start, seconds / _ROUNDS, threads) for call in calls
                ]
                for each in work:
                    own.extend(each.result())
    return waits


def _waits(
    call: Callable[[], object], start: threading.Barrier, seconds: float, threads: int
) -> list[float]:
    try:
        runtime.set_num_threads(threads)  # OpenMP has a number for each of its callers
        call()
        start.wait()
    except BaseException:
        start.abort()
        raise
    waits: list[float] = []
    end = time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end or len(waits) < _LEAST:
        call()
        waits.append(1e6 * (time.perf_counter() - begin))
    return waits
