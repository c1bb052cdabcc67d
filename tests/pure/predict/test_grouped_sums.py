"""The model of weights in groups: one number after the other, each rounded to float32."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.predict.grouped_sums import grouped_sums
from pyonednn_q.qparams import QParams


def rounded(value: Fraction) -> Fraction:
    """Return the nearest float32, ties to even; of normal numbers."""
    if value == 0:
        return value
    size, exponent = abs(value), 0
    while size >= 2:
        size, exponent = size / 2, exponent + 1
    while size < 1:
        size, exponent = size * 2, exponent - 1
    unit = Fraction(2) ** (exponent - 23)
    return round(value / unit) * unit  # round() of a Fraction takes ties to even


@pytest.mark.parametrize("by_group", [False, True])
def test_every_operation_is_rounded_once(by_group: bool) -> None:
    rng = np.random.default_rng(by_group)
    size, groups, columns, rows = 1500, 2, 3, 2
    src = rng.integers(0, 256, (rows, size * groups))
    wei = rng.integers(-128, 128, (size * groups, columns))
    point = rng.integers(-128, -100, (groups, columns))
    scale = rng.uniform(0.01, 0.02, (groups, columns)).astype(np.float32)
    parts = groups if by_group else 1
    own = rng.uniform(0.01, 0.02, (rows, parts)).astype(np.float32)
    own_point = rng.integers(0, 20, (rows, parts))
    bias = rng.standard_normal(columns).astype(np.float32)
    wei_q = QParams(scale, point, "s8", axis=0, block=(size,))
    got = grouped_sums(src, own, own_point, wei, wei_q, bias)
    largest = 0
    for m in range(rows):
        for n in range(columns):
            total = Fraction(0)
            for g in range(groups):
                at = g if by_group else 0
                acc = sum(
                    (int(src[m, k]) - int(own_point[m, at])) * (int(wei[k, n]) - int(point[g, n]))
                    for k in range(g * size, (g + 1) * size)
                )
                largest = max(largest, abs(acc))
                term = rounded(rounded(Fraction(acc)) * Fraction(float(scale[g, n])))
                if by_group:
                    term = rounded(term * Fraction(float(own[m, at])))
                total = rounded(total + term)
            if not by_group:
                total = rounded(total * Fraction(float(own[m, 0])))
            assert Fraction(float(got[m, n])) == rounded(total + Fraction(float(bias[n])))
    assert largest > 2**24  # so that sums themselves are rounded


WEI_Q = QParams(np.ones((2, 3)), 0, "s8", axis=0, block=(2,))


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"src": np.zeros((5, 3), int)}, ShapeError, "^src: got"),
        ({"src_scale": np.ones((5, 3))}, ShapeError, "^src_scale: got"),
        ({"src_zero_point": np.zeros((4, 1), int)}, ShapeError, "^src_zero_point: got"),
        ({"wei_q": QParams(1.0, 0, "s8")}, ArgumentError, "^wei_q: got"),
        (
            {"wei_q": QParams(np.ones((1, 3)), 0, "s8", axis=0, block=(2,))},
            ShapeError,
            "^wei_q: got scales",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    changes: dict[str, Any], error: type[Exception], says: str
) -> None:
    asked: dict[str, Any] = {
        "src": np.zeros((5, 4), int),
        "src_scale": np.ones((5, 1)),
        "src_zero_point": np.zeros((5, 1), int),
        "wei": np.zeros((4, 3), int),
        "wei_q": WEI_Q,
    }
    with pytest.raises(error, match=says):
        grouped_sums(**asked | changes)
