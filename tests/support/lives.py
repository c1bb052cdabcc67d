"""Lives of primitives: prepared, called, refused, gone; and the memory that stays behind."""

from __future__ import annotations

import gc
import mmap
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import native
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.problem import ConvProblem

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


def pages_kept_by_shapes(start: int, shapes: int, functional: bool) -> int:
    """Return how many more pages this process holds after calls on that many new shapes.

    Of convolutions: oneDNN 3.7 itself keeps the kernels of matmuls for as long as it is loaded.
    """
    pq.ops.limit_shapes(32)
    gc.collect()
    before = _resident_pages()
    for index in range(start, start + shapes):
        src = np.full((1, 1 + index // 100, 1 + index % 100, 16), 3, np.uint8)
        src = src.transpose(0, 3, 1, 2)
        dst = pq.conv(src, _WEI, **_Q) if functional else _operator()(src)
        assert dst.shape == (1, 8, *src.shape[2:])
        assert dst.min() == dst.max() == 48
    gc.collect()
    return _resident_pages() - before


_WEI = np.ones((8, 16, 1, 1), np.int8)
_Q: dict[str, Any] = {"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": pq.QParams(1.0, 0, "s8")}


@cache
def _operator() -> pq.Conv:
    return pq.Conv(_WEI, **_Q)
