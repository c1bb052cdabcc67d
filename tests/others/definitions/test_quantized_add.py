"""The sum of two quantized tensors, as each runtime has it.

Accepted: every code equals the definition in rational arithmetic, and lies within the stated
rounding of the real sum. tests/others/oracles compares with LiteRT and ONNX Runtime themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from support.definitions import operators
from support.oracle_numbers import numpy_dtype

# How far from a tie the real sum must be for the code to be certain, in codes.
BOUNDS = {"tflite": 2e-3, "onnxruntime": 1e-3, "xnnpack": 2e-3, "caffe2": 1e-3, "stablehlo": 1e-3}


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("dialect", BOUNDS)
def test_every_code_is_that_of_the_definition(dialect: str, dtype: str) -> None:
    rng = np.random.default_rng([len(dialect), len(dtype)])
    lo, hi = operators.LIMITS[dtype]
    for _ in range(12):
        a_q, b_q, dst_q = operators.drawn(rng, dtype, 3)
        a, b = (rng.integers(lo, hi + 1, 120).astype(numpy_dtype(dtype)) for _ in range(2))
        a[:2], b[:2] = (lo, hi), (lo, hi)
        got = quantized.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect)
        rule = operators.ADD[dialect]
        shifted = (a.astype(int) - a_q.zero_point, b.astype(int) - b_q.zero_point)
        pairs = zip(*(each.tolist() for each in shifted), strict=True)
        assert got.tolist() == [rule(x, y, a_q, b_q, dst_q) for x, y in pairs]


@pytest.mark.parametrize("dialect", BOUNDS)
def test_codes_are_those_of_the_real_sum_off_ties(dialect: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        a_q, b_q, dst_q = operators.drawn(rng, "s8", 3)
        a, b = (rng.integers(-128, 128, (2, 3, 40)).astype(np.int8) for _ in range(2))
        got = quantized.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect)
        real = (a_q.dequantize(a) + b_q.dequantize(b)) / dst_q.scale
        certain = np.abs(real % 1 - 0.5) > BOUNDS[dialect]
        if (dst_q.scale * 64) % 1:  # not of the powers of two, all of whose sums may be ties
            assert certain.mean() > 0.9
        wanted = np.clip(np.rint(real) + dst_q.zero_point, -128, 127)
        assert np.array_equal(got[certain], wanted[certain])


@pytest.mark.parametrize(
    ("dtype", "scales", "pair", "whole", "left_over"),
    [
        ("s8", (14 / 15, 22 / 28, 7 / 15), (-22, -49), -126, -127),
        ("u8", (16 / 26, 14 / 11, 8 / 26), (67, 161), 142, 143),
    ],
)
def test_optimised_kernels_differ_in_whole_vectors_of_channels_last_tensors(
    dtype: str, scales: tuple[float, ...], pair: tuple[int, int], whole: int, left_over: int
) -> None:
    """At a tie. tests/others/oracles has LiteRT's own codes of these and all other pairs."""
    point = 0 if dtype == "s8" else 128
    q = [QParams(float(np.float32(scale)), point, dtype) for scale in scales]
    names: dict[str, Any] = dict(zip(("a_q", "b_q", "dst_q"), q, strict=True))
    shape, vector = (1, 3, 5, 3), 16 if dtype == "s8" else 8
    a, b = (np.full(shape, code, numpy_dtype(dtype)) for code in pair)
    assert np.all(quantized.add(a, b, **names) == left_over)
    got = np.moveaxis(quantized.add(a, b, **names, dialect="tflite_optimised"), 1, -1).ravel()
    cut = got.size - got.size % vector
    assert np.all(got[:cut] == whole)
    assert np.all(got[cut:] == left_over)
    assert got.size > cut


def test_optimised_kernels_do_not_broadcast() -> None:
    q = QParams(0.5, 0, "s8")
    a = np.zeros((2, 3), np.int8)
    for b in (a[:1], a[:1, :1]):
        with pytest.raises(ShapeError, match=r"^b: got .*; wanted \(2, 3\) of a: the optimised"):
            quantized.add(a, b, a_q=q, b_q=q, dst_q=q, dialect="tflite_optimised")


def test_tensors_broadcast() -> None:
    q = QParams(0.5, 0, "s8")
    a, b = np.arange(6, dtype=np.int8).reshape(1, 2, 3), np.array([[10], [20]], np.int8)
    got = quantized.add(a, b, a_q=q, b_q=q, dst_q=q)
    assert got.tolist() == [[[10, 11, 12], [23, 24, 25]]]


def test_arguments_are_named() -> None:
    q = QParams(0.5, 0, "s8")
    a = np.zeros(3, np.int8)
    with pytest.raises(ArgumentError, match=r"^dialect: got 'tvm'; wanted one of tflite"):
        quantized.add(a, a, a_q=q, b_q=q, dst_q=q, dialect="tvm")
    with pytest.raises(DTypeError, match=r"^b: got u8; wanted s8, as b_q says"):
        quantized.add(a, a.view(np.uint8), a_q=q, b_q=q, dst_q=q)
    with pytest.raises(DTypeError, match=r"^dst_q: got s32; wanted u8 or s8"):
        quantized.add(a, a, a_q=q, b_q=q, dst_q=QParams(0.5, 0, "s32"))
    per_channel = QParams([0.5, 0.25], 0, "s8", axis=0)
    with pytest.raises(ArgumentError, match=r"^a_q: got 2 channels; wanted one scale"):
        quantized.add(a, a, a_q=per_channel, b_q=q, dst_q=q)
    with pytest.raises(ArgumentError, match=r"^b_q: got a scale of 1e-60"):
        quantized.add(a, a, a_q=q, b_q=QParams(1e-60, 0, "s8"), dst_q=q)
    with pytest.raises(ShapeError, match=r"^b: got \(2,\); wanted dimensions that broadcast"):
        quantized.add(a, a[:2], a_q=q, b_q=q, dst_q=q)
    with pytest.raises(ArgumentError, match=r"^a: got list"):
        quantized.add([1], a, a_q=q, b_q=q, dst_q=q)
