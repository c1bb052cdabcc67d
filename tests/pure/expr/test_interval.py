"""Intervals hold every value that a step can give, and are as narrow as the step allows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.interval import ANYTHING, Interval, after, of_dtype
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec
from support.rewriting import draws
from support.rewriting.draws import Window, windows

ALGS = (
    ("relu", 0.25), ("relu", -2.0), ("relu", 0.0), ("tanh", 0.0), ("elu", 2.0), ("elu", -1.0),
    ("square", 0.0), ("abs", 0.0), ("sqrt", 0.0), ("soft_relu", 2.0), ("soft_relu", -1.0),
    ("logistic", 0.0), ("exp", 0.0), ("gelu_tanh", 0.0), ("gelu_erf", 0.0), ("swish", 1.0),
    ("swish", -1.0), ("log", 0.0), ("round", 0.0), ("mish", 0.0),
)  # fmt: skip


def _step(w: Window) -> Step:
    operand = w.pick((Leaf("res", "s8"), Leaf("res")))
    return w.make(
        (
            w.affine,
            w.clip,
            Round,
            lambda: PRelu(w.vec(draws.scales)),
            lambda: Eltwise(*w.pick(ALGS)),
            lambda: Eltwise(*w.pick(ALGS)),
            lambda: Eltwise("clip", -1.0, 2.0),
            lambda: Eltwise(w.pick(("hardsigmoid", "hardswish", "linear")), -0.5, 0.5),
            lambda: Eltwise("pow", 2.0, w.pick((2.0, 3.0, 0.5))),
            lambda: Sum(w.pick((0.5, -1.0, 0.0)), 3, w.pick(("s8", None))),
            lambda: Binary(w.pick(("add", "sub", "max", "min", "mul", "gt")), operand),
            lambda: Binary(w.pick(("add", "sub", "max", "min", "ge", "eq")), w.vec(draws.whole)),
        )
    )


def _case(w: Window) -> tuple[Interval, Step]:
    known = w.clip(draws.quarters)
    integer = w.chance(40) and known.lo.rint() == known.lo and known.hi.rint() == known.hi
    return Interval(known.lo, known.hi, integer=integer), _step(w)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(windows(_case))
def test_holds_every_value(case: tuple[Interval, Step]) -> None:
    x, step = case
    y = after(step, x)
    channels = max(c or 1 for c in (x.lo.channels, x.hi.channels, step.channels))
    grid = np.arange(-40.0, 41.0) / (1.0 if x.integer else 4.0)
    lo, hi = x.lo.spread(channels)[:, None], x.hi.spread(channels)[:, None]
    values = np.clip(np.broadcast_to(grid, (channels, len(grid))), lo, hi)
    with np.errstate(all="ignore"):
        out = evaluate(Chain(step), values, axis=0, dst_before=-100.0, operands={"res": 7.0})
    ok = np.isfinite(out)
    below, above = out < y.lo.spread(channels)[:, None], out > y.hi.spread(channels)[:, None]
    assert not (ok & (below | above)).any(), (str(x), str(step), str(y))
    assert not y.integer or (out[ok] == np.rint(out[ok])).all()


S8 = of_dtype("s8")
NARROW: tuple[tuple[Step, str], ...] = (
    (Affine(0.5, 1), "[-63, 64.5]"),
    (Affine(-1), "[-127, 128] whole"),
    (Affine(0, 3), "[3, 3] whole"),
    (Affine([0, 2]), "[[0, -256], [0, 254]] whole"),
    (Clip(0), "[0, 127] whole"),
    (Clip(0.5, 3), "[0.5, 3]"),
    (Round(), "[-128, 127] whole"),
    (Eltwise("relu", 0.5), "[-64, 127]"),
    (Eltwise("relu", -1), "[0, 128] whole"),
    (Eltwise("abs"), "[0, 128] whole"),
    (Eltwise("square"), "[0, 16384] whole"),
    (PRelu([0, 2]), "[[0, -256], 127] whole"),
    (Eltwise("hardsigmoid", 0.25, 0.5), "[0, 1]"),
    (Eltwise("hardsigmoid", 0.0, 0.25), "[0.25, 0.25]"),
    (Eltwise("linear", 0.0, 3.0), "[3, 3]"),
    (Eltwise("linear", 0.5, 3.0), "[-61, 66.5]"),
    (Eltwise("elu", 0.0), "[0, 127]"),
    (Eltwise("tanh"), "[-1, 1]"),
    (Eltwise("clip", -2.0, 200.0), "[-2, 127]"),
    (Eltwise("pow", 2.0, 2.0), "[-inf, inf]"),
    (Sum(1, 0, "u8"), "[-128, 382] whole"),
    (Sum(), "[-inf, inf]"),
    (Binary("gt", 0.5), "[0, 1] whole"),
    (Binary("sub", Leaf("res", "u8")), "[-383, 127] whole"),
    (Binary("mul", Leaf("res", "u8")), "[-inf, inf]"),
)


@pytest.mark.parametrize(("step", "wanted"), NARROW, ids=str)
def test_is_as_narrow_as_it_can_be(step: Step, wanted: str) -> None:
    assert str(after(step, S8)) == wanted


def test_a_zero_scale_forgets_an_unknown_value() -> None:
    assert str(after(Affine(0, 3), ANYTHING)) == "[3, 3]"
    assert str(after(Affine([0, 1], 3), ANYTHING)) == "[[3, -inf], [3, inf]]"


def test_a_small_number_beside_a_large_one_leaves_no_constant() -> None:
    """Its ends vanish in the sum, channel by channel, and yet the value may differ."""
    small = Interval(Vec(0.0), Vec(1.0))
    found = after(Binary("add", [1e30, 0.0]), small)
    assert found.lo.values().tolist() == [np.nextafter(1e30, 0.0), 0.0]
    assert found.hi.values().tolist() == [np.nextafter(1e30, np.inf), 1.0]
    fixed = Interval(Vec([0.0, 0.0]), Vec([1.0, 0.0]))
    found = after(Binary("sub", 1e30), fixed)
    assert found.lo.values().tolist() == [np.nextafter(-1e30, -np.inf), -1e30]
    assert found.hi.values().tolist() == [np.nextafter(-1e30, 0.0), -1e30]


def test_floats_and_nothing_can_be_anything() -> None:
    assert of_dtype("f32") is of_dtype(None) is ANYTHING


def test_ends_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ArgumentError, match="lo <= hi"):
        Interval(Vec([0, 2]), Vec([1, 1]))


def test_anything_is_open_on_both_sides_of_every_channel() -> None:
    assert ANYTHING.is_anything
    assert Interval(Vec(-np.inf), Vec(np.inf), integer=True).is_anything
    for lo, hi in ((0.0, np.inf), (-np.inf, 0.0), ([-np.inf, 0.0], np.inf), (-np.inf, [1, np.inf])):
        assert not Interval(Vec(lo), Vec(hi)).is_anything
