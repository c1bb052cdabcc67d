"""Codes and ranges in C++, against the same formula in NumPy, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.native.passes import as_rows, quantize, ranges
from support.calls import layouts
from support.oracle_numbers import INTEGER_RANGES, numpy_dtype

F = np.float32
LENGTHS = (1, 3, 63, 64, 65, 1000)


def stated(values: Any, scales: Any, points: Any, dtype: str) -> Any:
    """clamp(rne(x / scale) + zero_point), each operation in float32."""
    with np.errstate(over="ignore"):
        levels = np.rint(values / scales[:, None]).astype(np.float64) + points[:, None]
    return np.clip(levels, *INTEGER_RANGES[dtype]).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", ["u8", "s8"])
@pytest.mark.parametrize("length", LENGTHS)
def test_codes_are_those_of_the_formula(dtype: str, length: int) -> None:
    rng = np.random.default_rng(length)
    least, greatest = INTEGER_RANGES[dtype]
    scales = (10.0 ** rng.uniform(-30, 30, 40)).astype(F)
    points = rng.integers(least, greatest, 40, endpoint=True).astype(np.int32)
    levels = rng.uniform(-300, 300, (40, length))
    levels[::2] = np.rint(levels[::2] * 2) / 2  # next to ties, and on some
    values = (levels * scales[:, None]).astype(F)
    values[rng.random(values.shape) < 0.02] = np.inf
    values[rng.random(values.shape) < 0.02] = -3e38
    got = quantize(as_rows(values, 40), scales, points, dtype)
    np.testing.assert_array_equal(got, stated(values, scales, points, dtype))


@pytest.mark.parametrize("length", LENGTHS)
def test_ranges_hold_zero(length: int) -> None:
    values = np.random.default_rng(length).normal(0.3, 1, (25, length)).astype(F)
    lo, hi = ranges(as_rows(values, 25), 25)
    np.testing.assert_array_equal(lo, np.minimum(values.min(axis=1), 0))
    np.testing.assert_array_equal(hi, np.maximum(values.max(axis=1), 0))


@pytest.mark.parametrize("at", [0, 62, 64, 129])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_found_wherever_it_is(at: int, bad: float) -> None:
    values = np.ones((2, 130), F)
    values[1, at] = bad
    with pytest.raises(ArgumentError, match="src: got values that are not finite"):
        ranges(values, 2)
    one, none = np.ones(2, F), np.zeros(2, np.int32)
    if np.isnan(bad):
        with pytest.raises(ArgumentError, match="src: got NaN"):
            quantize(values, one, none, "u8")
    else:
        codes = quantize(values, one, none, "u8")
        assert codes[1, at] == (255 if bad > 0 else 0)


LAYOUTS: dict[str, Any] = {
    **layouts.LAYOUTS,
    "one value": lambda x: np.broadcast_to(x[0, 0, 0, 0], x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    dense = np.random.default_rng(1).normal(size=(2, 5, 3, 4)).astype(F)
    values = LAYOUTS[layout](dense)
    wanted = values.copy()
    scale, point = np.array([0.02], F), np.array([117], np.int32)
    ready = as_rows(values)
    codes = quantize(ready, scale, point, "u8")
    flat = stated(wanted.reshape(1, -1), scale, point, "u8")
    np.testing.assert_array_equal(codes, flat.reshape(wanted.shape))
    lo, hi = ranges(ready)
    assert (lo[0], hi[0]) == (min(wanted.min(), 0), max(wanted.max(), 0))
    if layout in {"channels last", "fortran"}:
        assert ready is values
        assert codes.strides == tuple(s // 4 for s in values.strides)


def test_values_of_another_type_are_refused() -> None:
    with pytest.raises(DTypeError, match="src: got float64"):
        as_rows(np.zeros(3))
