"""The composer: steps appended one by one, turned into attributes, post-ops and buffers.

Accepted: what the primitive computes is the chain as it was written, and each rule of the
specification (1.1, rules 1 to 11) is shown where it applies and where it must not. A builder's
verbs are steps here: to append is to make a longer `Chain`, to build is `compose`, to explain is
`Plan.explain`.

Numbers are small and dyadic (`support.definitions.composing`): float32 is exact and ties occur, so
every element must be equal. Three rules are bounded instead, and their bounds are tested.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, PRelu, Round, Sum
from support.definitions import rational
from support.definitions.composing import (
    BIAS,
    BLOCK,
    ONES,
    POSITIVE,
    SHIFT,
    SIGNED,
    STEP,
    Case,
    along,
    bent,
    block,
    check,
    composed,
    entering,
    fired,
    fq,
    layer_to,
    ops,
)
from support.definitions.rules_applied import APPLIED
from support.definitions.rules_refused import MUST_NOT
from support.definitions.runs import Run, by_formula, on_primitive
from support.oracle_numbers import convert, numpy_dtype
from support.plans.problems import problem

RULES = set(range(1, 12))


@pytest.mark.parametrize("case", APPLIED.values(), ids=APPLIED)
def test_rule_is_applied(case: Case, run: Run) -> None:
    case.judge(run)


@pytest.mark.parametrize("case", MUST_NOT.values(), ids=MUST_NOT)
def test_rule_must_not_apply(case: Case, run: Run) -> None:
    case.judge(run)


def test_every_rule_is_shown_both_ways() -> None:
    applied, refused = ({int(key.split(",")[0]) for key in t} for t in (APPLIED, MUST_NOT))
    # Rule 11 must not apply to weights of 16 bits: a test of its own, as the layer is another.
    assert (applied, refused | {11}) == (RULES, RULES)


def test_every_verb_becomes_an_attribute_with_its_buffer(run: Run) -> None:
    """Without rules: sum, eltwise, scale, shift, linear, round, clip, binary, prelu, FQ."""
    layer = layer_to("u8")
    chain = Chain()
    for step in (
        Sum(0.5, 3), Eltwise("abs"), Affine(2.0), Affine(1.0, -3.0), Affine(0.5, 0.25), Round(),
        Clip(-5, 60), Binary("max", SHIFT), PRelu(SIGNED), fq(0, 256),
    ):  # fmt: skip
        chain = Chain(chain, step)
    naive, plan = composed(layer, chain, rules=NO_RULES), composed(layer, chain)
    assert ops(naive) == [
        "sum:0.5:3", "eltwise_abs", "eltwise_linear:2.0:0.0", "eltwise_linear:1.0:-3.0",
        "eltwise_linear:0.5:0.25", "eltwise_round", "eltwise_clip:-5.0:60.0", "binary_max",
        "prelu:2", "eltwise_relu", "binary_min", "binary_mul", "eltwise_round",
    ]  # fmt: skip
    x = abs(entering(layer) + 0.5 * (layer.before.astype(float) - 3))
    x = np.maximum(np.clip(np.rint(0.5 * (2 * x - 3) + 0.25), -5, 60), along(SHIFT))
    y = np.rint(np.clip(bent(x, SIGNED), 0, along(255 * STEP)) / along(STEP))
    for built in (naive, plan):
        wanted = built.attr.runtime_names(built.problem(layer.problem))
        assert set(built.values()) == set(wanted)
        check(run, layer, built, y)
        assert all(record.rule in built.explain() for record in built.records)
    assert len(plan.post_ops) < len(naive.post_ops)


def test_rule_2_is_bounded_by_one_level(run: Run) -> None:
    layer = layer_to("u8")
    chain = Chain(fq(0, 256, ONES), Sum(), fq(0, 256, ONES))
    plan = composed(layer, chain, policy="fast")
    assert "drop_round_before_residual" in fired(plan)
    exact = convert(np.rint(np.clip(entering(layer), 0, 255)) + layer.before, "u8")
    off = np.abs(run(layer, plan).astype(int) - exact)
    assert off.max() == plan.exactness.levels == 1


@pytest.mark.parametrize(
    ("rule", "off", "most"),
    [("drop_negligible_shift", 0.001, 1e-5 * 255), ("level_shift", 1e-5 * POSITIVE, 5e-5)],
)
def test_rules_5_and_6_change_what_is_next_to_a_tie(
    rule: str, off: Any, most: float, run: Run
) -> None:
    """By one level, and only where the value lies nearer to a tie than what was dropped."""
    layer = layer_to("f32")
    plan = composed(layer, BLOCK, FakeQuantize(-off, 255 - off, 0, 255).chain(), policy="fast")
    assert rule in fired(plan)
    place = np.clip(block(entering(layer)) + along(off), 0, 255)
    moved = run(layer, plan) - np.rint(place)
    assert np.abs(moved).max() == plan.exactness.levels == 1
    assert (np.abs(place % 1 - 0.5)[moved != 0] <= most).all()


@pytest.mark.parametrize("dst", ["u8", "s8"])
@pytest.mark.parametrize("bounds", [(), (Clip(-40, 100),)], ids=["store", "clip"])
def test_rule_6_applies_where_the_store_alone_rounds(
    dst: str, bounds: tuple[Clip, ...], run: Run
) -> None:
    layer, off = layer_to(dst), 1e-5 * POSITIVE
    plan = composed(layer, BLOCK, Affine(1.0, off), *bounds, policy="fast")
    exact = composed(layer, BLOCK, Affine(1.0, off), *bounds)
    levelled = {"level_shift_before_store", "level_shift_before_clipped_store"}
    assert levelled & set(fired(plan))
    assert not levelled & set(fired(exact))
    assert (ops(plan).count("binary_add"), ops(exact).count("binary_add")) == (0, 1)
    place = block(entering(layer)) + along(off)
    for bound in bounds:
        place = np.clip(place, bound.lo.least, bound.hi.least)
    moved = run(layer, plan).astype(int) - convert(np.rint(place), dst)
    assert np.abs(moved).max() <= plan.exactness.levels == 1
    assert (np.abs(place % 1 - 0.5)[moved != 0] <= 5e-5).all()


@pytest.mark.executed
def test_rule_9_is_one_fused_multiply_add() -> None:
    """On numbers that float32 rounds: product and sum are rounded once, together."""
    layer, scale, shift = layer_to("f32"), np.float32(0.3), np.float32(1.7)
    plan = composed(layer, BLOCK, Affine(float(scale), float(shift)))
    x = block(entering(layer))
    got = on_primitive(layer, plan)
    a, b = Fraction(float(scale)), Fraction(float(shift))
    once = [float(rational.f32(a * Fraction(value) + b)) for value in x.reshape(-1).tolist()]
    np.testing.assert_array_equal(got.reshape(-1), once)
    assert (got != x.astype(np.float32) * scale + shift).any()


def test_rule_11_is_applied_to_a_bias_that_comes_later(run: Run) -> None:
    layer = replace(layer_to("f32"), problem=problem("convolution", "f32"))
    plan = composed(layer, Affine(SIGNED, 1.5))
    assert (ops(plan), plan.bias) == ([], None)
    want = along(SIGNED) * entering(layer, BIAS) + 1.5
    np.testing.assert_array_equal(run(layer, plan, BIAS), want)


def test_rule_11_must_not_apply_where_the_scale_cannot_precede_the_bias() -> None:
    """Weights of 16 bits would round under a scale: scale and bias are post-ops, in order."""
    layer = layer_to("f32")
    of = layer.problem
    of = replace(of, src=replace(of.src, dtype="bf16"), wei=replace(of.wei, dtype="bf16"))
    half = replace(layer, problem=of)
    plan = composed(half, Affine(SIGNED), bias=BIAS)
    assert (plan.bias, plan.attr.wei_scale) == (None, None)
    assert ops(plan) == ["binary_mul", "binary_add"]
    in_half = {name: getattr(layer, name).astype(numpy_dtype("bf16")) for name in ("src", "wei")}
    check(by_formula, replace(half, **in_half), plan, along(SIGNED) * entering(layer, BIAS))
    with pytest.raises(ArgumentError, match="must come before the bias"):
        composed(replace(half, problem=replace(of, bias=problem("convolution", "f32").bias)))
