"""On which convolutions and deconvolutions the faults of the guard table show.

With what is known about where each fault ends. Every condition holds wherever a failure was seen,
and is asked of problems of its row's kinds.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.guard import condition
from pyonednn_q.primitive.post_ops import SumPostOp

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.windowed import WindowedProblem


@condition("strided")
def one_column_out(problem: ConvProblem, attr: Attr) -> bool:
    """Match a kernel wider than 1 and a width stride above 1, when dst is one column of rows."""
    if problem.spatial < 2:
        return False
    *others, width = problem.dst.dims[2:]
    wide = problem.window.kernel[-1] > 1 and problem.stride[-1] > 1
    return wide and width == 1 and max(others) > 1


@condition("one_channel", "strided")
def one_column_out_of_one_channel(problem: ConvProblem, attr: Attr) -> bool:
    """Match a kernel wider than 1, a width stride above 1, a column of dst, 1 channel a group."""
    return one_column_out.rest(problem, attr)


@condition()
def window_outside(problem: WindowedProblem, attr: Attr) -> bool:
    """Match a window that touches no element of src: all of its taps lie in the padding.

    A deconvolution of stride 1 is a convolution with the rest of the reach as padding, which is
    less than the reach.
    """
    window = problem.window
    for axis, (reach, length) in enumerate(zip(window.reach, problem.src.dims[2:], strict=True)):
        widest = max(window.padding_lo[axis], window.padding_hi[axis])
        # Taps that lie before src and behind it, and none between, have a gap as long as src.
        if widest < reach and window.dilation[axis] <= length:
            continue
        if not problem.spreads(axis) and (problem.reached(axis) < 0).all(axis=1).any():
            return True
    return False


@condition("shifted")
def shifted_window_outside(problem: ConvProblem, attr: Attr) -> bool:
    """Match such a window with s8 source or src zero point."""
    return window_outside.rest(problem, attr)


@condition("src_zero_point", "grouped")
def ragged_groups_with_src_zero_point(problem: WindowedProblem, attr: Attr) -> bool:
    """Match src zero point and groups of channels that 16 does not divide, or 16 in wide kernels.

    Depthwise is right. Of 16 channels, kernels wider than 3 failed, but not in a deconvolution that
    strides; 32, 48 and 64 were right.
    """
    per_group = problem.ic // problem.groups
    strides = any(problem.spreads(axis) for axis in range(problem.spatial))
    wide = problem.window.kernel[-1] > 3 and not strides
    risky = per_group % 16 != 0 or (per_group == 16 and wide)
    return not problem.is_depthwise and risky


@condition("src_zero_point")
def beyond_src_with_src_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match src zero point and a kernel that reaches further than src is long."""
    dims = zip(problem.src.dims[2:], problem.window.reach, strict=True)
    return any(reach > length for length, reach in dims)


