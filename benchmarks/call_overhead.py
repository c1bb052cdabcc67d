"""What a call from Python costs over the same primitive in a C++ loop.

Per shape, in one process and interleaved: the loop inside the extension (`Prepared.time_calls`);
the prepared call with ``out=`` and with a result from the pool; the operator (`Conv`, `MatMul`) and
the functional form (`conv`, `matmul`) with ``out=``, on weights that can be written, which every
call compares, and on constant ones. Medians over rounds; what a way of calling adds is the
difference of two medians. On a machine that others use, ``--quantile 0.1`` takes the rounds that
they left alone, and ``--threads 1`` needs but one core left alone.

Run ``python benchmarks/call_overhead.py`` (``--json FILE`` keeps the numbers).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyonednn_q import Conv, MatMul, QParams, conv, matmul, native
from pyonednn_q.compose.attr import Attr, Scale
from pyonednn_q.compose.problem import ConvProblem, MatMulProblem, Problem

MIN_BATCH_S = 2e-3


@dataclass(frozen=True)
class Row:
    """One shape: microseconds per call, a quantile of the rounds."""

    shape: str
    impl: str
    loop_us: float
    out_us: float
    new_us: float
    operator_us: float
    functional_us: float
    constant_us: float

    def cells(self) -> list[str]:
        """Return the row of a table: the loop, and what each way adds to it."""
        ways = (
            self.out_us,
            self.new_us,
            self.operator_us,
            self.functional_us,
            self.constant_us,
        )
        added = (f"{way - self.loop_us:+.2f}" for way in ways)
        return [self.shape, f"`{self.impl}`", f"{self.loop_us:.2f}", *added]


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


def measure(name: str, problem: Problem, rounds: int, quantile: float) -> Row:
    """Time one shape, alternating between the ways of calling it."""
    rng = np.random.default_rng(0)
    wei_dims = problem.tensors["wei"].dims
    wei = rng.integers(-8, 9, wei_dims).astype(np.int8)
    values = {"wei_scale": 0.01, "dst_scale": 1.0}
    call = native.prepare(
        problem, Attr(wei_scale=Scale(), dst_scale=Scale()), wei=wei, values=values
    )
    src, dst = call.empty("src"), call.empty("dst")
    src[...] = rng.integers(0, 100, src.shape)

    operator_of: type[Conv | MatMul] = Conv if problem.kind == "convolution" else MatMul
    function = conv if problem.kind == "convolution" else matmul
    named: dict[str, Any] = {
        "src_q": QParams(1.0, 0, "u8"),
        "wei_q": QParams(0.01, 0, "s8"),
        "dst_q": QParams(1.0, 0, "u8"),
    }
    if isinstance(problem, ConvProblem):
        named["padding"] = problem.padding_lo
    operator = operator_of(wei, **named)

    constant = wei.copy()
    constant.flags.writeable = False
    once = call.time_calls(src, dst, calls=20)
    calls = max(5, int(MIN_BATCH_S / once))

    # Loops of their own: a function around each call would count as a part of it.
    def with_out() -> None:
        for _ in range(calls):
            call(src, out=dst)

    def from_pool() -> None:
        for _ in range(calls):
            call(src)

    def by_operator() -> None:
        for _ in range(calls):
            operator(src, out=dst)

    def by_function() -> None:
        for _ in range(calls):
            function(src, wei, **named, out=dst)

    def on_constant() -> None:
        for _ in range(calls):
            function(src, constant, **named, out=dst)

    ways = (with_out, from_pool, by_operator, by_function, on_constant)
    times: list[list[float]] = [[] for _ in range(1 + len(ways))]
    for _ in range(rounds):
        times[0].append(call.time_calls(src, dst, calls=calls))
        for way, found in zip(ways, times[1:], strict=True):
            start = time.perf_counter()
            way()
            found.append((time.perf_counter() - start) / calls)
    return Row(name, call.impl, *(float(np.quantile(found, quantile)) * 1e6 for found in times))


def main() -> int:
    """Print a Markdown table; optionally keep the rows as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41, help="interleaved rounds a shape")
    parser.add_argument("--json", type=Path, help="write the rows there")
    parser.add_argument("--quantile", type=float, default=0.5, help="of the rounds; 0.5: medians")
    parser.add_argument("--threads", type=int, help="of the primitives; as many as there are")
    options = parser.parse_args()
    if options.threads is not None:
        native.runtime.set_num_threads(options.threads)

    runtime = native.runtime
    version = ".".join(map(str, runtime.version()))
    head = f"oneDNN {version} {runtime.threading_runtime()}, {runtime.isa()}, "
    sys.stdout.write(
        head
        + f"{runtime.get_num_threads()} threads; microseconds, quantile {options.quantile:g}\n\n"
    )
    columns = ("C++ loop", "call, out=", "call, pool", "operator", "functional", "constant wei")
    sys.stdout.write(f"| shape | implementation | {' | '.join(columns)} |\n")
    sys.stdout.write("|---|---|" + "---:|" * len(columns) + "\n")
    rows = []
    for name, problem in problems().items():
        row = measure(name, problem, options.rounds, options.quantile)
        rows.append(asdict(row))
        sys.stdout.write(f"| {' | '.join(row.cells())} |\n")
        sys.stdout.flush()
    if options.json:
        options.json.write_text(json.dumps({"oneDNN": version, "rows": rows}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
