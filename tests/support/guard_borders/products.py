"""On which products and scales faults show, and where they end."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.faults.guards import products
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import PReluPostOp
from pyonednn_q.primitive.problem import MatMulProblem, ReorderProblem
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_borders.make import (
    PLAIN,
    SRC,
    Border,
    after,
    conv,
    eltwise,
    inner,
    matmul,
    operand,
    scaled,
)

K4 = ((2, 3, 8, 16), (2, 3, 16, 12))
ROW = matmul((4, 1), (1, 3), wei="s4")
WIDE = conv((1, 16, 6, 6), (16, 16, 3, 3))


def gaps(k: int, dtype: str = "u8", gap: int = 3) -> MatMulProblem:
    """A product whose rows of src lie apart."""
    types = {} if dtype == "u8" else {"wei": dtype, "dst": "f32"}
    problem = matmul((4, k), (k, 8), src=dtype, **types)
    return replace(problem, src=TensorSpec((4, k), dtype, (k + gap, 1)))


WEI_POINT = Attr(wei_zero_point=ZeroPoint())


def columns(src: tuple[int, ...], wei: tuple[int, ...]) -> MatMulProblem:
    """A product whose rows of src are stored as columns."""
    outer = TensorSpec.dense(src, "u8").strides or ()
    strides = (*outer[:-2], 1, src[-2])
    return replace(matmul(src, wei), src=TensorSpec(src, "u8", strides))


def stepped(batch: tuple[int, ...], *apart: int, of: str = "src") -> MatMulProblem:
    """A product one of whose tensors has matrices that far apart."""
    problem = matmul((*batch, 4, 16), (*batch, 16, 8))
    spec = problem.tensors[of]
    inner = (spec.dims[-1], 1)
    return replace(problem, **{of: TensorSpec(spec.dims, spec.dtype, (*apart, *inner))})


BORDERS: list[Border] = [
    (
        products.batches_at_two_steps,
        [
            *((stepped((2, 3), 900, 128, of=of), PLAIN) for of in ("src", "wei", "dst")),
            (stepped((2, 3), 192, 400), PLAIN),
            (stepped((2, 1), 900, 64), PLAIN),
            (stepped((2, 2, 2), 900, 128, 64), PLAIN),
            (stepped((2, 2, 2), 600, 300, 128), PLAIN),
        ],
        [
            (stepped((2, 3), 384, 128), PLAIN),
            (stepped((2, 3), 192, 64), PLAIN),
            (stepped((1, 3), 900, 128), PLAIN),
            (stepped((3,), 900), PLAIN),
            (matmul((2, 3, 4, 16), (2, 3, 16, 8)), PLAIN),
            (matmul((4, 16), (16, 8)), PLAIN),
            (WIDE, PLAIN),
        ],
    ),
    (
        products.k_tail_with_plain_b,
        [
            (matmul((16, 65), (65, 24), (24, 1)), PLAIN),
            (matmul((16, 127), (127, 24), (24, 1), src="s8"), PLAIN),
            (matmul((4, 4, 65), (1, 65, 24), (1560, 24, 1)), PLAIN),
            (matmul((2, 2, 16, 65), (2, 2, 65, 24)), PLAIN),
            (matmul((2, 2, 16, 65), (2, 2, 65, 24)), SRC),
            (matmul((2, 2, 4, 65), (1, 1, 65, 24)), PLAIN),
        ],
        [
            (matmul((16, 64), (64, 24), (24, 1)), PLAIN),
            (matmul((16, 63), (63, 24), (24, 1)), PLAIN),
            (matmul((16, 128), (128, 24), (24, 1)), PLAIN),
            (matmul((15, 65), (65, 24), (24, 1)), PLAIN),
            (matmul((16, 65), (65, 23), (23, 1)), PLAIN),
            (matmul((16, 65), (65, 24)), PLAIN),
            (matmul((16, 65), (65, 24), (1, 65)), PLAIN),
            (matmul((16, 65), (65, 24), (24, 1)), SRC),
            (matmul((4, 4, 65), (4, 65, 24), (1560, 24, 1)), PLAIN),
            (matmul((2, 2, 16, 65), (2, 2, 65, 24), (3120, 1560, 1, 65)), PLAIN),
            (matmul((16, 65), (65, 24), (24, 1), src="f32", wei="f32", dst="f32"), PLAIN),
            (conv((16, 65, 1), (24, 65, 1)), PLAIN),
        ],
    ),
    (
        products.k_tail_with_padded_src,
        [
            (gaps(65), PLAIN),
            (gaps(2), PLAIN),
            (gaps(63), PLAIN),
            (gaps(17, "f32"), PLAIN),
            (gaps(33, "bf16"), PLAIN),
        ],
        [
            (gaps(64), PLAIN),
            (gaps(128), PLAIN),
            (gaps(1), PLAIN),
            (gaps(16, "f32"), PLAIN),
            (gaps(32, "bf16"), PLAIN),
            (gaps(65, gap=0), PLAIN),
            (replace(gaps(65), src=TensorSpec((4, 65), "u8")), PLAIN),
            (conv((4, 65, 1), (8, 65, 1)), PLAIN),
        ],
    ),
    (
        products.half_wei_scale,
        [
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(), wei_scale=Scale(0, dtype)))
            for dtype in ("bf16", "f16")
        ],
        [
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(), wei_scale=Scale())),
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(), wei_scale=Scale(2, "bf16"))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(0, "bf16"))),
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(0, "bf16"))),
        ],
    ),
    (
        products.broadcast_b_4d,
        [(matmul((2, 1, 4, 8), (1, 1, 8, 4)), PLAIN)],
        [
            (matmul((1, 1, 4, 8), (1, 1, 8, 4)), PLAIN),
            (matmul((2, 2, 4, 8), (1, 1, 8, 4)), PLAIN),
            (matmul((2, 1, 4, 8), (2, 1, 8, 4)), PLAIN),
            (matmul((2, 4, 8), (1, 8, 4)), PLAIN),
            (matmul((2, 1, 1, 4, 8), (1, 1, 1, 8, 4)), PLAIN),
        ],
    ),
    (
        products.batch_of_ragged_rows,
        [(columns((2, 1, k), (1, k, 4)), PLAIN) for k in (2, 3, 5, 33, 49)]
        + [(columns((2, 1, 9), (1, 9, 4)), WEI_POINT)],
        [(columns((2, 1, k), (1, k, 4)), PLAIN) for k in (1, 4, 8, 64)]
        + [
            (columns((2, 1, 9), (2, 9, 4)), PLAIN),
            (columns((1, 1, 9), (1, 9, 4)), PLAIN),
            (columns((2, 2, 9), (1, 9, 4)), PLAIN),
            (matmul((2, 1, 9), (1, 9, 4)), PLAIN),
        ],
    ),
    (
        products.in_shares,
        [
            (matmul((2, 1, 33, 47), (1, 1, 47, 15), src="s8"), PLAIN),
            (matmul((3, 2, 8), (3, 8, 4), src="s8"), SRC),
            (matmul((33, 47), (47, 15), src="s8"), PLAIN),
        ],
        [
            (matmul((2, 1, 33, 47), (1, 1, 47, 15)), SRC),
            (matmul((2, 1, 33, 47), (1, 1, 47, 15), src="bf16", wei="bf16", dst="f32"), PLAIN),
        ],
    ),
    (
        products.batch_of_single_rows,
        [
            (columns((2, 1, 8), (1, 8, 4)), WEI_POINT),
            (columns((3, 1, 2), (1, 2, 1)), Attr(wei_zero_point=ZeroPoint(4))),
        ],
        [
            (columns((2, 1, 8), (1, 8, 4)), PLAIN),
            (columns((2, 2, 8), (1, 8, 4)), WEI_POINT),
            (columns((2, 1, 8), (2, 8, 4)), WEI_POINT),
            (columns((1, 1, 8), (1, 8, 4)), WEI_POINT),
            (columns((2, 1, 1), (1, 1, 4)), WEI_POINT),
            (columns((1, 8), (8, 4)), WEI_POINT),
            (matmul((2, 1, 8), (1, 8, 4)), WEI_POINT),
            (replace(columns((2, 1, 8), (1, 8, 4)), src=TensorSpec((2, 1, 8), "u8")), WEI_POINT),
        ],
    ),
    (
        products.per_row_operand_4d,
        [
            (matmul(*K4), after(operand("add", 1, 1, 8, 1))),
            (matmul((2, 3, 2, 16), (2, 3, 16, 12)), after(operand("add", 1, 1, 2, 1))),
            (matmul(*K4), after(eltwise("relu"), operand("add", 2, 3, 8, 1))),
            (matmul(*K4), after(PReluPostOp(4))),
        ],
        [
            (matmul(*K4), after(operand("add", 1, 1, 1, 1))),
            (matmul(*K4), after(operand("add", 1, 1, 8, 12))),
            (matmul(*K4), after(operand("add", 1, 1, 1, 12))),
            (matmul((2, 8, 16), (2, 16, 12)), after(operand("add", 1, 8, 1))),
            (matmul((2, 3, 1, 16), (2, 3, 16, 12)), after(operand("add", 1, 1, 1, 1))),
        ],
    ),
    (
        products.mask_operand_4d,
        [
            (matmul(*K4), after(operand("add", 1, 1, 8, 12))),
            (matmul((1, 3, 8, 16), (1, 3, 16, 12)), after(operand("add", 1, 1, 8, 12))),
        ],
        [
            (matmul(*K4), after(operand("add", 1, 3, 8, 12))),
            (matmul(*K4), after(operand("add", 2, 1, 8, 12))),
            (matmul(*K4), after(operand("add", 1, 1, 8, 1))),
            (matmul(*K4), after(operand("add", 1, 1, 1, 12))),
            (matmul((1, 1, 8, 16), (1, 1, 16, 12)), after(operand("add", 1, 1, 8, 12))),
            (matmul((2, 8, 16), (2, 16, 12)), after(operand("add", 1, 8, 12))),
        ],
    ),
    (
        products.wei_scale_of_single_rows,
        [
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(1))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(1, 4)))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(1, groups=(4,)))),
            (matmul((2, 4, 8), (2, 8, 4)), scaled(wei_scale=Scale(2))),
        ],
        [
            (matmul((4, 8), (8, 4)), PLAIN),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(2))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(2, 1)))),
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(1))),
            (matmul((2, 4, 8), (2, 8, 4)), scaled(wei_scale=Scale(5))),
        ],
    ),
    (
        products.scale_groups,
        [
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(2, 1)))),
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(3, groups=(1, 2)))),
        ],
        [(matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(2), src_scale=Scale()))],
    ),
    (
        products.src_scale_unit_groups,
        [(matmul((4, 8), (8, 4)), scaled(src_scale=Scale(3, groups=(1, 1))))],
        [
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(3, groups=(1, 2)))),
            (matmul((4, 8), (8, 4)), scaled(src_scale=Scale(3))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(1, 1)))),
        ],
    ),
    (
        products.scale_groups_along_n,
        [(matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(1, 2))))],
        [
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3, groups=(2, 1)))),
            (matmul((4, 8), (8, 4)), scaled(wei_scale=Scale(3))),
            (matmul((4, 8), (8, 4)), PLAIN),
        ],
    ),
    (
        products.bare_nibbles,
        [
            (matmul((4, 8), (8, 4), src=src, wei=wei, dst="f32"), PLAIN)
            for src in ("u8", "s8")
            for wei in ("s4", "u4")
        ],
        [
            (matmul((4, 8), (8, 4), wei="s8", dst="f32"), PLAIN),
            (matmul((4, 8), (8, 4), wei="s4", dst="u8"), PLAIN),
            (matmul((4, 8), (8, 4), src="f32", wei="s4", dst="f32"), PLAIN),
            (matmul((4, 8), (8, 4), wei="s4", dst="f32", bias="f32"), PLAIN),
            (matmul((4, 8), (8, 4), wei="s4", dst="f32"), SRC),
            (matmul((4, 8), (8, 4), wei="s4", dst="f32"), scaled(wei_scale=Scale())),
            (matmul((4, 8), (8, 4), wei="s4", dst="f32"), after(eltwise("relu"))),
        ],
    ),
    (
        products.nibbles_of_one_row,
        [(ROW, PLAIN), (matmul((4, 1), (1, 5), wei="u4"), PLAIN)],
        [
            (matmul((4, 1), (1, 1), wei="s4"), PLAIN),
            (matmul((4, 1), (1, 4), wei="s4"), PLAIN),
            (matmul((4, 2), (2, 3), wei="s4"), PLAIN),
            (matmul((4, 1), (1, 3)), PLAIN),
        ],
    ),
    (
        products.spatial_src_and_packed_wei,
        [
            (inner((4, 3, 5), strides=(15, 1, 3)), PLAIN),
            (inner((4, 3, 5), strides=None), PLAIN),
            (inner((4, 3, 5, 2)), PLAIN),
        ],
        [
            (inner((4, 15)), PLAIN),
            (inner((4, 3, 5), strides=(15, 5, 1)), PLAIN),
            (inner((4, 3, 5), wei=(15, 5, 1)), PLAIN),
            (matmul((4, 15), (15, 5)), PLAIN),
        ],
    ),
    (
        products.spatial_src_and_one_output,
        [(inner((4, 3, 5), 1), PLAIN)],
        [(inner((4, 3, 5), 2), PLAIN), (inner((1, 3, 5), 2), PLAIN), (inner((4, 15), 1), PLAIN)],
    ),
    (
        products.per_channel_dst_scale,
        [(WIDE, scaled(dst_scale=Scale(2))), (WIDE, scaled(dst_scale=Scale(1)))],
        [(WIDE, scaled(dst_scale=Scale())), (WIDE, scaled(wei_scale=Scale(1)))],
    ),
    (
        products.per_channel_zero_point,
        [
            (ReorderProblem(WIDE.src, WIDE.src), Attr(dst_zero_point=ZeroPoint(2))),
            (ReorderProblem(WIDE.src, WIDE.src), Attr(src_zero_point=ZeroPoint(1))),
        ],
        [
            (ReorderProblem(WIDE.src, WIDE.src), Attr(dst_zero_point=ZeroPoint())),
            (ReorderProblem(WIDE.src, WIDE.src), PLAIN),
        ],
    ),
]
