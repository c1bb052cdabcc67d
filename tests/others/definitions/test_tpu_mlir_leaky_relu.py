"""TPU-MLIR's leaky ReLU and PReLU: seven bits when symmetric, floats otherwise.

Accepted: all codes equal the definitions in rational arithmetic; the test is q >= zero point, not
q >= 0 as the note prints.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from support.definitions import operators

CODES = np.arange(-128, 128).astype(np.int8)


@pytest.mark.parametrize("alpha", [0.25, 0.1, 0.7, 0.011])
def test_symmetric_leaky_relu(alpha: float) -> None:
    q = QParams(0.05, 0, "s8")
    got = quantized.leaky_relu(CODES, alpha, src_q=q, dst_q=q, dialect="tpu_mlir")
    slope = Fraction(float(np.float32(alpha)))
    wanted = [operators.leaky_relu(x, slope, q, q, "tpu_mlir") for x in range(-128, 128)]
    assert got.tolist() == wanted


def test_the_condition_is_on_the_value_and_not_on_the_code() -> None:
    """The note's counter-example: q = 5 below a zero point of 20, alpha 1/4, stays below it."""
    q = QParams(0.5, 20, "s8")
    five = np.array([5], np.int8)
    got = quantized.leaky_relu(five, 0.25, src_q=q, dst_q=q, dialect="tpu_mlir")
    assert got.tolist() == [16]


def test_symmetric_prelu_drops_what_is_below_its_bits() -> None:
    rng = np.random.default_rng(0)
    for _ in range(8):
        q, slope_q = (
            QParams(0.05, 0, "s8"),
            QParams(float(np.float32(rng.uniform(1e-3, 8e-3))), 0, "s8"),
        )
        slope = rng.integers(-128, 128, 5).astype(np.int8)
        src = np.broadcast_to(CODES, (2, 5, 256))
        got = quantized.prelu(src, slope, src_q=q, slope_q=slope_q, dst_q=q, dialect="tpu_mlir")
        real = [operators.real(int(each), slope_q) for each in slope]
        largest = max(abs(each) for each in real)
        for channel, each in enumerate(real):
            wanted = [operators.prelu_tpu_mlir(x, each, largest, q) for x in range(-128, 128)]
            assert got[1, channel].tolist() == wanted


def test_prelu_with_zero_points_goes_through_floats() -> None:
    q, slope_q = QParams(0.5, 4, "s8"), QParams(0.125, 0, "s8")
    slope, src = np.array([2, -4], np.int8), np.broadcast_to(CODES, (1, 2, 256))
    got = quantized.prelu(src, slope, src_q=q, slope_q=slope_q, dst_q=q, dialect="tpu_mlir")
    x = CODES.astype(float) - 4
    for channel, each in enumerate((0.25, -0.5)):
        y = np.where(x >= 0, x, x * each)
        away = np.copysign(np.floor(np.abs(y) + 0.5), y) + 4
        assert np.array_equal(got[0, channel], np.clip(away, -128, 127))


def test_arguments_are_named() -> None:
    q, other = QParams(0.5, 0, "s8"), QParams(0.25, 0, "s8")
    src, slope = np.zeros((1, 3, 2), np.int8), np.zeros(3, np.int8)
    with pytest.raises(ShapeError, match=r"^slope: got \(2,\); wanted one value for each channel"):
        quantized.prelu(src, slope[:2], src_q=q, slope_q=q, dst_q=q)
    with pytest.raises(ArgumentError, match=r"^dst_q: got scale 0\.25; wanted 0\.5"):
        quantized.prelu(src, slope, src_q=q, slope_q=q, dst_q=other, dialect="tpu_mlir")
