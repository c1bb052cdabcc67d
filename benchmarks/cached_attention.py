"""Attention on a cache of keys and values: of codes beside floats, a token or a prompt at a time.

16 heads of 64, 8 of keys and values. Both in turn, in one process; prints Markdown: the fastest
call of each in microseconds, and by how much codes are faster. Run
``python benchmarks/cached_attention.py --threads 1``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.network import CachedAttention, CacheShape, KeyValueCache, Network, Node
from pyonednn_q.primitive import TensorSpec

Array = np.ndarray[Any, Any]
HEADS, GROUPS, DEPTH = 16, 8, 64
CASES = ((1, 128), (1, 1000), (1, 4000), (32, 1000), (128, 0), (512, 0))  # tokens, those before


def step(dtype: str, tokens: int, past: int) -> Callable[[], object]:
    """Return a call that attends to tokens behind others, and leaves the cache as long as it is."""
    shape = CacheShape(1, 1, GROUPS, DEPTH, DEPTH, past + tokens, dtype)
    attention = CachedAttention(shape, 0, HEADS, is_packed=True)
    network = Network(["x", "cache"], [Node("y", attention, ("x", "cache"))], ["y"])
    cache = KeyValueCache(shape)
    columns = (HEADS + 2 * GROUPS) * DEPTH

    def ready(count: int) -> Callable[[], object]:
        x = np.random.default_rng(0).standard_normal((1, count, columns)).astype(np.float32)
        specs = {"x": TensorSpec.of(x), "cache": TensorSpec.of(cache.memory)}
        compiled = network.compile(specs)
        return lambda: compiled(x, cache.memory)

    if past:
        ready(past)()
        cache.append(past)
    return ready(tokens)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=40)
    told = parser.parse_args()
    pq.native.set_num_threads(told.threads)
    print("| tokens, behind | codes, us | floats, us | floats over codes |\n|---|---:|---:|---:|")
    for tokens, past in CASES:
        calls = [step(dtype, tokens, past) for dtype in ("s8", "f32")]
        best = [np.inf, np.inf]
        for _ in range(told.rounds):
            for at, call in enumerate(calls):
                start = time.perf_counter()
                call()
                best[at] = min(best[at], (time.perf_counter() - start) * 1e6)
        codes, floats = best
        print(f"| {tokens}, {past} | {codes:.0f} | {floats:.0f} | {floats / codes:.2f} |")


if __name__ == "__main__":
    main()
