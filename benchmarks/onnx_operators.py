"""What a call of ONNX's operators costs, beside an operator of ours and ONNX Runtime.

One node each, in turn, on the same arrays and as many threads; the median of the rounds counts.
ONNX Runtime runs a session that is ready. Needs onnx and onnxruntime. Run
``python benchmarks/onnx_operators.py``.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import ArrayLike, DTypeLike
from onnx import helper

import pyonednn_q as pq

RNG = np.random.default_rng(0)
POINT, STEP = np.asarray(128, np.uint8), np.asarray(0.02, np.float32)
Run = Callable[[], object]
Array = np.ndarray[Any, Any]
Row = tuple[str, Callable[..., object], list[Array], dict[str, Any], Run | None]


def constant(values: ArrayLike, dtype: DTypeLike) -> Array:
    """Return values that nobody writes: they are not compared in each call."""
    array = np.asarray(values, dtype)
    array.flags.writeable = False
    return array


def codes(*dims: int) -> Array:
    """Return weights as trained ones lie."""
    return constant(np.clip(RNG.normal(0, 25, dims), -127, 127).round(), np.int8)


def session(op_type: str, inputs: list[Array], attributes: dict[str, Any], threads: int) -> Run:
    """Return a run of ONNX Runtime."""
    outputs = ["y", "scale", "point"] if op_type == "DynamicQuantizeLinear" else ["y"]
    names = [f"i{at}" for at in range(len(inputs))]
    types = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in inputs]
    named = zip(names, types, inputs, strict=True)
    graph = helper.make_graph(
        [helper.make_node(op_type, names, outputs, **attributes)],
        "one",
        [helper.make_tensor_value_info(name, kind, value.shape) for name, kind, value in named],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    ready = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = dict(zip(names, inputs, strict=True))
    return lambda: ready.run(None, feeds)


def convolution(channels: int, size: int, kernel: int, outputs: int) -> Row:
    """Return a row: what it is, our function, inputs, attributes and our operator."""
    x = RNG.integers(0, 256, (1, channels, size, size)).astype(np.uint8)
    w, bias = codes(outputs, channels, kernel, kernel), constant([100] * outputs, np.int32)
    scales = RNG.uniform(1e-3, 2e-3, outputs).astype(np.float32)
    inputs: list[Array] = [x, STEP, POINT, w, scales, np.zeros(outputs, np.int8), STEP, POINT, bias]
    pads = [kernel // 2] * 4
    operator = pq.Conv(
        w,
        bias,
        src_q=pq.QParams(0.02, 128, "u8"),
        wei_q=pq.QParams(scales, 0, "s8", axis=0),
        dst_q=pq.QParams(0.02, 128, "u8"),
        padding=kernel // 2,
        exact_rounding=True,
    )
    name = f"QLinearConv {channels}x{size}x{size}, {outputs} of {kernel}x{kernel}"
    return name, pq.onnx.qlinear_conv, inputs, {"pads": pads}, lambda: operator(x)


def product(rows: int, inner: int, columns: int) -> Row:
    """Return a row, as `convolution` does."""
    a, b = RNG.integers(0, 256, (rows, inner)).astype(np.uint8), codes(inner, columns)
    src_q, wei_q = pq.QParams(1.0, 128, "u8"), pq.QParams(1.0, 0, "s8")
    operator = pq.MatMul(b, src_q=src_q, wei_q=wei_q, dst="s32")
    name = f"MatMulInteger {rows}x{inner} by {inner}x{columns}"
    return name, pq.onnx.matmul_integer, [a, b, POINT], {}, lambda: operator(a)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    reals = RNG.normal(0, 1, (1, 64, 56, 56)).astype(np.float32)
    rows: list[Row] = [
        convolution(8, 4, 1, 8),
        convolution(64, 56, 3, 64),
        convolution(256, 56, 1, 64),
        product(1, 64, 64),
        product(128, 768, 768),
        ("QuantizeLinear 64x56x56", pq.onnx.quantize_linear, [reals, STEP, POINT], {}, None),
        ("DynamicQuantizeLinear 64x56x56", pq.onnx.dynamic_quantize_linear, [reals], {}, None),
    ]
    print("| us a call | `pq.onnx` | operator | ONNX Runtime |")
    print("|---|---:|---:|---:|")
    with pq.threads(chosen.threads):
        for name, function, inputs, attributes, operator in rows:
            op_type = name.partition(" ")[0]
            runs: dict[str, Run] = {
                "onnx": functools.partial(function, *inputs, **attributes),
                "peer": session(op_type, inputs, attributes, chosen.threads),
            }
            if operator is not None:
                runs["operator"] = operator
            medians = measured(runs, chosen.rounds)
            print(f"| {name} | {medians['onnx']} | {medians['operator']} | {medians['peer']} |")


def measured(runs: dict[str, Run], rounds: int) -> dict[str, str]:
    """Return the median of each run in microseconds."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for at in range(rounds + 5):
        for name, run in runs.items():
            start = time.perf_counter()
            for _ in range(10):
                run()
            if at >= 5:  # first ones make primitives
                times[name].append((time.perf_counter() - start) / 10)
    medians = {name: f"{statistics.median(each) * 1e6:.0f}" for name, each in times.items()}
    return {"operator": "", **medians}


if __name__ == "__main__":
    main()
