"""Faults of layouts: dimensions of 1, gaps, and orders that are taken for others.

With what is known about where they end. Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    BEFORE_3_13,
    CONV,
    DECONV,
    FAST,
    FLOOR,
    Guard,
    any_isa,
    condition,
)
from pyonednn_q.faults.guards.products import operands
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem


@condition("operand")
def operand_with_gaps(problem: Problem, attr: Attr) -> bool:
    """Match a binary operand with gaps between its values."""
    return any(op.src1.has_gaps for op in _binaries(attr))


@condition()
def gaps_alike(problem: ReorderProblem, attr: Attr) -> bool:
    """Match copies of a tensor with gaps to the same strides."""
    src = problem.src
    return src.has_gaps and src.lies_as(problem.dst)


@condition()
def other_layouts_stored_narrow(problem: BinaryProblem, attr: Attr) -> bool:
    """Match two whole tensors, where one lies otherwise than a dst of less than 32 bits.

    A dimension of 1 that is declared with other strides is enough; in a row of values only beside
    an src1 that is wider than src.
    """
    src, src1, dst = problem.src, problem.src1, problem.dst
    if dtypes.bits(dst.dtype) >= 32 or src1.dims != dst.dims:
        return False
    if dst.size == max(dst.dims) and dtypes.bits(src1.dtype) <= dtypes.bits(src.dtype):
        return False
    return not src.strides == src1.strides == dst.strides


@condition()
def one_place_in_two_orders(problem: ResamplingProblem, attr: Attr) -> bool:
    """Match one place of several channels: of src, or of dst beside an operand of several values.

    Strides of one place fit both orders of dimensions. A src of one place is right where src and
    dst are declared channels last, or row-major if dst has more places.
    """
    src, dst = problem.src, problem.dst
    if dst.dims[1] == 1:
        return False
    has_one_place = max(dst.dims[2:]) == 1
    if has_one_place and any(max(dims) > 1 for dims in operands(problem, attr)):
        return True
    if max(src.dims[2:]) > 1 or all(map(_is_last, (src, dst))):
        return False
    return has_one_place or not all(map(_is_row_major, (src, dst)))


@condition("operand")
def operand_across_layout(problem: BinaryProblem, attr: Attr) -> bool:
    """Match an operand of several values, fewer than dst's, that does not run along dst's order.

    In a row-major dst that is one per channel where each of several images has one place, and any
    beside src or src1 with other strides, even of dimensions of 1; in a dst channels last any but
    one per channel; in another dst any.
    """
    src, src1, dst = problem.src, problem.src1, problem.dst
    several = [dims for dims in operands(problem, attr) if max(dims) > 1 and dims != dst.dims]
    if _is_row_major(dst):
        if src1.dims == dst.dims and not src.strides == src1.strides == dst.strides:
            return bool(several)
        has_one_place = dst.ndim > 2 and max(dst.dims[2:]) == 1 < dst.dims[0]
        return has_one_place and any(dims[1] > 1 for dims in several)
    return any(not _is_last(dst) or max(dims) != dims[1] for dims in several)


@condition("operand")
def operand_along_rows(problem: BinaryProblem, attr: Attr) -> bool:
    """Match an operand along the last of three dimensions or more, in a row-major dst of 8 bits.

    A kernel takes 16, 32 or 128 values of a channel at once (SSE4.1, AVX2, AVX-512). The second
    time it loses its place in the operand, which shows unless the length of a row divides them. So
    no channel of less than 32 values is wrong.
    """
    dst = problem.dst
    if dst.ndim < 3 or dtypes.bits(dst.dtype) != 8 or not _is_row_major(dst):
        return False
    if 16 % dst.dims[-1] == 0 or math.prod(dst.dims[2:]) < 32:
        return False
    along = (1,) * (dst.ndim - 1) + dst.dims[-1:]
    return dst.dims != along and any(dims == along for dims in operands(problem, attr))


@condition("operand")
def pooled_beside_operand(problem: PoolingProblem, attr: Attr) -> bool:
    """Match an operand of dst's size in another order, or any beside a row-major dst.

    That is a dst of several channels. A dst of one place is row-major, however it is declared.
    """
    dst = problem.dst
    whole = [op.src1 for op in _binaries(attr) if op.src1.dims == dst.dims]
    if dst.dims[1] > 1 and dst.lies_as(TensorSpec.dense(dst.dims, dst.dtype)):
        return bool(whole)
    return any(not src1.lies_as(dst) for src1 in whole)


@condition()
def sum_with_gaps(problem: SumProblem, attr: Attr) -> bool:
    """Match a dst with gaps, of another type than f32."""
    return problem.dst.has_gaps and problem.dst.dtype != "f32"


@condition()
def slopes_across_layout(problem: PReluProblem, attr: Attr) -> bool:
    """Match slopes of several values, fewer than dst's, beside an unusual order of dimensions.

    Usual are row-major and channels last.
    """
    src, wei = problem.src, problem.wei
    if max(wei.dims) == 1 or wei.dims == src.dims:
        return False
    return not (_is_row_major(src) or _is_last(src))


@condition()
def shifted_in_another_order(problem: ReorderProblem, attr: Attr) -> bool:
    """Match another order of 64 values or a multiple, zero points, and no scale.

    The kernel takes blocks of 8 by 8 where 8 divides the innermost lengths of src and of dst.
    """
    if problem.src.lies_as(problem.dst) or math.prod(problem.src.dims) % 64 != 0:
        return False
    return not (attr.src_scale or attr.dst_scale) and bool(
        attr.src_zero_point or attr.dst_zero_point
    )


def _binaries(attr: Attr) -> Iterator[BinaryPostOp]:
    return (op for op in attr.post_ops if isinstance(op, BinaryPostOp))


def _is_row_major(spec: TensorSpec) -> bool:
    return spec.strides == TensorSpec.dense(spec.dims, spec.dtype).strides


def _is_last(spec: TensorSpec) -> bool:
    return spec.ndim > 2 and spec.strides == TensorSpec.channels_last(spec.dims, spec.dtype).strides


LAYOUT_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="operand-with-gaps",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=(*CONV, *DECONV, "binary", "pooling", "resampling"),
        impl=FAST,
        condition=operand_with_gaps,
        effect="operands are read as if they had no gaps",
        remedy="operands without gaps",
        source="measured: 3.7.2, SSE41 to AVX512_CORE_BF16, `tools/hunt/hunt.py --plain --ignore` "
        "this row, seed 77: 25 of 27 wrong; of convolutions and deconvolutions on every kernel "
        "but reference loops; matmul, inner product and 3.13.2 were right",
    ),
    Guard(
        id="reorder-of-gaps-alike",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=("reorder",),
        impl=r"jit_direct_copy",
        condition=gaps_alike,
        effect="as many elements are copied as there are, gaps counted: the last ones are left out",
        remedy="other strides: networks copy to layouts without gaps",
        source="measured: 3.7.2, 898 of 898 random layouts with gaps, u8, s8, s32 and f32 to each "
        "other, on all levels, SSE41 to AMX; without gaps, and where strides differ, all were "
        "right; 3.13.2 has no such kernel; oneDNN's issue 3280",
    ),
    Guard(
        id="reorder-shifted-blocks",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.has("AVX2"),
        kinds=("reorder",),
        impl=r"jit",
        condition=shifted_in_another_order,
        effect="blocks of 8 by 8 values are transposed without regard to a zero point",
        remedy="a scale of 1 beside the zero point",
        source="measured: 3.7.2, 3.12.1 and 3.13.2, AVX2, every pair of u8, s8, s32 and f32 that "
        "takes a zero point, 8 channels of 8 places, none right; on AVX-512, where the same code "
        "runs, u8 and s8 (in 3.13.2 also 8 and multiples of 8); other lengths, a scale, and SSE41 "
        "were right",
    ),
    Guard(
        id="binary-of-other-layouts",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("binary",),
        impl=r"jit",
        condition=other_layouts_stored_narrow,
        effect="values are stored in other places than theirs",
        remedy="tensors that lie as dst does, or an f32 dst",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16: of 903 random "
        "problems with u8 or s8 dst and src in other orders 901 were wrong, and 11 of 335 where "
        "only an f32 src1 lies otherwise (of bf16 1 of 24 in 3.7.2); right were 5 000 of one "
        "layout, an src1 of fewer values, and f32 dst; rows of u8 beside an f32 or s32 src1 in "
        "another order were wrong on AVX2, unless a primitive of one layout was in oneDNN's cache",
    ),
    Guard(
        id="binary-operand-across-layout",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("binary",),
        impl=r"jit",
        condition=operand_across_layout,
        effect="a post-op's operand is read from places other than its own, beyond its end too",
        remedy="a row-major dst, or an operand of dst's size",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16, `tools/hunt/hunt.py "
        "--plain --ignore` this row, seed 77, 20 000 problems: 12 of 12 and 23 of 23 wrong;"
        " 3.7.2 takes no operands along the last dimension alone; beside src or src1 with other"
        " strides, of dimensions of 1 alone, too, 3.13.2 crashes on SSE41 and AVX2",
    ),
    Guard(
        id="binary-operand-along-rows",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=("binary",),
        impl=r"jit",
        condition=operand_along_rows,
        effect="values behind the first of a channel meet other values of the operand than theirs",
        remedy="an f32 dst, or an operand of dst's size",
        source="measured: 3.13.2, u8 and s8, rows of 2 to 1000 values: wrong from 32 values a "
        "channel on (SSE41), 64 (AVX2) or 256 (AVX512_CORE and above), all but rows that divide "
        "16, 32 or 128; 3.12.1 at SSE41 and AVX2; f32 was right; 3.7.2 takes no such operands; no "
        "released version has oneDNN's mending, 4b11ee35bf",
    ),
    Guard(
        id="resampling-of-one-place",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("resampling",),
        impl=r"^(?:jit|simple)",
        condition=one_place_in_two_orders,
        effect="values are read, or stored, as if neighbouring channels were places of one; bytes "
        "behind dst are written",
        remedy="src and dst both declared channels last: of one place these are the same bytes",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16, `tools/hunt/hunt.py "
        "--plain --ignore` this row, seed 77, 20 000 problems: 254 of 382 wrong, on SSE41 "
        "201 of 303; reference loops were right",
    ),
    Guard(
        id="pooling-beside-operand",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("pooling",),
        impl=r"^jit:",
        condition=pooled_beside_operand,
        effect="the operand is read in another order than its own",
        remedy="tensors and operands channels last",
        source="measured: 3.7.2 and 3.13.2, `tools/hunt/hunt.py --plain --ignore` this row, seed "
        "77, 20 000 problems: on AVX512_CORE_BF16 46 of 73 and 12 of 21 wrong, on AVX2 and SSE41 "
        "15 of 36 of 3.7.2 and none of 7; right were dst of one place in float32, most of "
        "them",
    ),
    Guard(
        id="prelu-across-layout",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("prelu",),
        impl=r"jit",
        condition=slopes_across_layout,
        effect="slopes are read for other channels than their own",
        remedy="tensors row-major or channels last",
        source="measured: 3.7.2 and 3.13.2, all levels, SSE41 to AMX, slopes of a channel each "
        "beside src whose columns, or images, lie within channels: some of them, and none of the "
        "usual orders, in `tools/hunt/hunt.py --plain`",
    ),
    Guard(
        id="sum-into-gaps",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=("sum",),
        impl=r"^ref",
        condition=sum_with_gaps,
        effect="gaps are written as if they were values, and the last values are left out",
        remedy="a dst without gaps",
        source="measured: 3.7.2, all levels, SSE41 to AMX, u8, s8, s32 and bf16, "
        "`tools/hunt/hunt.py --plain --ignore` this row, seed 77: 884 of 884 wrong; f32 "
        "and 3.13.2 were right",
    ),
)
