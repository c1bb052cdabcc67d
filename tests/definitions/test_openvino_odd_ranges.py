"""Empty, reversed and infinite ranges, and values that are no number.

Accepted: an empty input range is a threshold (x at most the range gives output_low), a reversed
one follows the definition, so does a reversed output range; NaN stays NaN in the definition and
becomes output_high in the kernels' orders; infinities give the ends; ranges that are not finite are
refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from support.definitions import rational

INF = float("inf")
LEVELS = (2, 3, 16, 255, 256, 65536)
SPECIAL = np.array([-INF, INF, -0.0, 0.0, 1e-45, -1e-45, 3e38, -3e38], np.float32)
HALF = np.array([0.5, 0.5], np.float32)
KERNELS: tuple[FqOrder, ...] = ("fma", "subgraph")


def around(*places: float) -> Any:
    """The places and their neighbours, and values between and beyond them."""
    at = np.array(places, np.float32)
    sides = [np.nextafter(at, np.float32(side)) for side in (-np.inf, np.inf)]
    spread = np.linspace(min(places) - 1, max(places) + 1, 101, dtype=np.float32)
    return np.concatenate([at, *sides, spread])


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("at", [0.5, 0.0, -3.25])
def test_empty_input_range_is_a_threshold(at: float, levels: int) -> None:
    x = np.concatenate([around(at), SPECIAL])
    got = fake_quantize(x, at, at, -1, 7, levels=levels)
    assert got.tolist() == [7.0 if value > at else -1.0 for value in x.tolist()]


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("ends", [(1.3, -0.7), (4.0, 2.0), (-0.1, -6.0)])
def test_reversed_input_range_follows_the_definition(
    ends: tuple[float, float], levels: int
) -> None:
    """Up to the smaller end it is output_low, above the larger output_high, between it falls."""
    x, ranges = around(*ends), (*ends, -2.0, 3.5)
    got = fake_quantize(x, *ranges, levels=levels)
    np.testing.assert_array_equal(got, rational.apply(rational.core, x, ranges, levels))
    inside = (min(ends) < x) & (x <= max(ends))
    assert (np.diff(got[inside][np.argsort(x[inside])]) <= 0).all()
    assert set(got[~inside]) == {-2.0, 3.5}


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("order", ["core", *KERNELS])
def test_reversed_output_range(order: FqOrder, levels: int) -> None:
    x, ranges = around(-1.3, 2.1), (-1.3, 2.1, 5.0, -3.0)
    got = fake_quantize(x, *ranges, levels=levels, order=order)
    want = rational.apply(rational.ORDERS[order], x, ranges, levels)
    np.testing.assert_array_equal(got, want)
    assert (np.diff(got[np.argsort(x)]) <= 0).all()


@pytest.mark.parametrize("order", ["core", *KERNELS])
def test_constant_output_range(order: FqOrder) -> None:
    got = fake_quantize(around(0.0, 1.0), 0, 1, 2.5, 2.5, levels=256, order=order)
    assert (got == 2.5).all()


def test_edges_beside_each_other() -> None:
    """Empty, reversed and plain ranges in one array, element by element."""
    low = np.array([0.5, 1.0, -1.0, 0.5], np.float32)
    high = np.array([0.5, -1.0, 1.0, 0.5], np.float32)
    x = np.repeat(around(-1.0, 0.5, 1.0)[:, None], 4, axis=1)
    got = fake_quantize(x, low, high, 0, 255, levels=256)
    want = rational.apply(rational.core, x, (low, high, 0, 255), 256)
    np.testing.assert_array_equal(got, want)


def test_a_bound_belongs_to_the_lower_side() -> None:
    """At low itself it is output_low, and at high the last level: x <= low, x > high."""
    got = fake_quantize(np.array([-1, 1], np.float32), -1, 1, 0.3, 0.7, levels=256)
    assert got[0] == np.float32(0.3)
    assert abs(got[1] - np.float32(0.7)) <= np.spacing(np.float32(0.7))


@pytest.mark.parametrize("order", ["core", *KERNELS])
def test_infinities_give_the_ends(order: FqOrder) -> None:
    x = np.array([-INF, INF, -3e38, 3e38], np.float32)
    got = fake_quantize(x, -1.3, 2.1, -3, 252, levels=256, order=order)
    assert got.tolist() == [-3, 252, -3, 252]


def test_nan() -> None:
    nan = np.array([np.nan], np.float32)
    assert np.isnan(fake_quantize(nan, -1.3, 2.1, -3, 5, levels=256)).all()
    assert np.isnan(fake_quantize(nan, 2.1, -1.3, -3, 5, levels=256)).all()
    assert np.isnan(fake_quantize(nan, 0.5, 0.5, -3, 5, levels=2)).all()
    for order in KERNELS:
        assert fake_quantize(nan, -1.3, 2.1, -3, 252, levels=256, order=order).item() == 252


@pytest.mark.parametrize("bad", [INF, -INF, float("nan")])
@pytest.mark.parametrize("name", ["input_low", "input_high", "output_low", "output_high"])
def test_ranges_that_are_not_finite_are_refused(name: str, bad: float) -> None:
    ranges: dict[str, Any] = {
        "input_low": 0.0, "input_high": 1.0, "output_low": 0.0, "output_high": 1.0, name: bad
    }  # fmt: skip
    for order in ("core", *KERNELS):
        with pytest.raises(ArgumentError, match=f"{name}: got a value that is not finite"):
            fake_quantize(HALF, **ranges, levels=256, order=order)
    ranges[name] = [1.0, bad]
    with pytest.raises(ArgumentError, match="not finite"):
        fake_quantize(HALF, **ranges, levels=256)
    with pytest.raises(ArgumentError):
        FakeQuantize(**ranges)


@pytest.mark.parametrize("ends", [(0.5, 0.5), (1.0, -1.0), ([0.0, 1.0], [1.0, 1.0])])
def test_kernels_have_no_answer_for_empty_or_reversed_ranges(ends: tuple[Any, Any]) -> None:
    """The plugin gives NaN, or one value for everything; here the orders refuse."""
    for order in KERNELS:
        with pytest.raises(ArgumentError, match="low < high"):
            fake_quantize(HALF, *ends, 0, 1, levels=256, order=order)


@pytest.mark.parametrize("levels", [2, 3, 256])
def test_a_chain_may_have_a_threshold(levels: int) -> None:
    """Both ends alike: output_low up to there, output_high above, at any levels."""
    x, ranges = around(0.5, 0.5), (0.5, 0.5, -1.0, 2.0)
    want = rational.apply(rational.core, x, ranges, levels)
    np.testing.assert_array_equal(FakeQuantize(*ranges, levels)(x), want)
    assert set(want) == {-1.0, 2.0}


@pytest.mark.parametrize("ends", [(1.0, -1.0), ([0.0, 1.0], [1.0, 1.0])])
def test_no_chain_is_made_of_them(ends: tuple[Any, Any]) -> None:
    """As a step of a chain they are refused early: it can neither fall nor jump in one channel."""
    with pytest.raises(ArgumentError, match=r"input_low.*(empty|reversed) range"):
        FakeQuantize(*ends, 0, 1, 256)
