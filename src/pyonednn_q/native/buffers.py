"""The pool of result buffers: new results reuse the memory of those that are gone.

A fresh large array costs page faults comparable to the kernel that fills it. So memory of results
goes back to a pool when the last array over it dies, and the next result of about that size takes
it from there.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.argument import whole
from pyonednn_q.native import runtime

__all__ = ["BufferStatistics", "buffer_statistics", "clear_buffers", "limit_buffers"]


@dataclass(frozen=True, slots=True)
class BufferStatistics:
    """What the pool holds and did.

    Attributes
    ----------
    taken, reused : int
        Buffers handed out since the start, and how many of them came from the pool.
    held, held_bytes : int
        Buffers that wait in the pool, and their bytes. Those of living arrays are not in it.
    limit : int
        Bytes that may wait; what would exceed them is freed at once.
    """

    taken: int
    reused: int
    held: int
    held_bytes: int
    limit: int


def buffer_statistics() -> BufferStatistics:
    """Return what the pool holds and did."""
    now = runtime.core.buffer_statistics()
    return BufferStatistics(now.taken, now.reused, now.held, now.held_bytes, now.limit)


def limit_buffers(nbytes: int) -> None:
    """Set how many bytes may wait in the pool (256 MiB at first); 0 recycles nothing."""
    runtime.core.limit_buffers(whole("nbytes", nbytes, lo=0, hi=2**62))


def clear_buffers() -> None:
    """Free everything that waits in the pool."""
    runtime.core.clear_buffers()
