"""Processes whose memory ends, at many places: each is told so, and none crashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CHILD = """
import _thread, re, resource, sys
import numpy as np
import pyonednn_q as pq

u8, s8 = pq.QParams(1.0, 0, "u8"), pq.QParams(1.0, 0, "s8")
rng = np.random.default_rng(int(sys.argv[1]))


def size():
    return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10


def drawn(at):
    channels = 16 * (1 + at % 9)
    if at % 2:
        wei = rng.integers(-4, 5, (channels, channels, 3, 3)).astype(np.int8)
        src = rng.integers(0, 9, (1, channels, 9 + at % 40, 11)).astype(np.uint8)
        return pq.Conv, wei, src, {"padding": 1}
    wei = rng.integers(-4, 5, (channels + at % 13, 40 + at % 53)).astype(np.int8)
    return pq.MatMul, wei, rng.integers(0, 9, (1 + at % 17, len(wei))).astype(np.uint8), {}


def use(kind, wei, src, options):
    try:
        operator = kind(wei, src_q=u8, wei_q=s8, **options)
        kept.append((operator, src, operator(src)))
    except Exception as error:
        ends.append(type(error).__name__)


def run(at):
    problem = drawn(at)
    if sys.argv[3] == "here":
        use(*problem)
        return
    begun, done = [], _thread.allocate_lock()
    done.acquire()

    def work():
        begun.append(at)
        try:
            use(*problem)
        finally:
            done.release()

    # Not threading's: where memory ends before a thread of its own begins, start() waits for ever.
    _thread.start_new_thread(work, ())
    if not done.acquire(timeout=60):
        assert not begun, "a call that does not end"
        raise MemoryError


ends, kept = [], []
for at in range(2):
    run(at)
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (size() + int(sys.argv[2]), before[1]))
while len(ends) < 5:
    at += 1
    try:
        run(at)
    except (MemoryError, RuntimeError):  # an array drawn here, or Python's own thread
        ends.append("OutOfMemoryError")
resource.setrlimit(resource.RLIMIT_AS, before)
for operator, src, dst in kept:  # nothing that was made is broken
    assert np.array_equal(operator(src), dst)
    wei = operator.weights.values
    if wei.ndim == 2:
        assert np.array_equal(dst, src.astype(np.int32) @ wei.astype(np.int32))
print(len(kept) - 2, *sorted(set(ends)))
"""


def ended(seed: int, nbytes: int, where: str) -> tuple[int, str, str]:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(seed), str(nbytes), where],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return child.returncode, child.stdout, child.stderr[-2000:]


@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers reserve more addresses")
@pytest.mark.parametrize("where", ["here", "in new threads"])
def test_a_process_whose_memory_ends_is_told_so(where: str) -> None:
    # Spread, and by steps that are no multiple of what anything takes.
    made = 0
    for at in range(6):
        code, said, told = ended(at, (1 << 20) + at * 20_123_648, where)
        assert code == 0, (at, code, told)
        kept, *ends = said.split()
        assert ends == ["OutOfMemoryError"], (at, said)
        made += int(kept)
    assert made > 0  # the larger limits let some be made
