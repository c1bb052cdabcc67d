"""On which convolutions and deconvolutions the faults of the guard table show.

With what is known about where each fault ends. Every condition holds wherever a failure was seen,
and is asked of problems of its row's kinds.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.convolution import ConvProblem, DeconvProblem
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.tensor import Operation
    from pyonednn_q.primitive.windowed import WindowedProblem

_INT8 = ("u8", "s8")


def one_column_out(problem: ConvProblem, attr: Attr) -> bool:
    """Match a kernel wider than 1 and a width stride above 1, when dst is one column of rows."""
    if problem.spatial < 2:
        return False
    *others, width = problem.dst.dims[2:]
    wide = problem.window.kernel[-1] > 1 and problem.stride[-1] > 1
    return wide and width == 1 and max(others) > 1


def one_column_out_of_one_channel(problem: ConvProblem, attr: Attr) -> bool:
    """Match a kernel wider than 1, a width stride above 1, a column of dst, 1 channel a group."""
    return problem.ic == problem.groups and one_column_out(problem, attr)


def window_outside(problem: WindowedProblem, attr: Attr) -> bool:
    """Match a window that touches no element of src: all of its taps lie in the padding.

    A deconvolution of stride 1 is a convolution with the rest of the reach as padding.
    """
    axes = (axis for axis in range(problem.spatial) if not problem.spreads(axis))
    return any(bool((problem.reached(axis) < 0).all(axis=1).any()) for axis in axes)


def shifted_window_outside(problem: ConvProblem, attr: Attr) -> bool:
    """Match such a window with s8 source or src zero point."""
    return _is_shifted(problem, attr) and window_outside(problem, attr)


def ragged_groups_with_src_zero_point(problem: WindowedProblem, attr: Attr) -> bool:
    """Match src zero point and groups of channels that 16 does not divide, or 16 in wide kernels.

    Depthwise is right. Of 16 channels, kernels wider than 3 failed, but not in a deconvolution that
    strides; 32, 48 and 64 were right.
    """
    if attr.src_zero_point is None:
        return False
    per_group = problem.ic // problem.groups
    strides = any(problem.spreads(axis) for axis in range(problem.spatial))
    wide = problem.window.kernel[-1] > 3 and not strides
    risky = per_group % 16 != 0 or (per_group == 16 and wide)
    return problem.groups > 1 and not problem.is_depthwise and risky


def beyond_src_with_src_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match src zero point and a dilated kernel that reaches further than src is long."""
    if attr.src_zero_point is None:
        return False
    dims = zip(problem.src.dims[2:], problem.window.reach, problem.dilation, strict=True)
    return any(reach > length and dilation > 1 for length, reach, dilation in dims)


def packed_depth(problem: ConvProblem, attr: Attr) -> bool:
    """Match 1x1, a multiple of 64 input channels, and output channels that 16 does not divide."""
    if max(problem.window.kernel) > 1:
        return False
    ic, oc = problem.ic // problem.groups, problem.oc // problem.groups
    return ic % 64 == 0 and oc % 16 != 0


def transposed_wei(problem: ConvProblem, attr: Attr) -> bool:
    """Match s8 or src zero point, and weights that are transposed in whole blocks.

    Blocks of 16 taps; of 64 input channels in a 1x1 kernel, with 8 outputs or a number that 4 does
    not divide; and weights of 8 outputs and 8 numbers each. The sums that make up for the source's
    shift are lost on the way. Of 16 taps more is right than is not: with 8 outputs and 16.
    """
    if not _is_shifted(problem, attr):
        return False
    taps, channels = math.prod(problem.window.kernel), problem.ic // problem.groups
    odd = problem.oc == 8 or problem.oc % 4 != 0
    deep = taps == 1 and channels % 64 == 0 and odd
    return taps % 16 == 0 or deep or (problem.oc == 8 and taps * channels == 8)


