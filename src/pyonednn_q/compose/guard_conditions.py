"""On which problems the faults of the guard table show.

One predicate per row of `guards.GUARDS`, with what is known about where the fault ends. Every one
holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q.compose.post_ops import BinaryPostOp, PReluPostOp, SumPostOp
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.compose.attr import Attr
    from pyonednn_q.compose.problem import Problem
    from pyonednn_q.compose.tensor import TensorSpec

_INT8 = ("u8", "s8")


# --- matmul -------------------------------------------------------------------------------------


def k_tail_with_plain_b(problem: Problem, attr: Attr) -> bool:
    """Match K > 64, no multiple of 64; B row-major and no src zero point, or 4 dimensions.

    Seen at M >= 31 and N >= 48, not at K = 72, 80, 96. The reason is not understood, so K is not
    narrowed and half of M and N is kept as a margin. With four dimensions packed B failed too, and
    whether a zero point helps was not tried.
    """
    if not (isinstance(problem, MatMulProblem) and problem.src.dtype in _INT8):
        return False
    if problem.k <= 64 or problem.k % 64 == 0 or problem.m < 16 or problem.n < 24:
        return False
    if problem.wei.ndim > 3:
        return not _is_transposed(problem.wei)
    plain = problem.wei.strides is not None and not _is_transposed(problem.wei)
    return plain and attr.src_zero_point is None


def broadcast_b_4d(problem: Problem, attr: Attr) -> bool:
    """Match four or more dimensions, B of 1 where dst is longer."""
    if not isinstance(problem, MatMulProblem):
        return False
    leading = zip(problem.wei.dims[:-2], problem.batch, strict=True)
    return problem.wei.ndim > 3 and any(have == 1 < want for have, want in leading)


def per_row_operand_4d(problem: Problem, attr: Attr) -> bool:
    """Match four or more dimensions, a binary or prelu operand along M but not along N."""
    return any(
        _varies(dims, problem.dst, -2) and not _varies(dims, problem.dst, -1)
        for dims in _operands_4d(problem, attr)
    )


def mask_operand_4d(problem: Problem, attr: Attr) -> bool:
    """Match four or more dimensions, an operand along M and N but no batch: (1, ..., 1, M, N)."""
    return any(
        _varies(dims, problem.dst, -2)
        and _varies(dims, problem.dst, -1)
        and max(dims[:-2]) == 1 < max(problem.dst.dims[:-2])
        for dims in _operands_4d(problem, attr)
    )


def wei_scale_along_k(problem: Problem, attr: Attr) -> bool:
    """Match a scale per row of B, or per element, without groups."""
    scale = attr.wei_scale
    along_k = 1 << (problem.tensors["wei"].ndim - 2)
    return scale is not None and not scale.groups and bool(scale.mask & along_k)


def wei_scale_of_single_rows(problem: Problem, attr: Attr) -> bool:
    """Match a scale per row of B, or per element, in groups of one row or without groups."""
    scale = attr.wei_scale
    if scale is None or not scale.mask & 1 << (problem.tensors["wei"].ndim - 2):
        return False
    return len(scale.groups) < 2 or scale.groups[-2] == 1


def scale_groups(problem: Problem, attr: Attr) -> bool:
    """Match any groups; of those that the library accepts, (1, 1) and (32, 1) were seen."""
    return any(scale is not None and scale.groups for scale in (attr.src_scale, attr.wei_scale))


def src_scale_unit_groups(problem: Problem, attr: Attr) -> bool:
    """Match src scales in groups of one value."""
    scale = attr.src_scale
    return scale is not None and bool(scale.groups) and max(scale.groups) == 1


def scale_groups_along_n(problem: Problem, attr: Attr) -> bool:
    """Match groups of more than one column of B."""
    scale = attr.wei_scale
    return scale is not None and bool(scale.groups) and scale.groups[-1] > 1


# --- convolution and deconvolution --------------------------------------------------------------


def one_column_out(problem: Problem, attr: Attr) -> bool:
    """Match a kernel wider than 1 and a width stride above 1, when dst is one column of rows."""
    if not isinstance(problem, ConvProblem) or problem.spatial < 2:
        return False
    *others, width = problem.dst.dims[2:]
    wide = problem.window.kernel[-1] > 1 and problem.strides[-1] > 1
    return wide and width == 1 and max(others) > 1


def ragged_groups_with_src_zero_point(problem: Problem, attr: Attr) -> bool:
    """Match groups, but not depthwise, with src zero point and channels that 16 does not divide."""
    if not isinstance(problem, (ConvProblem, DeconvProblem)) or attr.src_zero_point is None:
        return False
    per_group = problem.ic // problem.groups
    return problem.groups > 1 and not problem.is_depthwise and per_group % 16 != 0


def risky_stride_with_src_zero_point(problem: Problem, attr: Attr) -> bool:
    """Match a risky stride with src zero point."""
    return attr.src_zero_point is not None and _risky_stride(problem)


def risky_stride_with_s8(problem: Problem, attr: Attr) -> bool:
    """Match a risky stride with s8 source."""
    return problem.tensors["src"].dtype == "s8" and _risky_stride(problem)


def kernel_below_stride(problem: Problem, attr: Attr) -> bool:
    """Match a kernel 2 or more shorter than the stride, with s8 source or src zero point.

    A dilated kernel counts by its reach. One shorter than the stride was always right.
    """
    if not isinstance(problem, DeconvProblem):
        return False
    steps = zip(problem.window.reach, problem.strides, strict=True)
    compensated = problem.src.dtype == "s8" or attr.src_zero_point is not None
    return compensated and any(stride - reach > 1 for reach, stride in steps)


def places_without_taps(problem: Problem, attr: Attr) -> bool:
    """Match several taps that stride over places of dst, where not just 0 is to be stored.

    Every such problem failed, whatever its types and sizes.
    """
    if not isinstance(problem, DeconvProblem) or math.prod(problem.window.kernel) == 1:
        return False
    steps = zip(problem.window.reach, problem.strides, strict=True)
    stored = problem.bias is not None or attr.post_ops or attr.dst_zero_point is not None
    return bool(stored) and any(stride > reach for reach, stride in steps)


def depthwise_wei_zero_point(problem: Problem, attr: Attr) -> bool:
    """Match depthwise weights with a zero point."""
    is_depthwise = isinstance(problem, ConvProblem) and problem.is_depthwise
    return is_depthwise and attr.wei_zero_point is not None


def bias_and_operand(problem: Problem, attr: Attr) -> bool:
    """Match a bias beside a binary operand; prelu, which is lowered to one, was not tried.

    Seen with 1, 3 and 4 output channels a group: with more, other kernels come first.
    """
    operands = any(isinstance(op, (BinaryPostOp, PReluPostOp)) for op in attr.post_ops)
    return operands and problem.tensors.get("bias") is not None


def int8_with_bf16_bias(problem: Problem, attr: Attr) -> bool:
    """Match 8-bit source and bf16 bias."""
    tensors = problem.tensors
    return tensors["src"].dtype in _INT8 and "bias" in tensors and tensors["bias"].dtype == "bf16"


def sum_with_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a sum beside a zero point, left padding, and channels that 4 does not divide.

    Seen with 3 channels and few rows, when the width is split between threads; how it is split
    depends on their number, so rows are not counted. Not seen with 4, 6, 7 and 16 channels.
    """
    if not isinstance(problem, ConvProblem) or problem.is_depthwise:
        return False
    shifted = attr.src_zero_point is not None or attr.dst_zero_point is not None
    has_sum = any(isinstance(op, SumPostOp) for op in attr.post_ops)
    ragged = (problem.ic // problem.groups) % 4 != 0
    return has_sum and shifted and ragged and problem.padding_lo[-1] > 0


def dilated_depthwise_sum(problem: Problem, attr: Attr) -> bool:
    """Match dilated depthwise with ragged channels and a sum with zero point beside other post-ops.

    Seen once, with 15 channels and the post-ops clip, sum with zero point, binary.
    """
    if not isinstance(problem, ConvProblem) or not problem.is_depthwise:
        return False
    shifted = any(isinstance(op, SumPostOp) and op.zero_point for op in attr.post_ops)
    ragged = problem.ic % 16 != 0 and max(problem.dilation) > 1
    return ragged and shifted and len(attr.post_ops) > 1


# --- the others ---------------------------------------------------------------------------------


def spatial_src_and_packed_wei(problem: Problem, attr: Attr) -> bool:
    """Match spatial dimensions, packed weights, channels of src together or left to the library."""
    if not isinstance(problem, InnerProductProblem) or problem.wei.strides is not None:
        return False
    src = problem.src
    return src.ndim > 2 and (src.strides is None or src.is_channels_last)


def per_channel_dst_scale(problem: Problem, attr: Attr) -> bool:
    """Match more than one dst scale."""
    return attr.dst_scale is not None and attr.dst_scale.mask != 0


def per_channel_zero_point(problem: Problem, attr: Attr) -> bool:
    """Match more than one src or dst zero point."""
    points = (attr.src_zero_point, attr.dst_zero_point)
    return any(point is not None and point.mask for point in points)


# --- words that several rows share --------------------------------------------------------------


def _risky_stride(problem: Problem) -> bool:
    """Tell whether some stride is 3 or more, or 2 with a kernel of neither 2, 3 nor 4.

    Grouped, stride 2 failed with a kernel of 3 as well. A dilated kernel counts by its reach.
    """
    if not isinstance(problem, DeconvProblem):
        return False
    right = (2, 4) if problem.groups > 1 else (2, 3, 4)
    steps = zip(problem.strides, problem.window.reach, strict=True)
    return any(stride > 2 or (stride == 2 and reach not in right) for stride, reach in steps)


def _is_transposed(wei: TensorSpec) -> bool:
    return wei.strides is not None and wei.strides[-2] == 1 and wei.strides[-1] != 1


def _operands_4d(problem: Problem, attr: Attr) -> Iterator[tuple[int, ...]]:
    """Give the dimensions of binary and prelu operands, when dst has four or more dimensions."""
    dst = problem.tensors["dst"].dims
    if len(dst) < 4:
        return
    for op in attr.post_ops:
        match op:
            case BinaryPostOp(src1=src1):
                yield src1.dims
            case PReluPostOp(mask=mask):
                yield tuple(dim if mask >> axis & 1 else 1 for axis, dim in enumerate(dst))


def _varies(dims: tuple[int, ...], dst: TensorSpec, axis: int) -> bool:
    return dims[axis] == dst.dims[axis] > 1
