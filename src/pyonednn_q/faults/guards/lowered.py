"""Faults of a convolution kernel that lays windows anew: rows of taps as one, columns as channels.

With what is known about where each ends. Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.guard import CONV, FLOOR, Guard, condition
from pyonednn_q.primitive.isa import InstructionSet

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.convolution import ConvProblem
    from pyonednn_q.primitive.windowed import WindowedProblem

# The kernel for AVX-512 without AMX; it copies a single input channel's rows beside each other.
_BELOW_AMX = r"brg_conv_fwd:(?!.*amx).*512"
_AMX = r"brg_conv_fwd:.*amx"
_BLOCK = 16  # outputs whose weights lie together


@condition()
def few_channels_one_plane(problem: ConvProblem, attr: Attr) -> bool:
    """Match src of depth 1, a deeper kernel of several columns, rows of taps summed as one.

    So are rows that are not dilated, of fewer channels a group than half a register holds. Weights
    are laid out anew for it, the first plane's as if there were no other. Right are f32, channels
    that four divides (of 16 bits: two) whose row fits a register or fills several, and where those
    first weights alone are used: 16 outputs at most, no groups, no padding before src.
    """
    if problem.spatial < 3 or not problem.window.kernel[0] > problem.src.dims[2] == 1:
        return False
    if problem.groups == 1 and problem.oc <= _BLOCK and problem.padding_lo[0] == 0:
        return False
    held, together = _register(problem)
    channels, columns = problem.ic // problem.groups, problem.window.kernel[-1]
    row = channels * columns
    as_it_lies = channels % together == 0 and (row <= held or row % held == 0)
    few = channels < held // 2 and columns > 1 and problem.dilation[-1] == 1
    return few and together > 1 and not as_it_lies


@condition("strided")
def columns_as_channels(problem: ConvProblem, attr: Attr) -> bool:
    """Match a width stride whose columns are taken for channels, more of these than are packed.

    A kernel and a source whose columns come in the stride's steps are read as narrower ones of more
    channels. Weights are packed for the channels that there are: less than a register holds, and
    more, once multiplied, are laid otherwise. f32 was right.
    """
    return _columns_folded(problem) > 1


@condition("strided")
def one_column_as_channels(problem: ConvProblem, attr: Attr) -> bool:
    """Match such a problem where dst has one column and depth 1."""
    *others, width = problem.dst.dims[2:]
    return width == 1 and (len(others) < 2 or others[0] == 1) and _columns_folded(problem) > 1


@condition("strided")
def rows_skipped(problem: ConvProblem, attr: Attr) -> bool:
    """Match a stride of rows, or of planes, that is longer than the kernel reaches there."""
    steps = zip(problem.window.stride[:-1], problem.window.reach[:-1], strict=True)
    return any(stride > reach for stride, reach in steps)


@condition("one_channel")
def one_channel_one_plane(problem: ConvProblem, attr: Attr) -> bool:
    """Match one input channel a group, src of depth 1, a kernel deeper than that.

    Right were dilated rows.
    """
    if problem.spatial < 3:
        return False
    deeper = problem.window.kernel[0] > problem.src.dims[2] == 1
    return deeper and problem.dilation[-1] == 1


@condition()
def rows_of_taps(problem: ConvProblem, attr: Attr) -> bool:
    """Match few input channels a group, and rows of a kernel that fill two registers or more.

    Fewer channels than half a register holds: 32 of 8 bits, 16 of 16. A row of the window is summed
    as one; the weights are packed for sums tap by tap.
    """
    held, together = _register(problem)
    channels = problem.ic // problem.groups
    row = channels * problem.window.kernel[-1]
    return together > 1 and channels < held // 2 and row > held and row % held == 0


def _register(problem: WindowedProblem) -> tuple[int, int]:
    """Return how many weights 512 bits hold, and how many of a channel lie together."""
    bits = dtypes.bits(problem.wei.dtype)
    return 512 // bits, 32 // bits


def _columns_folded(problem: ConvProblem) -> int:
    """Return how many columns are read as one of more channels where that is wrong; else 1."""
    held, together = _register(problem)
    window, columns, channels = problem.window, problem.src.dims[-1], problem.ic
    # Padding that the last window does not reach counts for nothing.
    end = (problem.dst.dims[-1] - 1) * window.stride[-1] + window.kernel[-1] - columns
    is_bare = max(window.padding_lo[-1], end) <= 0
    plain = problem.groups == 1 and window.dilation[-1] == 1 and is_bare
    if not plain or together == 1 or channels % together or channels >= held:
        return 1
    steps = math.gcd(window.kernel[-1], window.stride[-1], columns)
    folded = max(
        n
        for n in range(1, steps + 1)
        if steps % n == 0 and (channels * n <= held or channels * n % held == 0)
    )
    return folded if channels * folded > held else 1


LOWERED_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="conv-rows-of-taps",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=r"brg.*amx",
        condition=rows_of_taps,
        effect="wrong values, as if every fourth tap or so was read",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, AMX, u8 and s8, 2-D and 3-D, groups or not, 5249 of "
        "5760 problems; rows of 64 were right, and so were 1908 problems with 32 channels or more, "
        "and deconvolutions",
    ),
    Guard(
        id="one-channel-one-plane",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=_BELOW_AMX,
        condition=one_channel_one_plane,
        effect="memory that nobody wrote is summed",
        remedy="the next implementation",
        source="measured: 3.7.2, 3.13.1 and 3.13.2, every AVX-512 level, groups or not, 120 of 136 "
        "problems of u8 and s8 with rows of 2 taps and more, 5 of 21 of bf16; depth 2 and dilated "
        "rows were right; beside AMX the same kernels are wrong, its own where "
        "few-channels-one-plane says, and right on 190 other problems",
    ),
    Guard(
        id="few-channels-one-plane",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=_AMX,
        condition=few_channels_one_plane,
        effect="wrong values, from memory that nobody wrote",
        remedy="the next implementation",
        source="measured: 3.7.2, AMX, 397 findings of the hunt and 2534 of 48511 convolutions of a "
        "scan, u8, s8 and bf16, any groups, layout and zero point, and 1230 of 1232 of another; "
        "3.13.2, 1139 of 1142; right were all of 251 of up to 16 outputs without groups and "
        "padding before src",
    ),
    Guard(
        id="conv-columns-as-channels",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=_AMX,
        condition=columns_as_channels,
        effect="channels are multiplied with weights of others: all values wrong",
        remedy="the next implementation",
        source="measured: 3.7.2, AMX, u8, s8 and bf16, kernels and strides of 4, 6 and 8 columns: "
        "every one of 30 problems of a scan, and none of 1500 beside them; with padding behind the "
        "columns that no window reaches 580 of 580, and none of 9000 beside them",
    ),
    Guard(
        id="conv-one-column-as-channels",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=_BELOW_AMX,
        condition=one_column_as_channels,
        effect="channels are multiplied with weights of others: wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2, AVX512_CORE_BF16 with AMX and without, u8, s8 and bf16: 50 of 58 "
        "problems of a scan; wider dst, and other strides, were right; with padding behind the "
        "column that it does not reach, 3.7.2, AVX512_CORE and AVX512_CORE_BF16, 413 problems "
        "whose whole kernel is taken, and none of 30000 others; 3.13.2, 68; AVX2_VNNI was right",
    ),
    Guard(
        id="conv-rows-skipped",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=_AMX,
        condition=rows_skipped,
        effect="wrong values, or a crash: a buffer is written beyond its end",
        remedy="the next implementation",
        source="measured: 3.7.2, AMX, u8 and s8, two dimensions and three, 32 channels and more: "
        "16 problems of a scan and 7 findings of the hunt, and a corrupted heap; where it ends is "
        "not known, so every such stride matches",
    ),
)
