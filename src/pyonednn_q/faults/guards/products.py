"""On which products, and on which attributes, the faults of the guard table show.

With what is known about where each fault ends. Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.operands import operands
from pyonednn_q.primitive.problem import InnerProductProblem, MatMulProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import TensorSpec

_INT8 = ("u8", "s8")


def k_tail_with_plain_b(problem: Problem, attr: Attr) -> bool:
    """Match K > 64, no multiple of 64; B row-major and no src zero point, or 4 dimensions.

    Seen at M >= 31 and N >= 48, not at K = 72, 80, 96. The reason is not understood, so K is not
    narrowed and half of M and N is kept as a margin. M counts over the batch where B does not
    change. With four dimensions packed B failed too, and whether a zero point helps was not tried.
    """
    if not (isinstance(problem, MatMulProblem) and problem.src.dtype in _INT8):
        return False
    leading = zip(problem.wei.dims[:-2], problem.batch, strict=True)
    rows = problem.m * prod(length for have, length in leading if have == 1)
    if problem.k <= 64 or problem.k % 64 == 0 or rows < 16 or problem.n < 24:
        return False
    if problem.wei.ndim > 3:
        return not _is_transposed(problem.wei)
    plain = problem.wei.strides is not None and not _is_transposed(problem.wei)
    return plain and attr.src_zero_point is None


def k_tail_with_padded_src(problem: Problem, attr: Attr) -> bool:
    """Match rows of src with gaps between them, and K that 64 bytes of a row do not divide."""
    if not isinstance(problem, MatMulProblem) or problem.src.strides is None:
        return False
    row = 64 * 8 // dtypes.bits(problem.src.dtype)
    return problem.src.strides[-2] > problem.k > 1 and problem.k % row != 0


def batches_at_two_steps(problem: Problem, attr: Attr) -> bool:
    """Match batches of several dimensions that one step does not walk through, of any tensor.

    One step does where each dimension lies as far apart as the next one is long.
    """
    if not isinstance(problem, MatMulProblem):
        return False
    return any(map(_walks_in_two, (problem.src, problem.wei, problem.dst)))


def half_wei_scale(problem: Problem, attr: Attr) -> bool:
    """Match a src scale beside one bf16 or f16 scale of all weights."""
    scale = attr.wei_scale
    half = scale is not None and scale.mask == 0 and scale.dtype != "f32"
    return attr.src_scale is not None and half


def broadcast_b_4d(problem: Problem, attr: Attr) -> bool:
    """Match (n, 1, M, K) by (1, 1, K, N): four dimensions, and no batch but one that B lacks.

    Other batches, and five dimensions, were right.
    """
    if not isinstance(problem, MatMulProblem) or problem.wei.ndim != 4:
        return False
    first, second = problem.batch
    return problem.wei.dims[0] == 1 < first and second == 1


def batch_of_single_rows(problem: Problem, attr: Attr) -> bool:
    """Match a row a batch that is stored as a column, one B for all, with a zero point."""
    if not isinstance(problem, MatMulProblem) or attr.wei_zero_point is None:
        return False
    src, wei = problem.src, problem.wei
    as_column = src.strides is not None and src.dims[-2] == src.strides[-2] == 1 < src.dims[-1]
    return as_column and max(src.dims[:-2], default=1) > max(wei.dims[:-2], default=1) == 1


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


def bare_nibbles(problem: Problem, attr: Attr) -> bool:
    """Match u8 by 4-bit weights to f32, without scale, zero point, bias and post-op."""
    if not isinstance(problem, MatMulProblem) or problem.bias is not None:
        return False
    is_bare = not attr.post_ops and not attr.names
    types = (problem.src.dtype, problem.wei.dtype, problem.dst.dtype)
    return is_bare and types in {("u8", "s4", "f32"), ("u8", "u4", "f32")}


def nibbles_of_one_row(problem: Problem, attr: Attr) -> bool:
    """Match 4-bit weights of a single row and an odd number of columns, but not one."""
    if not isinstance(problem, MatMulProblem) or problem.wei.dtype not in ("s4", "u4"):
        return False
    return problem.k == 1 and problem.n % 2 == 1 and problem.n > 1


# --- the others ---------------------------------------------------------------------------------


def spatial_src_and_packed_wei(problem: Problem, attr: Attr) -> bool:
    """Match spatial dimensions, packed weights, channels of src together or left to the library."""
    if not isinstance(problem, InnerProductProblem) or problem.wei.strides is not None:
        return False
    src = problem.src
    return src.ndim > 2 and (src.strides is None or src.is_channels_last)


def spatial_src_and_one_output(problem: Problem, attr: Attr) -> bool:
    """Match the same with one output channel."""
    return spatial_src_and_packed_wei(problem, attr) and problem.tensors["dst"].dims[1] == 1


def per_channel_dst_scale(problem: Problem, attr: Attr) -> bool:
    """Match more than one dst scale."""
    return attr.dst_scale is not None and attr.dst_scale.mask != 0


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
