"""A contest: one process per runtime, all timed in turn on the same cases.

Processes that are not being timed are stopped, so that no thread pool spins beside the one that is.
"""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyonednn_q.bench.peers.peer_layer import PeerError
from pyonednn_q.bench.peers.worker import CALL
from pyonednn_q.bench.row import OURS, Rival
from pyonednn_q.native.child import environment, interpreter
from pyonednn_q.native.timing import TAKEN_AGAIN, Budget, interleaved

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from pyonednn_q.bench.case import Case

    Seconds = Callable[[int], float]

__all__ = ["Contest"]

_CHILD = "import sys; from pyonednn_q.bench.peers.worker import serve; serve(sys.argv[1])"
_PATIENCE_S = 10.0


class Contest:
    """Processes of runtimes, ours first. A context manager: they end with it.

    Parameters
    ----------
    peers : sequence of str
        Names of `PEERS`.
    threads : int
        Number of threads of each runtime.
    """

    def __init__(self, peers: Sequence[str], threads: int) -> None:
        self.threads = threads
        self._processes = {name: _Process(name) for name in (OURS, *peers)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.end()

    def run(self, cases: Sequence[Case], budget: Budget) -> list[tuple[Rival, ...]]:
        """Time cases, all runtimes in turn.

        Parameters
        ----------
        cases : sequence of Case
            Cases that take turns.
        budget : Budget
            Time or number of samples for each runtime and case.

        Returns
        -------
        list of tuple of Rival
            Result of each runtime for each case: its time, or why it has none.
        """
        rivals_of: list[list[Rival]] = [[] for _ in cases]
        waiting: list[tuple[int, str, str, Seconds]] = []
        for name, process in self._processes.items():
            number = 0
            for index, case in enumerate(cases):
                answer = process.ask("make", case, self.threads)
                if isinstance(answer, str):
                    rivals_of[index].append(Rival(name, CALL, 0, (), answer))
                    continue
                waiting += [(index, name, way, process.seconds(number, way)) for way in answer]
                number += 1
        seconds = [each for *_, each in waiting]
        timings = interleaved(seconds, budget, taken_again=TAKEN_AGAIN)
        for (index, name, way, _), timed in zip(waiting, timings, strict=True):
            rival = Rival(name, way, timed.calls, timed.samples_us, "", timed.disturbed)
            rivals_of[index].append(rival)
        for process in self._processes.values():
            process.ask("drop")
        return [tuple(rivals) for rivals in rivals_of]


class _Process:
    """A worker process that runs only while it answers a request."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [*interpreter(), "-c", _CHILD, name],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, *request: Any) -> Any:  # noqa: ANN401 - what the worker answers
        """Return the answer.

        Raises
        ------
        PeerError
            The process has ended.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.send_signal(signal.SIGCONT)
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            answer = pickle.load(process.stdout)
            process.send_signal(signal.SIGSTOP)
        except (OSError, EOFError):
            raise PeerError(self._name, f"ended with exit code {process.wait()}") from None
        return answer

    def seconds(self, number: int, way: str) -> Seconds:
        """Return the function that times a case."""
        return lambda calls: float(self.ask("time", number, way, calls))

    def end(self) -> None:
        """Let the process end, or end it."""
        process = self._process
        assert process.stdin is not None
        process.send_signal(signal.SIGCONT)
        with contextlib.suppress(OSError):  # it has died
            process.stdin.close()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
