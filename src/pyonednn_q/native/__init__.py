"""The room of the extension: find and load oneDNN, prepare primitives, run them.

The only importer of `pyonednn_q._core`; oneDNN is opened on first use. No algebra here: what a
chain of FakeQuantize means is decided below, what a user types above.
"""

from __future__ import annotations

from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import Packed
from pyonednn_q.native.preparation import prepare
from pyonednn_q.native.prepared import Prepared
from pyonednn_q.native.runtime import (
    BufferStatistics,
    buffer_statistics,
    clear_buffers,
    get_num_threads,
    limit_buffers,
    set_num_threads,
    threads,
)
from pyonednn_q.native.selection import implementations

__all__ = [
    "BufferStatistics",
    "Packed",
    "Prepared",
    "buffer_statistics",
    "clear_buffers",
    "get_num_threads",
    "implementations",
    "limit_buffers",
    "prepare",
    "runtime",
    "set_num_threads",
    "threads",
]
