"""Faults of layers whose tensors have gaps, or an order of dimensions that is rarely asked for.

Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from pyonednn_q import dtypes
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    BEFORE_3_13,
    CONV,
    DECONV,
    FAST,
    FLOOR,
    MATMUL,
    STRIDED,
    Guard,
    any_isa,
    condition,
)
from pyonednn_q.faults.guards.products import operands
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.tensor import TensorSpec

Dims: TypeAlias = tuple[int, ...]


@condition("gaps")
def deconvolved_into_gaps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a dst with gaps."""
    return problem.dst.has_gaps


@condition("pointwise")
def pointwise_plain_wei(problem: DeconvProblem, attr: Attr) -> bool:
    """Match one tap of plain weights, whose outputs do not lie innermost."""
    wei = problem.wei
    return wei.strides is not None and wei.strides[0] != 1


@condition()
def spatial_orders_differ(problem: InnerProductProblem, attr: Attr) -> bool:
    """Match channels and places in one order in src, and in another in plain weights.

    Those of one output, or whose outputs lie innermost.
    """
    src, wei = problem.src, problem.wei
    if src.strides is None or wei.strides is None or 1 not in (wei.dims[0], wei.strides[0]):
        return False
    return _inner_order(src.strides, src.dims) != _inner_order(wei.strides, wei.dims)


@condition()
def innermost_images(problem: InnerProductProblem, attr: Attr) -> bool:
    """Match three dimensions and more, images innermost in src and outputs in plain weights."""
    src, wei = problem.src, problem.wei
    return src.ndim > 2 and all(each.strides and each.strides[0] == 1 for each in (src, wei))


@condition("gaps")
def convolved_with_gaps(problem: ConvProblem | DeconvProblem, attr: Attr) -> bool:
    """Match a src or a dst with gaps."""
    return True


@condition("gaps", "strided")
def deconvolved_in_steps_with_gaps(problem: DeconvProblem, attr: Attr) -> bool:
    """Match a src or a dst with gaps, and a stride."""
    return True


@condition()
def column_with_gaps(problem: MatMulProblem, attr: Attr) -> bool:
    """Match a dst of one column whose rows do not touch."""
    dst = problem.dst
    return dst.strides is not None and dst.dims[-1] == 1 < dst.dims[-2] and dst.strides[-2] > 1


@condition()
def row_declared_short(problem: MatMulProblem, attr: Attr) -> bool:
    """Match a dst of single rows, the next of which would begin within them."""
    dst = problem.dst
    return dst.strides is not None and dst.dims[-2] == 1 and dst.strides[-2] < dst.dims[-1]


@condition()
def batches_within_rows(problem: MatMulProblem, attr: Attr) -> bool:
    """Match a dst whose matrices begin closer to each other than rows."""
    return problem.m > 1 and _batches_within(problem.dst)


@condition()
def float_wei_batches_within(problem: MatMulProblem, attr: Attr) -> bool:
    """Match four dimensions, weights of floats whose matrices begin within each other.

    So lie the heads of an attention that are seen where they are. Three dimensions are right.
    """
    wei = problem.wei
    return wei.ndim > 3 and not dtypes.is_integer(wei.dtype) and _batches_within(wei)


@condition("operand")
def batches_swapped(problem: MatMulProblem, attr: Attr) -> bool:
    """Match two dimensions of batches that lie in dst the other way round, beside an operand.

    An operand of dst's size is right.
    """
    strides, leading = problem.dst.strides, problem.dst.dims[:-2]
    if strides is None:
        return False
    steps = [step for step, length in zip(strides, leading, strict=False) if length > 1]
    return steps != sorted(steps, reverse=True) and any(
        dims != problem.dst.dims for dims in operands(problem, attr)
    )


@condition("src f32")
def single_channel_laid_last(problem: ConvProblem, attr: Attr) -> bool:
    """Match images of several places and one output channel that is declared channels last.

    These are the bytes of a row-major dst.
    """
    dst = problem.dst
    several = dst.dims[0] > 1 == dst.dims[1] and max(dst.dims[2:]) > 1
    return several and dst.strides is not None and dst.strides[1] < math.prod(dst.dims[2:])


def _batches_within(spec: TensorSpec) -> bool:
    """Tell whether some matrix begins before the last row, or column, of the one before."""
    if spec.strides is None:
        return False
    sides = zip(spec.dims[-2:], spec.strides[-2:], strict=True)
    widest = max((step for length, step in sides if length > 1), default=0)
    batches = zip(spec.dims[:-2], spec.strides[:-2], strict=True)
    return any(length > 1 and step < widest for length, step in batches)


def _inner_order(strides: Dims, dims: Dims) -> list[int]:
    """Return the order of channels and places, of those dimensions that have several."""
    axes = [axis for axis in range(1, len(dims)) if dims[axis] > 1]
    return sorted(axes, key=lambda axis: -strides[axis])


