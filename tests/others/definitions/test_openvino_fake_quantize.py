"""FakeQuantize of arrays in float32, in the operation orders of the code that ships it.

Accepted: every bit as the operator's reference ("core"), the CPU plugin's node ("fma") and the
plugin's fused code ("subgraph") have it, for 2, 16, 255, 256 and 65536 levels and for ranges per
tensor, per channel and per element.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_orders import FqOrder, fake_quantize
from support.definitions import openvino_oracle, rational

LEVELS = openvino_oracle.LEVELS
ORDERS: tuple[FqOrder, ...] = ("core", "fma", "subgraph")
SHAPE = (2, 3, 5, 4)
RECORDED: list[dict[str, Any]] = json.loads(openvino_oracle.RECORDED.read_text())


def ranges(granularity: str) -> tuple[Any, ...]:
    if granularity == "per tensor":
        return openvino_oracle.PER_TENSOR
    if granularity == "per channel":
        return openvino_oracle.along_channels(openvino_oracle.PER_CHANNEL, len(SHAPE))
    rng = np.random.default_rng(0)
    low = rng.normal(size=SHAPE).astype(np.float32)
    width = rng.uniform(0.5, 3.0, SHAPE[1:]).astype(np.float32)
    # Each end broadcasts in its own way: per element, without the batch, per row, one value.
    return low, (low + width).astype(np.float32), -width[..., :1], 2.0


@pytest.mark.parametrize("granularity", ["per tensor", "per channel", "per element"])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_bit_is_that_of_the_order(order: FqOrder, levels: int, granularity: str) -> None:
    bounds = ranges(granularity)
    x = rational.beside_ties(bounds[0], bounds[1], levels, SHAPE, seed=levels)
    got = fake_quantize(x, *bounds, levels=levels, order=order)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, rational.apply(rational.ORDERS[order], x, bounds, levels))


@pytest.mark.parametrize("levels", LEVELS[1:])
@pytest.mark.parametrize("pair", [("core", "fma"), ("core", "subgraph"), ("fma", "subgraph")])
def test_the_points_tell_the_orders_apart(pair: tuple[str, str], levels: int) -> None:
    """Beside ties the orders give other levels, so an order taken for another is noticed."""
    bounds = openvino_oracle.PER_TENSOR
    x = rational.beside_ties(*bounds[:2], levels, (600,), seed=levels)
    one, other = (rational.apply(rational.ORDERS[name], x, bounds, levels) for name in pair)
    assert (one != other).any()


SHAPES: dict[tuple[int, ...], FqOrder] = {
    (): "fma",
    (3, 1, 1): "fma",
    (1, 3, 1, 1): "fma",
    (4,): "core",
    (2, 1, 1, 1): "core",
    (3, 5, 1): "core",
    (1, 3, 5, 4): "core",
    SHAPE: "core",
}


def shaped(shape: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(len(shape))
    low = rng.uniform(-2.0, -0.1, shape).astype(np.float32)
    high = rng.uniform(0.1, 3.0, shape).astype(np.float32)
    return low, high, np.float32(-1.0), np.float32(2.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_of_the_cpu_node_follows_from_the_shape(shape: tuple[int, ...]) -> None:
    bounds = shaped(shape)
    x = rational.beside_ties(bounds[0], bounds[1], 16, SHAPE, seed=3)
    got = fake_quantize(x, *bounds, levels=16, order="cpu")
    want = rational.apply(rational.ORDERS[SHAPES[shape]], x, bounds, 16)
    np.testing.assert_array_equal(got, want)


def test_the_cpu_node_refuses_ranges_along_an_inner_dimension() -> None:
    with pytest.raises(ArgumentError, match=r"^input_low: got ranges along dimension 2 alone"):
        fake_quantize(np.zeros(SHAPE), *shaped((5, 1)), levels=16, order="cpu")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_order_is_openvinos_where_it_is_installed(shape: tuple[int, ...]) -> None:
    pytest.importorskip("openvino")
    bounds = shaped(shape)
    x = rational.beside_ties(bounds[0], bounds[1], 16, SHAPE, seed=4)
    theirs = openvino_oracle.answer("fma", x, bounds, 16)
    np.testing.assert_array_equal(fake_quantize(x, *bounds, levels=16, order="cpu"), theirs)


@pytest.mark.parametrize("case", RECORDED, ids=lambda c: f"{c['name']}, {c['levels']} levels")
def test_every_bit_is_what_openvino_recorded(case: dict[str, Any]) -> None:
    x = np.array(case["x"], np.float32)
    for order in [name for name in ORDERS if name in case]:
        got = fake_quantize(x, *case["ranges"], levels=case["levels"], order=order)
        np.testing.assert_array_equal(got, np.array(case[order], np.float32), err_msg=order)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("order", ORDERS)
def test_every_bit_is_openvinos_where_it_is_installed(order: FqOrder, levels: int) -> None:
    pytest.importorskip("openvino")
    if (order, levels) == ("subgraph", 2):
        pytest.skip("two levels are never fused")
    for bounds in (openvino_oracle.PER_TENSOR, ranges("per channel")):
        x = rational.beside_ties(bounds[0], bounds[1], levels, (2, 3, 40, 70), seed=1)
        want = openvino_oracle.answer(order, x, bounds, levels)
        got = fake_quantize(x, *bounds, levels=levels, order=order)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("axis", [1, -1])
def test_the_value_computes_the_same(axis: int, order: FqOrder) -> None:
    """FakeQuantize, per tensor or per channel on any axis, is this function of its ranges."""
    fq = FakeQuantize(*openvino_oracle.PER_CHANNEL, 255)
    bounds = openvino_oracle.along_channels(openvino_oracle.PER_CHANNEL, 3)
    x = rational.beside_ties(bounds[0], bounds[1], 255, (2, 3, 30), seed=5)
    want = rational.apply(rational.ORDERS[order], x, bounds, 255)
    moved, want = np.moveaxis(x, 1, axis), np.moveaxis(want, 1, axis)
    np.testing.assert_array_equal(fq.evaluate_f32(moved, axis=axis, order=order), want)


def test_core_is_the_default() -> None:
    x = rational.beside_ties(*openvino_oracle.PER_TENSOR[:2], 256, (600,), seed=256)
    core = rational.apply(rational.core, x, openvino_oracle.PER_TENSOR, 256)
    np.testing.assert_array_equal(fake_quantize(x, *openvino_oracle.PER_TENSOR, levels=256), core)
