"""What an implementation makes of a plan, by hand on sums that no instruction saturates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.compose.composer import compose
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.predict.plan_model import PlanModel, plan_model
from pyonednn_q.primitive.isa import Facts, InstructionSet

CONV = pq.primitive.ConvProblem.of((1, 2, 1, 2), (2, 2, 1, 1), dst="f32")
AVX2 = Facts((3, 13, 2), InstructionSet.of("AVX2"), "OMP")
SRC = np.array([[[[3, 4]], [[10, 0]]]], np.uint8)
WEI = np.array([[5, -2], [1, 7]], np.int8).reshape(2, 2, 1, 1)
SUMS = np.array([[[[15 - 20, 20]], [[3 + 70, 4]]]])


def model_of(chain: pq.Chain, dst: str = "f32", **more: Any) -> PlanModel:
    problem = pq.primitive.ConvProblem.of(CONV.src.dims, CONV.wei.dims, dst=dst)
    facts = replace(pq.primitive.PrimitiveFacts.of(problem), process=AVX2, **more)
    plan = compose(chain, facts)
    return plan_model(plan, problem, "jit_uni_int8:avx2", "AVX2", (3, 13, 2))


def leaf(extent: Any) -> pq.Chain:
    return pq.Chain(pq.Binary("mul", pq.Leaf("r", "f32", extent)))


@pytest.mark.parametrize(
    ("extent", "given"),
    [
        ("full", [[[[2.0, -1.0]], [[0.5, 4.0]]]]),
        ("per_channel", [2.0, -0.5]),
        ("per_channel", [[[[2.0]], [[-0.5]]]]),
        ("per_tensor", [3.0]),
    ],
)
def test_an_operand_comes_in_the_primitive_s_dims_or_by_channel(extent: str, given: Any) -> None:
    operand = np.array(given, np.float32)
    shaped = operand.reshape(1, -1, 1, 1) if operand.ndim == 1 else operand
    model = model_of(leaf(extent))
    assert np.array_equal(model.run(SRC, WEI, operands={"r": operand}), SUMS * shaped)
    for end in model.bounds(SRC, WEI, operands={"r": operand}):
        assert np.array_equal(end, SUMS * shaped)


def test_one_value_a_channel_serves_a_full_operand() -> None:
    given = {"r": np.array([2.0, -0.5], np.float32)}
    got = model_of(leaf("full")).run(SRC, WEI, operands=given)
    assert np.array_equal(got, SUMS * np.array([2.0, -0.5]).reshape(1, 2, 1, 1))


def test_an_operand_must_come_and_fit() -> None:
    model = model_of(leaf("per_channel"))
    with pytest.raises(ArgumentError, match=r"^operands: got no 'r'"):
        model.run(SRC, WEI)
    with pytest.raises(ShapeError, match=r"^operands: got shape \(3,\); wanted \(1, 2, 1, 1\)"):
        model.run(SRC, WEI, operands={"r": np.ones(3, np.float32)})


def test_a_bias_may_come_with_the_call_and_a_sum_reads_dst() -> None:
    model = model_of(pq.Chain(), bias_later=True)
    got = model.run(SRC, WEI, bias=np.array([0.5, -1.0]))
    assert np.array_equal(got, SUMS + np.array([0.5, -1.0]).reshape(1, 2, 1, 1))
    before = np.array([[[[1.0, 2.0]], [[3.0, 4.0]]]], np.float32)
    assert np.array_equal(
        model_of(pq.Chain(pq.Sum(0.5))).run(SRC, WEI, before=before), SUMS + before / 2
    )


def test_what_is_left_over_has_no_model() -> None:
    with pytest.raises(NoModelError, match="the plan leaves steps over"):
        model_of(pq.Chain(pq.Sum(), pq.Sum(0.5)))
    no_plan: Any = 3
    with pytest.raises(ArgumentError, match=r"^plan: got"):
        plan_model(no_plan, CONV, "jit_uni_int8:avx2", "AVX2", (3, 13, 2))


@pytest.mark.parametrize(
    ("bias", "size", "wanted"),
    [
        (0, 64, 255 * 64 * 1200),
        (-(2**24) - 1, 64, 255 * 64 * 1200 - 2**24 - 1),
        (2**31 - 2, 64, 2**31 - 1),  # with what is added it would not have 32 bits
        (2 - 2**31, -64, -(2**31)),
    ],
)
def test_sums_and_what_is_added_are_integers(bias: int, size: int, wanted: int) -> None:
    """Beyond 2^24, where float32 has no odd numbers."""
    src, wei = np.full((1, 1200), 255, np.uint8), np.full((1200, 2), 64, np.int8)
    wei[:, 0] = size
    problem = pq.primitive.MatMulProblem.of((1, 1200), wei.shape, dst="s32")
    facts = pq.primitive.PrimitiveFacts.of(
        problem, wei=wei, bias=Vec([float(bias), 0.0]), bias_in_acc=True
    )
    plan = compose(pq.Chain(), facts, "bitwise")
    assert plan.sums
    model = plan_model(plan, problem, "brg_matmul:avx2_vnni", "AVX2_VNNI", (3, 13, 2))
    assert model.run(src, wei).tolist() == [[wanted, 255 * 64 * 1200]]
    assert [end.tolist() for end in model.bounds(src, wei)] == [[[wanted, 255 * 64 * 1200]]] * 2


def test_a_zero_point_is_taken_from_sums_of_codes() -> None:
    src, wei = np.full((1, 1200), 255, np.uint8), np.full((1200, 2), 64, np.int8)
    wei[:, 1] = -63
    problem = pq.primitive.MatMulProblem.of((1, 1200), wei.shape, dst="s32")
    plan = compose(
        pq.Chain(), pq.primitive.PrimitiveFacts.of(problem, wei=wei, src_zero_point=3), "bitwise"
    )
    assert plan.sums
    model = plan_model(plan, problem, "brg_matmul:avx2_vnni", "AVX2_VNNI", (3, 13, 2))
    assert model.run(src, wei).tolist() == [[252 * 64 * 1200, -252 * 63 * 1200]]
