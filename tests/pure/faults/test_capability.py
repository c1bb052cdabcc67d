"""What is never asked of a primitive: on which versions and instruction sets, and where it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyonednn_q.faults.capability import (
    ACCEPTS,
    NEVER_ASK,
    Ask,
    NeverAsk,
    forbidden,
    leading_ones,
    operand_dims,
)
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet, Version
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PostOp, SumPostOp
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.rewrite.ends import Takes

# From what an old processor has to what the newest has; each differs from all others for some row.
SETS = (
    "SSE41", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_VNNI+AVX_VNNI",
    "AVX512_CORE_BF16", "AVX512_CORE_BF16+AVX_VNNI", "AVX512_CORE_FP16", "AVX512_CORE_AMX",
    "AVX10_2", "AVX10_2_AMX_2",
)  # fmt: skip
NO_VNNI = {"SSE41", "AVX2"}
NO_AVX512 = NO_VNNI | {"AVX2_VNNI"}
NO_BF16 = NO_AVX512 | {"AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_VNNI+AVX_VNNI"}
NO_AMX = set(SETS) - {"AVX512_CORE_AMX", "AVX10_2_AMX_2"}

# What was measured: the sets on which a row speaks, and the first version that it does not.
EVERYWHERE = (set(SETS), None)
MEASURED: dict[str, tuple[set[str], Version | None]] = {
    "more_than_32": EVERYWHERE,
    "sums_that_differ": EVERYWHERE,
    "sum_of_another_size": EVERYWHERE,
    "float_sum_with_zero_point": EVERYWHERE,
    "late_sum": (NO_VNNI, None),
    "late_sum_of_bf16": (NO_BF16, None),
    "late_sum_of_bf16_in_groups": (NO_AMX, None),
    "sum_with_dtype": (NO_VNNI, None),
    "sum_zero_point_in_inner_product": (set(SETS), (3, 8, 0)),
    "half_operand": (NO_AMX, None),
    "full_operand_of_deconvolution": (NO_VNNI, None),
    "full_operand_of_old_deconvolution": (NO_AVX512, (3, 8, 0)),
}

CONV, DECONV = PrimitiveFacts("convolution", 3), PrimitiveFacts("deconvolution", 3)
INNER, MATMUL = PrimitiveFacts("inner_product", 3, ndims=2), PrimitiveFacts("matmul", 3, ndims=2)
FLOATS = replace(CONV, src="f32", wei="f32", dst="f32")
BF16 = replace(CONV, src="bf16", wei="bf16", dst="f32")
BF16_GROUPS = replace(BF16, wei_ndims=5)
RELU, SUM = EltwisePostOp("relu"), SumPostOp()


def operand(*dims: int, dtype: str = "f32") -> BinaryPostOp:
    return BinaryPostOp("add", TensorSpec.dense(dims, dtype))


def ask(facts: PrimitiveFacts, post_op: PostOp, *before: PostOp) -> Ask:
    return Ask(post_op, before, facts)


# For each row requests that it speaks against, and requests beside them.
ROWS: dict[str, tuple[list[Ask], list[Ask]]] = {
    "more_than_32": ([ask(CONV, RELU, *[RELU] * 32)], [ask(CONV, RELU, *[RELU] * 31)]),
    "sums_that_differ": (
        [
            ask(CONV, SUM, SumPostOp(2.0)),
            ask(CONV, SUM, SumPostOp(1.0, 1)),
            ask(MATMUL, SUM, SUM, RELU, SumPostOp(2.0)),
        ],
        [ask(CONV, SUM), ask(CONV, SUM, SUM), ask(CONV, RELU, SUM)],
    ),
    "sum_of_another_size": (
        [ask(CONV, SumPostOp(dtype="f32")), ask(FLOATS, SumPostOp(dtype="s8"))],
        [ask(CONV, SumPostOp(dtype="s8")), ask(FLOATS, SumPostOp(dtype="s32")), ask(CONV, SUM)],
    ),
    "float_sum_with_zero_point": (
        [
            ask(replace(CONV, dst="f32"), SumPostOp(1.0, 3)),
            ask(replace(CONV, dst="f32"), SumPostOp(1.0, -3)),
            ask(replace(CONV, dst="s32"), SumPostOp(1.0, 3, "f32")),
            ask(replace(FLOATS, dst="u8"), SumPostOp(1.0, 3)),
        ],
        [
            ask(CONV, SumPostOp(1.0, 3)),
            ask(replace(CONV, dst="f32"), SUM),
            ask(replace(CONV, dst="f32"), SumPostOp(1.0, 3, "s32")),
        ],
    ),
    "late_sum": (
        [ask(MATMUL, SUM, RELU), ask(INNER, SUM, SUM)],
        [ask(MATMUL, SUM), ask(MATMUL, RELU, SUM), ask(CONV, SUM, RELU)],
    ),
    "late_sum_of_bf16": (
        [ask(BF16, SUM, RELU)],
        [ask(BF16, SUM), ask(FLOATS, SUM, RELU), ask(BF16, RELU, RELU)],
    ),
    "late_sum_of_bf16_in_groups": (
        [ask(BF16_GROUPS, SUM, RELU)],
        [ask(BF16_GROUPS, SUM), ask(BF16, SUM, RELU), ask(replace(CONV, wei_ndims=5), SUM, RELU)],
    ),
    "sum_with_dtype": (
        [ask(facts, SumPostOp(dtype="s8")) for facts in (DECONV, INNER, MATMUL)],
        [ask(MATMUL, SUM), ask(CONV, SumPostOp(dtype="s8"))],
    ),
    "sum_zero_point_in_inner_product": (
        [ask(INNER, SumPostOp(1.0, 3)), ask(INNER, SumPostOp(1.0, -1))],
        [ask(INNER, SUM), ask(MATMUL, SumPostOp(1.0, 3))],
    ),
    "half_operand": (
        [ask(CONV, operand(1, 1, 1, 1, dtype=dtype)) for dtype in ("bf16", "f16")],
        [ask(CONV, operand(1, 1, 1, 1)), ask(CONV, RELU)],
    ),
    "full_operand_of_deconvolution": (
        [ask(DECONV, operand(2, 3, 1, 1)), ask(DECONV, operand(1, 3, 4, 4))],
        [
            ask(DECONV, operand(1, 3, 1, 1)),
            ask(DECONV, operand(1, 1, 1, 1)),
            ask(replace(FLOATS, kind="deconvolution"), operand(1, 3, 4, 4)),
            ask(CONV, operand(1, 3, 4, 4)),
        ],
    ),
}
ROWS["full_operand_of_old_deconvolution"] = ROWS["full_operand_of_deconvolution"]


def on(request: Ask, isa: str, version: Version = (3, 13, 2)) -> Ask:
    process = Facts(version, InstructionSet.of(isa), "OMP")
    return replace(request, facts=replace(request.facts, process=process))


@pytest.mark.parametrize("row", NEVER_ASK, ids=lambda row: row.id)
def test_a_row_speaks_where_it_was_measured(row: NeverAsk) -> None:
    asked, beside = ROWS[row.id]
    assert [one for one in asked if not row.matches(one)] == []  # of an unknown process: the worst
    assert [one for one in beside if row.matches(one)] == []
    sets, until = MEASURED[row.id]
    version = (3, 13, 2) if until is None else (3, 7, 2)
    assert {isa for isa in SETS if row.matches(on(asked[0], isa, version))} == sets
    one = on(asked[0], min(sets))
    assert row.matches(on(one, min(sets), (3, 7, 0)))
    assert not row.matches(on(one, min(sets), (3, 6, 9)))
    if until is None:
        assert row.matches(on(one, min(sets), (4, 0, 0)))
    else:
        assert row.matches(on(one, min(sets), (3, 7, 99)))
        assert not row.matches(on(one, min(sets), until))


def test_every_row_is_looked_at_and_the_first_is_named() -> None:
    assert [row.id for row in NEVER_ASK] == list(MEASURED)
    both = ask(CONV, SumPostOp(2.0, dtype="f32"), SUM)
    assert forbidden(both) is NEVER_ASK[1]
    assert forbidden(ask(CONV, RELU)) is None


def test_what_primitives_take_on_generated_code() -> None:
    """The table of the composer's recipe: bias f32, weights per channel, dst per tensor."""
    for kind, accepts in ACCEPTS.items():
        assert (accepts.wei_scale, accepts.bias) == (Takes.PER_CHANNEL, Takes.PER_CHANNEL)
        assert accepts.dst_scale is Takes.PER_TENSOR
        is_inner = kind == "inner_product"
        assert accepts.dst_zero_point is (Takes.NOTHING if is_inner else Takes.PER_TENSOR)
        assert accepts.src_zero_point is not is_inner
        assert accepts.wei_zero_point is (kind == "matmul")


