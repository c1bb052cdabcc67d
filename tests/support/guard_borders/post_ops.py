"""On which post-ops and types of results faults show, and where they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyonednn_q.faults.guards import products, windows
from pyonednn_q.primitive.post_ops import PReluPostOp, SumPostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem, ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault_problems import by_bf16, compared_with, few_columns, one_tap
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

SUMMED = after(SumPostOp())
WIDE = conv((1, 16, 6, 6), (16, 16, 3, 3))
DENSE, LAST = TensorSpec.dense, TensorSpec.channels_last


def laid(
    length: int,
    src: Any = LAST,
    dst: Any = LAST,
    images: int = 2,
    channels: int = 4,
    dtype: str = "u8",
) -> ConvProblem:
    """A convolution of as long a kernel, but for one of 4, with layouts as they are named."""
    taps = min(length, 3)
    of = conv((images, channels, length, length), (8, channels, taps, taps), dtype)
    make = {None: TensorSpec}
    return replace(
        of,
        src=make.get(src, src)(of.src.dims, dtype),
        dst=make.get(dst, dst)(of.dst.dims, of.dst.dtype),
    )


def spread(rows: int, step: int) -> MatMulProblem:
    """A product whose dst has rows of 8, that far apart."""
    of = matmul((rows, 8), (8, 8))
    return replace(of, dst=TensorSpec((rows, 8), "u8", (step, 1)))


ADDED_TO = ConvProblem.of((2, 7, 4, 3), (7, 1, 1, 3, 3), src="f32", wei="f32", dst="f32", padding=1)
ROW_MAJOR = laid(3, dst=DENSE)
SPREAD = deconv((2, 4, 1), (8, 4, 3), padding=1)

BORDERS: list[Border] = [
    (
        products.comparison,
        [(WIDE, after(operand("ge", 1, 1, 1, 1))), (WIDE, after(operand("ne", 1, 16, 1, 1)))],
        [(WIDE, after(operand("max", 1, 1, 1, 1))), (WIDE, after(eltwise("relu")))],
    ),
    (
        products.comparison_of_ragged_channels,
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
        products.comparison_of_ragged_groups,
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
        products.comparison_stored_as_u8,
        [(compared("f32", "u8"), after(operand("gt", 1, 8)))],
        [
            (compared("u8", "s8"), after(operand("gt", 1, 8))),
            (compared("f32", "u8"), after(operand("gt", 1, 1))),
            (compared("f32", "u8"), after(operand("mul", 1, 8))),
        ],
    ),
    (
        products.operand_of_ragged_channels,
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
        products.sum_with_ragged_channels,
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
        products.sum_in_f32,
        [
            (ADDED_TO, after(SumPostOp())),
            (ADDED_TO, after(eltwise("relu"), SumPostOp())),
        ],
        [
            (ADDED_TO, PLAIN),
            (ADDED_TO, after(operand("add", *ADDED_TO.dst.dims))),
            (grouped(7, 1, 1), after(SumPostOp())),
        ],
    ),
    (
        products.depthwise_sum,
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
        products.operand_of_one_place,
        [
            (ROW_MAJOR, after(operand("add", 1, 8, 1, 1))),
            (ROW_MAJOR, after(PReluPostOp(2))),
            (ROW_MAJOR, after(eltwise("relu"), operand("add", 1, 8, 1, 1))),
            (laid(3, src=None, dst=DENSE), after(operand("add", 1, 8, 1, 1))),
            (laid(1, src=DENSE, dst=DENSE), after(operand("add", 1, 8, 1, 1))),
            (replace(SPREAD, dst=DENSE(SPREAD.dst.dims, "u8")), after(operand("add", 1, 8, 1))),
        ],
        [
            (ROW_MAJOR, PLAIN),
            (ROW_MAJOR, after(operand("add", 1, 1, 1, 1))),
            (ROW_MAJOR, after(operand("add", 2, 1, 1, 1))),
            (ROW_MAJOR, after(operand("add", 2, 8, 1, 1))),
            (ROW_MAJOR, after(PReluPostOp(0))),
            (SPREAD, after(operand("add", 1, 8, 1))),
            (laid(3, images=1, dst=DENSE), after(operand("add", 1, 8, 1, 1))),
            (laid(3), after(operand("add", 1, 8, 1, 1))),
            (laid(1, src=DENSE), after(operand("add", 1, 8, 1, 1))),
            (laid(3, dst=None), after(operand("add", 1, 8, 1, 1))),
            (laid(4, dst=DENSE), after(operand("add", 1, 8, 1, 1))),
            (laid(3, dst=DENSE, dtype="f32"), after(operand("add", 1, 8, 1, 1))),
            (matmul((2, 8), (8, 8)), after(operand("add", 1, 8))),
        ],
    ),
    (
        products.depthwise_to_bf16,
        [(conv((1, 24, 9, 9), (24, 1, 1, 7, 7), dst="bf16"), PLAIN)],
        [
            (conv((1, 24, 9, 9), (24, 1, 1, 7, 7), dst="f32"), PLAIN),
            (conv((1, 24, 9, 9), (24, 1, 1, 7, 7), "s8", dst="bf16"), PLAIN),
            (conv((1, 24, 9, 9), (24, 1, 1, 7, 7), dst="bf16"), SRC),
            (conv((1, 24, 9, 9), (24, 24, 7, 7), dst="bf16"), PLAIN),
            (deconv((1, 24, 9), (24, 1, 1, 7), dst="bf16"), PLAIN),
        ],
    ),
    (
        products.operand_of_gapped_rows,
        [
            (spread(4, 9), after(operand("add", 1, 8))),
            (spread(4, 9), after(operand("add", 1, 1))),
            (spread(4, 9), after(PReluPostOp(2))),
        ],
        [
            (spread(4, 9), PLAIN),
            (spread(4, 9), after(SumPostOp(0.5))),
            (spread(4, 8), after(operand("add", 1, 8))),
            (spread(1, 9), after(operand("add", 1, 8))),
            (matmul((4, 8), (8, 8)), after(operand("add", 1, 8))),
            (ROW_MAJOR, after(operand("add", 1, 1, 1, 1))),
            (
                replace(matmul((4, 8), (8, 8)), dst=TensorSpec((4, 8), "u8")),
                after(operand("add", 1, 8)),
            ),
        ],
    ),
    (
        products.pooled_beyond_16_bits,
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
        products.pooled_beyond_32_bits,
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
    (
        windows.compared_product_of_one_tap,
        [(one_tap(), compared_with(*dims)) for dims in ((1, 1, 1, 1), (1, 8, 1, 1))],
        [
            (one_tap(), PLAIN),
            (deconv((1, 8, 2, 5), (8, 8, 1, 2)), compared_with(1, 1, 1, 1)),  # two taps
            (conv((1, 8, 2, 5), (8, 8, 1, 1)), compared_with(1, 1, 1, 1)),
        ],
    ),
    (
        windows.float_by_bf16_stored_otherwise,
        [(by_bf16(dst), PLAIN) for dst in ("u8", "s8", "s32", "bf16")],
        [
            (by_bf16("f32"), PLAIN),
            (conv((1, 8, 6, 6), (8, 8, 3, 3), "bf16", wei="bf16", dst="u8"), PLAIN),
            (conv((1, 8, 6, 6), (8, 8, 3, 3), "f32", wei="f32", dst="u8"), PLAIN),
        ],
    ),
    (
        windows.padding_left_over,
        [
            *((few_columns(oc, dst), PLAIN) for oc in (1, 5, 64) for dst in ("u8", "s8", "bf16")),
            *((few_columns(5, dst), SUMMED) for dst in ("u8", "s32", "f32")),
            (conv((1, 16, 11), (5, 16, 3), stride=4, padding=((2, 1),)), PLAIN),  # not reached
            (conv((1, 16, 11), (5, 16, 3), stride=3, dilation=2, padding=((2, 0),)), PLAIN),
        ],
        [
            (few_columns(5, "f32"), PLAIN),
            (few_columns(5, "s32"), PLAIN),
            (few_columns(5, stride=2), PLAIN),
            (few_columns(5, padding=1), PLAIN),
            (conv((1, 16, 9), (5, 16, 2), stride=3, padding=((2, 0),)), PLAIN),  # to the end
            (conv((1, 16, 3), (5, 16, 3), stride=3, padding=((2, 0),)), PLAIN),  # one column
            (few_columns(5, padding=1), SUMMED),
        ],
    ),
]
