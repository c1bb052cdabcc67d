"""TPU-MLIR's sums: two shifts on BM168x, one on CV18xx, floats with zero points.

Accepted: every code equals the definition in rational arithmetic; the note's single shift of the
sum differs from BM168x's.
"""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q import emulate as quantized
from pyonednn_q.errors import ArgumentError
from pyonednn_q.qparams import QParams
from support.definitions import operators


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("dialect", ["tpu_mlir", "tpu_mlir_cv18xx"])
def test_every_code_is_that_of_the_definition(dialect: str, symmetric: bool) -> None:
    if dialect == "tpu_mlir_cv18xx" and not symmetric:
        return
    rng = np.random.default_rng([len(dialect), symmetric])
    for _ in range(12):
        a_q, b_q, dst_q = operators.drawn(rng, "s8", 3, symmetric=symmetric)
        a, b = (rng.integers(-128, 128, 120).astype(np.int8) for _ in range(2))
        got = quantized.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect)
        rule = operators.ADD[dialect]
        shifted = (a.astype(int) - a_q.zero_point, b.astype(int) - b_q.zero_point)
        pairs = zip(*(each.tolist() for each in shifted), strict=True)
        assert got.tolist() == [rule(x, y, a_q, b_q, dst_q) for x, y in pairs]


def test_two_shifts_are_not_one() -> None:
    """The note's counter-example: 3 · 77 / 2^7 + 124 · 90 / 2^8 is 46 on BM168x."""
    a_q, b_q = QParams(77 / 2**7, 0, "s8"), QParams(90 / 2**8, 0, "s8")
    dst_q = QParams(1.0, 0, "s8")
    a, b = np.array([3], np.int8), np.array([124], np.int8)
    found = [
        int(quantized.add(a, b, a_q=a_q, b_q=b_q, dst_q=dst_q, dialect=dialect)[0])
        for dialect in ("tpu_mlir", "tpu_mlir_cv18xx")
    ]
    assert found == [46, 45]


def test_cv18xx_takes_symmetric_tensors_only() -> None:
    q, shifted = QParams(0.5, 0, "s8"), QParams(0.5, 1, "s8")
    a = np.zeros(1, np.int8)
    with pytest.raises(ArgumentError, match=r"wanted 0 for all three tensors"):
        quantized.add(a, a, a_q=q, b_q=q, dst_q=shifted, dialect="tpu_mlir_cv18xx")
