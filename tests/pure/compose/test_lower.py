"""Lowering step by step: post-ops, masks and shapes per primitive, and what is never asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.lower import lower
from pyonednn_q.errors import UnsupportedError
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
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet

CONV = PrimitiveFacts("convolution", 3)
BF16 = PrimitiveFacts("convolution", 3, src="bf16", wei="bf16", dst="f32")
AVX2, ZEN4, AMX = (
    Facts((3, 13, 2), InstructionSet.of(isa), "OMP")
    for isa in ("AVX2", "AVX512_CORE_BF16", "AVX512_CORE_AMX")
)


def texts(step: Step, facts: PrimitiveFacts = CONV) -> list[str]:
    lowered = lower([step], facts)
    assert not lowered.reason
    return [op.text().replace(":dense", "") for op in lowered.post_ops]


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (Affine(2, 1), ["eltwise_linear:2.0:1.0"]),
        (Affine(2, 0), ["eltwise_linear:2.0:0.0"]),
        (Affine([1, 2, 3], 0), ["binary_mul:f32:1x3x1x1"]),
        (Affine(1, [1, 2, 3]), ["binary_add:f32:1x3x1x1"]),
        (Affine([1, 2, 3], 4), ["binary_mul:f32:1x3x1x1", "eltwise_linear:1.0:4.0"]),
        (Affine(2, [1, 2, 3]), ["eltwise_linear:2.0:0.0", "binary_add:f32:1x3x1x1"]),
        (Affine([1, 2, 3], [4, 5, 6]), ["binary_mul:f32:1x3x1x1", "binary_add:f32:1x3x1x1"]),
        (Clip(0, 6), ["eltwise_clip:0.0:6.0"]),
        (Clip(lo=0), ["eltwise_relu"]),
        (Clip(hi=6), ["eltwise_clip:-inf:6.0"]),
        (Clip([0, 1, 2], 6), ["binary_max:f32:1x3x1x1", "eltwise_clip:-inf:6.0"]),
        (Clip(0, [4, 5, 6]), ["eltwise_relu", "binary_min:f32:1x3x1x1"]),
        (Clip([0, 1, 2], [4, 5, 6]), ["binary_max:f32:1x3x1x1", "binary_min:f32:1x3x1x1"]),
        (Round(), ["eltwise_round"]),
        (Eltwise("elu", 2.0), ["eltwise_elu:2.0:0.0"]),
        (PRelu(0.5), ["eltwise_relu:0.5:0.0"]),
        (PRelu([1, 2, 3]), ["prelu:2"]),
        (Sum(0.5, 3), ["sum:0.5:3"]),
        (Sum(0.5, 3, "u8"), ["sum:0.5:3"]),
        (Sum(1.0, 0, "s8"), ["sum:1.0:0:s8"]),
        (Binary("gt", 2.0), ["binary_gt:f32:1x1x1x1"]),
        (Binary("div", [1, 2, 3]), ["binary_div:f32:1x3x1x1"]),
        (Binary("add", Leaf("r", "s8", "per_channel")), ["binary_add:s8:1x3x1x1"]),
    ],
    ids=str,
)
def test_step(step: Step, wanted: list[str]) -> None:
    assert texts(step) == wanted


def test_side_that_is_open_in_some_channels_only() -> None:
    (carrier,) = lower([Clip([0, -float("inf"), 1], float("inf"))], CONV).carriers
    assert carrier.value is not None
    assert carrier.value.values().tolist()[1] < -1e38


@pytest.mark.parametrize(
    ("facts", "wei_mask", "prelu_mask", "dims"),
    [
        (CONV, 1, 2, "1x3x1x1"),
        (PrimitiveFacts("convolution", 3, wei_ndims=5), 3, 2, "1x3x1x1"),
        (PrimitiveFacts("deconvolution", 3, ndims=5, wei_ndims=6), 3, 2, "1x3x1x1x1"),
        (PrimitiveFacts("inner_product", 3, ndims=2), 1, 2, "1x3"),
        (PrimitiveFacts("matmul", 3, ndims=2, wei_ndims=2), 2, 2, "1x3"),
        (PrimitiveFacts("matmul", 3, ndims=3, wei_ndims=3), 4, 4, "1x1x3"),
        (
            PrimitiveFacts("matmul", 3, ndims=3, wei_ndims=3, dst_dims=(5, 2, 3), process=AMX),
            4,
            5,  # or the fast kernel is lost since 3.9: slopes for every batch
            "5x1x3",
        ),
    ],
)
def test_masks_and_shapes(facts: PrimitiveFacts, wei_mask: int, prelu_mask: int, dims: str) -> None:
    vec = Vec([1.0, 2.0, 3.0])
    assert facts.wei_mask(vec) == wei_mask
    assert facts.wei_mask(Vec(2.0)) == 0
    assert texts(PRelu(vec), facts) == [f"prelu:{prelu_mask}"]
    assert texts(Affine(vec), facts) == [f"binary_mul:f32:{dims}"]
    plan = compose(Chain(Affine(vec)), facts)
    assert plan.attr.wei_scale is not None
    assert plan.attr.wei_scale.mask == wei_mask


@pytest.mark.parametrize(
    ("row", "facts", "steps"),
    [
        ("more_than_32", CONV, [Round()] * 33),
        ("sums_that_differ", CONV, [Sum(1.0), Sum(2.0)]),
        ("sum_of_another_size", CONV, [Sum(1.0, 0, "f32")]),
        ("float_sum_with_zero_point", PrimitiveFacts("convolution", 3, dst="f32"), [Sum(1.0, 3)]),
        ("late_sum", PrimitiveFacts("matmul", 3, ndims=2, process=AVX2), [Round(), Sum()]),
        ("late_sum", PrimitiveFacts("matmul", 3, ndims=2), [Round(), Sum()]),
        ("late_sum_of_bf16", BF16, [Round(), Sum()]),
        ("late_sum_of_bf16_in_groups", replace(BF16, wei_ndims=5, process=ZEN4), [Round(), Sum()]),
        ("sum_with_dtype", PrimitiveFacts("deconvolution", 3), [Sum(1.0, 0, "s8")]),
        (
            "sum_zero_point_in_inner_product",
            PrimitiveFacts(
                "inner_product", 3, ndims=2, process=Facts((3, 7, 2), InstructionSet("AVX2"), "OMP")
            ),
            [Sum(1.0, 3)],
        ),
        ("half_operand", CONV, [Binary("add", Leaf("r", "bf16", "per_tensor"))]),
        (
            "full_operand_of_deconvolution",
            PrimitiveFacts("deconvolution", 3, dst_dims=(1, 3, 4, 4)),
            [Binary("add", Leaf("r"))],
        ),
        (
            "full_operand_of_old_deconvolution",
            PrimitiveFacts(
                "deconvolution",
                3,
                dst_dims=(1, 3, 4, 4),
                process=Facts((3, 7, 2), InstructionSet("AVX2_VNNI"), "OMP"),
            ),
            [Binary("add", Leaf("r"))],
        ),
    ],
)
def test_what_is_never_asked_for(row: str, facts: PrimitiveFacts, steps: list[Any]) -> None:
    lowered = lower(steps, facts)
    assert lowered.reason.startswith(row + ":")
    assert lowered.taken == len(steps) - 1


@pytest.mark.parametrize(
    "facts",
    [
        PrimitiveFacts("matmul", 3, ndims=2, process=AMX),
        CONV,
        replace(BF16, process=AMX),
        replace(BF16, process=ZEN4),
        replace(BF16, wei_ndims=5, process=AMX),
    ],
)
def test_late_sum_where_it_is_fast(facts: PrimitiveFacts) -> None:
    assert lower([Round(), Sum()], facts).reason == ""


def test_full_operand_of_f32_deconvolution() -> None:
    facts = PrimitiveFacts("deconvolution", 3, dst_dims=(1, 3, 4, 4), process=AVX2)
    plain = replace(facts, src="f32", wei="f32", dst="f32")
    assert lower([Binary("add", Leaf("r"))], plain).reason == ""
    assert lower([Binary("add", Leaf("r"))], facts).reason.startswith("full_operand_of")


def test_full_operand_needs_sizes() -> None:
    step = Binary("add", Leaf("r"))
    assert "dst_dims" in lower([step], CONV).reason
    sized = PrimitiveFacts("convolution", 3, dst_dims=(2, 3, 4, 5))
    assert texts(step, sized) == ["binary_add:f32:2x3x4x5@channels_last"]


def test_what_is_left_over_is_stored_afterwards() -> None:
    facts = PrimitiveFacts("convolution", 3, dst_scale=0.5, dst_zero_point=7)
    chain = Chain(Eltwise("tanh"), Binary("add", Leaf("r")), Round())
    plan = compose(chain, facts)
    assert not plan.is_whole
    assert plan.dst == "f32"
    assert [op.text() for op in plan.post_ops] == ["eltwise_tanh"]
    assert plan.attr.dst_scale is None
    assert plan.attr.dst_zero_point is None
    assert plan.leftovers == Chain(Binary("add", Leaf("r")), Round(), Affine(2.0, 7.0))
    with pytest.raises(UnsupportedError, match="dst_dims"):
        compose(chain, facts, strict=True)


def test_a_primitive_that_leaves_steps_over_reads_no_dst() -> None:
    """It stores f32, and would read the residual as that."""
    chain = Chain(Eltwise("tanh"), Sum(), Binary("add", Leaf("r")))
    plan = compose(chain, CONV, rules=NO_RULES)
    assert [op.text() for op in plan.post_ops] == ["eltwise_tanh"]
    assert plan.leftovers.steps[0] == Sum()
