"""Lives of primitives: prepared, called, refused, gone; and the memory that stays behind."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.compose.attr import Attr, Scale
from pyonednn_q.compose.problem import ConvProblem
from pyonednn_q.errors import ArgumentError, Error

PLANTED = 100  # lives for each page that a planted leak keeps

_kept: list[mmap.mmap] = []


def pages_kept_by(lives: int, *, leak: bool) -> int:
    """Return how many more pages this process holds after that many lives."""
    gc.collect()
    before = _resident_pages()
    for index in range(lives):
        _live(index)
        if leak and index % PLANTED == 0:
            page = mmap.mmap(-1, mmap.PAGESIZE)
            page[0] = 1
            _kept.append(page)
    gc.collect()
    return _resident_pages() - before


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


def _live(index: int) -> None:
    channels = 8 + index % 4
    problem = ConvProblem.of((1, channels, 5, 5), (16, channels, 3, 3), padding=1)
    attr = Attr(wei_scale=Scale(mask=1), dst_scale=Scale())
    wei = np.ones((16, channels, 3, 3), np.int8)
    values = {"wei_scale": np.full(16, 0.5), "dst_scale": 1.0}
    call = native.prepare(problem, attr, wei=wei, values=values)
    call(np.ones((1, channels, 5, 5), np.uint8))
    with pytest.raises(ArgumentError):
        native.prepare(problem, attr, wei=wei, values=values | {"dst_scale": -1.0})
    with pytest.raises(Error):
        call(np.ones((1, channels, 5, 4), np.uint8))
