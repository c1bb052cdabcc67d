"""On which post-ops faults show, and where they end."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.compose.guards import operands
from pyonednn_q.compose.post_ops import PReluPostOp, SumPostOp
from pyonednn_q.compose.problem import ReorderProblem
from support.guard_borders.make import (
    DST,
    PLAIN,
    SRC,
    Border,
    after,
    compared,
    conv,
    deconv,
    eltwise,
    grouped,
    matmul,
    mean,
    operand,
    times,
)

WIDE = conv((1, 16, 6, 6), (16, 16, 3, 3))

BORDERS: list[Border] = [
    (
        operands.comparison,
        [(WIDE, after(operand("ge", 1, 1, 1, 1))), (WIDE, after(operand("ne", 1, 16, 1, 1)))],
        [(WIDE, after(operand("max", 1, 1, 1, 1))), (WIDE, after(eltwise("relu")))],
    ),
    (
        operands.comparison_of_ragged_channels,
        [
            (grouped(1, 4, 15), after(operand("lt", 1, 15, 1, 1))),
            (grouped(2, 4, 8), after(operand("lt", 1, 16, 1, 1))),
            (deconv((1, 4, 3), (2, 24, 2, 3)), after(operand("lt", 1, 48, 1))),
            (matmul((16, 8), (8, 15)), after(operand("lt", 16, 1))),
        ],
        [
            (grouped(1, 4, 15), after(operand("lt", 1, 1, 1, 1))),
            (grouped(1, 4, 15), after(operand("add", 1, 15, 1, 1))),
            (grouped(1, 4, 16), after(operand("lt", 1, 16, 1, 1))),
            (grouped(2, 4, 16), after(operand("lt", 1, 32, 1, 1))),
            (matmul((15, 8), (8, 16)), after(operand("lt", 15, 1))),
        ],
    ),
    (
        operands.comparison_of_ragged_groups,
        [
            (grouped(2, 16, 8), after(operand("eq", 1, 16, 1, 1))),
            (grouped(2, 8, 16), after(operand("eq", 1, 32, 1, 1))),
            (grouped(2, 8, 16), after(operand("eq", 1, 1, 1, 1, dtype="s8"))),
            (deconv((1, 16, 3), (2, 16, 8, 3)), after(operand("eq", 1, 32, 1))),
        ],
        [
            (grouped(2, 16, 32), after(operand("eq", 1, 64, 1, 1))),
            (grouped(2, 8, 16), after(operand("eq", 1, 1, 1, 1))),
            (grouped(2, 8, 16), after(operand("add", 1, 32, 1, 1))),
            (grouped(1, 8, 8), after(operand("eq", 1, 8, 1, 1))),
            (grouped(8, 1, 1), after(operand("eq", 1, 8, 1, 1))),
            (matmul((4, 8), (8, 8)), after(operand("eq", 1, 8))),
        ],
    ),
    (
        operands.comparison_stored_as_u8,
        [(compared("f32", "u8"), after(operand("gt", 1, 8)))],
        [
            (compared("u8", "s8"), after(operand("gt", 1, 8))),
            (compared("f32", "u8"), after(operand("gt", 1, 1))),
            (compared("f32", "u8"), after(operand("mul", 1, 8))),
        ],
    ),
    (
        operands.operand_of_ragged_channels,
        [
            (grouped(1, 4, 12), after(operand("add", 1, 1, 1, 1))),
            (grouped(2, 4, 4), after(PReluPostOp(0))),
            (matmul((8, 8), (8, 7)), after(operand("add", 1, 1))),
        ],
        [
            (grouped(1, 4, 8), after(operand("add", 1, 1, 1, 1))),
            (grouped(1, 4, 12), after(eltwise("relu"), SumPostOp())),
            (grouped(2, 4, 8), after(PReluPostOp(0))),
            (matmul((7, 8), (8, 8)), after(operand("add", 1, 1))),
        ],
    ),
    (
        operands.sum_with_ragged_channels,
        [
            (grouped(1, 3, 8, padding=1), replace(SRC, post_ops=(SumPostOp(),))),
            (grouped(1, 5, 8, padding=((0, 0), (1, 0))), replace(DST, post_ops=(SumPostOp(),))),
            (grouped(2, 3, 8, padding=1), replace(DST, post_ops=(eltwise("relu"), SumPostOp()))),
        ],
        [
            (grouped(1, 3, 8, padding=1), SRC),
            (grouped(1, 3, 8, padding=1), after(SumPostOp())),
            (grouped(1, 4, 8, padding=1), replace(SRC, post_ops=(SumPostOp(),))),
            (grouped(2, 4, 8, padding=1), replace(SRC, post_ops=(SumPostOp(),))),
            (grouped(1, 3, 8, padding=((1, 1), (0, 1))), replace(SRC, post_ops=(SumPostOp(),))),
            (grouped(3, 1, 1, padding=1), replace(SRC, post_ops=(SumPostOp(),))),
            (deconv((1, 3, 5), (8, 3, 3), padding=1), replace(SRC, post_ops=(SumPostOp(),))),
        ],
    ),
    (
        operands.depthwise_sum,
        [
            (grouped(3, 1, 1), after(SumPostOp(0.5))),
            (grouped(3, 1, 1), after(SumPostOp(1.0, 1))),
            (grouped(3, 1, 1), after(SumPostOp(1.0, -1))),
            (grouped(3, 1, 1), after(SumPostOp(), SumPostOp(2.0))),
        ],
        [
            (grouped(3, 1, 1), after(SumPostOp())),
            (grouped(3, 1, 1), after(eltwise("relu"))),
            (grouped(3, 1, 2), after(SumPostOp(0.5))),
            (deconv((1, 2, 5), (2, 1, 1, 3)), after(SumPostOp(0.5))),
        ],
    ),
    (
        operands.pooled_beyond_16_bits,
        [
            (mean(), after(times(128.502))),  # 255 · 128.502 > 2^15
            (mean(), after(times(-129.0))),
            (mean(), after(times(128.0, 128.0))),
            (mean(), after(times(128.0, -128.0))),
            (mean(), after(eltwise("relu", -129.0))),
            (mean(), after(eltwise("relu", 0.5), times(129.0))),
            (mean(), after(eltwise("clip", -(2.0**15), 1.0))),
            (mean(), after(eltwise("clip_v2", 0.0, 2.0**15))),
            (mean(), after(eltwise("square"))),
            (mean(), after(eltwise("tanh"), times(2.0**15))),
            (mean(), after(eltwise("hardsigmoid", 1.0, 1.0), times(0.0, 2.0**15))),
        ],
        [
            (mean(), PLAIN),
            (mean(), after(times(128.0))),
            (mean(), after(times(128.0, 127.0))),
            (mean(), after(eltwise("relu", 0.5), times(128.0))),
            (mean(), after(eltwise("clip", -1.0, 100.0), times(320.0))),
            (mean(), after(eltwise("logistic"), times(32767.0))),
            (mean(), after(eltwise("round"), eltwise("abs"), times(128.0))),
            (mean("s8"), after(times(129.0))),
            (mean("u8", "max"), after(times(129.0))),
            (ReorderProblem(WIDE.src, WIDE.src), after(times(129.0))),
        ],
    ),
    (
        operands.pooled_beyond_32_bits,
        [
            (mean(), after(times(0.0, 2.0**31))),
            (mean("s8"), after(times(0.0, -(2.0**31)))),
            (mean("s8"), after(operand("mul", 1, 8, 1, 1))),
        ],
        [
            (mean(), after(times(0.0, 2.0**31 - 1))),
            (mean("f32"), after(times(0.0, 2.0**31))),
            (mean("s8", "max"), after(times(0.0, 2.0**31))),
        ],
    ),
]
