"""Layers of language models with weights in groups, beside onnxruntime's MatMulNBits.

Ours with codes of 4 bits (half a byte each) and of 8, each row of the source as s8 codes by its own
range; onnxruntime's at accuracy level 4, which multiplies codes of 8 bits, too. The same codes and
scales, called in turn on the same arrays, in one process, on as many threads each, after a pause.
Prints Markdown: median microseconds of a call of each; onnxruntime's time over ours of 4 bits and
of 8; bytes of weights a second, in parts of those that reading alone takes, by whichever of NumPy's
largest value and oneDNN's float32 product of a vector with a matrix is faster; and how far each
result is from the product of the real weights in float64, in parts of its largest value.

One layer again and again is what a cache holds. With ``--mib 192`` as many layers of a size as fill
that much are called one after the other, as a decoder does for a token: weights come from memory.
Needs onnx and onnxruntime. Run ``python benchmarks/group_products.py``.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import pyonednn_q as pq
from pyonednn_q.primitive.problem import MatMulProblem

Array = np.ndarray[Any, Any]
Call = Callable[[Array], Array]
RNG = np.random.default_rng(0)
PAUSE = 0.02  # seconds: threads that the last runtime left spinning go to sleep
SHAPES = ((4096, 4096), (4096, 11008), (11008, 4096), (2048, 2048))  # (K, N)
ROWS = (1, 8, 32, 128)
FOUR, EIGHT, THEIRS = "4 bits", "8 bits", "onnxruntime"


def nibbles(rows: Array) -> Array:
    """Return rows of codes, an even number in each, two in a byte."""
    packed: Array = rows[:, ::2] | (rows[:, 1::2] << 4)
    return packed


def session(
    codes: Array, scales: Array, points: Array | None, group: int, threads: int
) -> onnxruntime.InferenceSession:
    """Return a model of one MatMulNBits of accuracy level 4: codes (N, K) from 0 to 15."""
    columns, inner = codes.shape
    held: dict[str, Array] = {"b": nibbles(codes).reshape(columns, inner // group, group // 2)}
    held["s"] = scales.reshape(-1)
    if points is not None:
        held["z"] = nibbles(points).reshape(-1)
    node = helper.make_node(
        "MatMulNBits",
        ["x", *held],
        ["y"],
        domain="com.microsoft",
        K=inner,
        N=columns,
        bits=4,
        block_size=group,
        accuracy_level=4,
    )
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, columns])],
        [numpy_helper.from_array(each, name) for name, each in held.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def forms_of(
    shape: tuple[int, int], group: int, copies: int, threads: int, *, has_points: bool
) -> tuple[dict[str, tuple[list[Call], int]], Array]:
    """Return f(x) of so many layers and the bytes of one, by name, and the real weights (K, N)."""
    inner, columns = shape
    codes = RNG.integers(0, 16, (columns, inner)).astype(np.uint8)
    scales = RNG.uniform(0.001, 0.01, (columns, inner // group)).astype(np.float32)
    points = RNG.integers(0, 16, scales.shape).astype(np.uint8) if has_points else None
    signed = np.ascontiguousarray((codes.astype(np.int8) - 8).T)
    zero = np.zeros(scales.shape, int) if points is None else points.astype(int) - 8
    src_q = pq.Dynamic("s8", "per_row")

    def ours(dtype: str) -> pq.MatMul:
        wei_q = pq.QParams(scales.T, zero.T, dtype, axis=0, block=(group,))
        layer = pq.MatMul(signed, src_q=src_q, wei_q=wei_q)
        layer(np.ones((1, inner), np.float32))
        return layer

    def theirs() -> Call:
        own = session(codes, scales, points, group, threads)
        return lambda x: own.run(None, {"x": x})[0]

    forms: dict[str, tuple[list[Call], int]] = {}
    for name, dtype in ((FOUR, "s4"), (EIGHT, "s8")):
        layers = [ours(dtype) for _ in range(copies)]
        forms[name] = [*layers], layers[0].wei_bytes
    forms[THEIRS] = [theirs() for _ in range(copies)], codes.size // 2 + scales.nbytes
    wide = (np.repeat(each.T, group, axis=0) for each in (zero, scales.astype(np.float64)))
    return forms, (signed - next(wide)) * next(wide)


def readers(nbytes: int, copies: int) -> list[list[Call]]:
    """Return calls that read a buffer each, of so many bytes, in two ways."""
    side = math.isqrt(nbytes // 4)
    problem = MatMulProblem.of((1, side), (side, side), src="f32", wei="f32", dst="f32")
    buffers = [np.ones((side, side), np.float32) for _ in range(copies)]
    vector = np.ones((1, side), np.float32)

    def largest(own: Array) -> Call:
        return lambda _: own.max()

    def product(own: Call) -> Call:
        return lambda _: own(vector)

    products = (pq.prepare(problem, wei=own, self_check=False) for own in buffers)
    return [[largest(own) for own in buffers], [product(own) for own in products]]


def medians(forms: Sequence[Sequence[Call]], x: Array, rounds: int) -> list[float]:
    """Return microseconds of a call of each form: of all its layers behind each other, in turn."""
    times: list[list[float]] = [[] for _ in forms]
    for _ in range(rounds):
        for calls, own in zip(forms, times, strict=True):
            time.sleep(PAUSE)
            calls[-1](x)
            again = range(1 + 8 // len(calls))
            start = time.perf_counter()
            for _ in again:
                for call in calls:
                    call(x)
            own.append(1e6 * (time.perf_counter() - start) / len(calls) / len(again))
    return [float(np.median(own)) for own in times]


def row_of(
    forms: dict[str, tuple[list[Call], int]],
    reading: list[list[Call]],
    real: Array,
    x: Array,
    rounds: int,
) -> str:
    """Return cells: a time of each, ratios, the rate of reading, shares of it, and errors."""
    calls, sizes = zip(*forms.values(), strict=True)
    *read, four, eight, theirs = medians([*reading, *calls], x, rounds)
    right = x @ real
    errors = (np.abs(own[0](x) - right).max() / np.abs(right).max() for own in calls)
    rate = sizes[0] / min(read)
    shares = [size / us / rate for size, us in zip(sizes, (four, eight, theirs), strict=True)]
    cells = [f"{each:.0f}" for each in (four, eight, theirs)]
    cells += [f"{theirs / each:.2f}" for each in (four, eight)]
    cells += [f"{rate / 1e3:.0f}", ", ".join(f"{share:.2f}" for share in shares)]
    return " | ".join([*cells, " ".join(f"{each:.1e}" for each in errors)])


def main() -> None:
    """Print a row for each shape, size of a group, and number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", action="append", metavar="KxN", help="default: four of Llama's")
    parser.add_argument("--group", action="append", type=int, help="default: 32 and 128")
    parser.add_argument("--rows", action="append", type=int, help="default: 1, 8, 32, 128")
    parser.add_argument("--mib", type=int, default=0, help="of each form; default: one layer")
    parser.add_argument("--zero-points", action="store_true", help="of each group")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in options.shape or ()] or SHAPES
    print(f"{options.threads} threads, onnxruntime {onnxruntime.__version__}; microseconds a call")
    heads = ["K x N", "group", "rows", FOUR, EIGHT, THEIRS, "over 4 bits", "over 8"]
    print("|", " | ".join([*heads, "reading, GB/s", "shares of it", "errors"]), "|")
    print(f"|---|{'---:|' * len(heads)}---|---|")
    with pq.threads(options.threads):
        for inner, columns in shapes:
            for group in options.group or (32, 128):
                copies = max(1, (options.mib << 21) // (inner * columns))
                forms, real = forms_of(
                    (inner, columns), group, copies, options.threads, has_points=options.zero_points
                )
                reading = readers(forms[FOUR][1], copies)
                for rows in options.rows or ROWS:
                    x = RNG.standard_normal((rows, inner)).astype(np.float32)
                    cells = row_of(forms, reading, real, x, options.rounds)
                    print(f"| {inner} x {columns} | {group} | {rows} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
