"""The process of one runtime: prepares and times cases, by commands that come through its pipes.

It is asked with pickled tuples on its standard input and answers on its standard output, which
libraries that print would garble: they are given standard error in its place.

    ("make", case, threads)     -> the ways in which it can be timed, or why not, as text
    ("time", number, way, n)    -> seconds a call, mean of n calls of the case that was made so
    ("drop",)                   -> forgets all cases
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.peers import PeerError, ready
from pyonednn_q.bench.peers.case_layer import layer_of
from pyonednn_q.bench.row import OURS
from pyonednn_q.errors import Error
from pyonednn_q.native.timing import looped

if TYPE_CHECKING:
    from pyonednn_q.bench.case import Case

    Array = np.ndarray[Any, Any]

__all__ = ["CALL", "Worker", "serve"]

CALL = "call"  # from Python
_LOOP = "loop"  # around the bare primitive, in C++: ours only

Seconds = Callable[[int], float]


class Worker:
    """Cases made ready by one runtime.

    Parameters
    ----------
    name : str
        Name of a runtime: one of `PEERS`, or `OURS`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._timers: list[dict[str, Seconds]] = []

    def make(self, case: Case, threads: int) -> tuple[str, ...] | str:
        """Make a case ready; return the ways to time it, or why there is none."""
        try:
            timers = (_ours if self.name == OURS else self._peer)(case, threads)
        except PeerError as error:
            return error.why
        except Error as error:
            return str(error).splitlines()[0]
        except Exception as error:
            lines = str(error).splitlines() or [""]
            return f"fails: {type(error).__name__}: {lines[0]}"
        self._timers.append(timers)
        return tuple(timers)

    def time(self, number: int, way: str, calls: int) -> float:
        """Return seconds a call."""
        return self._timers[number][way](calls)

    def drop(self) -> None:
        """Forget the cases."""
        self._timers.clear()

    def _peer(self, case: Case, threads: int) -> dict[str, Seconds]:
        sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
        peer_run = ready(self.name, layer_of(self.name, case, sample), threads)
        peer_run.run()
        return {CALL: looped(peer_run.run)}


def _ours(case: Case, threads: int) -> dict[str, Seconds]:
    from pyonednn_q.bench.grouped_trial import GroupedTrial
    from pyonednn_q.bench.trial import Trial
    from pyonednn_q.native import runtime

    runtime.set_num_threads(threads)
    sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
    if case.precision.group:
        return {CALL: GroupedTrial.of(case, sample).seconds}
    trial = Trial.of(case, sample)
    return {CALL: looped(trial.call), _LOOP: trial.seconds}


def serve(name: str) -> None:
    """Answer until the pipe is closed."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    worker = Worker(name)
    while True:
        try:
            # From the parent, through a pipe that no other process has.
            request: tuple[Any, ...] = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = getattr(worker, request[0])(*request[1:])
        pickle.dump(answer, answers)
        answers.flush()
