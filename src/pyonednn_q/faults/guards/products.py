"""Conditions of faults: products of matrices, and operands of post-ops.

With what is known about where each fault ends. Every condition holds wherever a failure was seen,
and is asked of problems of its row's kinds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.guard import condition
from pyonednn_q.primitive.post_ops import (
    COMPARISONS,
    BinaryPostOp,
    EltwisePostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.primitive.tensor import Operation, TensorSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.convolution import ConvProblem
    from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
    from pyonednn_q.primitive.problem import PoolingProblem, Problem
    from pyonednn_q.primitive.windowed import WindowedProblem

# ruff: noqa: ARG001 - all conditions have one signature


@condition("int8")
def k_tail_with_plain_b(problem: MatMulProblem, attr: Attr) -> bool:
    """Match K > 64, no multiple of 64; B row-major and no src zero point, or 4 dimensions.

    Seen at M >= 31 and N >= 48, not at K = 72, 80, 96. The reason is not understood, so K is not
    narrowed and half of M and N is kept as a margin. M counts over the batch where B does not
    change. With four dimensions packed B failed too, and whether a zero point helps was not tried.
    """
    leading = zip(problem.wei.dims[:-2], problem.batch, strict=True)
    rows = problem.m * math.prod(length for have, length in leading if have == 1)
    if problem.k <= 64 or problem.k % 64 == 0 or rows < 16 or problem.n < 24:
        return False
    if problem.wei.ndim > 3:
        return not _is_transposed(problem.wei)
    plain = problem.wei.strides is not None and not _is_transposed(problem.wei)
    return plain and attr.src_zero_point is None


@condition()
def k_tail_with_padded_src(problem: MatMulProblem, attr: Attr) -> bool:
    """Match rows of src with gaps between them, and K that 64 bytes of a row do not divide."""
    if problem.src.strides is None:
        return False
    row = 64 * 8 // dtypes.bits(problem.src.dtype)
    return problem.src.strides[-2] > problem.k > 1 and problem.k % row != 0


@condition()
def batches_at_two_steps(problem: MatMulProblem, attr: Attr) -> bool:
    """Match batches of several dimensions that one step does not walk through, of any tensor.

    One step does where each dimension lies as far apart as the next one is long.
    """
    return any(map(_walks_in_two, (problem.src, problem.wei, problem.dst)))


@condition("src_scale", "wei_scale")
def half_wei_scale(problem: Problem, attr: Attr) -> bool:
    """Match a src scale beside one bf16 or f16 scale of all weights."""
    scale = attr.wei_scale
    return scale is not None and scale.mask == 0 and scale.dtype != "f32"


@condition()
def broadcast_b_4d(problem: MatMulProblem, attr: Attr) -> bool:
    """Match (n, 1, M, K) by (1, 1, K, N): four dimensions, and no batch but one that B lacks.

    Other batches, and five dimensions, were right.
    """
    if problem.wei.ndim != 4:
        return False
    first, second = problem.batch
    return problem.wei.dims[0] == 1 < first and second == 1


@condition("wei_zero_point")
def batch_of_single_rows(problem: MatMulProblem, attr: Attr) -> bool:
    """Match a row a batch that is stored as a column, one B for all, with a zero point."""
    src, wei = problem.src, problem.wei
    as_column = src.strides is not None and src.dims[-2] == src.strides[-2] == 1 < src.dims[-1]
    return as_column and max(src.dims[:-2], default=1) > max(wei.dims[:-2], default=1) == 1


@condition()
def batch_of_ragged_rows(problem: MatMulProblem, attr: Attr) -> bool:
    """Match such rows, zero point or not, and K that four does not divide; of 16 bits, two."""
    together = 32 // dtypes.bits(problem.src.dtype)
    return problem.k % together != 0 and batch_of_single_rows.rest(problem, attr)


@condition("src s8")
def in_shares(problem: MatMulProblem, attr: Attr) -> bool:
    """Match s8: where a thread's share of the result ends, one element of a row may be left."""
    return True


@condition("operand")
def per_row_operand_4d(problem: Problem, attr: Attr) -> bool:
    """Match four or more dimensions, a binary or prelu operand along M but not along N."""
    return any(
        _varies(dims, problem.dst, -2) and not _varies(dims, problem.dst, -1)
        for dims in _operands_4d(problem, attr)
    )


@condition("operand")
def mask_operand_4d(problem: Problem, attr: Attr) -> bool:
    """Match four or more dimensions, an operand along M and N but no batch: (1, ..., 1, M, N)."""
    return any(
        _varies(dims, problem.dst, -2)
        and _varies(dims, problem.dst, -1)
        and max(dims[:-2]) == 1 < max(problem.dst.dims[:-2])
        for dims in _operands_4d(problem, attr)
    )


