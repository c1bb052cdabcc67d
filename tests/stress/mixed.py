"""Threads that share everything, and set, limit and clear it meanwhile: every answer is right.

One run is one process of `--threads` threads for `--seconds`. ``--runs N`` starts N processes, one
after the other, with seeds from `--seed` on, and says how many ended well and how the others did:

    python tests/stress/mixed.py --runs 100 --seconds 4
    python tests/stress/mixed.py --network --runs 100
"""

from __future__ import annotations

import argparse
import ast
import collections
import gc
import os
import random
import subprocess
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.network import Network, Node

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, Any]
U8, S8 = pq.QParams(1.0, 0, "u8"), pq.QParams(1.0, 0, "s8")


def disturb(rng: random.Random) -> None:
    """Change something that all threads of the process share."""
    kind = rng.randrange(4)
    if kind == 0:
        pq.native.set_num_threads(rng.choice([1, 2, 3]))
    elif kind == 1:
        gc.collect()
        pq.ops.operator_cache_clear()
    elif kind == 2:
        pq.ops.operator_cache_limit(rng.choice([0, 1, 3, 256]))
    else:
        pq.native.limit_buffers(rng.choice([0, 1000, 2**28]))
        pq.native.clear_buffers()


def weights(rng: np.random.Generator, *dims: int) -> Array:
    return rng.integers(-5, 6, dims).astype(np.int8)


class Products:
    """Operators, functional calls and operators that are made anew, of any number of rows."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.wei = weights(rng, 32, 32)
        self.large = weights(rng, 512, 768)
        self.shared = [self._operator(weights(rng, 32, columns)) for columns in range(15, 24)]

    @staticmethod
    def _operator(wei: Array) -> pq.MatMul:
        return pq.MatMul(wei, src_q=U8, wei_q=S8)

    def call(self, rng: random.Random, numbers: np.random.Generator) -> bool:
        """Make one call; return whether all of it is right."""
        rows, share = rng.randrange(1, 40), rng.random()
        if share < 0.6:
            made = rng.choice(self.shared)
            wei = made.weights.values
        elif share < 0.65:
            wei = weights(numbers, 32, 24)
            made = self._operator(wei)
        else:
            wei = self.wei if share < 0.85 else self.large
            if share > 0.97:
                wei = weights(numbers, 32, 24)
            made = None
        src = numbers.integers(0, 3, (rows, wei.shape[0])).astype(np.uint8)
        if made is None:
            dst = pq.matmul(src, wei, src_q=U8, wei_q=S8)
        else:
            out = np.empty((rows, wei.shape[1]), np.float32) if rng.random() < 0.4 else None
            dst = made(src, out=out)
        if share > 0.97:
            lives = weakref.ref(wei)
            assert lives() is wei
        return np.array_equal(dst, src.astype(np.int32) @ wei.astype(np.int32))


class Images:
    """One network on images of different sizes, its layers alone with `out=`, all shared."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        wide = pq.Conv(
            rng.integers(-1, 2, (16, 8, 3, 3)).astype(np.int8),
            src_q=U8, wei_q=S8, dst_q=U8, padding=1,
        )  # fmt: skip
        narrow = pq.Conv(
            rng.integers(-1, 2, (8, 16, 1, 1)).astype(np.int8),
            src_q=U8, wei_q=S8, dst_q=U8,
        )  # fmt: skip
        self.layers = [wide, narrow, wide, narrow]
        nodes = [
            Node(f"t{at}", layer, f"t{at - 1}" if at else "x")
            for at, layer in enumerate(self.layers)
        ]
        self.network = Network(["x"], nodes, ["t1", "t3"])

    @staticmethod
    def _meant(src: Array, wei: Array) -> Array:
        """The convolution of both layers: stride 1, as codes of u8."""
        pad = wei.shape[2] // 2
        padded = np.pad(src.astype(np.int64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, wei.shape[2:], axis=(2, 3))
        sums = np.einsum("nchwij,ocij->nohw", windows, wei.astype(np.int64))
        return np.asarray(np.clip(sums, 0, 255))

    def call(self, rng: random.Random, numbers: np.random.Generator) -> bool:
        """Make one call; return whether all of it is right."""
        dims = rng.randrange(1, 3), 8, rng.randrange(3, 12), rng.randrange(3, 12)
        src = numbers.integers(0, 4, dims).astype(np.uint8)
        if rng.random() < 0.5:
            layer = self.layers[0]
            out = np.empty((dims[0], 16, *dims[2:]), np.uint8)
            dst = layer(src, out=out)
            return dst is out and np.array_equal(dst, self._meant(src, layer.weights.values))
        results = self.network(src)
        meant, right = src, True
        for at, layer in enumerate(self.layers):
            meant = self._meant(meant, layer.weights.values)
            if at in {1, 3}:
                right = right and np.array_equal(results[f"t{at}"], meant)
        return right


def run(options: argparse.Namespace) -> int:
    """Be one run; return how many calls were wrong or raised."""
    work = (Images if options.network else Products)(options.seed)
    ends = time.monotonic() + options.seconds
    done: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()

    def body(index: int) -> None:
        rng = random.Random(f"{options.seed} {index}")
        numbers = np.random.default_rng((options.seed, index))
        mine: collections.Counter[str] = collections.Counter()
        while time.monotonic() < ends:
            try:
                if rng.random() < options.disturbances:
                    disturb(rng)
                else:
                    mine["right" if work.call(rng, numbers) else "wrong"] += 1
            except Exception as error:  # counted: whatever a thread meets
                mine[f"{type(error).__name__}: {error}"[:200]] += 1
        with lock:
            done.update(mine)

    threads = [threading.Thread(target=body, args=(at,)) for at in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(f"{dict(done)}\n")
    return sum(done.values()) - done["right"] + (done["right"] == 0)


def run_many(options: argparse.Namespace, report: Callable[[str], None]) -> int:
    """Start `options.runs` runs; return how many did not end well."""
    ends: collections.Counter[str] = collections.Counter()
    calls = 0
    for seed in range(options.seed, options.seed + options.runs):
        command = [sys.executable, "-X", "faulthandler", __file__]
        command += ["--seed", str(seed), "--seconds", str(options.seconds)]
        command += ["--threads", str(options.threads), "--disturbances", str(options.disturbances)]
        command += ["--network"] if options.network else []
        # One of OpenMP: `set_num_threads` is then what makes more.
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        try:
            ended = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=600
            )
        except subprocess.TimeoutExpired:
            ends["hangs"] += 1
            report(f"seed {seed}: not ended after 600 s")
            continue
        ends["clean" if ended.returncode == 0 else f"ended with {ended.returncode}"] += 1
        if ended.returncode == 0:
            calls += ast.literal_eval(ended.stdout)["right"]
        else:
            report(f"seed {seed}: {ended.returncode} {ended.stdout[-500:]} {ended.stderr[-1500:]}")
    report(f"{options.runs} runs, {calls} calls: {dict(ends)}")
    return int(options.runs) - ends["clean"]


def parser() -> argparse.ArgumentParser:
    """Options of one run, and of many."""
    made = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    made.add_argument("--runs", type=int, default=0, help="processes; 0: be one run")
    made.add_argument("--seconds", type=float, default=4.0, help="of one run")
    made.add_argument("--threads", type=int, default=64)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--disturbances", type=float, default=0.05, help="share of what is no call")
    made.add_argument("--network", action="store_true", help="one network instead of products")
    return made


if __name__ == "__main__":
    asked = parser().parse_args()
    sys.exit(run_many(asked, print) if asked.runs else min(run(asked), 100))
