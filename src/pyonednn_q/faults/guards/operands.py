"""On which post-ops the faults of the guard table show: operands, comparisons and sums."""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q.primitive.post_ops import (
    COMPARISONS,
    BinaryPostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem, PoolingProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem

_INT8 = ("u8", "s8")


def comparison(problem: Problem, attr: Attr) -> bool:
    """Match a comparison."""
    return any(isinstance(op, BinaryPostOp) and op.alg in COMPARISONS for op in attr.post_ops)


def comparison_of_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a comparison with more than one value, and channels that 16 does not divide.

    The channels of dst, or those of one group; the columns of a matmul.
    """
    return _compares_with_several(attr) and ragged(problem, 16)


def comparison_of_ragged_groups(problem: Problem, attr: Attr) -> bool:
    """Match groups with channels, of src or of dst, that 16 does not divide, and a comparison.

    Not depthwise, and not with one f32 value.
    """
    if not isinstance(problem, (ConvProblem, DeconvProblem)):
        return False
    if problem.groups == 1 or problem.is_depthwise:
        return False
    return any(channels % 16 for channels in problem.wei.dims[1:3]) and any(
        isinstance(op, BinaryPostOp)
        and op.alg in COMPARISONS
        and (max(op.src1.dims) > 1 or op.src1.dtype != "f32")
        for op in attr.post_ops
    )


def comparison_stored_as_u8(problem: Problem, attr: Attr) -> bool:
    """Match a comparison with more than one value, stored as u8.

    Fewer than eight values in a row were right, for those are not compared as a vector.
    """
    return _compares_with_several(attr) and problem.tensors["dst"].dtype == "u8"


def operand_of_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a binary or prelu operand, and channels that 8 does not divide.

    The channels of dst, or those of one group; the columns of a matmul.
    """
    return any(operands(problem, attr)) and ragged(problem, 8)


def operand_of_one_place(problem: Problem, attr: Attr) -> bool:
    """Match several images, one place of a row-major dst each, and an operand per channel.

    Such strides fit both orders of dimensions. Declared channels last, the same bytes are right.
    """
    if not isinstance(problem, (ConvProblem, DeconvProblem)) or problem.src.dtype not in _INT8:
        return False
    dst = problem.dst
    last = TensorSpec.channels_last(dst.dims, dst.dtype).strides
    if dst.dims[0] == 1 or max(dst.dims[2:]) > 1 or dst.strides in (None, last):
        return False
    return any(dims[1] > 1 and dims != dst.dims for dims in operands(problem, attr))


def depthwise_to_bf16(problem: Problem, attr: Attr) -> bool:
    """Match depthwise from u8 without zero point to bf16.

    Kernels of 1, 5 and 7, rows of 15 places and more, up to 33 channels; not seen with kernels of
    3, nor with 48 and 64 channels. Which registers are left over decides, so neither is looked at.
    """
    if not isinstance(problem, ConvProblem) or not problem.is_depthwise:
        return False
    types = problem.src.dtype, problem.dst.dtype
    return types == ("u8", "bf16") and attr.src_zero_point is None


def operand_of_gapped_rows(problem: Problem, attr: Attr) -> bool:
    """Match a binary or prelu operand, and gaps between the rows or the matrices of dst."""
    if not isinstance(problem, MatMulProblem):
        return False
    whole = TensorSpec(problem.dst.dims, problem.dst.dtype).nbytes
    return problem.dst.nbytes > whole and any(True for _ in operands(problem, attr))


def sum_with_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a sum beside a zero point, left padding, and channels that 4 does not divide.

    Seen with 3 channels and few rows, when the width is split between threads; how it is split
    depends on their number, so rows are not counted. Not seen with 4, 6, 7 and 16 channels.
    """
    if not isinstance(problem, ConvProblem) or problem.is_depthwise:
        return False
    shifted = attr.src_zero_point is not None or attr.dst_zero_point is not None
    has_sum = any(isinstance(op, SumPostOp) for op in attr.post_ops)
    ragged_input = (problem.ic // problem.groups) % 4 != 0
    return has_sum and shifted and ragged_input and problem.padding_lo[-1] > 0


def depthwise_sum(problem: Problem, attr: Attr) -> bool:
    """Match depthwise with a sum whose scale is not 1, or that has a zero point.

    Which shapes depends on how threads share the work: with two threads 8, 15, 16, 33 and 40
    channels failed, 24, 32 and 64 did not.
    """
    if not isinstance(problem, ConvProblem) or not problem.is_depthwise:
        return False
    sums = [op for op in attr.post_ops if isinstance(op, SumPostOp)]
    return any(op.scale != 1 or op.zero_point != 0 for op in sums)


def sum_in_f32(problem: Problem, attr: Attr) -> bool:
    """Match a sum in an f32 convolution.

    The earlier values are an operand that has to begin on 16 bytes. They do not where 4 does not
    divide the channels, nor anywhere in a caller's `out` that begins elsewhere.
    """
    if not isinstance(problem, ConvProblem):
        return False
    return problem.dst.dtype == "f32" and any(isinstance(op, SumPostOp) for op in attr.post_ops)


def pooled_beyond_16_bits(problem: Problem, attr: Attr) -> bool:
    """Match means stored as u8 whose post-ops may lead beyond 32767."""
    return _is_mean(problem, "u8") and _reach(attr) >= 2.0**15


def pooled_beyond_32_bits(problem: Problem, attr: Attr) -> bool:
    """Match means stored as u8 or s8 whose post-ops may lead to 2^31 or beyond."""
    return _is_mean(problem, "u8", "s8") and _reach(attr) >= 2.0**31


# --- words that several rows share --------------------------------------------------------------


def operands(problem: Problem, attr: Attr) -> Iterator[tuple[int, ...]]:
    """Give the dimensions of binary and prelu operands."""
    dst = problem.tensors["dst"].dims
    for op in attr.post_ops:
        match op:
            case BinaryPostOp(src1=src1):
                yield src1.dims
            case PReluPostOp(mask=mask):
                yield tuple(dim if mask >> axis & 1 else 1 for axis, dim in enumerate(dst))


def _compares_with_several(attr: Attr) -> bool:
    """Tell whether a comparison has an operand of more than one value."""
    return any(
        isinstance(op, BinaryPostOp) and op.alg in COMPARISONS and max(op.src1.dims) > 1
        for op in attr.post_ops
    )


def ragged(problem: Problem, block: int) -> bool:
    """Tell whether the last block of dst's channels, or of a group's, is not full."""
    axis = -1 if isinstance(problem, MatMulProblem) else 1
    channels = problem.tensors["dst"].dims[axis]
    groups = problem.groups if isinstance(problem, (ConvProblem, DeconvProblem)) else 1
    return channels // groups % block != 0


def _is_mean(problem: Problem, *stored: str) -> bool:
    if not isinstance(problem, PoolingProblem):
        return False
    return problem.alg != "max" and problem.dst.dtype in stored


def _reach(attr: Attr) -> float:
    """Return the largest magnitude that the post-ops may make of a code."""
    reach = 255.0
    for op in attr.post_ops:
        match op:
            case EltwisePostOp(alg="clip" | "clip_v2", alpha=lo, beta=hi):
                reach = max(abs(lo), abs(hi))
            case EltwisePostOp(alg="linear", alpha=alpha, beta=beta):
                reach = abs(alpha) * reach + abs(beta)
            case EltwisePostOp(alg="relu", alpha=alpha):
                reach *= max(1.0, abs(alpha))
            case EltwisePostOp(alg="round" | "abs"):
                pass
            case EltwisePostOp(alg="tanh" | "logistic" | "hardsigmoid"):
                reach = 1.0
            case _:
                reach = math.inf
    return reach
