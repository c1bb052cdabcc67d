"""Known calls on weights that can be written, held against comparing."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

from pyonednn_q.native import runtime

__all__ = [
    "LIBC",
    "PAGE",
    "PATIENCE",
    "SIZE",
    "Calls",
    "address",
    "array_of",
    "skip_unless_watched",
]

PAGE = mmap.PAGESIZE
SIZE = 40 * PAGE + 100  # neither whole pages nor on a page's border, as arrays are
PATIENCE = 30  # calls after which what nobody writes is watched

LIBC = ctypes.CDLL(None, use_errno=True)


def skip_unless_watched() -> None:
    """Skip a test where the kernel is not asked what was written."""
    why = runtime.why_not_watching()
    if why:
        pytest.skip(f"weights are compared here: {why}")


class Calls:
    """One known call on an array; what it finds must be what comparing would have found."""

    def __init__(self, array: Any) -> None:
        self.array, self.first = array, array.copy()
        self.calls = runtime.core().KnownCalls()
        self.remember()

    def remember(self) -> None:
        self.first = self.array.copy()
        self.calls.remember("matmul", self.array, None, {}, "found", self.first.copy(), None)

    @property
    def watched(self) -> int:
        return int(self.calls.looks[1])

    def find(self) -> bool:
        found = self.calls.find("matmul", self.array, None, {}) is not None
        assert found == np.array_equal(self.array, self.first)
        return found

    def watch(self) -> bool:
        """Call until it is watched; False if it never is."""
        before = self.watched
        for _ in range(PATIENCE):
            assert self.find()
        return self.watched > before


def array_of(size: int = SIZE) -> Any:
    return np.random.default_rng(size).integers(-128, 128, size).astype(np.int8)


def address(array: Any, at: int = 0) -> int:
    return int(array.ctypes.data) + at
