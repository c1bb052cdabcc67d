"""What became of each step of a chain, by what each rule promises, for fresh and stored plans."""

from __future__ import annotations

import math

import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, Round, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.plans import chains
from support.plans.golden import facts

FACTS = PrimitiveFacts("convolution", 2, bias=Vec([1.0, -1.0]))
FQ = FakeQuantize(0, 2.55, 0, 255).chain()
FREE = {"weights", "wei_scale", "bias", "dst_scale", "dst_zero_point", "store"}
CASES = {
    # A store of u8 takes what is below 0 as 0: that is the relu. It also rounds and saturates.
    "relu and levels": (
        (Eltwise("relu"), FQ), "relu is store; FakeQuantize is wei_scale, bias, store",
    ),
    "levels alone": ((FQ,), "FakeQuantize is wei_scale, bias, store"),
    # 6 is level 255 of 255/6: nothing is left of either clip.
    "two clips": ((Clip(0, 6), Affine(42.5), Round()), "FakeQuantize is wei_scale, bias, store"),
    # Nothing passes a swish: what follows it stays behind it.
    "swish": (
        (Eltwise("swish", 1.0), Affine(10.0)),
        "swish is swish(x, 1); 10*x is dst_scale, store",
    ),
    # A tensor comes with each call: a scale behind it cannot reach the weights.
    "operand": (
        (Binary("add", Leaf("r", "f32", "per_tensor")), Affine(0.5)),
        "x + r is x + r; 0.5*x is dst_scale, store",
    ),
    "sum": ((Sum(0.5), Eltwise("relu")), "x + 0.5*dst is x + 0.5*dst; relu is store"),
    "a clip inside": ((Clip(3, 6),), "clip is clip(x, 3, 6)"),
    "nothing": ((), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_each_step_is_told(name: str) -> None:
    steps, wanted = CASES[name]
    assert "; ".join(map(str, compose(Chain(*steps), FACTS).became)) == wanted


def test_without_rules_each_step_is_a_post_op() -> None:
    plan = compose(Chain(Eltwise("relu"), Affine(2.0), Sum(0.5)), FACTS, rules=NO_RULES)
    assert [each.ends for each in plan.became] == [("relu(x)",), ("2*x",), ("x + 0.5*dst",)]


def test_what_is_left_over_is_told() -> None:
    plan = compose(Chain(Sum(2.0), Eltwise("relu"), Sum(3.0)), FACTS)
    assert not plan.is_whole
    assert plan.became[-1].ends == ("left over",)


def test_a_step_that_does_nothing_names_the_rule() -> None:
    """Both bounds are open: no value is changed, and no store does it."""
    (each,) = compose(Chain(Clip(-math.inf, math.inf)), FACTS).became
    assert each.ends == ("nothing: drop_open_clip",)


@pytest.mark.parametrize("name", chains.NAMES)
def test_all_post_ops_stem_from_steps(name: str) -> None:
    plan = compose(chains.chain(name, "u8"), facts("u8"))
    rows = plan.became
    assert bool(rows) == bool(plan.chain.steps)
    assert all(each.ends for each in rows)
    carried = {end for each in rows for end in each.ends if not end.startswith("nothing")}
    assert bool(carried - FREE) == bool(plan.post_ops)
    assert ("wei_scale" in carried) <= (plan.attr.wei_scale is not None)
    assert ("dst_scale" in carried) <= (plan.attr.dst_scale is not None)
    assert Plan.from_json(plan.to_json()).became == rows