LAYER_LAYOUT_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="conv-pointwise-single-channel",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=CONV,
        impl=r"ncsp.*matmul",
        condition=single_channel_laid_last,
        effect="all values wrong, or those of every image but the first",
        remedy="a row-major dst: of one channel these are the same bytes",
        source="measured: 3.7.2, AVX512_CORE_BF16 with AMX and without, f32, row-major src, 1 to "
        "500 places and 1 to 65 input channels: every problem of 2 and 3 images; one image, one "
        "place, and 3.13.2 were right",
    ),
    Guard(
        id="matmul-batches-swapped",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=r"^(?:gemm|brg_matmul)",
        condition=batches_swapped,
        effect="the process crashes",
        remedy="a row-major dst, or an operand of its size",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_VNNI and AVX512_CORE_BF16, u8 and s8, an "
        "operand along the columns: 29 of 39 problems, and all of 16 more in gemm and in two "
        "kernels of brgemm; without an operand, and with one of dst's size, all were right",
    ),
    Guard(
        id="deconv-into-gaps",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=DECONV,
        impl=r"^conv:any",
        condition=deconvolved_into_gaps,
        effect="the process crashes, or values are wrong",
        remedy="a dst without gaps",
        source="measured: 3.7.2 and 3.13.2, all levels, SSE41 to AMX, the loop behind `conv:any`, "
        "which alone takes such a dst: all crashes that the hunt in any layout met were such, "
        "beside scales or post-ops",
    ),
    Guard(
        id="deconv-pointwise-plain-wei",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=DECONV,
        impl=r"ncsp.*matmul",
        condition=pointwise_plain_wei,
        effect="weights are read as if inputs and outputs were swapped: all values wrong",
        remedy="weights in any layout, or tensors channels last",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_BF16, f32, row-major tensors: every one; "
        "convolutions, weights in any layout, and those with outputs innermost were right",
    ),
    Guard(
        id="inner-product-in-two-orders",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=("inner_product",),
        impl=r"brg_matmul|^gemm",
        condition=spatial_orders_differ,
        effect="weights are read in src's order: all values wrong",
        remedy="weights in any layout, or in src's",
        source="measured: 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16, u8 and s8: every such problem; "
        "3.7.2, weights in any layout, and row-major ones of several outputs were right",
    ),
    Guard(
        id="inner-product-innermost-images",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("inner_product",),
        impl=r"x64:gemm_s8",
        condition=innermost_images,
        effect="places are multiplied with weights of other places",
        remedy="the next implementation, or flatten the source and use matmul",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16, three dimensions, "
        "not every one of them; f32, two dimensions and four were right",
    ),
    Guard(
        id="conv-gemm-with-gaps",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV + DECONV,
        impl=r"x64:gemm:jit",
        condition=convolved_with_gaps,
        effect="images are read, or stored, as if they had no gaps",
        remedy="a src and a dst without gaps",
        source="measured: 3.7.2 and 3.13.2, AVX2 and AVX512_CORE, gaps between images of src or "
        "dst: f32 and bf16 in every order but row-major f32 convolutions, and bf16 with gaps "
        "between channels; loops of codes were right",
    ),
    Guard(
        id="deconv-strided-with-gaps",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=DECONV,
        impl=STRIDED,
        condition=deconvolved_in_steps_with_gaps,
        effect="images are read, or stored, as if they had no gaps",
        remedy="the next implementation, or a src and a dst without gaps",
        source="measured: 3.7.2 and 3.13.2, AVX2 and AVX512_CORE, gaps between images of src or of "
        "dst, f32 and u8: every one; kernels of strides of 1 were right",
    ),
    Guard(
        id="matmul-column-with-gaps",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=FAST,
        condition=column_with_gaps,
        effect="rows are stored as if they had no gaps",
        remedy="a dst without gaps",
        source="measured: 3.7.2, brgemm and gemm, and 3.13.2, gemm, all levels, SSE41 to AMX: "
        "every problem of several rows tried; dst of more columns was right",
    ),
    Guard(
        id="matmul-row-declared-short",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=FAST,
        condition=row_declared_short,
        effect="nothing is stored, an operand is read amiss, or the call fails",
        remedy="row-major strides: of one row these are the same bytes",
        source="measured: 3.7.2, brgemm, AVX2_VNNI, AVX512_CORE and above, AMX too, batches of one "
        "row that are declared channels last: every problem; 3.7.2 and 3.13.2, gemm, all levels, "
        "where there is an operand too",
    ),
    Guard(
        id="matmul-4d-wei-batches-within",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=r"brg",
        condition=float_wei_batches_within,
        effect="weights are read from places other than their own: all values wrong",
        remedy="three dimensions, weights of which each matrix lies by itself, or in any layout",
        source="measured: 3.7.2 and 3.13.2, AVX2, AVX512_CORE and AVX512_CORE_BF16, f32 and bf16, "
        "heads of (1, H, D, S) within rows and within columns: every one; gemm, three dimensions, "
        "sources of that kind, and u8 and s8 were right",
    ),
    Guard(
        id="matmul-batches-within-rows",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=FAST,
        condition=batches_within_rows,
        effect="the process crashes",
        remedy="a row-major dst",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_BF16, brgemm, beside an operand; the hunt "
        "in any layout met it once, and its extent is not known",
    ),
)
