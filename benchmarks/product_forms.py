"""A product as oneDNN's matmul, and as the 1x1 convolution of one image: which is faster, by shape.

u8 · s8 to u8 with a scale and a bias; the same numbers, prepared both ways, timed in a C++ loop in
turn. Prints Markdown: medians in microseconds, and the ratio of paired samples with its interval at
95 %. ``ONEDNN_MAX_CPU_ISA`` sets the instruction set.

    python benchmarks/product_forms.py
    ONEDNN_MAX_CPU_ISA=SSE41 python benchmarks/product_forms.py --rounds 21
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import prepare
from pyonednn_q.bench.summary import paired_ratio
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget, interleaved
from pyonednn_q.primitive import ConvProblem, MatMulProblem
from pyonednn_q.primitive.attr import Attr, Scale

if TYPE_CHECKING:
    from pyonednn_q.native import Prepared
    from pyonednn_q.primitive.problem import Problem

Array = np.ndarray[Any, Any]

# Rows, inner, columns: layers of ResNet, MobileNet and BERT, and odd ones.
SHAPES = (
    (1, 2048, 1000),
    (1, 1280, 1000),
    (1, 4096, 4096),
    (1, 768, 768),
    (1, 768, 3072),
    (1, 64, 64),
    (1, 30, 10),
    (2, 768, 768),
    (8, 768, 768),
    (16, 768, 768),
    (16, 2048, 1000),
    (32, 768, 768),
    (49, 512, 2048),
    (64, 4096, 512),
    (128, 768, 768),
    (128, 768, 3072),
    (128, 3072, 768),
    (300, 3, 5),
    (300, 1024, 7),
    (512, 64, 64),
    (2048, 768, 64),
    (4096, 256, 256),
    (20000, 16, 16),
    (1000, 1, 8),
)


def made(problem: Problem, wei: Array) -> tuple[Prepared, Array, Array]:
    """Return a primitive and arrays for it."""
    columns = problem.tensors["wei"].dims[-1] if problem.kind == "matmul" else len(wei)
    attr = Attr(wei_scale=Scale(2 if problem.kind == "matmul" else 1))
    call = prepare(
        problem,
        attr,
        wei=wei,
        bias=np.zeros(columns, np.float32),
        values={"wei_scale": np.full(columns, 0.01, np.float32)},
        saturation="allow",
    )
    return call, call.empty("src"), call.empty()


def seconds(call: Prepared, src: Array, dst: Array, calls: int) -> float:
    """Return seconds per call of a loop in C++."""
    return call.time_calls(src, dst, calls=calls)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    rng = np.random.default_rng(1)
    version = ".".join(map(str, runtime.version()))
    head = f"oneDNN {version} {runtime.threading_runtime()}, {runtime.isa().text()}, "
    sys.stdout.write(f"{head}{runtime.get_num_threads()} threads\n\n")
    sys.stdout.write("| rows, inner, columns | matmul | us | 1x1 convolution | us | ratio |\n")
    sys.stdout.write("|---|---|---:|---|---:|---:|\n")
    for rows, inner, columns in SHAPES:
        wei = rng.integers(-64, 65, (inner, columns)).astype(np.int8)
        kernel = np.ascontiguousarray(wei.T)[..., None, None]
        dims = (1, inner, 1, rows), kernel.shape
        ways = (
            made(MatMulProblem.of((rows, inner), wei.shape, bias="f32"), wei),
            made(ConvProblem.of(*dims, bias="f32"), kernel),
        )
        src = rng.integers(0, 256, (rows, inner)).astype(np.uint8)
        for _, array, _ in ways:
            array[...] = src if array.ndim == 2 else src.T[None, :, None]
        loops = [partial(seconds, *way) for way in ways]
        asked, image = interleaved(loops, Budget(rounds=rounds))
        ratio = paired_ratio(asked.samples_us, image.samples_us)
        cells = [f"{rows}, {inner}, {columns}"]
        for (call, *_), timed in zip(ways, (asked, image), strict=True):
            cells += [f"`{call.impl}`", f"{median(timed.samples_us):.1f}"]
        cells.append(f"{ratio.value:.2f} ({ratio.lo:.2f} to {ratio.hi:.2f})")
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
