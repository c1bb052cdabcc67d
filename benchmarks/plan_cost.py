"""What composing is worth: a chain lowered step by step against its plan, executed.

Per chain and shape: the bare primitive, the chain with one post-op (or two) a step, and the plan.
Interleaved, in one process, C++ loops over the primitive on random numbers; of all rounds the 5th
percentile, which is what the machine does when nobody else is on it. Run
``python benchmarks/plan_cost.py`` (``--json FILE`` keeps the numbers).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import native
from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Binary, Chain, Eltwise, PRelu
from pyonednn_q.native import runtime
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import ConvProblem

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.native import Prepared

CALLS = 5
LEAST = 5  # percentile of the rounds


@dataclass(frozen=True)
class Row:
    """One chain on one shape: microseconds a call."""

    chain: str
    shape: str
    post_ops: tuple[int, int]
    bare_us: float
    steps_us: float
    plan_us: float

    @property
    def gain(self) -> float:
        """How many times longer the chain takes step by step."""
        return self.steps_us / self.plan_us


def problems() -> dict[str, ConvProblem]:
    """Return the shapes by name."""
    return {
        "64x56x56 3x3": ConvProblem.of((1, 64, 56, 56), (64, 64, 3, 3), padding=1, bias="f32"),
        "256x14x14 1x1": ConvProblem.of((1, 256, 14, 14), (256, 256, 1, 1), bias="f32"),
    }


def chains(channels: int) -> dict[str, Chain]:
    """Return the chains by name, with constants per channel unless the name says otherwise."""
    rng = np.random.default_rng(0)
    scale, shift = rng.uniform(0.5, 2.0, channels), rng.uniform(-1.0, 1.0, channels)
    high = rng.uniform(4.0, 8.0, channels)
    signed = scale * rng.choice([-1.0, 1.0], channels)
    quantize = FakeQuantize(0, high, 0, 255).chain()
    return {
        "fq per tensor": FakeQuantize(0, 6.0, 0, 255).chain(),
        "fq": quantize,
        "mul add": Chain(Binary("mul", scale), Binary("add", shift)),
        "mul add fq": Chain(Binary("mul", scale), Binary("add", shift), quantize),
        "relu mul add": Chain(Eltwise("relu"), Binary("mul", scale), Binary("add", shift)),
        "leaky relu": Chain(Eltwise("relu", 0.1)),
        "abs mul add": Chain(Eltwise("abs"), Binary("mul", signed), Binary("add", shift)),
        "gelu fq": Chain(Eltwise("gelu_erf"), quantize),
        "prelu mul fq": Chain(PRelu(shift), Binary("mul", scale), quantize),
        "fq relu mul fq": Chain(
            FakeQuantize(0, high, 0, high).chain(), Eltwise("relu"), Binary("mul", scale), quantize
        ),
    }


def prepare(plan: Plan, problem: ConvProblem) -> Prepared:
    """Make the plan's primitive ready, on weights that no instruction set overflows with."""
    rng = np.random.default_rng(1)
    wei = rng.integers(-60, 61, problem.wei.dims).astype(np.int8)
    return native.prepare(
        plan.problem(problem),
        plan.attr,
        wei=plan.wei(wei),
        bias=plan.bias_values(),
        values=plan.values(),
    )


def measure(name: str, chain: Chain, shape: str, problem: ConvProblem, rounds: int) -> Row:
    """Time one chain on one shape, alternating between the three forms."""
    channels = problem.dst.dims[1]
    rng = np.random.default_rng(2)
    facts = PrimitiveFacts.of(
        problem,
        src_scale=0.02,
        wei_scale=rng.uniform(0.002, 0.004, channels),
        bias=rng.uniform(-1.0, 1.0, channels),
        process=runtime.facts(),
    )
    plans = [compose(Chain(), facts), compose(chain, facts, rules=NO_RULES), compose(chain, facts)]
    ready = [prepare(plan, problem) for plan in plans]
    arrays = [(primitive.empty("src"), primitive.empty("dst")) for primitive in ready]
    for src, _ in arrays:
        # Equal numbers would be faster: multipliers draw power for bits that change.
        src[...] = rng.integers(0, 256, src.shape)
    times: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        for taken, primitive, pair in zip(times, ready, arrays, strict=True):
            taken.append(primitive.time_calls(*pair, calls=CALLS) * 1e6)
    bare, steps, plan = (float(np.percentile(taken, LEAST)) for taken in times)
    counts = (len(plans[1].post_ops), len(plans[2].post_ops))
    return Row(name, shape, counts, bare, steps, plan)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path, help="keep the rows here")
    options = parser.parse_args()
    print(f"oneDNN {'.'.join(map(str, runtime.version()))} on {runtime.isa().text()}, one thread")
    head = f"{'shape':<15} {'chain':<15} {'post-ops':>9} {'bare us':>9} "
    print(head + f"{'steps':>7} {'plan':>7} {'gain':>6}")
    rows = []
    with runtime.threads(1):
        for shape, problem in problems().items():
            for name, chain in chains(problem.dst.dims[1]).items():
                row = measure(name, chain, shape, problem, options.rounds)
                rows.append(row)
                ratios = row.steps_us / row.bare_us, row.plan_us / row.bare_us
                counts = f"{row.post_ops[0]} > {row.post_ops[1]}"
                print(
                    f"{shape:<15} {name:<15} {counts:>9} {row.bare_us:>9.1f} "
                    f"{ratios[0]:>6.2f}x {ratios[1]:>6.2f}x {row.gain:>5.2f}x"
                )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
