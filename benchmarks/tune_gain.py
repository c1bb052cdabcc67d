"""What tune=True gains over the usual way, per shape of known networks, and the geometric mean.

Each shape is tuned once; then the usual operator and the tuned one, both made anew, are called in
turn, in samples that the tuning has not seen, each repeat with arrays of its own. u8 codes times s8
weights per channel, relu, u8 codes out; ``--residual`` adds a Sum of what was there before. The
ratio is the time of the tuned operator in parts of the usual one's, the median of the repeats; it
is 1 by itself where the usual way stays.

    python benchmarks/tune_gain.py [--suites resnet50 mobilenet_v2 bert_base] [--residual]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.suite import find
from pyonednn_q.cpu import cpu_name
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget, interleaved
from pyonednn_q.ops.gain import ratios_of
from pyonednn_q.ops.tuning import calls_of, way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.bench.shape import Shape
    from pyonednn_q.ops.operator import Operator

SUITES = ("resnet50", "mobilenet_v2", "bert_base")
WINDOWED: dict[str, Any] = {"conv": pq.Conv, "deconv": pq.Deconv}
KINDS = WINDOWED | {"ip": pq.InnerProduct, "matmul": pq.MatMul}
U8S8U8 = Precision("u8", "s8", "u8")
SLOWER = 1.02
_APART = 13 * 64


def operator(shape: Shape, *, residual: bool, layout: str, tune: bool = False) -> Operator:
    """Return the operator of a shape."""
    options: dict[str, Any] = {"tune": tune, "layout": layout}
    rng = np.random.default_rng(1)
    wei = rng.integers(-64, 65, shape.wei).astype(np.int8)
    if shape.has_groups:
        wei = wei.reshape(-1, *shape.wei[2:])
        options["groups"] = shape.groups
    channels = shape.wei[-1] if shape.kind == "matmul" else len(wei)
    axis = -1 if shape.kind == "matmul" else 0
    scale = rng.uniform(1e-4, 2e-4, channels)
    if shape.kind in WINDOWED:
        options |= {"stride": shape.stride, "dilation": shape.dilation, "padding": shape.padding}
    op: Operator = KINDS[shape.kind](
        wei,
        src_q=pq.QParams(0.02, 0, "u8"),
        wei_q=pq.QParams(scale, np.zeros(channels, int), "s8", axis=axis),
        dst_q=pq.QParams(0.05, 0, "u8"),
        post=pq.Chain(*([pq.Sum(1.0)] if residual else []), pq.Eltwise("relu")),
        **options,
    )
    return op


def shapes(names: list[str]) -> Iterator[tuple[str, Shape]]:
    """Give every shape of the suites once, with the suite's name."""
    seen = set()
    for name in names:
        for line in find(name).lines:
            shape = line.shape
            if shape in seen or shape.has_two_sources or shape.transposed:
                continue
            seen.add(shape)
            yield name, shape


@dataclass(frozen=True)
class Line:
    """What a shape came to.

    Attributes
    ----------
    usual_us, tuned_us : float
        Microseconds a call.
    ratio, ratio_shifted : float
        Time of the tuned call in parts of the usual one's: with arrays that start on a cache line,
        and 16 bytes behind one, where NumPy puts large arrays.
    runs : str
        The way that was chosen.
    """

    usual_us: float
    tuned_us: float
    ratio: float
    ratio_shifted: float
    runs: str

    @classmethod
    def of(cls, shape: Shape, asked: argparse.Namespace) -> Line:
        """Tune a shape, then measure both ways."""
        options = {"residual": asked.residual, "layout": asked.layout}
        usual = operator(shape, **options)
        problem, chain = shape.problem(U8S8U8, "channels_last"), usual.settings.post
        before = usual.prepare(shape.src)
        after = operator(shape, **options, tune=True).prepare(shape.src)

        def measured(place: int) -> tuple[float, float, float]:
            # A choice that is known is not timed again: these are new primitives and arrays.
            pair = [operator(shape, **options, tune=tune) for tune in (False, True)]
            calls = [
                calls_of(op.prepare(shape.src), problem, chain, asked.layout, place) for op in pair
            ]
            timed = interleaved(calls, Budget(rounds=asked.rounds))
            us = [median(samples.samples_us) for samples in timed]
            return us[0], us[1], 1 / median(ratios_of(*timed))

        if way(before) == way(after):
            call = calls_of(before, problem, chain, asked.layout)
            us = median(interleaved([call], Budget(rounds=asked.rounds))[0].samples_us)
            return cls(us, us, 1.0, 1.0, "the usual")
        # Places of a page that tuning has not seen.
        places = [turn * _APART % 4096 for turn in range(asked.repeats)]
        rows = [measured(place) for place in places]
        usual_us, tuned_us, ratio = (median(column) for column in zip(*rows, strict=True))
        shifted = median(measured(place + 16)[-1] for place in places)
        return cls(usual_us, tuned_us, ratio, shifted, way(after))


def main() -> None:
    """Print a line a shape, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--residual", action="store_true", help="a Sum before the relu")
    parser.add_argument("--layout", default="preserve", choices=("preserve", "dense"))
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--file", help="of choices, as save_tuning writes it: read and written")
    asked = parser.parse_args()
    here = f"{cpu_name()}, {runtime.isa().text()}, oneDNN {'.'.join(map(str, runtime.version()))}"
    print(f"{here} {runtime.threading_runtime()}, {runtime.get_num_threads()} threads\n")
    if asked.file and Path(asked.file).exists():
        pq.ops.load_tuning(asked.file)
    print("| suite | problem | usual us | tuned us | tuned / usual | shifted | runs |")
    print("|---|---|---:|---:|---:|---:|---|", flush=True)
    ratios, worst = [], []
    for suite, shape in shapes(asked.suites):
        line = Line.of(shape, asked)
        ratios.append(line.ratio)
        worst.append(max(line.ratio, line.ratio_shifted))
        shown = " | ".join(map(marked, (line.ratio, line.ratio_shifted)))
        times = f"{line.usual_us:.1f} | {line.tuned_us:.1f} | {shown}"
        print(f"| {suite} | `{shape.text()}` | {times} | {line.runs} |", flush=True)
        if asked.file:
            pq.ops.save_tuning(asked.file)
    gain = math.exp(-sum(map(math.log, ratios)) / len(ratios))
    changed = sum(ratio != 1.0 for ratio in ratios)
    slower = sum(ratio > SLOWER for ratio in worst)
    print(
        f"\n{len(ratios)} shapes, {changed} changed, {slower} slower by more than 2 %, slowest "
        f"{max(worst):.3f} of the usual time, geometric mean of the gain {gain:.3f}"
    )


def marked(ratio: float) -> str:
    """Return a ratio, in bold where the tuned call is slower."""
    return f"**{ratio:.2f}**" if ratio > SLOWER else f"{ratio:.2f}"


if __name__ == "__main__":
    main()
