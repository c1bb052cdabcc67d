"""Ranges to scales and zero points, against ONNX's formulas in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.quantize.ranges import Dynamic, qparams_from_range, scales_and_points

RNG = np.random.default_rng(3)
F = np.float32


def dynamic_quantize_linear(lo: Any, hi: Any) -> tuple[Any, Any]:
    """ONNX's DynamicQuantizeLinear, one value at a time."""
    scale = F(F(hi) - F(lo)) / F(255)
    return scale, int(min(max(np.rint(F(0) - F(lo) / scale), 0), 255))


def test_asymmetric_ranges_are_those_of_onnx() -> None:
    lo = -np.abs(RNG.normal(size=500) * 10.0 ** RNG.integers(-6, 7, 500)).astype(F)
    hi = np.abs(RNG.normal(size=500) * 10.0 ** RNG.integers(-6, 7, 500)).astype(F)
    lo[:50], hi[50:100] = 0.0, 0.0
    scale, point = scales_and_points(lo, hi, "u8", symmetric=False)
    wanted = [dynamic_quantize_linear(*ends) for ends in zip(lo, hi, strict=True)]
    np.testing.assert_array_equal(scale, [s for s, _ in wanted])
    np.testing.assert_array_equal(point, [z for _, z in wanted])
    assert (point[:50] == 0).all()
    assert (point[50:100] == 255).all()


def test_symmetric_ranges_reach_both_ends() -> None:
    scale, point = scales_and_points([-3.0, -1.0], [1.0, 5.0], "s8", symmetric=True)
    np.testing.assert_array_equal(scale, np.array([3, 5], F) / F(127))
    assert not point.any()


def test_signed_codes_of_an_asymmetric_range() -> None:
    scale, point = scales_and_points(-1.0, 1.55, "s8", symmetric=False)
    assert (float(scale), int(point)) == (float(F(2.55) / F(255)), -28)


@pytest.mark.parametrize("symmetric", [False, True])
def test_nothing_but_zero_and_next_to_nothing(symmetric: bool) -> None:
    scale, _ = scales_and_points([0.0, -1e-45], [0.0, 1e-44], "s8", symmetric=symmetric)
    np.testing.assert_array_equal(scale, np.array([1.0, np.finfo(F).tiny], F))


def test_a_range_beyond_float32_is_refused() -> None:
    ends = np.array([-3.4e38], F), np.array([3.4e38], F)
    with pytest.raises(ArgumentError, match="a range that float32 can span"):
        Dynamic("u8").parameters(*ends)
    scale, _ = Dynamic("s8").parameters(*ends)
    assert np.isfinite(scale).all()


@pytest.mark.parametrize("ends", [(0.5, 1.0), (-1.0, -0.5), ([-1.0, 0.5], [1.0, 1.0])])
def test_a_range_without_0_has_no_zero_point(ends: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^lo: got values from .*; wanted lo <= 0 <= hi"):
        Dynamic("u8").parameters(*(np.array(end, F) for end in ends))


def test_a_range_is_widened_to_hold_0() -> None:
    assert qparams_from_range(1.0, 2.55, "u8").zero_point == 0
    assert qparams_from_range(-2.55, -1.0, "u8").zero_point == 255
    assert qparams_from_range(-1, 2, "s8", symmetric=True).zero_point == 0
    assert qparams_from_range(2.55, 2.55, "u8") == qparams_from_range(0.0, 2.55, "u8")


@pytest.mark.parametrize(
    ("error", "given"),
    [
        (ArgumentError, (2.0, 1.0, "u8")),
        (ArgumentError, (float("nan"), 1.0, "u8")),
        (ArgumentError, (0.0, float("inf"), "u8")),
        (ArgumentError, (0.0, 10**400, "u8")),
        (ArgumentError, ("0", 1.0, "u8")),
        (ArgumentError, (False, True, "u8")),
        (DTypeError, (0.0, 1.0, "s32")),
        (DTypeError, (0.0, 1.0, None)),
    ],
)
def test_what_is_no_range_is_refused(error: type[Exception], given: Any) -> None:
    with pytest.raises(error):
        qparams_from_range(*given)


def test_a_symmetric_range_of_u8_is_refused() -> None:
    with pytest.raises(DTypeError, match="s8 for a symmetric range"):
        qparams_from_range(0.0, 1.0, "u8", symmetric=True)


@pytest.mark.parametrize(
    ("error", "given"), [(DTypeError, ("s32",)), (ArgumentError, ("u8", "per_channel"))]
)
def test_what_dynamic_sources_cannot_be(error: type[Exception], given: Any) -> None:
    with pytest.raises(error):
        Dynamic(*given)
