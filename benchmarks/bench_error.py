"""How far the times that ``pyonednn-q bench`` reports are from a plain C++ loop.

Per problem, alternating in one process: what bench does (an untimed call before each sample,
samples of about a millisecond, their median), and one long loop inside the extension; medians over
rounds. A loop is a mean: what interrupts it makes it longer, and bench's median not. Run
``python benchmarks/bench_error.py`` on a quiet machine; there, the two are within 3 %.
"""

from __future__ import annotations

import argparse
import statistics

from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import Trial
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget, interleaved

PROBLEMS = (
    "conv 1x16x4x4 16x16x1x1",
    "conv 1x64x56x56 64x64x3x3 padding=1",
    "conv 1x256x14x14 1024x256x1x1",
    "matmul 1x64 64x64",
    "matmul 128x768 768x3072",
)
LOOP_S = 0.03


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    print(f"oneDNN {'.'.join(map(str, runtime.version()))} {runtime.threading_runtime()}")
    print(f"{'problem':<32} {'dtype':<7} {'bench us':>9} {'loop us':>9} {'error':>7}")
    for text in PROBLEMS:
        shape = Shape.parse(text)
        sample = Sample.of(shape, with_residual=False)
        for dtype in ("f32", "u8s8u8"):
            trial = Trial.of(Case(shape, Precision.parse(dtype)), sample)
            calls = max(1, int(LOOP_S / trial.seconds(20)))
            ours, loops = [], []
            for _ in range(rounds):
                (timed,) = interleaved([trial.seconds], Budget(rounds=11))
                ours.append(statistics.median(timed.samples_us))
                loops.append(trial.seconds(calls) * 1e6)
            one, other = statistics.median(ours), statistics.median(loops)
            print(f"{text:<32} {dtype:<7} {one:>9.2f} {other:>9.2f} {one / other - 1:>+7.1%}")


if __name__ == "__main__":
    main()
