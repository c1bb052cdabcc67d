"""Codes of weights are those of the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.quantize.weight_rows import max_abs_range, weight_codes


@pytest.mark.parametrize("levels", [255, 256, 129, 15, 2])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_codes_stand_for_what_the_fake_quantize_gives(levels: int, shift: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 40))
    high = rng.uniform(0.5, 2.0, 5)
    fq = FakeQuantize(shift - high, high, 2 * (shift - high), 2 * high, levels)
    made = weight_codes(rows, fq)
    assert made.codes.dtype == np.int8
    scale, zero_point = (v.spread(5)[:, np.newaxis] for v in (made.scale, made.zero_point))
    np.testing.assert_allclose(scale * (made.codes - zero_point), fq(rows, axis=0), atol=1e-13)


@pytest.mark.parametrize("levels", [255, 129, 3])
def test_the_largest_magnitude_of_each_row_is_kept(levels: int) -> None:
    rows = np.random.default_rng(1).normal(size=(6, 30)) * 10.0 ** np.arange(-3, 3)[:, np.newaxis]
    rows[4] = 0.0
    fq = max_abs_range(rows, levels)
    made = weight_codes(rows, fq)
    top = (levels - 1) // 2
    assert abs(made.zero_point).greatest < 1e-12
    live = np.arange(6) != 4
    np.testing.assert_array_equal(np.abs(made.codes).max(axis=1)[live], top)
    assert not made.codes[4].any()
    scale = made.scale.spread(6)[:, np.newaxis]
    largest = np.abs(rows).max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(scale * made.codes).max(axis=1)[live], largest[live, 0])
    assert (np.abs(scale * made.codes - rows) <= scale * (0.5 + 2.0**-40)).all()


WRONG: dict[str, tuple[type[Exception], str, Any]] = {
    "even": (ArgumentError, "levels", lambda: max_abs_range(np.ones((2, 2)), 256)),
    "one": (ArgumentError, "levels", lambda: max_abs_range(np.ones((2, 2)), 1)),
    "too many": (ArgumentError, "levels", lambda: max_abs_range(np.ones((2, 2)), 257)),
    "no rows": (ShapeError, "wei", lambda: max_abs_range(np.ones(3))),
    "nan": (ArgumentError, "not finite", lambda: max_abs_range(np.array([[np.nan]]))),
    "9 bits": (
        ArgumentError, "wei_fq: got 257",
        lambda: weight_codes(np.ones((2, 2)), FakeQuantize(-1, 1, -1, 1, 257)),
    ),
    "one value": (
        ArgumentError, "wei_fq: got a scale of 0",
        lambda: weight_codes(np.ones((2, 2)), FakeQuantize(-1, 1, 0.5, 0.5, 255)),
    ),
    "reversed": (
        ArgumentError, "wei_fq: got a scale of -",
        lambda: weight_codes(np.ones((2, 2)), FakeQuantize(-1, 1, 1, -1, 255)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_gives_no_codes_is_refused(name: str) -> None:
    error, text, call = WRONG[name]
    with pytest.raises(error, match=text):
        call()
