"""What tune=True gains over the usual way, per shape of known networks, and the geometric mean.

Each shape is tuned once; then the usual operator and the tuned one are called in turn, in samples
that the tuning has not seen. u8 codes times s8 weights per channel, relu, u8 codes out;
``--residual`` adds a Sum of what was there before.

    python benchmarks/tune_gain.py [--suites resnet50 mobilenet_v2 bert_base] [--residual]
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.suite import find
from pyonednn_q.native import runtime
from pyonednn_q.native.processor import cpu_name
from pyonednn_q.native.timing import Budget, interleaved
from pyonednn_q.ops.tuning import calls_of, sure_gain, way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.bench.shape import Shape
    from pyonednn_q.ops.operator import Operator

SUITES = ("resnet50", "mobilenet_v2", "bert_base")
WINDOWED: dict[str, Any] = {"conv": pq.Conv, "deconv": pq.Deconv}
KINDS = WINDOWED | {"ip": pq.InnerProduct, "matmul": pq.MatMul}
U8S8U8 = Precision("u8", "s8", "u8")
SLOWER = 1 / 1.02


def operator(shape: Shape, *, residual: bool, tune: bool = False) -> Operator:
    """Return the operator of a shape."""
    options: dict[str, Any] = {"tune": tune}
    rng = np.random.default_rng(1)
    wei = rng.integers(-64, 65, shape.wei).astype(np.int8)
    if shape.has_groups:
        wei = wei.reshape(-1, *shape.wei[2:])
        options["groups"] = shape.groups
    channels = shape.wei[-1] if shape.kind == "matmul" else len(wei)
    axis = -1 if shape.kind == "matmul" else 0
    scale = rng.uniform(1e-4, 2e-4, channels)
    if shape.kind in WINDOWED:
        options |= {"stride": shape.strides, "dilation": shape.dilation, "padding": shape.padding}
    made: Operator = KINDS[shape.kind](
        wei,
        src_q=pq.QParams(0.02, 0, "u8"),
        wei_q=pq.QParams(scale, np.zeros(channels, int), "s8", axis=axis),
        dst_q=pq.QParams(0.05, 0, "u8"),
        post=pq.Chain(*([pq.Sum(1.0)] if residual else []), pq.Eltwise("relu")),
        **options,
    )
    return made


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


def main() -> None:
    """Print a line a shape, and the mean."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    parser.add_argument("--residual", action="store_true", help="a Sum before the relu")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--file", help="write the choices, as pq.save_tuning does")
    asked = parser.parse_args()
    here = f"{cpu_name()}, {runtime.isa()}, oneDNN {'.'.join(map(str, runtime.version()))}"
    print(f"{here} {runtime.threading_runtime()}, {runtime.get_num_threads()} threads")
    gains = []
    for suite, shape in shapes(asked.suites):
        usual = operator(shape, residual=asked.residual)
        before = usual.prepare(shape.src)
        after = operator(shape, residual=asked.residual, tune=True).prepare(shape.src)
        problem, chain = shape.problem(U8S8U8, "channels_last"), usual.settings.post
        calls = [calls_of(planned, problem, chain, "preserve") for planned in (before, after)]
        gain, least = 1.0, 1.0
        if way(before) != way(after):
            gain, least = sure_gain(*interleaved(calls, Budget(rounds=asked.rounds)))
        gains.append(gain)
        note = "" if gain >= SLOWER else "  SLOWER"
        print(
            f"{suite:<13} {shape.text():<52} {gain:5.2f} (at least {least:.2f}) {way(after)}{note}"
        )
    mean = math.exp(sum(map(math.log, gains)) / len(gains))
    changed = sum(gain != 1.0 for gain in gains)
    slower = sum(gain < SLOWER for gain in gains)
    print(
        f"{len(gains)} shapes, {changed} changed, geometric mean {mean:.3f}, {slower} slower by 2 %"
    )
    if asked.file:
        print(f"{pq.save_tuning(asked.file)} choices in {asked.file}")


if __name__ == "__main__":
    main()
