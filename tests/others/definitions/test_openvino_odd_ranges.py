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

from pyonednn_q.compose.layer_composer import compose_layer
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from pyonednn_q.primitive.problem import ConvProblem
from pyonednn_q.quantize.weight_rows import weight_codes
from support.definitions import openvino_oracle, rational

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


# One value, and one of each kind for each channel: plain, empty, reversed, outputs reversed too.
ODD: dict[str, Any] = {
    "empty": (0.5, 0.5, -1.0, 2.0),
    "reversed": (1.3, -0.7, 0.0, 255.0),
    "both reversed": (1.3, -0.7, 5.0, -3.0),
    "outputs reversed": (-1.3, 2.1, 5.0, -3.0),
    "all in one": (
        [-1.0, 0.25, 1.3, 2.0, 0.0],
        [2.0, 0.25, -0.7, -2.0, 0.0],
        [0.0, -1.0, 0.0, 5.0, 3.0],
        [255.0, 7.0, 255.0, -3.0, -3.0],
    ),
}


def made(ranges: Any, levels: int) -> FakeQuantize:
    """The value with its ranges as float32 holds them, so that both precisions see the same."""
    low, high, first, last = (np.asarray(end, np.float32).astype(np.float64) for end in ranges)
    return FakeQuantize(low, high, first, last, levels)


def odd_inputs(ranges: Any, levels: int, width: int) -> Any:
    low, high = (
        np.broadcast_to(np.asarray(end, np.float32)[..., None], (5, 1))
        if np.ndim(end)
        else np.full((5, 1), end, np.float32)
        for end in ranges[:2]
    )
    least, greatest = np.minimum(low, high), np.maximum(low, high)
    spread = rational.beside_ties(least, greatest + (least == greatest), levels, (2, 5, width), 7)
    ends = np.concatenate([np.nextafter(e, np.float32(side)) for e in (low, high)
                           for side in (-np.inf, np.inf)] + [low, high], axis=1)  # fmt: skip
    return np.concatenate([spread, np.broadcast_to(ends, (2, 5, 6))], axis=2)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("name", ODD)
def test_the_value_follows_the_definition_in_any_order_of_ends(name: str, levels: int) -> None:
    """Per tensor and per channel, every bit; in float64: tests/pure/expr/test_fake_quantize.py."""
    fq = made(ODD[name], levels)
    x = odd_inputs(ODD[name], levels, 60)
    ranges = tuple(np.reshape(end, (-1, 1)) for end in ODD[name])
    want = rational.apply(rational.core, x, ranges, levels)
    np.testing.assert_array_equal(fq.evaluate_f32(x), want)
    last = np.moveaxis(x, 1, -1)
    np.testing.assert_array_equal(fq.evaluate_f32(last, axis=-1), np.moveaxis(want, 1, -1))


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("name", ODD)
def test_the_value_is_openvinos_where_it_is_installed(name: str, levels: int) -> None:
    pytest.importorskip("openvino")
    x = odd_inputs(ODD[name], levels, 500)
    ranges = openvino_oracle.along_channels(ODD[name], x.ndim)
    want = openvino_oracle.answer("core", x, ranges, levels)
    fq = made(ODD[name], levels)
    np.testing.assert_array_equal(fq.evaluate_f32(x), want)


def test_weights_may_have_any_ranges() -> None:
    """They are constants: their codes are the levels that the definition gives them."""
    ranges = tuple(np.reshape(end, -1) for end in ODD["all in one"])
    low, high = np.array([-1.0, -1.0, -1.0, -1.0, -1.0]), np.array([1.0, 1.5, 1.0, 1.0, 1.0])
    fq = made((*ranges[:2], low, high), 256)
    rows = odd_inputs(ODD["all in one"], 256, 60)[0].astype(np.float64)
    found = weight_codes(rows, fq)
    real = (found.codes - found.zero_point.values()[:, None]) * found.scale.values()[:, None]
    assert np.abs(real - fq(rows, axis=0)).max() < 1e-12


@pytest.mark.parametrize("levels", [2, 3, 256])
def test_a_chain_may_have_a_threshold(levels: int) -> None:
    """Both ends alike: output_low up to there, output_high above, at any levels."""
    x, ranges = around(0.5, 0.5), (0.5, 0.5, -1.0, 2.0)
    want = rational.apply(rational.core, x, ranges, levels)
    np.testing.assert_array_equal(evaluate(FakeQuantize(*ranges, levels).chain(), x), want)
    assert set(want) == {-1.0, 2.0}


@pytest.mark.parametrize("ends", [(1.0, -1.0), ([0.0, 1.0], [1.0, 1.0])])
def test_no_chain_is_made_of_them(ends: tuple[Any, Any]) -> None:
    """A chain can neither fall nor jump in one channel: refused with the channel."""
    fq = FakeQuantize(*ends, 0, 255, 256)
    with pytest.raises(ArgumentError, match=r"^input_low: got an? (empty|reversed) range"):
        fq.chain()
    problem = ConvProblem.of((1, 2, 5, 5), (2, 2, 1, 1))
    plain = FakeQuantize(-1.0, 1.55, -1.0, 1.55)
    for name in ("src_fq", "dst_fq") if fq.channels is None else ("dst_fq",):
        asked: dict[str, Any] = {"src_fq": plain, "dst_fq": plain, name: fq}
        with pytest.raises(ArgumentError, match=rf"^{name}: got an? (empty|reversed) range"):
            compose_layer(problem, np.ones((2, 2, 1, 1)), **asked)
