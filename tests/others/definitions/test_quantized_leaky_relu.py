"""Leaky ReLU by TFLite's two steps, XNNPACK's eight bits, and floats.

Accepted: all 256 codes equal the definition in rational arithmetic.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError
from pyonednn_q.qparams import QParams
from support.definitions import operators
from support.oracle_numbers import numpy_dtype


@pytest.mark.parametrize("dtype", ["s8", "u8"])
@pytest.mark.parametrize("alpha", [0.25, 0.1, 1.75])
@pytest.mark.parametrize("dialect", ["tflite", "xnnpack", "onnxruntime", "caffe2", "tpu_mlir"])
def test_every_code_is_that_of_the_definition(dialect: str, alpha: float, dtype: str) -> None:
    rng = np.random.default_rng([len(dialect), len(dtype)])
    lo, hi = operators.LIMITS[dtype]
    src = np.arange(lo, hi + 1).astype(numpy_dtype(dtype))
    slope = Fraction(float(np.float32(alpha)))
    for _ in range(6):
        src_q, dst_q = operators.drawn(rng, dtype, 2)
        got = quantized.leaky_relu(src, alpha, src_q=src_q, dst_q=dst_q, dialect=dialect)
        shifted = range(lo - int(src_q.zero_point), hi + 1 - int(src_q.zero_point))
        wanted = [operators.leaky_relu(x, slope, src_q, dst_q, dialect) for x in shifted]
        assert got.tolist() == wanted


def test_xnnpack_leaves_small_slopes_to_the_interpreter() -> None:
    q = QParams(0.05, 3, "s8")
    src = np.arange(-128, 128).astype(np.int8)
    by = {
        dialect: quantized.leaky_relu(src, 0.002, src_q=q, dst_q=q, dialect=dialect)
        for dialect in ("tflite", "xnnpack")
    }
    assert np.array_equal(by["tflite"], by["xnnpack"])


def test_a_slope_must_be_a_number() -> None:
    q = QParams(0.5, 0, "s8")
    with pytest.raises(ArgumentError, match=r"^alpha: got nan"):
        quantized.leaky_relu(np.zeros(1, np.int8), float("nan"), src_q=q, dst_q=q)
