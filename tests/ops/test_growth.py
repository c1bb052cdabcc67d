"""Calls that are repeated hold no more memory than the first few."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q import Dynamic
from pyonednn_q.expr.steps import Chain, Sum
from pyonednn_q.native import buffer_statistics
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.ops.functional import matmul
from pyonednn_q.qparams import QParams

CALLS = 4000
BYTES = CALLS * 24  # less than the smallest block of malloc for each call
RNG = np.random.default_rng(4)
SRC = RNG.integers(0, 30, (4, 64)).astype(np.uint8)
WEI = RNG.integers(-4, 5, (64, 64)).astype(np.int8)
WAYS = (
    "prepared, out",
    "prepared, pool",
    "operator, out",
    "operator, pool",
    "copied into its layout",
    "functional",
    "functional, constant",
    "functional, a view each",
    "residual",
    "dynamic",
)
Q: dict[str, Any] = {"src_q": QParams(0.5, 0, "u8"), "wei_q": QParams(0.25, 0, "s8")}


def ways() -> dict[str, Callable[[], object]]:
    wide, out = np.ones((1, 16, 4, 4), np.uint8), np.zeros((4, 64), np.float32)
    operator = MatMul(WEI, **Q)
    prepared = operator.prepare(SRC.shape).primitive
    of_any_layout = Conv(np.ones((16, 16, 1, 1), np.int8), **Q)
    with_sum = MatMul(WEI, **Q, post=Chain(Sum()))
    dynamic = MatMul(WEI, src_q=Dynamic("u8"), wei_q=Q["wei_q"])
    real = SRC.astype(np.float32)
    constant = WEI.copy()
    constant.flags.writeable = False
    # The primitive takes this product in three dimensions on some versions: its own empty arrays.
    src, dst = prepared.empty("src"), prepared.empty("dst")
    src[...] = 1
    return {
        "prepared, out": lambda: prepared(src, out=dst),
        "prepared, pool": lambda: prepared(src),
        "operator, out": lambda: operator(SRC, out=out),
        "operator, pool": lambda: operator(SRC),
        "copied into its layout": lambda: of_any_layout(wide),
        "functional": lambda: matmul(SRC, WEI, **Q),
        "functional, constant": lambda: matmul(SRC, constant, **Q, out=out),
        "functional, a view each": lambda: matmul(SRC, WEI[:], **Q),
        "residual": lambda: with_sum(SRC, residual=out),
        "dynamic": lambda: dynamic(real),
    }


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _held_more_after(call: Callable[[], object]) -> tuple[int, int]:
    gc.collect()
    blocks, nbytes = sys.getallocatedblocks(), resident()
    for _ in range(CALLS):
        call()
    gc.collect()
    return sys.getallocatedblocks() - blocks, resident() - nbytes


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc: memory not told")
@pytest.mark.parametrize("way", WAYS)
def test_repeated_calls_take_no_memory(way: str) -> None:
    call = ways()[way]
    for _ in range(CALLS // 8):
        call()
    gc.collect()  # what other tests left goes back to the pool
    pool = buffer_statistics()
    # A leak is in every round; an allocator's own arena in one of them.
    rounds = []
    for _ in range(4):
        rounds.append(_held_more_after(call))
        least = [min(column) for column in zip(*rounds, strict=True)]
        if least[0] < CALLS // 50 and least[1] < BYTES:
            break
    assert least[0] < CALLS // 50
    assert least[1] < BYTES
    now = buffer_statistics()
    assert now.held_bytes == pool.held_bytes
    assert now.taken - now.reused == pool.taken - pool.reused  # none allocated
