"""Ten thousand lives of a primitive, and memory that stays where it was."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.compose.attr import Attr, Scale
from pyonednn_q.compose.problem import ConvProblem
from pyonednn_q.errors import ArgumentError, Error

CYCLES = 10_000
WARM = 1_500
# One page of every hundredth cycle would be 400 KiB; a leaked frame or descriptor a cycle is over
# 8 MiB.
ALLOWED_BYTES = 4 << 20


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def cycle(index: int) -> None:
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


@pytest.mark.stress
def test_memory_is_flat_over_ten_thousand_prepares() -> None:
    for index in range(WARM):
        cycle(index)
    gc.collect()
    before = resident_bytes()
    for index in range(CYCLES - WARM):
        cycle(index)
    gc.collect()
    grown = resident_bytes() - before
    assert grown < ALLOWED_BYTES, f"{grown} bytes more after {CYCLES} cycles"