@condition("src_zero_point", "padded")
def even_rows_of_odd_in_padding(problem: ConvProblem, attr: Attr) -> bool:
    """Match src zero point, dst of an odd number of rows, the last 4, 6, ... of which meet padding.

    Rows are computed in pairs, and what the padding takes off a sum is one row amiss.
    """
    if problem.spatial < 2:
        return False
    window, rows = problem.window, problem.dst.dims[-2]
    stride, lo = window.stride[-2], window.padding_lo[-2]
    beyond = (rows - 1) * stride + window.reach[-2] - lo - problem.src.dims[-2]
    meeting = min(rows, -(-beyond // stride))
    return rows % 2 == 1 and meeting > 2 and meeting % 2 == 0


@condition("pointwise")
def packed_depth(problem: ConvProblem, attr: Attr) -> bool:
    """Match 1x1, a multiple of 64 input channels, and output channels that 16 does not divide."""
    ic, oc = problem.ic // problem.groups, problem.oc // problem.groups
    return ic % 64 == 0 and oc % 16 != 0


@condition("shifted")
def transposed_wei(problem: ConvProblem, attr: Attr) -> bool:
    """Match s8 or src zero point, and weights that are transposed in whole blocks.

    Blocks of 16 taps; of 64 input channels in a 1x1 kernel, with 8 outputs or a number that 4 does
    not divide; of 8 input channels, more than 128, in a 1x1 kernel with 8 outputs; and weights of 8
    outputs and 8 numbers each. The sums that make up for the source's
    shift are lost on the way. Of 16 taps more is right than is not: with 8 outputs and 16.
    """
    taps, channels = math.prod(problem.window.kernel), problem.ic // problem.groups
    odd = problem.oc == 8 or problem.oc % 4 != 0
    deep = taps == 1 and channels % 64 == 0 and odd
    wide = taps == 1 and channels % 8 == 0 and channels > 128
    eight = problem.oc == 8 and (wide or taps * channels == 8)
    return taps % 16 == 0 or deep or eight


@condition()
def not_channels_last(problem: Problem, attr: Attr) -> bool:
    """Match src or dst that a matrix product does not take as channels last, though it may run.

    Where one channel or one place makes two layouts the same, strides tell which is meant.
    """
    for spec in (problem.tensors["src"], problem.tensors["dst"]):
        if spec.strides is not None and spec.strides[-1] != spec.dims[1]:
            return True
    return False


# --- deconvolution ------------------------------------------------------------------------------


@condition()
def places_without_taps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match taps that stride over places of dst, where not just 0 is to be stored.

    A dilated kernel counts by its reach. Square kernels of 1 were right, 1-D ones with padding
    were not: all match.
    """
    stored = problem.bias is not None or attr.post_ops or attr.dst_zero_point is not None
    return bool(stored) and _shortfall(problem) > 0


@condition("shifted", "strided")
def kernel_below_stride(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a kernel 2 or more shorter than the stride, with s8 source or src zero point.

    A dilated kernel counts by its reach. One shorter than the stride was always right.
    """
    return _shortfall(problem) > 1


@condition()
def beyond_taps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a dst that ends behind the last tap of the last place of src."""
    window = problem.window
    starts = zip(problem.src.dims[2:], window.stride, window.padding_lo, strict=True)
    ends = zip(starts, window.reach, problem.dst.dims[2:], strict=True)
    return any(
        out > (length - 1) * stride - lo + reach for (length, stride, lo), reach, out in ends
    )


@condition("src_zero_point", "strided")
def risky_stride_with_src_zero_point(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a risky stride with src zero point.

    A stride of 3 or more, of 2 with a kernel of neither 2, 3 nor 4 (grouped, or with a single
    place of src: 2 nor 4), with padding, or with a dst longer than the least.
    """
    return _risky_stride(problem)


@condition("src s8", "strided")
def risky_stride_with_s8(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a risky stride with s8 source.

    A stride of 3 or more, of 2 with a kernel of neither 2, 3 nor 4 (grouped, or with a single
    place of src: 2 nor 4), with padding, or with a dst longer than the least.
    """
    return _risky_stride(problem)


# --- blocks of channels and of pixels -----------------------------------------------------------


@condition("src s8", "src_zero_point", "one_channel")
def one_channel_in_odd_blocks(problem: WindowedProblem, attr: Attr) -> bool:
    """Match s8 with zero point, one input channel a group, blocks of outputs that 4 divides not.

    Blocks are of 16 output channels; one and two of them were right.
    """
    blocks = _blocks(problem)
    return blocks > 2 and blocks % 4 != 0


@condition("shifted", "one_channel", "grouped")
def one_channel_groups_in_odd_blocks(problem: ConvProblem, attr: Attr) -> bool:
    """Match groups of one input channel and 17 outputs or more, s8 source or src zero point.

    Right were dilated rows; 49 to 64 outputs on three threads at most; and 17 to 32 of them where
    windows cover all of src and nothing else: neither padding nor places that a stride leaves over.
    All but dilated ones match: a problem does not know its threads.
    """
    return problem.dilation[-1] == 1 and _blocks(problem) > 1


@condition("src s8", "one_channel")
def one_channel_padded(problem: WindowedProblem, attr: Attr) -> bool:
    """Match s8, one input channel a group, a window of more dimensions than one, padded width.

    Right were windows of one dimension, and width padded on all sides together with height.
    """
    kernel, (lo, hi) = problem.window.kernel, problem.flat_padding
    return max(lo[-1], hi[-1]) > 0 and kernel[-1] > 1 and max(kernel[:-1], default=1) > 1


@condition("pointwise", "src s8", "src_zero_point")
def pointwise_s8_with_src_zero_point(problem: WindowedProblem, attr: Attr) -> bool:
    """Match kernels of 1, and s8 source with zero point."""
    return True


@condition("int8")
def five_pixels(problem: Problem, attr: Attr) -> bool:
    """Match int8 and five places in dst, in whatever shape."""
    return math.prod(problem.tensors["dst"].dims[2:]) == 5


@condition("src_zero_point", "dilated", "padded")
def dilated_and_padded_with_src_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match src zero point, a dilated window, and padding."""
    return True


@condition("int8", "pointwise", "strided")
def strided_1x1_of_eighths(problem: ConvProblem, attr: Attr) -> bool:
    """Match int8, one tap, a stride, and input channels a group that 8 does not divide."""
    return problem.ic // problem.groups % 8 != 0


@condition("int8", "pointwise", "strided")
def strided_1x1_of_sixteenths(problem: ConvProblem, attr: Attr) -> bool:
    """Match int8, one tap, a stride, and input channels a group that 16 does not divide."""
    return problem.ic // problem.groups % 16 != 0


@condition("depthwise", "shifted")
def eight_taps(problem: WindowedProblem, attr: Attr) -> bool:
    """Match depthwise with kernels of 8 taps, or 192 and more that 64 divides; s8 or zero point.

    Their weights are transposed in blocks of 8 by 8, and the sums that make up for the source's
    shift are lost on the way.
    """
    taps = math.prod(problem.window.kernel)
    return taps == 8 or (taps > 128 and taps % 64 == 0)


# --- data types and attributes ------------------------------------------------------------------


@condition("depthwise", "wei_zero_point")
def depthwise_wei_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match depthwise weights with a zero point."""
    return True


@condition("src f32")
def f32_stored_smaller(problem: Problem, attr: Attr) -> bool:
    """Match f32 source, and dst of 16 bits."""
    return problem.tensors["dst"].dtype in {"bf16", "f16"}


@condition("int8", "bias bf16")
def int8_with_bf16_bias(problem: Problem, attr: Attr) -> bool:
    """Match 8-bit source and bf16 bias."""
    return True


# --- words that several rows share --------------------------------------------------------------


def _shortfall(problem: DeconvProblem) -> int:
    """Return by how much a stride exceeds the kernel's reach at most."""
    steps = zip(problem.window.reach, problem.stride, strict=True)
    return max(0, *(stride - reach for reach, stride in steps))


def _blocks(problem: WindowedProblem) -> int:
    """Return the number of blocks of 16 that a group's output channels fill."""
    return -(-problem.oc // problem.groups // 16)


def _risky_stride(problem: DeconvProblem) -> bool:
    """Tell whether some stride is 3 or more, or 2 with more than a plain kernel of 2, 3 or 4.

    More is padding, a dst longer than the least, and for a kernel of 3 groups or a single place of
    src. A dilated kernel counts by its reach. With padding two threads fill the compensation at
    once, and now and then one reads too early.
    """
    window, lengths = problem.window, problem.src.dims[2:]
    padded = any((*window.padding_lo, *window.padding_hi))
    if padded or problem.dst.dims[2:] != problem.least_lengths:
        return True
    steps = zip(problem.stride, window.reach, lengths, strict=True)
    return any(
        stride > 2
        or (stride == 2 and reach not in (2, 3, 4))
        or (stride == 2 and reach == 3 and (problem.groups > 1 or length == 1))
        for stride, reach, length in steps
    )


@condition("src f32", "wei bf16")
def float_by_bf16_stored_otherwise(problem: WindowedProblem, attr: Attr) -> bool:
    """Match f32 by bf16 that is stored as anything but f32."""
    return problem.dst.dtype != "f32"


@condition("padded")
def padding_left_over(problem: ConvProblem, attr: Attr) -> bool:
    """Match windows that leave over at the end of rows what two places or more of padding add.

    Their rows are as long with padding as without, so that oneDNN takes them for unpadded: sums of
    products that are not finished yet go into dst itself, though a sum is to read it, or its type
    holds less than 32 bits. One place of padding was right, and so is a dst of a single column.
    """
    window, columns = problem.window, problem.dst.dims[-1]
    covered = (columns - 1) * window.stride[-1] + window.reach[-1]
    if columns == 1 or window.padding_lo[-1] < 2 or covered != problem.src.dims[-1]:
        return False
    summed = any(isinstance(op, SumPostOp) for op in attr.post_ops)
    return summed or dtypes.bits(problem.dst.dtype) < 32


@condition("comparison", "pointwise", "int8")
def compared_product_of_one_tap(problem: DeconvProblem, attr: Attr) -> bool:
    """Match int8 deconvolution of one tap with a comparison among the post-ops."""
    return True
