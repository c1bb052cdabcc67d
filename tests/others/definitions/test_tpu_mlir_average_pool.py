"""TPU-MLIR's means, symmetric and with zero points; the note's minus sign is wrong.

Accepted: the codes of test_quantized_average_pool.py, and the note's counter-example.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q import emulate as quantized
from pyonednn_q.qparams import QParams


def test_the_zero_points_difference_is_added() -> None:
    """Mean 60, scales 1 to 2, zero points 20 and −10: 60/2 + (−10 − 20/2) = 10, not 50."""
    src_q, dst_q = QParams(1.0, 20, "s8"), QParams(2.0, -10, "s8")
    src = np.array([[[50, 70, 60, 60]]], np.int8)
    got = quantized.average_pool(src, 4, src_q=src_q, dst_q=dst_q, dialect="tpu_mlir")
    assert got.tolist() == [[[10]]]


def test_symmetric_means_have_a_multiplier_of_seven_bits() -> None:
    """1/9 becomes 114 / 2^10."""
    q = QParams(0.5, 0, "s8")
    src = np.full((1, 1, 3, 3), 100, np.int8)
    got = [
        quantized.average_pool(x, 3, src_q=q, dst_q=q, dialect="tpu_mlir").item()
        for x in (src, (src + 27).astype(np.int8))
    ]
    assert got == [(900 * 114 + 512) >> 10, (1143 * 114 + 512) >> 10]
