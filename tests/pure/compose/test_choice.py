"""Choice: which post-ops stand for a step, what they cost, and that they mean the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.choice import BEFORE_3_8, COSTS, added, cost
from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.lower import lower
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, PRelu, Step
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.rewrite.rule import BITWISE, REAL
from support.oracle_post_ops import apply_chain
from support.oracle_tracked import Tracked

AMX, VNNI, OLD_AMX = (
    Facts(version, InstructionSet.of(isa), "OMP")
    for version, isa in (
        ((3, 13, 2), "AVX512_CORE_AMX"),
        ((3, 13, 2), "AVX512_CORE_VNNI"),
        ((3, 7, 2), "AVX512_CORE_AMX"),
    )
)
CONV = PrimitiveFacts("convolution", 3, process=AMX, dst_dims=(1, 3, 2, 2))
SCALE, SHIFT = [0.75, -1.5, 3.0], [1.0, 0.3, -2.0]

# step: (usual, cheapest on AMX, its promise)
CHOICES: list[tuple[Step, list[str], list[str], Any]] = [
    (Affine(1.0, 0.3), ["linear"], ["add"], BITWISE),
    (Affine(SCALE, 0.3), ["mul", "linear"], ["mul", "add"], BITWISE),
    (Affine(SCALE, SHIFT), ["mul", "add"], ["add", "mul"], REAL),
    (Affine(0.3, SHIFT), ["linear", "add"], ["add", "linear"], REAL),
    (Eltwise("relu", 0.25), ["relu"], ["prelu"], BITWISE),
    (PRelu(-0.3), ["relu"], ["prelu"], BITWISE),
]


def names(post_ops: tuple[PostOp, ...]) -> list[str]:
    return [getattr(op, "alg", "prelu") for op in post_ops]


@pytest.mark.parametrize(("step", "usual", "cheapest", "promise"), CHOICES, ids=str)
def test_the_cheapest_is_taken(
    step: Step, usual: list[str], cheapest: list[str], promise: Any
) -> None:
    assert names(lower([step], CONV).post_ops) == usual
    lowered = lower([step], CONV, "real")
    (choice,) = lowered.choices
    assert names(lowered.post_ops) == cheapest
    assert choice.taken.post_ops == lowered.post_ops
    assert choice.taken.exactness == promise
    assert choice.taken.cost < min(option.cost for option in choice.rejected)
    assert usual in [names(option.post_ops) for option in choice.rejected]


@pytest.mark.parametrize("step", [choice[0] for choice in CHOICES], ids=str)
def test_all_forms_mean_the_same(step: Step) -> None:
    x = np.linspace(-9.0, 9.0, 12).reshape(1, 3, 2, 2)
    dst = TensorSpec.dense(x.shape, "f32")
    for lowered in (lower([step], CONV), lower([step], CONV, "real")):
        values = {
            f"post_op_{index}": carrier.value.values()
            for index, carrier in enumerate(lowered.carriers)
            if carrier.value is not None
        }
        got = apply_chain(Tracked.exact(x), lowered.post_ops, dst, values)
        assert (abs(got.value - evaluate(Chain(step), x)) <= 2.0**-20).all()


@pytest.mark.parametrize("step", [Affine(SCALE, SHIFT), Affine(0.3, SHIFT)], ids=str)
def test_another_order_needs_permission(step: Step) -> None:
    lowered = lower([step], CONV, "bitwise")
    (choice,) = lowered.choices
    assert lowered.post_ops == lower([step], CONV).post_ops
    assert [option.permitted for option in choice.rejected] == [False]
    assert "REAL is not permitted" in str(choice)
    assert compose(Chain(Eltwise("tanh"), step), CONV, "bitwise").exactness == BITWISE


def test_a_promise_is_kept_in_the_plan() -> None:
    facts = replace(CONV, dst="f32")
    chain = Chain(Eltwise("abs"), Affine(SCALE, SHIFT))
    assert compose(chain, facts, rules=NO_RULES).exactness == BITWISE
    assert not [record for record in compose(chain, facts).records if record.fired]
    assert compose(chain, facts).exactness == REAL


@pytest.mark.parametrize("step", [Affine(SCALE, SHIFT), Affine(1.0, 0.3), PRelu(0.25)], ids=str)
def test_between_equals_the_rule_holds(step: Step) -> None:
    """Without AMX nothing was measured to be cheaper; with floats nothing was measured."""
    floats = replace(CONV, src="f32", wei="f32", dst="f32")
    for facts in (replace(CONV, process=VNNI), floats):
        assert lower([step], facts, "real").post_ops == lower([step], facts).post_ops


@pytest.mark.parametrize(
    "step", [Affine([0.5, 0.0, 1.0], SHIFT), Affine([1e-38, 1.0, 1.0], [1e9, 0.0, 0.0])], ids=str
)
def test_no_shift_is_divided_by_nothing(step: Step) -> None:
    assert lower([step], CONV, "real").post_ops == lower([step], CONV).post_ops


def test_plan_shows_its_choices() -> None:
    plan = compose(Chain(Eltwise("tanh"), Affine(SCALE, SHIFT)), replace(CONV, dst="f32"))
    (choice,) = plan.choices
    assert str(choice) in str(plan)
    assert str(choice) in plan.explain()
    assert Plan.from_json(plan.to_json()).choices == plan.choices
    assert compose(plan.chain, plan.facts, rules=NO_RULES).choices == ()


# --- costs --------------------------------------------------------------------------------------

CHANNELS = TensorSpec.dense((1, 3, 1, 1), "f32")
MUL, ADD, DIV = (BinaryPostOp(alg, CHANNELS) for alg in ("mul", "add", "div"))
LINEAR, RELU = EltwisePostOp("linear", 2.0, 1.0), EltwisePostOp("relu")


def test_cost_of_nothing_is_that_of_the_bare_primitive() -> None:
    assert cost((), CONV) == 1.0
    assert cost((RELU,), CONV) == 1.0


# Orders as they were measured, cheapest first, on each kind of process.
ORDERS: dict[str, tuple[Facts | None, list[tuple[PostOp, ...]]]] = {
    "AMX": (AMX, [(), (SumPostOp(),), (ADD,), (PReluPostOp(2),), (MUL,), (ADD, MUL), (MUL, ADD)]),
    "3.7": (OLD_AMX, [(), (ADD,), (PReluPostOp(2),), (MUL,), (DIV,)]),
    "VNNI": (VNNI, [(RELU,), (LINEAR,), (MUL,), (MUL, ADD), (EltwisePostOp("tanh"), MUL, ADD)]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_measured_orders(name: str) -> None:
    process, orders = ORDERS[name]
    found = [cost(ops, replace(CONV, process=process)) for ops in orders]
    assert all(one < other for one, other in pairwise(found))


def test_cost_adds_up() -> None:
    ops = (LINEAR, MUL, RELU, ADD, SumPostOp(), DIV)
    for split in range(len(ops)):
        head, tail = ops[:split], ops[split:]
        assert cost(ops, CONV) == pytest.approx(cost(head, CONV) + added(tail, head, CONV))


def test_cost_knows_process_and_version() -> None:
    unknown = replace(CONV, process=None)
    old = replace(CONV, process=OLD_AMX)
    assert cost((MUL, ADD), unknown) == cost((MUL, ADD), CONV)
    assert cost((MUL, ADD), old) < cost((MUL, ADD), CONV)
    assert set(BEFORE_3_8) < set(COSTS)
    with_point = replace(CONV, src_zero_point=3)
    assert cost((), with_point) - cost((), CONV) == pytest.approx(COSTS["src_zero_point"].amx)
