"""The limits of constants, and the measure that every rewrite lowers, item by item."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.steps import Affine, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.expr.steps import Binary as BinaryStep
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.driver import (
    MEASURE,
    PER_CHANNEL,
    PER_TENSOR,
    detail,
    disorder,
    falls,
    grain,
    strangeness,
    weight,
)
from pyonednn_q.rewrite.ends import (
    FLT_MAX,
    FLT_MIN,
    NOISE,
    Acc,
    Dst,
    is_noise,
    not_storable,
    overflows,
    vanishes,
)

INF = math.inf
ABOVE, BELOW = np.nextafter(FLT_MAX, INF), np.nextafter(FLT_MIN, 0.0)


# --- limits ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "storable"),
    [
        (FLT_MAX, True), (-FLT_MAX, True), (ABOVE, False), (-ABOVE, False), (INF, False),
        (FLT_MIN, True), (-FLT_MIN, True), (BELOW, False), (-BELOW, False), (0.0, True),
        (5e-324, False), (1.0, True),
    ],
)  # fmt: skip
def test_float32_holds_its_normal_range_and_zero(value: float, storable: bool) -> None:
    for vec in (Vec(value), Vec([value, 1.0]), Vec([-1.0, value])):
        assert (not_storable("scale", vec) is None) is storable


def test_what_cannot_be_stored_is_named() -> None:
    beyond = not_storable("scale", Vec([1.0, ABOVE]))
    assert beyond == f"scale {float(ABOVE)!r} in channel 1 would be beyond float32"
    below = not_storable("scale", Vec([1.0, 0.0, 1e-39]))
    assert below == "scale 1e-39 in channel 2 would be below float32's normal range"


def test_a_bound_overflows_where_it_closed_its_side() -> None:
    assert not overflows(Vec(1.0), Vec([FLT_MAX, -FLT_MAX]))
    assert overflows(Vec(1.0), Vec(ABOVE))
    assert overflows(Vec(1.0), Vec(-ABOVE))
    assert not overflows(Vec(INF), Vec(INF))
    assert not overflows(Vec([INF, 1.0]), Vec([INF, FLT_MAX]))
    assert overflows(Vec([INF, 1.0]), Vec([INF, ABOVE]))
    assert overflows(Vec([1.0, -INF]), Vec([-ABOVE, -INF]))


def test_a_product_vanishes_where_no_factor_was_zero() -> None:
    tiny = Vec(1e-200)
    assert vanishes(tiny * tiny, tiny, tiny)
    assert not vanishes(Vec(0.0), Vec(0.0), tiny)
    assert not vanishes(Vec(0.0), tiny, Vec(0.0))
    assert not vanishes(Vec(2.0), Vec(1.0), Vec(2.0))
    one = Vec([1.0, 1e-200])
    assert vanishes(one * tiny, one, tiny)
    assert not vanishes(Vec([0.0, 1.0]), Vec([0.0, 1.0]), Vec(1.0))


def test_noise_ends_at_a_power_of_two() -> None:
    assert NOISE == 2.0**-40
    assert is_noise(Vec(1.0 + 2.0**-40), Vec(1.0))
    assert is_noise(Vec([1.0, 1.0 - 2.0**-40]), Vec(1.0))
    assert not is_noise(Vec(1.0 + 2.0**-40 + 2.0**-52), Vec(1.0))


# --- the measure that falls ----------------------------------------------------------------------

LEAF = Leaf("r")
WEIGHTS: list[tuple[Any, int]] = [
    (Affine(), 0),
    (Affine(2.0), 1),
    (Affine(1.0, 2.0), 1),
    (Affine(2.0, 3.0), 1),
    (Affine([1.0, 2.0]), 4),
    (Affine(1.0, [1.0, 2.0]), 4),
    (Affine([1.0, 2.0], 3.0), 5),
    (Affine(2.0, [1.0, 2.0]), 5),
    (Affine([1.0, 2.0], [1.0, 2.0]), 8),
    (Clip(0.0, 1.0), 1),
    (Clip(0.0), 1),
    (Clip([0.0, 1.0], 2.0), 5),
    (Clip([0.0, 1.0]), 4),
    (Clip(hi=[0.0, 1.0]), 4),
    (Clip([-INF, 0.0], [1.0, INF]), 8),
    (Clip(-1.0, [0.0, 1.0]), 5),
    (Round(), 1),
    (Eltwise("tanh"), 1),
    (PRelu(0.5), 1),
    (PRelu([0.5, 1.0]), 4),
    (Sum(), 1),
    (BinaryStep("add", LEAF), 4),
    (BinaryStep("max", 1.0), 1),
    (BinaryStep("max", [1.0, 2.0]), 4),
    (Acc(scale=Vec([1.0, 2.0])), 0),
    (Dst("u8"), 0),
]


@pytest.mark.parametrize(("item", "wanted"), WEIGHTS, ids=str)
def test_weight_is_what_an_item_costs_as_a_post_op(item: Any, wanted: int) -> None:
    """One a constant of the tensor, four a constant per channel; ends cost nothing."""
    assert (PER_TENSOR, PER_CHANNEL) == (1, 4)
    assert weight((item,)) == wanted
    assert weight((item, Round(), item)) == 2 * wanted + 1


def test_places_of_the_measure() -> None:
    assert list(MEASURE) == [weight, len, strangeness, disorder, detail, grain]
    kinds: list[Any] = [
        Affine(2), Clip(0), Round(), Eltwise("tanh"), Sum(), PRelu(2), BinaryStep("add", LEAF),
        Acc(), Dst(),
    ]  # fmt: skip
    assert [strangeness((kind,)) for kind in kinds] == [0, 1, 1, 2, 2, 3, 4, 0, 0]
    affine, rnd, clip = Affine(2), Round(), Clip(0)
    assert disorder((affine, rnd, clip)) == 0
    assert disorder((rnd, affine, clip)) == disorder((affine, clip, rnd)) == 1
    assert disorder((clip, rnd, affine)) == 3
    assert disorder((clip, Eltwise("tanh"))) == 1
    assert disorder((Eltwise("tanh"), affine)) == 1
    assert disorder((affine, affine)) == disorder((clip, clip)) == 0
    details = [
        (Affine(), 0), (Affine(2), 1), (Affine(1, 2), 1), (Affine(2, 2), 2), (Affine([1, 2]), 1),
        (Clip(), 0), (Clip(0), 1), (Clip(hi=0), 1), (Clip(0, 1), 2), (Clip([-INF, 0]), 1),
        (Round(), 0),
    ]  # fmt: skip
    assert [detail((item,)) for item, _ in details] == [wanted for _, wanted in details]
    assert detail((Affine(2), Clip(0, 1))) == 3
    shifts: list[tuple[Any, int]] = [
        (0.5, 1), (2.0, 0), ([0.5, 1.0, 1.5], 2), ([1.0, 2.0], 0)
    ]  # fmt: skip
    for shift, wanted in shifts:
        assert grain((Affine(1, shift),)) == grain((Acc(shift=Vec(shift)),)) == wanted
    assert grain((Clip(0.5),)) == 0


def test_a_fall_is_decided_by_the_first_place_that_differs() -> None:
    assert falls((Affine([1, 2]),), (Round(), Clip(0)))
    assert not falls((Round(), Clip(0)), (Affine([1, 2]),))
    assert falls((Affine(), Round()), (Round(),))
    assert falls((Eltwise("relu"),), (Clip(0),))
    assert falls((Round(), Affine(2)), (Affine(2), Round()))
    assert falls((Clip(0, 1),), (Clip(0),))
    assert falls((Affine(1, 0.5),), (Affine(1, 2.0),))
    assert not falls((Round(),), (Round(),))