@condition("wei_scale")
def wei_scale_of_single_rows(problem: Problem, attr: Attr) -> bool:
    """Match a scale per row of B, or per element, in groups of one row or without groups."""
    scale = attr.wei_scale
    if scale is None or not scale.mask & 1 << (problem.tensors["wei"].ndim - 2):
        return False
    return len(scale.groups) < 2 or scale.groups[-2] == 1


@condition()
def scale_groups(problem: Problem, attr: Attr) -> bool:
    """Match any groups; of those that the library accepts, (1, 1) and (32, 1) were seen."""
    return any(scale is not None and scale.groups for scale in (attr.src_scale, attr.wei_scale))


@condition("src_scale")
def src_scale_unit_groups(problem: Problem, attr: Attr) -> bool:
    """Match src scales in groups of one value."""
    scale = attr.src_scale
    return scale is not None and bool(scale.groups) and max(scale.groups) == 1


@condition("wei_scale")
def scale_groups_along_n(problem: Problem, attr: Attr) -> bool:
    """Match groups of more than one column of B."""
    scale = attr.wei_scale
    return scale is not None and bool(scale.groups) and scale.groups[-1] > 1


@condition()
def bare_nibbles(problem: MatMulProblem, attr: Attr) -> bool:
    """Match bytes by 4-bit weights to f32, without scale, zero point, bias and post-op."""
    is_bare = problem.bias is None and not attr.post_ops and not attr.names
    of_codes = problem.src.dtype in {"u8", "s8"} and problem.wei.dtype in {"s4", "u4"}
    return is_bare and of_codes and problem.dst.dtype == "f32"


@condition()
def nibbles_of_one_row(problem: MatMulProblem, attr: Attr) -> bool:
    """Match 4-bit weights of a single row and an odd number of columns, but not one."""
    is_nibble = problem.wei.dtype in {"s4", "u4"}
    return is_nibble and problem.k == 1 and problem.n % 2 == 1 and problem.n > 1


# --- the others ---------------------------------------------------------------------------------


@condition()
def spatial_src_and_packed_wei(problem: InnerProductProblem, attr: Attr) -> bool:
    """Match spatial dimensions, packed weights, channels of src together or left to the library."""
    src, wei = problem.src, problem.wei
    is_last = src.strides is None or src.is_channels_last
    return wei.strides is None and src.ndim > 2 and is_last


@condition()
def spatial_src_and_one_output(problem: InnerProductProblem, attr: Attr) -> bool:
    """Match the same with one output channel."""
    return spatial_src_and_packed_wei.rest(problem, attr) and problem.tensors["dst"].dims[1] == 1


@condition("dst_scale")
def per_channel_dst_scale(problem: Problem, attr: Attr) -> bool:
    """Match more than one dst scale."""
    return attr.dst_scale is not None and attr.dst_scale.mask != 0


@condition()
def per_channel_zero_point(problem: Problem, attr: Attr) -> bool:
    """Match more than one src or dst zero point."""
    points = (attr.src_zero_point, attr.dst_zero_point)
    return any(point is not None and point.mask for point in points)


# --- words that several rows share --------------------------------------------------------------


def _is_transposed(wei: TensorSpec) -> bool:
    return wei.strides is not None and wei.strides[-2] == 1 and wei.strides[-1] != 1


def _operands_4d(problem: Problem, attr: Attr) -> Iterator[tuple[int, ...]]:
    """Give the dimensions of binary and prelu operands, when dst has four or more dimensions."""
    return operands(problem, attr) if problem.tensors["dst"].ndim > 3 else iter(())


def _varies(dims: tuple[int, ...], dst: TensorSpec, axis: int) -> bool:
    return dims[axis] == dst.dims[axis] > 1


def _walks_in_two(spec: TensorSpec) -> bool:
    if spec.strides is None:
        return False
    pairs = zip(spec.dims[:-3], spec.strides[:-3], spec.dims[1:], spec.strides[1:], strict=False)
    return any(dim > 1 and step != inner * by for dim, step, inner, by in pairs)


@condition("comparison")
def comparison(problem: Problem, attr: Attr) -> bool:
    """Match a comparison."""
    return True


