"""How long composing takes: a 6-step chain, per channel and per tensor.

Microseconds of this process's CPU time, median and least over rounds; nothing runs on oneDNN. Run
``python benchmarks/compose_time.py``.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Binary, Chain, Eltwise
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts

CHANNELS = 2048


def problem(*, per_channel: bool) -> tuple[Chain, PrimitiveFacts]:
    """Return relu, multiply, add and a FakeQuantize to u8, on a convolution with a bias."""
    rng = np.random.default_rng(0)

    def draw(lo: float, hi: float) -> Vec:
        return Vec(rng.uniform(lo, hi, CHANNELS) if per_channel else float(rng.uniform(lo, hi)))

    quantize = FakeQuantize(0, draw(4.0, 8.0), 0, 255).chain()
    chain = Chain(
        Eltwise("relu"), Binary("mul", draw(0.5, 2.0)), Binary("add", draw(-1, 1)), quantize
    )
    facts = PrimitiveFacts(
        "convolution", CHANNELS, src_scale=0.5, wei_scale=draw(0.1, 0.2), bias=draw(-1, 1)
    )
    return chain, facts


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    for per_channel in (True, False):
        chain, facts = problem(per_channel=per_channel)
        times = []
        for _ in range(rounds):
            start = time.process_time_ns()
            compose(chain, facts)
            times.append((time.process_time_ns() - start) / 1000)
        name = f"{CHANNELS} channels" if per_channel else "per tensor"
        print(
            f"{name:<14} {len(chain)} steps: median {statistics.median(times):.0f} us, "
            f"least {min(times):.0f} us"
        )


if __name__ == "__main__":
    main()
