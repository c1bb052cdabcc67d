"""Measure beside processes that keep every CPU busy, and see what the bench makes of it.

For each problem: the fastest sample; the median of all samples as they come; the median with
disturbed samples taken again; how often that was; and how many stayed disturbed.

python tools/measure/disturbance.py --busy 0,1,2
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median

from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import Trial
from pyonednn_q.commands.words import listed
from pyonednn_q.native.timing import TAKEN_AGAIN, Budget, Timed, interleaved, too_many
from pyonednn_q.report.table import Column, Table

PROBLEMS = (
    "conv 1x64x14x14 64x64x1x1",
    "conv 1x256x14x14 256x256x3x3 padding=1",
    "matmul 512x1024 1024x1024",
)
_SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


@contextmanager
def busy(each: int) -> Iterator[None]:
    """Keep every CPU that this process may use busy with that many others."""
    cpus = [cpu for cpu in sorted(os.sched_getaffinity(0)) for _ in range(each)]
    others = [subprocess.Popen([sys.executable, "-c", _SPIN, str(cpu)]) for cpu in cpus]
    try:
        yield
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()


def timed(trials: Sequence[Trial], budget: Budget, taken_again: int) -> list[Timed]:
    """Time trials in turn."""
    return interleaved([trial.seconds for trial in trials], budget, taken_again=taken_again)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--busy", type=listed(int), default=(0, 1, 2), help="others a CPU")
    parser.add_argument("--dtype", type=Precision.parse, default=Precision.parse("u8s8u8"))
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    shapes = [Shape.parse(text) for text in PROBLEMS]
    trials = [
        Trial.of(Case(shape, options.dtype), Sample.of(shape, with_residual=False))
        for shape in shapes
    ]
    columns = [Column("others a CPU", right=True), Column("problem")]
    columns += [
        Column(name, right=True)
        for name in ("fastest us", "as they come", "mended", "taken again", "disturbed", "of")
    ]
    columns.append(Column("verdict"))
    cells = []
    for each in options.busy:
        with busy(each):
            raw, kept = (timed(trials, Budget(rounds=options.rounds), n) for n in (0, TAKEN_AGAIN))
        for shape, as_they_come, again in zip(shapes, raw, kept, strict=True):
            count = len(again.samples_us)
            fastest = min(*as_they_come.samples_us, *again.samples_us)
            medians = (median(as_they_come.samples_us), median(again.samples_us))
            numbers = [f"{us:.1f}" for us in (fastest, *medians)]
            numbers += [str(n) for n in (again.taken_again, again.disturbed, count)]
            verdict = "disturbed" if too_many(again.disturbed, count) else ""
            cells.append([str(each), shape.text(), *numbers, verdict])
    print(Table(columns, cells).text())


if __name__ == "__main__":
    main()
