"""Padding codes: with a value, by the edge, mirrored.

Accepted: the inside unchanged, the border the value's code by each dialect's rounding.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams

Q = QParams(0.5, 7, "s8")
X = np.arange(6, dtype=np.int8).reshape(2, 3)
SIDES = [(1, 0), (2, 1)]


@pytest.mark.parametrize("dialect", ["tflite", "onnxruntime", "caffe2", "tpu_mlir"])
def test_zero_is_the_zero_point(dialect: str) -> None:
    got = quantized.pad(X, SIDES, src_q=Q, dialect=dialect)
    assert got.tolist() == [[7] * 6, [7, 7, 0, 1, 2, 7], [7, 7, 3, 4, 5, 7]]
    assert got.dtype == np.int8


@pytest.mark.parametrize(
    ("dialect", "value", "code"),
    [
        ("tflite", 0.25, 8),  # 1/2 above the zero point: away from zero, then the zero point
        ("onnxruntime", 0.25, 7),  # to even, then the zero point
        ("caffe2", 0.25, 7),
        ("tpu_mlir", 0.25, 8),  # away from zero with the zero point inside
        ("tflite", -0.25, 6),
        ("tpu_mlir", -0.25, 7),  # 6.5 goes to 7
        ("tflite", 1e6, 127),
        ("tpu_mlir", -1e6, -128),
    ],
)
def test_a_value_rounds_as_the_dialect_rounds(dialect: str, value: float, code: int) -> None:
    got = quantized.pad(X, SIDES, src_q=Q, value=value, dialect=dialect)
    assert np.array_equal(got[1:, 2:5], X)
    assert set(np.delete(got.ravel(), [8, 9, 10, 14, 15, 16]).tolist()) == {code}


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_edges_and_mirrors_copy_codes(mode: str) -> None:
    got = quantized.pad(X, SIDES, src_q=Q, mode=mode)
    rows = [1, 0, 1] if mode == "reflect" else [0, 0, 1]
    columns = [2, 1, 0, 1, 2, 1] if mode == "reflect" else [0, 0, 0, 1, 2, 2]
    assert np.array_equal(got, X[np.ix_(rows, columns)])


def test_arguments_are_named() -> None:
    with pytest.raises(ShapeError, match=r"^padding: .* wanted \(before, after\) for 2 dimensions"):
        quantized.pad(X, [(1, 1)], src_q=Q)
    with pytest.raises(ArgumentError, match=r"^padding: got .*-1"):
        quantized.pad(X, [(0, 0), (-1, 0)], src_q=Q)
    with pytest.raises(ShapeError, match=r"^padding: .* wanted less than the dimension"):
        quantized.pad(X, [(0, 0), (3, 0)], src_q=Q, mode="reflect")
    with pytest.raises(ArgumentError, match=r"^mode: got 'wrap'"):
        quantized.pad(X, SIDES, src_q=Q, mode="wrap")
    with pytest.raises(ArgumentError, match=r"^value: got nan"):
        quantized.pad(X, SIDES, src_q=Q, value=float("nan"))