# --- shapes of operands ---------------------------------------------------------------------------

BATCHED = replace(MATMUL, ndims=3, wei_ndims=3, dst_dims=(5, 2, 3))
OLD, NEW = (Facts(v, InstructionSet("AVX2"), "OMP") for v in ((3, 8, 9), (3, 9, 0)))


@pytest.mark.parametrize(
    ("facts", "extent", "dims"),
    [
        (CONV, "per_tensor", (1, 1, 1, 1)),
        (CONV, "per_channel", (1, 3, 1, 1)),
        (replace(CONV, dst_dims=(2, 3, 4, 5)), "full", (2, 3, 4, 5)),
        (CONV, "full", None),
        (replace(CONV, dst_dims=(2, 3, 4, 5)), "per_row", None),
        (MATMUL, "per_row", None),
        (replace(MATMUL, dst_dims=(7, 3)), "per_row", (7, 1)),
        (replace(MATMUL, dst_dims=(7, 3)), "per_channel", (1, 3)),
        (BATCHED, "per_row", (1, 2, 1)),
        (BATCHED, "per_channel", (5, 1, 3)),
        (replace(BATCHED, process=NEW), "per_channel", (5, 1, 3)),
        (replace(BATCHED, process=OLD), "per_channel", (1, 1, 3)),
        (replace(BATCHED, dst_dims=None), "per_channel", (1, 1, 3)),
        (replace(CONV, ndims=3, dst_dims=(5, 3, 4)), "per_channel", (1, 3, 1)),
        (replace(MATMUL, ndims=4, dst_dims=(5, 2, 4, 3)), "per_channel", (1, 1, 1, 3)),
    ],
)
def test_operands_have_the_shape_that_keeps_the_fast_kernel(
    facts: PrimitiveFacts, extent: str, dims: Any
) -> None:
    assert operand_dims(facts, extent) == dims


@pytest.mark.parametrize(
    ("version", "isa", "ones"),
    [
        ((3, 8, 9), "AVX2_VNNI", 1),
        ((3, 9, 0), "AVX2_VNNI", 2),
        ((3, 9, 0), "AVX512_CORE", 2),
        ((3, 13, 2), "AVX2", 1),
        ((3, 13, 2), "SSE41", 1),
    ],
)
def test_leading_dimensions_of_one_for_a_scale_per_row(
    version: Version, isa: str, ones: int
) -> None:
    assert leading_ones(Facts(version, InstructionSet(isa), "OMP")) == ones
