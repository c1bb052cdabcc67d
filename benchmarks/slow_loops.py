"""What the library would run for codes of some layers, and what operators run instead.

oneDNN puts some loops before generated code, or has nothing else for one of two types that mean the
same. Each row is the first implementation that the library offers and that is right, and the
operator of the same codes, in turn; microseconds are medians. Shown are those at least twice as
fast. One thread, an instruction set each:

    python benchmarks/slow_loops.py
    ONEDNN_MAX_CPU_ISA=AVX2 python benchmarks/slow_loops.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q.errors import Error
from pyonednn_q.native import prepare, runtime
from pyonednn_q.native.arrays import in_layout
from pyonednn_q.native.selection import implementations
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem
from pyonednn_q.tables import Column, Table

Array = np.ndarray[Any, Any]
Window = dict[str, Any]

RNG = np.random.default_rng(0)
KINDS = {"conv": pq.Conv, "deconv": pq.Deconv, "matmul": pq.MatMul}
PROBLEMS: dict[str, Callable[..., Any]] = {
    "conv": ConvProblem.of,
    "deconv": DeconvProblem.of,
    "matmul": MatMulProblem.of,
}
LAYERS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], Window]] = {
    "matmul 768 x 3072, 1 row": ("matmul", (768, 3072), (1, 768), {}),
    "matmul 2048 x 2048, 1 row": ("matmul", (2048, 2048), (1, 2048), {}),
    "depthwise deconvolution 4x4, stride 2": (
        *("deconv", (64, 1, 4, 4), (1, 64, 14, 14)),
        {"padding": 1, "stride": 2, "groups": 64},
    ),
    "depthwise deconvolution 3x3": (
        *("deconv", (64, 1, 3, 3), (1, 64, 14, 14)),
        {"padding": 1, "groups": 64},
    ),
    "deconvolution 4x4, stride 2": (
        *("deconv", (64, 64, 4, 4), (1, 64, 14, 14)),
        {"padding": 1, "stride": 2},
    ),
}
ROUNDS = 15


def microseconds(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[float, float]:
    """Return medians of two calls, in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for call in (first, second):
        call()
    for _ in range(ROUNDS):
        for samples, call in zip(times, (first, second), strict=True):
            begin = time.perf_counter()
            call()
            samples.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])


def row(layer: str, src_dtype: str, point: int, dst: str) -> list[str] | None:
    """Return a row of the table; ``None`` for what has nothing to show."""
    kind, wei_dims, src_dims, window = LAYERS[layer]
    wei = (RNG.integers(-16, 16, wei_dims) * 2 + 1).astype(np.int8)
    src = RNG.integers(0, 100, src_dims).astype(np.uint8 if src_dtype == "u8" else np.int8)
    attr = Attr(src_zero_point=ZeroPoint()) if point else Attr()
    problem = PROBLEMS[kind](src_dims, wei_dims, src=src_dtype, dst=dst, **window)
    src_q, wei_q = pq.QParams(1.0, point, src_dtype), pq.QParams(1.0, 0, "s8")
    try:
        right = (each for each in implementations(problem, attr) if not each.guards)
        name = next((each.impl for each in right if each.kind != "reference"), None)
        theirs = prepare(
            problem,
            attr,
            wei=wei,
            values={"src_zero_point": np.int32(point)} if point else {},
            implementation=name,
            saturation="allow",
        )
        ours = KINDS[kind](wei, src_q=src_q, wei_q=wei_q, dst=dst, **window)
        planned = ours.prepare(src_dims)
    except Error:
        return None
    codes = in_layout(src, theirs.layout("src"))
    before, now = microseconds(lambda: theirs(codes), lambda: ours(codes))
    if before < 2 * now:
        return None
    case = f"{layer}, {src_dtype}{f' with zero point {point}' if point else ''} to {dst}"
    impl = planned.primitive.impl
    return [case, theirs.impl, f"{before:.0f}", impl, f"{now:.0f}", f"{before / now:.0f}"]


def main() -> None:
    """Print the table."""
    columns = ["layer", "the library's first", "us", "operator", "us", "times"]
    rows = [
        cells
        for layer in LAYERS
        for src_dtype in ("u8", "s8")
        for point in (0, 7)
        for dst in ("f32", "bf16")
        if (cells := row(layer, src_dtype, point, dst)) is not None
    ]
    heads = [Column(name, right=name in {"us", "times"}) for name in columns]
    with_version = f"oneDNN {'.'.join(map(str, runtime.version()))}, {runtime.isa().text()}"
    print(f"{with_version}, one thread\n\n{Table(heads, rows).markdown()}")


if __name__ == "__main__":
    with pq.threads(1):
        main()
