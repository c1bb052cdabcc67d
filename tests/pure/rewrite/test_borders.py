"""Rules at the borders that their identities name, and the sizes that they report."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import Affine, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.steps import Binary as BinaryStep
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Takes
from pyonednn_q.rewrite.rule import Refusal, Rewrite
from pyonednn_q.rewrite.rules import affine, carry, round_rules
from pyonednn_q.rewrite.rules.round_rules import (
    drop_negligible_shift,
    drop_round_before_residual,
    level_shift,
    level_shift_before_clipped_store,
    level_shift_before_store,
)

INF = math.inf
LEAF = Leaf("r")


# --- approximations ----------------------------------------------------------------------


def levelled(shift: Any) -> Rewrite | Refusal | None:
    found = level_shift(Affine(2.0, shift), Round())
    assert found is None or isinstance(found, (Rewrite, Refusal))
    return found


@pytest.mark.parametrize(
    ("shift", "target", "off"),
    [
        ([0.0, 5e-5], 0.0, 5e-5),  # a whole number is near enough
        ([-5e-5, 0.0], 0.0, 5e-5),
        ([0.0, 6e-5], 3e-5, 3e-5),  # none is: the middle
        ([-6e-5, 0.0], -3e-5, 3e-5),
        ([0.25, 0.25 + 2.0**-14], 0.25 + 2.0**-15, 2.0**-15),
        ([3.0, 3.0 + 2.0**-15, 3.0 - 2.0**-16], 3.0, 2.0**-15),
    ],
)
def test_shifts_are_levelled(shift: list[float], target: float, off: float) -> None:
    found = levelled(shift)
    assert isinstance(found, Rewrite)
    assert found.items == (Affine(2.0, target), Round())
    assert found.rate == 2.0 * off
    assert found.note.endswith(f"off by {off!r} levels")


def test_shifts_that_differ_by_more_are_not_levelled() -> None:
    assert levelled(0.25) is None
    found = levelled([0.0, 2.0**-13])
    assert isinstance(found, Refusal)
    assert found.reason == f"the shifts lie up to {2.0**-14!r} levels from their middle"


@pytest.mark.parametrize(("scale", "off"), [(1.0, 2.0**-15), (4.0, 2.0**-15), (0.25, 2.0**-15)])
def test_shifts_before_a_store_are_levelled_in_its_steps(scale: float, off: float) -> None:
    dst, clip = Dst("s8", scale, 3), Clip(-1.0, 2.0)
    shift = [2 * scale, (2 + off) * scale]
    for found in (
        level_shift_before_store(Affine(2.0, shift), dst),
        level_shift_before_clipped_store(Affine(2.0, shift), clip, dst),
    ):
        assert isinstance(found, Rewrite)
        assert found.items[0] == Affine(2.0, 2 * scale)
        assert found.rate == 2.0 * off
    wider = Affine(2.0, [0.0, 2.0**-13 * scale])
    assert isinstance(level_shift_before_store(wider, dst), Refusal)
    assert isinstance(level_shift_before_clipped_store(wider, clip, dst), Refusal)
    for floats in (Dst("f32"), Dst()):
        assert level_shift_before_store(Affine(2.0, shift), floats) is None
        assert level_shift_before_clipped_store(Affine(2.0, shift), clip, floats) is None
    assert isinstance(levelled([0.25, 0.25 + 2 * 5e-5 - 2.0**-50]), Rewrite)
    assert round_rules.SHIFT_SPREAD == 5e-5


@pytest.mark.parametrize(
    ("shift", "clip", "drops"),
    [
        (0.00099, Clip(0, 100), True),
        (-0.00099, Clip(0, 100), True),
        (1e-5 * 100.0, Clip(0, 100), False),
        ([0.0005, 0.00099], Clip(-50, 50), True),
        ([0.0, 0.001], Clip(-50, 50), False),
        (0.0025, Clip(0, 255), True),
        (0.0025, Clip(0, 65535), True),
        (1e-5 * 255.0, Clip(0, 65535), False),
        (0.00099, Clip([0, 0], [100, 99]), False),
        (0.0, Clip(0, 100), False),
        (1e-6, Clip(0), False),
        (1e-6, Clip(hi=3), False),
    ],
)
def test_a_shift_is_negligible_below_a_part_of_the_range(
    shift: Any, clip: Clip, drops: bool
) -> None:
    found = drop_negligible_shift(Affine(2.0, shift), Round(), clip)
    if not drops:
        assert found is None
        return
    assert isinstance(found, Rewrite)
    assert found.items == (Affine(2.0), Round(), clip)
    assert found.rate == 2.0 * max(np.abs(np.atleast_1d(shift)))


# How far a step stretches at most: the largest slope of each function.
SLOPES: list[tuple[Step, float]] = [
    (Eltwise("abs"), 1.0),
    (Eltwise("tanh"), 1.0),
    (Eltwise("logistic"), 0.25),
    (Eltwise("soft_relu", 2.0), 1.0),
    (Eltwise("relu", 0.25), 1.0),
    (Eltwise("relu", -1.5), 1.5),
    (Eltwise("elu", 0.5), 1.0),
    (Eltwise("elu", 1.5), 1.5),
    (PRelu(0.5), 1.0),
    (PRelu([0.5, -1.75]), 1.75),
    (Clip(0, 3), 1.0),
    (Affine(-0.5, 3), 0.5),
    (Affine([0.5, -1.5]), 1.5),
]


@pytest.mark.parametrize(("step", "slope"), SLOPES, ids=str)
def test_a_rounding_is_dropped_where_the_rest_stretches_by_less_than_two(
    step: Step, slope: float
) -> None:
    def dropped(scale: float) -> Any:
        run = (Sum(0.5), step, Affine(scale, 1.0))
        return drop_round_before_residual(Round(), run, Round())

    inside = 1.875 / slope
    found = dropped(inside)
    assert isinstance(found, Rewrite)
    assert found.items == (Sum(0.5), step, Affine(inside, 1.0), Round())
    assert found.rate == pytest.approx(inside * slope / 2.0, abs=1e-15)
    assert found.note.startswith("a rounding dropped: moves the value by at most 0.9375 ")
    for scale, levels in ((2.0 / slope, 2), (3.9375 / slope, 2), (4.0 / slope, 3)):
        beyond = dropped(scale)
        assert isinstance(beyond, Refusal)
        assert beyond.reason == f"the result could move by {levels} levels"


def test_without_a_residual_or_with_an_unknown_stretch_a_rounding_stays() -> None:
    assert drop_round_before_residual(Round(), (Affine(0.5),), Round()) is None
    for step in (Eltwise("square"), BinaryStep("mul", LEAF), Eltwise("gelu_erf")):
        found = drop_round_before_residual(Round(), (Sum(), step), Round())
        assert isinstance(found, Refusal)
        assert "is not known" in found.reason


# --- snapping ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "whole"),
    [
        (3.0 + 2.0**-40, 3.0),
        (3.0 - 2.0**-40, 3.0),
        ([3.0 + 2.0**-41, -2.0], [3.0, -2.0]),
        (-(2.0**-40), 0.0),
    ],
)
def test_a_shift_beside_a_whole_number_is_taken_as_it(shift: Any, whole: Any) -> None:
    found = affine.snap_shift_before_round(Affine(2.0, shift), Round())
    assert isinstance(found, Rewrite)
    assert found.items == (Affine(2.0, whole), Round())
    off = max(np.abs(np.asarray(shift) - np.asarray(whole)).ravel())
    assert found.note.endswith(f"off by {float(off)!r} levels")
    acc = Acc(scale=Vec(0.5), shift=Vec(shift), takes_scale=Takes.PER_CHANNEL, because="so")
    stored = affine.snap_shift_before_round(acc, Dst("u8"))
    assert isinstance(stored, Rewrite)
    assert stored.items == (replace(acc, shift=Vec(whole)), Dst("u8"))
    for sign in (1.0, -1.0):
        after = affine.snap_shift_after_clipped_round(Round(), Clip(0, 9), Affine(sign, shift))
        assert isinstance(after, Rewrite)
        assert after.items == (Round(), Clip(0, 9), Affine(sign, whole))
        bare = affine.snap_shift_after_round(Round(), Affine(sign, shift))
        assert isinstance(bare, Rewrite)
        assert bare.items == (Round(), Affine(sign, whole))


@pytest.mark.parametrize("shift", [3.0, 3.0 + 2.0**-39, 3.5, [3.0, 2.0 + 2.0**-30], [1.0, 2.0]])
def test_other_shifts_stay(shift: Any) -> None:
    assert affine.snap_shift_before_round(Affine(2.0, shift), Round()) is None
    assert affine.snap_shift_after_round(Round(), Affine(1.0, shift)) is None


def test_a_store_that_scales_or_does_not_round_snaps_nothing() -> None:
    near = Affine(2.0, 3.0 + 2.0**-41)
    for dst in (Dst("f32"), Dst("u8", scale=2.0), Dst()):
        assert affine.snap_shift_before_round(near, dst) is None
    assert affine.snap_shift_before_round(near, Dst("s8", zero_point=3)) is not None
    odd = Affine(0.5, 3.0 + 2.0**-41)
    assert affine.snap_shift_after_round(Round(), odd) is None
    assert affine.snap_shift_after_clipped_round(Round(), Clip(0), odd) is None


def test_channels_that_float32_cannot_tell_apart_become_one() -> None:
    off = 2.0**-42
    found = affine.collapse_equal_channels(Affine([3.0, 3.0 + off], [0.5, 0.5 + off]))
    assert isinstance(found, Rewrite)
    (one,) = found.items
    assert one == Affine(3.0 + off / 2, 0.5 + off / 2)
    assert found.note.startswith("scale [3, ")
    assert "; shift [0.5, " in found.note
    only = affine.collapse_equal_channels(Affine(1.0, [0.5, 0.5 + off]))
    assert isinstance(only, Rewrite)
    assert only.note.startswith("shift ")
    for apart in ([1.0, 1.0 + 2.0**-39], [0.5, 0.5 + 2.0**-40], [-1.0, -1.0 - 2.0**-39]):
        assert affine.collapse_equal_channels(Affine(apart)) is None
    tie = 1.0 + 2.0**-24
    assert affine.collapse_equal_channels(Affine([tie, tie + 2.0**-43])) is None
    assert affine.collapse_equal_channels(Affine(2.0, 1.0)) is None


# --- what passes a scale ----------------------------------------------------------------------

ONE, ZERO = Vec(1.0), Vec(0.0)


@pytest.mark.parametrize(
    "step",
    [
        Eltwise("relu", 0.0),
        Eltwise("relu", -2.0),
        Eltwise("relu", 1e39),
        PRelu([-1.0, 0.5]),
        PRelu([1e39, 0.5]),
        Eltwise("abs"),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [Vec(0.0), Vec([0.0, 2.0]), Vec(3.0)], ids=str)
def test_a_scale_that_is_not_negative_passes_as_it_is(step: Step, scale: Vec) -> None:
    carried = carry.carry(step, scale, ZERO)
    assert isinstance(carried, carry.Carried)
    assert (carried.step, carried.scale, carried.sign) == (step, scale, 1.0)


@pytest.mark.parametrize("alg", ["mul", "div"])
def test_a_factor_passes_a_scale_and_no_shift(alg: Any) -> None:
    step = BinaryStep(alg, LEAF)
    assert carry.carry(step, Vec(-3.0), ZERO) == carry.Carried(step, Vec(-3.0))
    assert isinstance(carry.carry(step, ONE, Vec(1.0)), Refusal)


@pytest.mark.parametrize("alg", ["add", "sub"])
def test_a_term_passes_a_shift_and_no_scale(alg: Any) -> None:
    step = BinaryStep(alg, LEAF)
    assert carry.carry(step, ONE, Vec(2.0)) == carry.Carried(step, ONE, Vec(2.0))
    assert isinstance(carry.carry(step, Vec(2.0), ZERO), Refusal)


def test_an_even_function_leaves_the_sign_behind() -> None:
    for scale, sign in ((Vec(0.0), 1.0), (Vec([0.0, -2.0]), -1.0), (Vec(-3.0), -1.0)):
        carried = carry.carry(Eltwise("square"), scale, ZERO)
        assert isinstance(carried, carry.Carried)
        assert carried.sign == sign
        assert carried.scale == abs(scale).map(np.sqrt)
    mixed = carry.carry(Eltwise("abs"), Vec([1.0, -2.0]), ZERO)
    assert mixed == Refusal("abs passes one sign, and the scale is -2 in channel 1")


def test_a_negative_scale_turns_a_bent_line_over() -> None:
    carried = carry.carry(Eltwise("relu", 0.25), Vec(-3.0), ZERO)
    assert carried == carry.Carried(Eltwise("relu", 4.0), Vec(-0.75))
    mixed = carry.carry(Eltwise("relu", 0.25), Vec([-3.0, 2.0, 0.0]), ZERO)
    assert mixed == carry.Carried(PRelu([4.0, 0.25, 0.25]), Vec([-0.75, 2.0, 0.0]))
    flat = carry.carry(PRelu([0.5, 0.0]), Vec(-1.0), ZERO)
    assert flat == Refusal("scale is negative in channel 1 and slope 0 is not above 0")
    alone = carry.carry(Eltwise("relu", 0.0), Vec(-1.0), ZERO)
    assert alone == Refusal("scale is negative and slope 0 is not above 0")


def test_an_end_knows_what_it_admits() -> None:
    each, one = Vec([1.0, 2.0]), Vec(1.0)
    admits = {takes: (takes.admits(one), takes.admits(each)) for takes in Takes}
    assert admits == {
        Takes.NOTHING: (False, False),
        Takes.PER_TENSOR: (True, False),
        Takes.PER_CHANNEL: (True, True),
    }
    acc = Acc(Interval(Vec(0.0), Vec(10.0), integer=True), Vec(0.5), Vec(3.0))
    assert str(acc.leaving) == "[3, 8]"
    assert str(acc) == "0.5*acc + 3"
    assert [str(Dst("u8", scale=s, zero_point=z)) for s, z in ((1.0, 0), (2.0, 3), (1.0, -3))] == [
        "u8(x)",
        "u8(x/2.0 +3)",
        "u8(x -3)",
    ]
    assert [
        Dst("u8", scale=s, zero_point=z).is_plain for s, z in ((1.0, 0), (2.0, 0), (1.0, 1))
    ] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("scale", "shift", "named"),
    [
        (1.0, [2.0, 0.25, 0.5], "shift is 0.25 in channel 1:"),
        (-1.0, [2.0, 4.0, 3.0, 5.0], "shift is odd, 3 in channel 2:"),
        ([1.0, -1.0, 0.75], 0.0, "scale is 0.75 in channel 2:"),
    ],
)
def test_what_passes_no_round_is_named(scale: Any, shift: Any, named: str) -> None:
    refusal = carry.carry_over_round(Vec(scale), Vec(shift))
    assert refusal is not None
    assert refusal.reason.startswith(named)