@condition("comparison")
def comparison_of_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a comparison with more than one value, and channels that 16 does not divide.

    The channels of dst, or those of one group; the columns of a matmul.
    """
    return _compares_with_several(attr) and ragged(problem, 16)


@condition("comparison", "grouped")
def comparison_of_ragged_groups(problem: WindowedProblem, attr: Attr) -> bool:
    """Match groups with channels, of src or of dst, that 16 does not divide, and a comparison.

    Not depthwise, and not with one f32 value.
    """
    if problem.is_depthwise:
        return False
    return any(channels % 16 for channels in problem.wei.dims[1:3]) and any(
        isinstance(op, BinaryPostOp)
        and op.alg in COMPARISONS
        and (max(op.src1.dims) > 1 or op.src1.dtype != "f32")
        for op in attr.post_ops
    )


@condition("comparison", "dst u8")
def comparison_stored_as_u8(problem: Problem, attr: Attr) -> bool:
    """Match a comparison with more than one value, stored as u8.

    Fewer than eight values in a row were right, for those are not compared as a vector.
    """
    return _compares_with_several(attr)


@condition("operand")
def operand_of_ragged_channels(problem: Problem, attr: Attr) -> bool:
    """Match a binary or prelu operand, and channels that 8 does not divide.

    The channels of dst, or those of one group; the columns of a matmul.
    """
    return ragged(problem, 8)


@condition("operand", "int8")
def operand_of_one_place(problem: WindowedProblem, attr: Attr) -> bool:
    """Match several images, one place of a row-major dst each, and an operand per channel.

    Such strides fit both orders of dimensions. Declared channels last, the same bytes are right.
    """
    dst = problem.dst
    last = TensorSpec.channels_last(dst.dims, dst.dtype).strides
    if dst.dims[0] == 1 or max(dst.dims[2:]) > 1 or dst.strides in (None, last):
        return False
    return any(dims[1] > 1 and dims != dst.dims for dims in operands(problem, attr))


@condition("depthwise", "src u8", "dst bf16")
def depthwise_to_bf16(problem: ConvProblem, attr: Attr) -> bool:
    """Match depthwise from u8 without zero point to bf16.

    Kernels of 1, 5 and 7, rows of 15 places and more, up to 33 channels; not seen with kernels of
    3, nor with 48 and 64 channels. Which registers are left over decides, so neither is looked at.
    """
    return attr.src_zero_point is None


@condition("operand")
def operand_of_gapped_rows(problem: MatMulProblem, attr: Attr) -> bool:
    """Match a binary or prelu operand, and gaps between the rows or the matrices of dst."""
    return problem.dst.nbytes > TensorSpec(problem.dst.dims, problem.dst.dtype).nbytes


@condition("sum", "padded")
def sum_with_ragged_channels(problem: ConvProblem, attr: Attr) -> bool:
    """Match a sum beside a zero point, left padding, and channels that 4 does not divide.

    Seen with 3 channels and few rows, when the width is split between threads; how it is split
    depends on their number, so rows are not counted. Not seen with 4, 6, 7 and 16 channels.
    """
    if problem.is_depthwise:
        return False
    shifted = attr.src_zero_point is not None or attr.dst_zero_point is not None
    ragged_input = (problem.ic // problem.groups) % 4 != 0
    return shifted and ragged_input and problem.padding_lo[-1] > 0


@condition("sum", "depthwise")
def depthwise_sum(problem: ConvProblem, attr: Attr) -> bool:
    """Match depthwise with a sum whose scale is not 1, or that has a zero point.

    Which shapes depends on how threads share the work: with two threads 8, 15, 16, 33 and 40
    channels failed, 24, 32 and 64 did not.
    """
    sums = [op for op in attr.post_ops if isinstance(op, SumPostOp)]
    return any(op.scale != 1 or op.zero_point != 0 for op in sums)


@condition("sum", "dst f32")
def sum_in_f32(problem: ConvProblem, attr: Attr) -> bool:
    """Match a sum in an f32 convolution.

    The earlier values are an operand that has to begin on 16 bytes. They do not where 4 does not
    divide the channels, nor anywhere in a caller's `out` that begins elsewhere.
    """
    return True


@condition()
def pooled_beyond_16_bits(problem: PoolingProblem, attr: Attr) -> bool:
    """Match means stored as u8 whose post-ops may lead beyond 32767."""
    return _is_mean(problem, "u8") and _reach(attr) >= 2.0**15


@condition()
def pooled_beyond_32_bits(problem: PoolingProblem, attr: Attr) -> bool:
    """Match means stored as u8 or s8 whose post-ops may lead to 2^31 or beyond."""
    return _is_mean(problem, "u8", "s8") and _reach(attr) >= 2.0**31


# --- words that several rows share --------------------------------------------------------------


def operands(problem: Operation, attr: Attr) -> Iterator[tuple[int, ...]]:
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
    binaries = (op for op in attr.post_ops if isinstance(op, BinaryPostOp))
    return any(op.alg in COMPARISONS and max(op.src1.dims) > 1 for op in binaries)


def ragged(problem: Problem, block: int) -> bool:
    """Tell whether the last block of dst's channels, or of a group's, is not full."""
    return problem.tensors["dst"].dims[problem.channel_axis] // problem.groups % block != 0


def _is_mean(problem: PoolingProblem, *stored: str) -> bool:
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
