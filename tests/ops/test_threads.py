"""Many threads on shared operators, with sources of changing sizes: equal to serial, every time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.steps import Binary, Chain, Eltwise, Leaf, Sum
from pyonednn_q.native.runtime import buffer_statistics
from pyonednn_q.ops.functional import operator_cache_info
from pyonednn_q.qparams import QParams
from support.calls.call import Call, functions
from support.calls.draw import random_values
from support.threads import run_together

THREADS = 8
Q: dict[str, Any] = {"src_q": QParams(0.5, 3, "u8"), "wei_q": QParams(0.25, 0, "s8")}
POSTS = (Chain(), Chain(Eltwise("relu")), Chain(Sum(0.5)), Chain(Binary("add", Leaf("r", "s8"))))


@dataclass
class Work:
    """An operator and sources of several sizes, with what each must give."""

    call: Call
    operator: Any
    calls: list[Call]
    wants: list[Any]

    def one(self, index: int) -> bool:
        call = self.calls[index % len(self.calls)]
        want = self.wants[index % len(self.calls)]
        got = call.run(self.operator)
        return bool(np.array_equal(got, want))


def works() -> list[Work]:
    """Eight operators: every kind with two chains."""
    rng = np.random.default_rng(9)
    found = []
    for index in range(THREADS):
        kind, post = ("conv", "deconv", "inner_product", "matmul")[index % 4], POSTS[index // 2]
        dims = {
            "conv": (16, 8, 3, 3),
            "deconv": (16, 8, 2),
            "inner_product": (16, 8),
            "matmul": (8, 16),
        }
        wei = rng.integers(-4, 5, dims[kind]).astype(np.int8)
        calls = []
        for size in range(5):
            spatial = {"conv": (4 + size, 5), "deconv": (4 + size,)}.get(kind, ())
            src = rng.integers(0, 30, (1 + size, 8, *spatial)).astype(np.uint8)
            calls.append(_filled(Call(kind, src, wei, **Q, dst="s32", post=post), rng))
        operator = calls[0].operator()
        found.append(Work(calls[0], operator, calls, [call.run(operator) for call in calls]))
        for call, want in zip(calls, found[-1].wants, strict=True):
            call.meaning().check(want)
    return found


def _filled(call: Call, rng: np.random.Generator) -> Call:
    dims = call.but(post=Chain()).meaning().dst.shape
    if call.post == POSTS[2]:
        return call.but(residual=random_values(rng, dims, "s32"))
    if call.post == POSTS[3]:
        return call.but(operands={"r": random_values(rng, dims, "s8")})
    return call


@pytest.mark.stress
def test_threads_share_operators() -> None:
    shared = works()
    order = [np.random.default_rng(thread).integers(0, 1000, 200) for thread in range(THREADS)]

    def work(thread: int) -> bool:
        return all(shared[int(i) % THREADS].one(int(i) // THREADS) for i in order[thread])

    assert run_together(THREADS, work, rounds=2) == [[True, True]] * THREADS


@pytest.mark.stress
def test_threads_that_make_the_same_shapes_make_them_once() -> None:
    """All of them ask for a new shape at the same moment."""
    fresh = works()
    operators = [work.call.operator() for work in fresh]

    def work(_: int) -> bool:
        return all(
            np.array_equal(call.run(operator), want)
            for work, operator in zip(fresh, operators, strict=True)
            for call, want in zip(work.calls, work.wants, strict=True)
        )

    assert run_together(THREADS, work) == [[True]] * THREADS
    for work_, operator in zip(fresh, operators, strict=True):
        assert len(operator.shapes) == len(work_.calls)


@pytest.mark.stress
def test_threads_share_the_functions() -> None:
    shared = works()

    def work(thread: int) -> bool:
        right = True
        for index in range(100):
            it = shared[(thread + index) % THREADS]
            call = it.calls[index % len(it.calls)]
            more: dict[str, Any] = {} if call.residual is None else {"residual": call.residual}
            more |= {"operands": call.operands} if call.operands else {}
            # Weights of every other call are others of the same content.
            wei = call.wei if index % 2 else call.wei.copy()
            got = functions()[call.kind](call.src, wei, **call.settings(), **more)
            right &= bool(np.array_equal(got, it.wants[index % len(it.calls)]))
        return right

    assert run_together(THREADS, work) == [[True]] * THREADS
    info = operator_cache_info()
    assert info.size <= info.limit


@pytest.mark.slow
@pytest.mark.stress
def test_a_minute_of_threads_and_memory_that_stays_where_it_was(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    """`--stress-seconds` says how long."""
    seconds = request.config.getoption("--stress-seconds")
    shared = works()
    start = time.monotonic()
    resident: list[tuple[float, int]] = []

    def work(thread: int) -> int:
        rng, done = np.random.default_rng(thread), 0
        while time.monotonic() < start + seconds:
            index = int(rng.integers(1000))
            assert shared[index % THREADS].one(index // THREADS)
            done += 1
            if thread == 0 and done % 100 == 0:
                gc.collect()
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                resident.append((time.monotonic() - start, pages * 4096))
        return done

    counts = run_together(THREADS, work, timeout_s=3 * seconds + 60)
    assert min(count for (count,) in counts) > 100
    early = [size for at, size in resident if seconds / 6 < at < seconds / 3]
    late = [size for at, size in resident if at > seconds * 5 / 6]
    record_property("calls", sum(count for (count,) in counts))
    record_property("resident MiB, early and late", (max(early) >> 20, max(late) >> 20))
    assert max(late) - max(early) < 8 << 20
    now = buffer_statistics()
    assert now.held_bytes <= now.limit
