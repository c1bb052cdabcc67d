"""Our own passes over memory on several threads: what one thread computes, always."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.native.passes import Cast, quantize, ranges, requantize
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.requantize import statement
from pyonednn_q.requantize.value import Requantizer
from support.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Callable

F = np.float32
MANY = 1 << 20  # more than threads are started for
# Around the pieces that threads take: one, some, the last one short.
COUNTS = (1 << 14, (1 << 14) + 1, 3 << 14, (1 << 17) - 1, MANY, MANY + 777)
ONE = Requantizer("two_step", 1_500_000_000, -9, bias=3, rounding="half_up")


def sums(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-60_000, 60_000, count).astype(np.int32)


def numbers(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0.2, 1, count).astype(F)


def cast(src: str, dst: str, array: Any) -> Any:
    return Cast(TensorSpec.dense(array.shape, src), TensorSpec.dense(array.shape, dst))(array)


def per_channel(count: int) -> Requantizer:
    rng = np.random.default_rng(count)
    return Requantizer("shift", rng.integers(1, 2**30, 7), -43, rounding="half_up", axis=0)


@pytest.mark.parametrize("count", COUNTS)
def test_requantizers(count: int) -> None:
    acc = sums(count)
    assert np.array_equal(requantize(acc, ONE), statement.apply(acc, ONE))
    rows = sums(7 * (count // 7)).reshape(7, -1)
    made = per_channel(count)
    assert np.array_equal(requantize(rows, made), statement.apply(rows, made))


PASSES: dict[str, Callable[[Any], Any]] = {
    "quantize": lambda x: quantize(x[None], np.full(1, 0.01, F), np.full(1, 3, np.int32), "s8"),
    "quantize rows": lambda x: quantize(
        x[: len(x) // 9 * 9].reshape(9, -1),
        np.linspace(0.01, 0.09, 9, dtype=F),
        np.arange(9, dtype=np.int32),
        "u8",
    ),
    "ranges": lambda x: np.stack(ranges(x[None], 1)),
    "ranges of rows": lambda x: np.stack(ranges(x[: len(x) // 9 * 9].reshape(9, -1), 9)),
    "bf16": lambda x: cast("f32", "bf16", x).view(np.uint16),
    "f16": lambda x: cast("f16", "f32", cast("f32", "f16", x)),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("what", PASSES)
def test_threads_compute_what_one_computes(what: str, count: int) -> None:
    values = numbers(count)
    with runtime.threads(1):
        one = PASSES[what](values)
    assert np.array_equal(PASSES[what](values), one)


@pytest.mark.parametrize("at", [0, MANY // 2 - 1, MANY // 2, MANY - 1])
def test_a_fault_is_found_in_every_part(at: int) -> None:
    acc = sums(MANY)
    acc[at] = 2**31 - 1
    with pytest.raises(ArgumentError, match=r"^acc: .* leaves 32 bits"):
        requantize(acc, ONE)
    values = numbers(MANY)
    values[at] = np.nan
    with pytest.raises(ArgumentError, match="src: got NaN"):
        PASSES["quantize"](values)
    with pytest.raises(ArgumentError, match="src: got values that are not finite"):
        ranges(values[None], 1)
    values[at] = 50
    lo, hi = ranges(values[None], 1)
    assert hi[0] == 50
    assert lo[0] == values.min()


def test_callers_beside_each_other() -> None:
    """More than there are threads; who finds them busy works alone."""
    given = [sums(MANY, seed) for seed in range(6)]
    wanted = [statement.apply(acc, ONE) for acc in given]
    found = run_together(
        6, lambda i: np.array_equal(requantize(given[i], ONE), wanted[i]), rounds=8
    )
    assert found == [[True] * 8] * 6


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_threads_are_started_only_where_they_are_allowed_and_pay() -> None:
    """None but OpenMP's, for more than a piece, one for each that is allowed."""
    child = python(
        f"""
        import os
        import numpy as np
        from pyonednn_q.requantize.value import Requantizer
        from pyonednn_q.native import runtime
        from pyonednn_q.native.passes import requantize
        made = Requantizer("float", 0.01)
        most = runtime.get_num_threads()
        started = []
        def run(count):
            before = len(os.listdir("/proc/self/task"))
            requantize(np.zeros(count, np.int32), made)
            started.append(len(os.listdir("/proc/self/task")) - before)
        run(1000)
        with runtime.threads(1):
            run({16 * MANY})
        run({16 * MANY})
        run({16 * MANY})
        team = most - 1 if runtime.threading_runtime() == "OMP" else 0
        print(started == [0, 0, team, 0], started, most)
        """
    )
    assert child.stdout.startswith("True"), child


BEFORE = {
    "a pass": "requantize(acc, made)",
    "a primitive": "pq.matmul(np.ones((64, 64), np.uint8), np.ones((64, 64), np.int8), **q)",
}


@pytest.mark.parametrize("before", BEFORE)
def test_a_forked_child_works_alone(before: str) -> None:
    """Its parent's threads do not exist in it, whatever they were started for."""
    child = python(
        f"""
        import os
        import numpy as np
        import pyonednn_q as pq
        from pyonednn_q.requantize.value import Requantizer
        from pyonednn_q.native.passes import requantize
        made = Requantizer("float", 0.01)
        q = {{"src_q": pq.QParams(1.0, 0, "u8"), "wei_q": pq.QParams(1.0, 0, "s8")}}
        acc = np.arange({MANY}, dtype=np.int32)
        {BEFORE[before]}
        pid = os.fork()
        if pid == 0:
            wanted = np.clip(np.rint(acc.astype(np.float32) * np.float32(0.01)), -128, 127)
            os._exit(7 if np.array_equal(requantize(acc, made), wanted) else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert child.stdout == "7\n", child
