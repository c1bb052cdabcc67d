"""What self_check="auto" costs, beside making the primitive: every layer of the suites, once.

Each layer is made ready with self_check=False, packing its weights, and then looked at as "auto"
does: arrays are filled, the primitive runs once, 64 to 256 elements of its result are compared.
What that one run takes is told apart: it cannot be had for less. A layer is within its budget at
1.5 ms, or 15 % of what making it took, whichever is more. Of several looks the fastest counts,
which is what it costs where nobody else is on the machine; of making, the only one: the library
keeps its code. Run ``python benchmarks/self_check_cost.py``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import native
from pyonednn_q.bench import suite
from pyonednn_q.bench.precision import Precision
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.native import first_run, runtime
from pyonednn_q.primitive import Attr, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyonednn_q.bench.suite import Line

PRECISION = Precision.parse("u8s8u8")
BUDGET_MS, BUDGET_SHARE = 1.5, 0.15


@dataclass(frozen=True)
class Row:
    """One layer: milliseconds."""

    suite: str
    name: str
    making: float
    look: float
    run: float

    @property
    def most(self) -> float:
        """What a look may cost."""
        return max(BUDGET_MS, BUDGET_SHARE * self.making)


def measured(name: str, line: Line, looks: int) -> Row | None:
    """Make a layer and look at it; None where nothing fast takes it."""
    problem = line.shape.problem(PRECISION, "channels_last")
    rng = np.random.default_rng(0)
    wei = None
    if not line.shape.has_two_sources:
        codes = rng.integers(-64, 65, 8191).astype(np.int8)
        wei = np.resize(codes, problem.wei.dims)
    bias = None if problem.bias is None else np.zeros(problem.bias.dims, np.float32)
    values = {"dst_scale": np.float32(100 * 37 * np.sqrt(problem.terms) / 40)}
    given: dict[str, Any] = {"wei": wei, "bias": bias, "values": values, "saturation": "allow"}
    start = time.perf_counter()
    try:
        prepared = native.prepare(problem, Attr(dst_scale=Scale()), self_check=False, **given)
    except UnsupportedError:
        return None
    making = time.perf_counter() - start

    def look() -> None:
        what = first_run.looked_at(prepared, wei, bias, values)
        if what:
            msg = f"{problem.text()}: {what}"
            raise SystemExit(msg)

    arrays = [prepared.empty(one) for one in (*prepared.inputs, "dst")]
    for array in arrays:
        array[...] = 1
    *inputs, out = arrays
    timed = [_fastest(each, looks) for each in (look, lambda: prepared(*inputs, out=out))]
    return Row(name, line.name or line.shape.text(), *(1e3 * t for t in (making, *timed)))


def _fastest(work: Callable[[], object], count: int) -> float:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def told(name: str, rows: Sequence[Row]) -> str:
    """Return a line of a table."""
    own = [row.look - row.run for row in rows]
    within = sum(row.look <= row.most for row in rows)
    own_within = sum(row.look - row.run <= row.most for row in rows)
    cells = [
        f"{median(row.making for row in rows):.2f}",
        f"{median(row.look for row in rows):.2f}",
        f"{max(row.look for row in rows):.2f}",
        f"{median(own):.2f}",
        f"{max(own):.2f}",
        f"{sum(row.look for row in rows) / sum(row.making for row in rows):.1%}",
        f"{within} of {len(rows)}",
        f"{own_within} of {len(rows)}",
    ]
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print a table with a line for each suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=suite.names())
    parser.add_argument("--looks", type=int, default=5, help="of each layer")
    parser.add_argument("--layers", action="store_true", help="print each layer beyond its budget")
    asked = parser.parse_args()
    version = ".".join(map(str, runtime.version()))
    print(f"oneDNN {version} {runtime.threading_runtime()}, {runtime.isa().text()}, ", end="")
    print(f"{runtime.get_num_threads()} threads; milliseconds\n")
    print(
        "| suite | making | look | most | without its run | most | share | within | without run |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    every: list[Row] = []
    for name in asked.suites:
        lines = (measured(name, line, asked.looks) for line in suite.find(name).lines)
        rows = [row for row in lines if row is not None]
        every += rows
        print(told(name, rows), flush=True)
    print(told("all", every))
    if asked.layers:
        for row in every:
            if row.look > row.most:
                cost = f"look {row.look:.2f}, its run {row.run:.2f}, making {row.making:.2f}"
                print(f"{row.suite} {row.name}: {cost}")


if __name__ == "__main__":
    main()