def not_channels_last(problem: Problem, attr: Attr) -> bool:
    """Match src or dst that a matrix product does not take as channels last, though it may run.

    Where one channel or one place makes two layouts the same, strides tell which is meant.
    """
    specs = (problem.tensors["src"], problem.tensors["dst"])
    return any(spec.strides is not None and spec.strides[-1] != spec.dims[1] for spec in specs)


# --- deconvolution ------------------------------------------------------------------------------


def places_without_taps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match taps that stride over places of dst, where not just 0 is to be stored.

    A dilated kernel counts by its reach. Square kernels of 1 were right, 1-D ones with padding
    were not: all match.
    """
    stored = problem.bias is not None or attr.post_ops or attr.dst_zero_point is not None
    return bool(stored) and _shortfall(problem) > 0


def kernel_below_stride(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a kernel 2 or more shorter than the stride, with s8 source or src zero point.

    A dilated kernel counts by its reach. One shorter than the stride was always right.
    """
    return _is_shifted(problem, attr) and _shortfall(problem) > 1


def beyond_taps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a dst that ends behind the last tap of the last place of src."""
    window = problem.window
    starts = zip(problem.src.dims[2:], window.stride, window.padding_lo, strict=True)
    ends = zip(starts, window.reach, problem.dst.dims[2:], strict=True)
    return any(
        out > (length - 1) * stride - lo + reach for (length, stride, lo), reach, out in ends
    )


def risky_stride_with_src_zero_point(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a risky stride with src zero point.

    A stride of 3 or more, of 2 with a kernel of neither 2, 3 nor 4 (grouped, or with a single
    place of src: 2 nor 4), with padding, or with a dst longer than the least.
    """
    return attr.src_zero_point is not None and _risky_stride(problem)


