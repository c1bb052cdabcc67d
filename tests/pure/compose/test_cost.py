"""Costs: against a study of its own, and in the order that lowering relies on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyonednn_q.compose.choice import BEFORE_3_8, COSTS, Cost, added, cost
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    DepthwisePostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import TensorSpec

CONV = PrimitiveFacts("convolution", 64)


def operand(alg: str, dims: tuple[int, ...], dtype: str = "f32") -> BinaryPostOp:
    return BinaryPostOp(alg, TensorSpec(dims, dtype))


def on(isa: str, version: tuple[int, int, int] = (3, 13, 2)) -> PrimitiveFacts:
    return replace(CONV, process=Facts(version, InstructionSet.of(isa), "OMP"))


PROCESSES = {
    "3.13 AMX": on("AVX512_CORE_AMX"),
    "3.7 AMX": on("AVX512_CORE_AMX", (3, 7, 2)),
    "3.7 VNNI": on("AVX512_CORE_VNNI", (3, 7, 2)),
    "3.7 AVX2": on("AVX2", (3, 7, 2)),
}
CHANNELS, ONE, FULL = (1, 64, 1, 1), (1, 1, 1, 1), (1, 64, 56, 56)
MUL, ADD = operand("mul", CHANNELS), operand("add", CHANNELS)
RELU, ROUND, CLIP, LINEAR, SUM = (
    EltwisePostOp("relu"),
    EltwisePostOp("round"),
    EltwisePostOp("clip", 0.0, 255.0),
    EltwisePostOp("linear", 0.5, 1.0),
    SumPostOp(),
)

# Times in parts of the bare convolution, as another program measured them on 64 channels of 56x56,
# 3x3, 10th percentile of 480 runs. Where it lies off by half of a convolution, a form would be
# chosen that costs more.
STUDY: dict[tuple[PostOp, ...], tuple[float | None, ...]] = {
    (): (1.00, 1.00, 1.00, 1.00),
    (RELU,): (1.00, 1.00, 1.01, 1.00),
    (SUM,): (1.01, 1.01, 1.03, 1.01),
    (SUM, RELU): (1.06, 1.04, 1.06, 1.01),
    (MUL, ADD): (2.08, 1.53, 1.05, 1.02),
    (ROUND, CLIP, LINEAR): (1.16, 1.17, 1.07, 1.02),
    (LINEAR, ROUND, CLIP, LINEAR): (1.49, 1.53, 1.08, 1.03),
    (operand("add", FULL, "u8"),): (1.10, 1.07, None, None),
    (operand("add", FULL),): (1.19, 1.11, None, None),
    (PReluPostOp(2),): (1.25, 1.10, 1.04, 1.02),
    (EltwisePostOp("swish", 1.0),): (4.6, 4.4, 1.28, 1.13),
    (EltwisePostOp("gelu_erf"),): (3.6, 3.9, None, None),
    (EltwisePostOp("gelu_tanh"),): (4.8, 5.2, None, None),
    (EltwisePostOp("tanh"),): (3.6, 3.9, None, None),
}


@pytest.mark.parametrize("post_ops", STUDY, ids=lambda ops: " ".join(op.text() for op in ops))
def test_costs_are_those_of_another_study(post_ops: tuple[PostOp, ...]) -> None:
    for facts, wanted in zip(PROCESSES.values(), STUDY[post_ops], strict=True):
        if wanted is not None:
            assert abs(cost(post_ops, facts) - wanted) < 0.51


def test_a_source_zero_point_costs_what_was_measured() -> None:
    for facts, wanted in zip(PROCESSES.values(), (1.32, 1.38, 1.09, 1.22), strict=True):
        assert abs(cost((), replace(facts, src_zero_point=3)) - wanted) < 0.2


def test_what_the_store_does_is_free() -> None:
    assert COSTS["dst_scale"] == COSTS["dst_zero_point"] == Cost(0.0, 0.0, 0.0)


# Which function costs more was measured once on each level; smooth ones are far above all others.
SMOOTH = (
    "log", "exp", "tanh", "elu", "gelu_erf", "logistic", "mish", "swish", "gelu_tanh", "soft_relu"
)  # fmt: skip


def test_smooth_functions_cost_several_convolutions_with_amx() -> None:
    costs = [COSTS[name].amx for name in SMOOTH]
    assert costs == sorted(costs)
    assert 2.0 < costs[0] < costs[-1] < 4.5
    assert max(found.amx for name, found in COSTS.items() if name not in SMOOTH) < 0.7


def test_nothing_costs_half_a_convolution_without_amx() -> None:
    for table in (COSTS, BEFORE_3_8):
        assert all(0.0 <= found.vnni < 0.5 for found in table.values())
        assert all(0.0 <= found.avx2 < 0.5 for found in table.values())
        assert all(found.amx >= 0.0 for found in table.values())


def test_3_7_takes_operands_per_channel_for_less() -> None:
    dearer = {"division"}
    for name, old in BEFORE_3_8.items():
        assert (old.amx < COSTS[name].amx) is (name not in dearer)
        assert old.amx < 0.5


# Post-op and what stands before it: the rows of the table that it is made of.
ROWS: list[tuple[PostOp, tuple[PostOp, ...], tuple[str, ...]]] = [
    (RELU, (), ("relu",)),
    (EltwisePostOp("relu", 0.1), (ADD,), ("leaky_relu",)),
    (EltwisePostOp("relu", 0.1), (), ("leaky_relu", "product_of_product")),
    (EltwisePostOp("clip_v2", 0.0, 1.0), (), ("clip",)),
    (SUM, (), ("sum",)),
    (PReluPostOp(0), (), ("prelu_per_tensor",)),
    (PReluPostOp(2), (), ("prelu_per_channel",)),
    (PReluPostOp(1), (), ("prelu_per_channel",)),
    (PReluPostOp(2), (ADD,), ("another_per_channel",)),
    (ADD, (), ("binary_per_channel",)),
    (ADD, (RELU, PReluPostOp(2)), ("another_per_channel",)),
    (ADD, (operand("add", ONE),), ("binary_per_channel",)),
    (operand("add", ONE), (ADD,), ("binary_per_tensor",)),
    (operand("add", (1, 2, 1, 2)), (ADD,), ("binary_full",)),
    (operand("max", FULL, "s8"), (), ("binary_full_of_bytes",)),
    (operand("max", FULL, "s32"), (), ("binary_full",)),
    (operand("div", CHANNELS), (ADD,), ("another_per_channel", "division")),
    (operand("div", ONE), (), ("binary_per_tensor", "division", "product_of_product")),
    (MUL, (), ("binary_per_channel", "product_of_product")),
    (MUL, (RELU, CLIP, EltwisePostOp("abs")), ("binary_per_channel", "product_of_product")),
    (MUL, (EltwisePostOp("clip_v2", 0, 1),), ("binary_per_channel", "product_of_product")),
    (MUL, (SUM,), ("binary_per_channel",)),
    (MUL, (EltwisePostOp("tanh"),), ("binary_per_channel",)),
    (MUL, (EltwisePostOp("tanh"), RELU), ("binary_per_channel",)),
    (MUL, (operand("sub", ONE),), ("binary_per_channel",)),
    (MUL, (operand("add", ONE),), ("binary_per_channel",)),
    (MUL, (operand("max", ONE),), ("binary_per_channel", "product_of_product")),
    (MUL, (SUM, operand("max", ONE)), ("binary_per_channel",)),
    (MUL, (SUM, operand("mul", ONE)), ("binary_per_channel", "product_of_product")),
    (MUL, (SUM, operand("div", ONE)), ("binary_per_channel", "product_of_product")),
    (LINEAR, (), ("linear", "product_of_product")),
    (EltwisePostOp("hardsigmoid", 1.0, 1.0), (), ("hardsigmoid", "product_of_product")),
    (EltwisePostOp("hardswish", 1.0, 1.0), (), ("hardswish", "product_of_product")),
    (EltwisePostOp("tanh"), (), ("tanh",)),
]


@pytest.mark.parametrize(("op", "before", "rows"), ROWS, ids=str)
@pytest.mark.parametrize("name", PROCESSES)
def test_a_post_op_costs_the_sum_of_its_rows(
    name: str, op: PostOp, before: tuple[PostOp, ...], rows: tuple[str, ...]
) -> None:
    version, column = name.split()
    table = COSTS if version == "3.13" else COSTS | BEFORE_3_8
    wanted = sum(getattr(table[row], column.lower()) for row in rows)
    assert added((op,), before, PROCESSES[name]) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("isa", "version", "old", "column"),
    [
        ("AVX512_CORE_AMX", (3, 8, 0), False, "amx"),
        ("AVX512_CORE_AMX", (3, 7, 9), True, "amx"),
        ("AVX512_CORE", (3, 13, 0), False, "vnni"),
        ("AVX512_CORE_BF16+AVX_VNNI", (3, 13, 0), False, "vnni"),
        ("AVX2_VNNI", (3, 7, 0), True, "vnni"),
        ("AVX2", (3, 13, 0), False, "avx2"),
        ("SSE41", (3, 7, 0), True, "avx2"),
    ],
)
def test_each_process_has_its_column(
    isa: str, version: tuple[int, int, int], old: bool, column: str
) -> None:
    wanted = (BEFORE_3_8 if old else COSTS)["binary_per_channel"]
    assert added((ADD,), (), on(isa, version)) == pytest.approx(getattr(wanted, column), abs=1e-12)


def test_a_second_convolution_has_no_price() -> None:
    with pytest.raises(NotImplementedError, match="no measured cost"):
        cost((DepthwisePostOp("s8", None, "u8", 3, 1, 1),), CONV)
