"""How fast each dialect requantizes, beside a pass over the same memory that computes nothing.

The pass is NumPy's cast of s32 to s8, which reads and writes what a requantizer does: five bytes
for each accumulator. It has as many threads, each with its part of the array, if that makes it
faster. Rounds go through all dialects in turn, and the fastest round of each counts.

Run ``python benchmarks/requantize.py``, with ``--threads 1``, or with ``--accumulators 14`` for
sums that stay in cache.
"""

from __future__ import annotations

import argparse
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.native import get_num_threads, set_num_threads
from pyonednn_q.native.passes import requantize
from pyonednn_q.requantize import DIALECTS, requantizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.requantize.value import Requantizer

CHANNELS = 64
BYTES = 5  # of an accumulator and its code
LEAST_VALUES = 1 << 21  # that one timing goes over, for the clock's sake


def made(name: str, *, per_channel: bool) -> Requantizer:
    """Return a dialect's arithmetic for a multiplier near 2^-9."""
    wei = np.full(CHANNELS, 0.01, np.float32) if per_channel else 0.01
    return requantizer(name, src_scale=0.02, wei_scale=wei, dst_scale=0.1, dst_zero_point=3, axis=1)


def seconds(call: Callable[[], object], calls: int) -> float:
    """Return the time of one of several calls."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def cast(dst: Any, src: Any) -> None:  # noqa: ANN401 - arrays
    """Write integers of 32 bits as 8, without the GIL."""
    np.copyto(dst, src, casting="unsafe")


def main() -> None:
    """Print GB/s of every dialect, for one scale and for one per channel."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--accumulators", type=int, default=24, metavar="N", help="2^N of them (default: 24)"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dialect", action="append", choices=DIALECTS, metavar="NAME")
    parser.add_argument("--threads", type=int, help="default: as many as the library takes")
    options = parser.parse_args()
    if options.threads:
        set_num_threads(options.threads)
    threads = get_num_threads()
    count = 1 << options.accumulators
    rng = np.random.default_rng(0)
    acc = rng.integers(-30_000, 30_000, (count // CHANNELS, CHANNELS)).astype(np.int32)
    out = np.empty(acc.shape, np.int8)
    calls: dict[tuple[str, bool], Any] = {}
    for name in options.dialect or DIALECTS:
        for per_channel in (False, True):
            arithmetic = made(name, per_channel=per_channel)
            calls[name, per_channel] = lambda r=arithmetic: requantize(acc, r, out=out)
    pool = ThreadPoolExecutor(threads)
    parts = list(zip(np.array_split(out, threads), np.array_split(acc, threads), strict=True))
    calls["", False] = lambda: cast(out, acc)
    calls["", True] = lambda: list(pool.map(cast, *zip(*parts, strict=True)))
    best = dict.fromkeys(calls, math.inf)
    repeats = max(1, LEAST_VALUES // count)
    for _ in range(options.rounds):
        for key, call in calls.items():
            best[key] = min(best[key], seconds(call, repeats))
    rate = {key: BYTES * count / time / 1e9 for key, time in best.items()}
    plain = max(rate.pop(("", False)), rate.pop(("", True)))
    print(f"{count} accumulators to s8, {threads} threads; a plain cast: {plain:.1f} GB/s")
    print("| dialect | GB/s | of the cast | GB/s per channel | of the cast |")
    print("|---|---:|---:|---:|---:|")
    for name in options.dialect or DIALECTS:
        one, each = rate[name, False], rate[name, True]
        print(f"| `{name}` | {one:.1f} | {one / plain:.0%} | {each:.1f} | {each / plain:.0%} |")


if __name__ == "__main__":
    main()
