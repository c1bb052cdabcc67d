"""Run one callable on many threads at the same moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def run_together(
    count: int, work: Callable[[int], T], *, rounds: int = 1, timeout_s: float = 120.0
) -> list[list[T]]:
    """Call work(index) on ``count`` threads behind a barrier, ``rounds`` times.

    Returns results[index][round]. The first failure stops the others at their next barrier and
    is raised here, with the thread's index in a note of its message. A thread that does not
    finish in time is an error too, never a hang.
    """
    barrier = threading.Barrier(count)
    results: list[list[T]] = [[] for _ in range(count)]
    failures: list[tuple[int, BaseException]] = []

    def body(index: int) -> None:
        try:
            for _ in range(rounds):
                barrier.wait(timeout_s)
                results[index].append(work(index))
        except threading.BrokenBarrierError:
            return  # another thread failed; its error is the one to report
        except BaseException as error:  # raised again in the caller's thread
            failures.append((index, error))
            barrier.abort()

    threads = [
        threading.Thread(target=body, args=(index,), name=f"together-{index}", daemon=True)
        for index in range(count)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_s)
    if failures:
        index, error = failures[0]
        msg = f"thread {index} of {count} failed: {error!r}"
        raise AssertionError(msg) from error
    stuck = [thread.name for thread in threads if thread.is_alive()]
    short = [index for index, values in enumerate(results) if len(values) != rounds]
    if stuck or short:
        msg = f"not finished after {timeout_s} s: {stuck or short}"
        raise AssertionError(msg)
    return results
