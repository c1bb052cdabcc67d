"""What a call from Python costs over the same primitive in a C++ loop.

Per shape, in one process, and all on one primitive, for where weights and scratchpad lie counts,
too: the loop inside the extension (`Prepared.time_calls`, which holds the clock as well); the
prepared call with ``out=`` and with a result from the pool; the operator (`Conv`, `MatMul`) and the
functional form (`conv`, `matmul`) with ``out=``, on weights that can be written, which every call
compares with a copy ("compared"), and on constant ones; the operator on a source of float32, whose
codes the call makes ("floats").

The ways take turns in another order each round, and a C++ loop goes before and after each of them:
what a way adds is the median of its differences to the mean of these two, with half of the interval
that holds the true median 19 times of 20. Drift of the machine hits both sides of a difference
alike. "loop again" is the C++ loop itself measured as a way: what it adds is noise. A batch is 20
calls and more, of the loop, too, after one that is not timed: that one finds other work in the
caches and costs more.

Run ``python benchmarks/call_overhead.py`` (``--json FILE`` keeps the numbers).
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyonednn_q import Conv, MatMul, QParams, conv, matmul
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import empty
from pyonednn_q.ops.functional import _CACHE
from pyonednn_q.ops.operator import Operator
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem, Problem

MIN_BATCH_S, MIN_BATCH = 1e-3, 20
COLUMNS = (
    "loop again",
    "call, out=",
    "call, pool",
    "operator",
    "compared",
    "constant wei",
    "floats",
)

SRC_Q, WEI_Q, DST_Q = QParams(1.0, 0, "u8"), QParams(0.01, 0, "s8"), QParams(1.0, 0, "u8")

Calls = Callable[[int], None]
Timed = Callable[[int], float]


@dataclass(frozen=True)
class Added:
    """What a way of calling adds to the C++ loop: a median, half of its interval of 95 %."""

    median_us: float
    half_us: float

    @classmethod
    def of(cls, differences: list[float]) -> Added:
        """Summarise differences in seconds; the interval needs no shape of their distribution."""
        us = np.sort(differences) * 1e6
        count = len(us)
        reach = 0.98 * count**0.5  # 1.96 deviations of the rank of the median
        lo = us[max(int(count / 2 - reach), 0)]
        hi = us[min(int(count / 2 + reach) + 1, count - 1)]
        return cls(float(np.median(us)), float(hi - lo) / 2)

    def __str__(self) -> str:
        return f"{self.median_us:+.2f} ±{self.half_us:.2f}"


@dataclass(frozen=True)
class Row:
    """One shape: the C++ loop in microseconds a call, and what each way adds to it."""

    shape: str
    impl: str
    loop_us: float
    added: dict[str, Added]

    def cells(self) -> list[str]:
        """Return the row of a table."""
        return [self.shape, f"`{self.impl}`", f"{self.loop_us:.2f}", *map(str, self.added.values())]

    def ratios(self) -> list[str]:
        """Return the row of a table of how many times as long as the loop each way takes."""
        took = [1 + each.median_us / self.loop_us for each in self.added.values()]
        return [self.shape, *(f"{each:.3f}" for each in took)]


def problems() -> dict[str, Problem]:
    """Return the shapes by name: one where nothing but overhead counts, up to a real layer."""
    return {
        "conv 1x16x4x4 1x1 16": ConvProblem.of((1, 16, 4, 4), (16, 16, 1, 1)),
        "conv 1x64x14x14 3x3 64": ConvProblem.of((1, 64, 14, 14), (64, 64, 3, 3), padding=1),
        "conv 1x64x56x56 3x3 64": ConvProblem.of((1, 64, 56, 56), (64, 64, 3, 3), padding=1),
        "conv 1x256x14x14 1x1 256": ConvProblem.of((1, 256, 14, 14), (256, 256, 1, 1)),
        "matmul 1x64 64x64": MatMulProblem.of((1, 64), (64, 64)),
        "matmul 128x768 768x768": MatMulProblem.of((128, 768), (768, 768)),
    }


def operator_of(problem: Problem, wei: np.ndarray) -> Operator:
    """Return the operator that functional calls with these weights run."""
    named: dict[str, Any] = {"src_q": SRC_Q, "wei_q": WEI_Q, "dst_q": DST_Q}
    if isinstance(problem, ConvProblem):
        return _CACHE.operator(Conv, wei, None, named | {"padding": problem.padding_lo})
    return _CACHE.operator(MatMul, wei, None, named)


def functional(problem: Problem, src: np.ndarray, wei: np.ndarray, dst: np.ndarray) -> Calls:
    """Return a loop of functional calls, with arguments as they are written in programs."""

    def convs(calls: int) -> None:
        for _ in range(calls):
            conv(src, wei, src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q, padding=padding, out=dst)

    def matmuls(calls: int) -> None:
        for _ in range(calls):
            matmul(src, wei, src_q=SRC_Q, wei_q=WEI_Q, dst_q=DST_Q, out=dst)

    if isinstance(problem, ConvProblem):
        padding = problem.padding_lo
        return convs
    return matmuls


def measure(name: str, problem: Problem, rounds: int) -> Row:
    """Time one shape, alternating between the ways of calling it."""
    rng = np.random.default_rng(0)
    wei = rng.integers(-8, 9, problem.tensors["wei"].dims).astype(np.int8)
    src = empty(problem.tensors["src"])
    src[...] = rng.integers(0, 100, src.shape)
    constant = wei.copy()
    constant.flags.writeable = False

    operator = operator_of(problem, wei)
    call = operator.prepare(src.shape)
    dst = call.empty()
    # One of its own: an operator keeps the way of its last call, of codes or of floats.
    floating, real = copy.copy(operator), src.astype(np.float32, order="K")
    # Its primitive may see the same memory in other dims.
    arrays = call.form.inward(src), call.form.inward(dst)
    primitive = call.primitive

    # Loops of their own: a function around each call would count as a part of it.
    def with_out(calls: int) -> None:
        for _ in range(calls):
            call(src, out=dst)

    def from_pool(calls: int) -> None:
        for _ in range(calls):
            call(src)

    def by_operator(calls: int) -> None:
        for _ in range(calls):
            operator(src, out=dst)

    def by_floats(calls: int) -> None:
        for _ in range(calls):
            floating(real, out=dst)

    def loop(calls: int) -> float:
        primitive.time_calls(*arrays, calls=1)
        return primitive.time_calls(*arrays, calls=calls)

    ways: tuple[Timed, ...] = (
        loop,
        timed(with_out),
        timed(from_pool),
        timed(by_operator),
        timed(functional(problem, src, wei, dst)),
        timed(functional(problem, src, constant, dst)),
        timed(by_floats),
    )
    calls = max(MIN_BATCH, int(MIN_BATCH_S / loop(MIN_BATCH)))
    for way in ways:
        way(calls)  # what the first call makes is not timed
    loops, added = in_turn(loop, dict(zip(COLUMNS, ways, strict=True)), calls, rounds)
    return Row(name, primitive.impl, float(np.median(loops)) * 1e6, added)


def timed(way: Calls) -> Timed:
    """Return what gives the seconds of one of that many calls."""

    def measured(calls: int) -> float:
        way(1)
        start = time.perf_counter()
        way(calls)
        return (time.perf_counter() - start) / calls

    return measured


def in_turn(
    loop: Timed, ways: dict[str, Timed], calls: int, rounds: int
) -> tuple[list[float], dict[str, Added]]:
    """Return seconds a call of the loop, and what each way adds to it."""
    order = random.Random(0)
    names = list(ways)
    loops: list[float] = []
    differences: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        order.shuffle(names)
        loops.append(loop(calls))
        for name in names:
            seconds = ways[name](calls)
            loops.append(loop(calls))
            differences[name].append(seconds - (loops[-2] + loops[-1]) / 2)
    return loops, {name: Added.of(each) for name, each in differences.items()}


def write_head(texts: Sequence[str], numbers: Sequence[str]) -> None:
    """Begin a Markdown table; numbers stand to the right."""
    write_row([*texts, *numbers])
    sys.stdout.write(f"|{'---|' * len(texts)}{'---:|' * len(numbers)}\n")


def write_row(cells: Sequence[str]) -> None:
    """Write a row of a Markdown table."""
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def main() -> int:
    """Print Markdown tables; optionally keep the rows as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=101, help="interleaved rounds a shape")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--threads", type=int, help="of the primitives; as many as there are")
    parser.add_argument("--only", default="", metavar="TEXT", help="shapes whose name has it")
    options = parser.parse_args()
    if options.threads is not None:
        runtime.set_num_threads(options.threads)

    version = ".".join(map(str, runtime.version()))
    head = f"oneDNN {version} {runtime.threading_runtime()}, {runtime.isa().text()}, "
    sys.stdout.write(
        head + f"{runtime.get_num_threads()} threads; microseconds, medians of {options.rounds}\n\n"
    )
    write_head(["shape", "implementation"], ["C++ loop", *COLUMNS])
    rows = []
    for name, problem in problems().items():
        if options.only not in name:
            continue
        rows.append(measure(name, problem, options.rounds))
        write_row(rows[-1].cells())
    sys.stdout.write("\nTimes the C++ loop:\n\n")
    write_head(["shape"], COLUMNS)
    for row in rows:
        write_row(row.ratios())
    if options.json:
        kept = {"oneDNN": version, "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(kept, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
