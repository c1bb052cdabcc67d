"""Layers of language models with weights in groups, beside onnxruntime's MatMulNBits.

Ours with codes of 4 bits (half a byte each) and of 8, each row of the source as s8 codes by its own
range; onnxruntime's at accuracy level 4, which multiplies codes of 8 bits, too. The same codes and
scales, called in turn on the same arrays, in one process, on as many threads each, after a pause.
Prints Markdown: the fastest round of each, in microseconds of a call, onnxruntime's time over ours
of 4 bits and of 8, and how far each result is from the product of the real weights in float64, in
parts of its largest value. Needs onnx and onnxruntime. Run ``python benchmarks/group_products.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import pyonednn_q as pq

Array = np.ndarray[Any, Any]
Call = Callable[[Array], Array]
RNG = np.random.default_rng(0)
PAUSE = 0.02  # seconds: threads that the last runtime left spinning go to sleep
SHAPES = ((4096, 4096), (4096, 11008), (11008, 4096), (2048, 2048))  # (K, N)
ROWS = (1, 8, 32, 128)
FOUR, EIGHT, THEIRS = "4 bits", "8 bits", "onnxruntime"


def session(codes: Array, scales: Array, group: int, threads: int) -> onnxruntime.InferenceSession:
    """Return a model of one MatMulNBits of accuracy level 4: codes (N, K) from 0 to 15."""
    columns, inner = codes.shape
    packed = (codes[:, ::2] | (codes[:, 1::2] << 4)).reshape(columns, inner // group, group // 2)
    node = helper.make_node(
        "MatMulNBits",
        ["x", "b", "s"],
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
        [numpy_helper.from_array(packed, "b"), numpy_helper.from_array(scales.reshape(-1), "s")],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def calls_of(shape: tuple[int, int], group: int, threads: int) -> tuple[dict[str, Call], Array]:
    """Return f(x) of each by name, and the real weights (K, N)."""
    inner, columns = shape
    codes = RNG.integers(0, 16, (columns, inner)).astype(np.uint8)
    scales = RNG.uniform(0.001, 0.01, (columns, inner // group)).astype(np.float32)
    signed = np.ascontiguousarray((codes.astype(np.int8) - 8).T)
    src_q = pq.Dynamic("s8", "per_row")
    theirs = session(codes, scales, group, threads)

    def ours(dtype: str) -> pq.MatMul:
        wei_q = pq.QParams(scales.T, 0, dtype, axis=0, block=(group,))
        return pq.MatMul(signed, src_q=src_q, wei_q=wei_q)

    real = signed * np.repeat(scales.T.astype(np.float64), group, axis=0)
    calls: dict[str, Call] = {
        FOUR: ours("s4"),
        EIGHT: ours("s8"),
        THEIRS: lambda x: theirs.run(None, {"x": x})[0],
    }
    return calls, real


def samples(calls: Sequence[Call], x: Array, rounds: int) -> list[list[float]]:
    """Return microseconds of each in turn; several calls behind each other, of which the best."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, own in zip(calls, times, strict=True):
            time.sleep(PAUSE)
            call(x)
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                call(x)
                best = min(best, time.perf_counter() - start)
            own.append(1e6 * best)
    return times


def row_of(calls: dict[str, Call], real: Array, x: Array, rounds: int) -> str:
    """Return cells: a time of each, the ratio, and how far each is off."""
    times = samples(list(calls.values()), x, rounds)
    *ours, theirs = map(min, times)
    right = x @ real
    errors = (np.abs(call(x) - right).max() / np.abs(right).max() for call in calls.values())
    cells = [f"{each:.0f}" for each in (*ours, theirs)]
    cells += [f"{theirs / each:.2f}" for each in ours]
    return " | ".join([*cells, " ".join(f"{each:.1e}" for each in errors)])


def main() -> None:
    """Print a row for each shape, size of a group, and number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", action="append", metavar="KxN", help="default: four of Llama's")
    parser.add_argument("--group", action="append", type=int, help="default: 32 and 128")
    parser.add_argument("--rows", action="append", type=int, help="default: 1, 8, 32, 128")
    options = parser.parse_args()
    shapes = [tuple(map(int, text.split("x"))) for text in options.shape or ()] or SHAPES
    print(f"{options.threads} threads, onnxruntime {onnxruntime.__version__}; microseconds a call")
    print(
        "| K x N | group | rows | 4 bits | 8 bits | onnxruntime | over 4 bits | over 8 | errors |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    with pq.threads(options.threads):
        for inner, columns in shapes:
            for group in options.group or (32, 128):
                calls, real = calls_of((inner, columns), group, options.threads)
                for rows in options.rows or ROWS:
                    x = RNG.standard_normal((rows, inner)).astype(np.float32)
                    cells = row_of(calls, real, x, options.rounds)
                    print(f"| {inner} x {columns} | {group} | {rows} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
