"""Differences between two results: counted, placed, and told apart by ties."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.predict.difference import DifferenceReport, difference_report, tie_mask
from pyonednn_q.requantize import requantize


def test_differences_are_counted_and_placed() -> None:
    a = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    b = np.array([[1, 0, 3], [4, 6, 6]], np.uint8)
    report = difference_report(a, b)
    assert (report.compared, report.count, report.largest) == (6, 2, 2)
    assert report.positions == ((0, 1), (1, 1))
    assert report.rate == 2 / 6
    assert report.mean == (2 - 1) / 6
    assert report.all_at_ties is None
    assert report.text().startswith("2 of 6 differ (333333.3 ppm), by up to 2, mean +0.166667")


def test_types_do_not_wrap_around() -> None:
    report = difference_report(np.array([-128], np.int8), np.array([255], np.uint8))
    assert report.largest == 383


def test_equal_and_empty_results() -> None:
    same = difference_report([1, 2], [1, 2])
    assert (same.count, same.rate, same.largest, same.positions) == (0, 0.0, 0, ())
    assert same.text() == "2 compared, all equal"
    empty = difference_report(np.zeros((0, 3), np.int8), np.zeros((0, 3), np.int8))
    assert (empty.compared, empty.rate, empty.mean) == (0, 0.0, 0.0)


def test_positions_are_kept_up_to_a_number() -> None:
    a, b = np.zeros(100, np.int8), np.ones(100, np.int8)
    assert difference_report(a, b, positions=3).positions == ((0,), (1,), (2,))
    assert len(difference_report(a, b).positions) == 8
    assert difference_report(a, b, positions=3).count == 100


def test_a_report_without_positions_is_a_line_too() -> None:
    report = difference_report(np.zeros(3, np.int8), np.ones(3, np.int8), positions=0)
    assert report.text() == "3 of 3 differ (1000000.0 ppm), by up to 1, mean -1.000000"


def test_a_report_of_anything_else_is_refused() -> None:
    for name, value in (("compared", 10**5000), ("mean", "0"), ("positions", [(0,)])):
        right: dict[str, Any] = {
            "compared": 3,
            "count": 1,
            "positions": ((0,),),
            "largest": 1,
            "mean": 0.5,
        }
        with pytest.raises(ArgumentError, match=f"^{name}: got"):
            DifferenceReport(**{**right, name: value})


def test_ties_explain_differences_or_do_not() -> None:
    acc = np.arange(-64, 64, dtype=np.int32)[None]
    scales: dict[str, Any] = {"src_scale": 0.5, "wei_scale": 0.25, "dst_scale": 0.5}
    ties = tie_mask(acc, **scales)
    assert np.array_equal(ties, acc % 4 == 2)
    exact, away, twice = (
        requantize(acc, name, **scales) for name in ("exact", "exact_half_away", "tflite_2up")
    )
    once = difference_report(away, exact, ties=ties)
    assert once.count == 16
    assert once.all_at_ties
    assert once.text().endswith("all at ties")
    both = difference_report(twice, exact, ties=ties)
    assert both.all_at_ties is False
    assert both.at_ties == 16
    assert both.count == 48
    assert both.text().endswith("16 at ties")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_ties_are_decided_exactly_per_channel(axis: int) -> None:
    """float32 scales of 24 bits each: no float could tell these ties."""
    wei = np.array([0.1, 0.2, 3 / 8], np.float32)
    src, dst = np.float32(0.3), np.float32(0.3)
    shape = [40, 40]
    shape[axis] = 3
    acc = np.random.default_rng(0).integers(-40, 40, shape).astype(np.int32)
    got = tie_mask(acc, src_scale=src, wei_scale=wei, dst_scale=dst, axis=axis)
    for index in np.ndindex(acc.shape):
        value = int(acc[index]) * Fraction(float(wei[index[axis]]))
        assert got[index] == ((2 * value).denominator == 1 and (2 * value).numerator % 2 == 1)
    assert got.any()


def test_arguments_are_checked() -> None:
    with pytest.raises(DTypeError, match=r"^a: got float64; wanted integers"):
        difference_report([1.0], [1])
    with pytest.raises(ShapeError, match=r"^b: got shape \(3,\); wanted shape \(2,\), that of a"):
        difference_report([1, 2], [1, 2, 3])
    with pytest.raises(ArgumentError, match=r"^ties: got .*; wanted booleans"):
        difference_report([1, 2], [1, 2], ties=[0, 1])


def test_a_report_is_a_value() -> None:
    assert difference_report([1], [2]) == DifferenceReport(1, 1, ((0,),), 1, -1.0)


@pytest.mark.parametrize("scale", [0.0, -0.5, 1e-60, float("nan"), [1.0, 0.0]])
@pytest.mark.parametrize("name", ["src_scale", "wei_scale", "dst_scale"])
def test_ties_of_scales_that_are_none_are_refused(name: str, scale: Any) -> None:
    scales = {"src_scale": 1.0, "wei_scale": 1.0, "dst_scale": 2.0, name: scale}
    with pytest.raises(ArgumentError, match=f"^{name}: .*above 0 in float32"):
        tie_mask(np.array([[1, 2]]), **scales)