def risky_stride_with_s8(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a risky stride with s8 source.

    A stride of 3 or more, of 2 with a kernel of neither 2, 3 nor 4 (grouped, or with a single
    place of src: 2 nor 4), with padding, or with a dst longer than the least.
    """
    return problem.tensors["src"].dtype == "s8" and _risky_stride(problem)


# --- blocks of channels and of pixels -----------------------------------------------------------


def one_channel_in_odd_blocks(problem: WindowedProblem, attr: Attr) -> bool:
    """Match s8 with zero point, one input channel a group, blocks of outputs that 4 divides not.

    Blocks are of 16 output channels; one and two of them were right.
    """
    if not _is_s8_with_zero_point(problem, attr):
        return False
    blocks = _blocks(problem)
    return problem.ic == problem.groups and blocks > 2 and blocks % 4 != 0


def one_channel_groups_in_odd_blocks(problem: ConvProblem, attr: Attr) -> bool:
    """Match groups of one input channel and 17 outputs or more, s8 source or src zero point.

    Right were dilated rows, 49 to 64 outputs, and 17 to 32 of them where windows cover all of src
    and nothing else: neither padding nor places that a stride leaves over. Those match as well.
    """
    if not _is_shifted(problem, attr):
        return False
    if not problem.ic == problem.groups > 1 or problem.dilation[-1] > 1:
        return False
    return _blocks(problem) not in (1, 4)


def one_channel_one_plane(problem: ConvProblem, attr: Attr) -> bool:
    """Match one input channel a group, src of depth 1, a kernel deeper than that.

    Right were dilated rows.
    """
    if problem.spatial < 3:
        return False
    is_one = problem.ic == problem.groups and problem.src.dims[2] == 1
    return is_one and problem.window.kernel[0] > 1 and problem.dilation[-1] == 1


def one_channel_padded(problem: WindowedProblem, attr: Attr) -> bool:
    """Match s8, one input channel a group, a window of more dimensions than one, padded width.

    Right were windows of one dimension, and width padded on all sides together with height.
    """
    if problem.src.dtype != "s8" or problem.ic != problem.groups:
        return False
    kernel, (lo, hi) = problem.window.kernel, problem.flat_padding
    return max(lo[-1], hi[-1]) > 0 and kernel[-1] > 1 and max(kernel[:-1], default=1) > 1


def pointwise_s8_with_src_zero_point(problem: WindowedProblem, attr: Attr) -> bool:
    """Match kernels of 1, and s8 source with zero point."""
    return math.prod(problem.window.kernel) == 1 and _is_s8_with_zero_point(problem, attr)


def five_pixels(problem: Problem, attr: Attr) -> bool:
    """Match int8 and five places in dst, in whatever shape."""
    places = math.prod(problem.tensors["dst"].dims[2:])
    return problem.tensors["src"].dtype in _INT8 and places == 5


def dilated_and_padded_with_src_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match src zero point, a dilated window, and padding."""
    if attr.src_zero_point is None:
        return False
    return max(problem.dilation) > 1 and any((*problem.padding_lo, *problem.padding_hi))


def strided_1x1_of_odd_channels(problem: ConvProblem, attr: Attr) -> bool:
    """Match int8, one tap, a stride, and input channels a group that 8 does not divide."""
    if problem.src.dtype not in _INT8:
        return False
    is_strided = max(problem.window.kernel) == 1 < max(problem.stride)
    return is_strided and problem.ic // problem.groups % 8 != 0


def rows_of_taps(problem: ConvProblem, attr: Attr) -> bool:
    """Match fewer than 32 input channels a group, and rows of a kernel that fill two or more 64s.

    A row of the window is summed as one; the weights are packed for sums tap by tap.
    """
    channels = problem.ic // problem.groups
    row = channels * problem.window.kernel[-1]
    return channels < 32 and row > 64 and row % 64 == 0


def eight_taps(problem: WindowedProblem, attr: Attr) -> bool:
    """Match depthwise with kernels of 8 taps, or 192 and more that 64 divides; s8 or zero point.

    Their weights are transposed in blocks of 8 by 8, and the sums that make up for the source's
    shift are lost on the way.
    """
    if not problem.is_depthwise:
        return False
    taps = math.prod(problem.window.kernel)
    return _is_shifted(problem, attr) and (taps == 8 or (taps > 128 and taps % 64 == 0))


# --- data types and attributes ------------------------------------------------------------------


def depthwise_wei_zero_point(problem: ConvProblem, attr: Attr) -> bool:
    """Match depthwise weights with a zero point."""
    return problem.is_depthwise and attr.wei_zero_point is not None


def f32_stored_smaller(problem: Problem, attr: Attr) -> bool:
    """Match f32 source, and dst of 16 bits."""
    tensors = problem.tensors
    return tensors["src"].dtype == "f32" and tensors["dst"].dtype in {"bf16", "f16"}


def int8_with_bf16_bias(problem: Problem, attr: Attr) -> bool:
    """Match 8-bit source and bf16 bias."""
    tensors = problem.tensors
    return tensors["src"].dtype in _INT8 and "bias" in tensors and tensors["bias"].dtype == "bf16"


# --- words that several rows share --------------------------------------------------------------


def _shortfall(problem: DeconvProblem) -> int:
    """Return by how much a stride exceeds the kernel's reach at most."""
    steps = zip(problem.window.reach, problem.stride, strict=True)
    return max(0, *(stride - reach for reach, stride in steps))


def _blocks(problem: WindowedProblem) -> int:
    """Return how many blocks of 16 a group's output channels fill."""
    return -(-problem.oc // problem.groups // 16)


def _is_shifted(problem: Operation, attr: Attr) -> bool:
    """Tell whether sums of weights make up for what is added to or taken from the source."""
    dtype = problem.tensors["src"].dtype
    return dtype == "s8" or (dtype == "u8" and attr.src_zero_point is not None)


def _is_s8_with_zero_point(problem: Operation, attr: Attr) -> bool:
    return problem.tensors["src"].dtype == "s8" and attr.src_zero_point is not None


def _risky_stride(problem: DeconvProblem) -> bool:
    """Tell whether some stride is 3 or more, or 2 with more than a plain kernel of 2, 3 or 4.

    More is padding, a dst longer than the least, and for a kernel of 3 groups or a single place of
    src. A dilated kernel counts by its reach. With padding two threads fill the compensation at
    once, and now and then one reads too early.
    """
    if max(problem.stride) == 1:
        return False
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
