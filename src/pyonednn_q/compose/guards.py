"""The guard table: what oneDNN accepts and computes wrong, or crashes on.

Rows are data. They were measured on 3.7.2 (OpenMP) and 3.13.2 (SYCL) at six instruction set levels
against a float64 reference; a row's `source` says what failed. Where the extent of a fault is not
known, rows err on the side of matching:

- versions between the two measured ones have the faults of both, unless the fix is known;
- versions after 3.13 keep those of 3.13;
- an implementation that hides its name matches every pattern.

A fault that cannot be asked for has no row: the select post-op (with a scalar operand it always
takes one branch on AMX, 3.13) is not among `BINARY_ALGS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q.compose import guard_conditions as when
from pyonednn_q.compose.guard import Facts, Guard
from pyonednn_q.compose.implementation import at_least, has_amx, has_vnni

if TYPE_CHECKING:
    from pyonednn_q.compose.attr import Attr
    from pyonednn_q.compose.problem import Problem

__all__ = ["GUARDS", "Facts", "Guard", "matching"]


def matching(problem: Problem, attr: Attr, facts: Facts | None, impl: str) -> tuple[Guard, ...]:
    """Return the rows that forbid an implementation for a problem.

    Parameters
    ----------
    problem : Problem
        What is computed.
    attr : Attr
        Its attributes.
    facts : Facts or None
        Version and instruction set. None: of any process.
    impl : str
        The implementation's name. Empty matches whatever any implementation would.

    Returns
    -------
    tuple of Guard
        Empty: nothing wrong is known, and the implementation may run.
    """
    return tuple(guard for guard in GUARDS if guard.matches(problem, attr, facts, impl))


# --- vocabulary of the table --------------------------------------------------------------------


def _any(isa: str) -> bool:  # noqa: ARG001
    return True


def _vector(isa: str) -> bool:
    """Every measured level above plain AVX2."""
    return at_least(isa, "AVX2_VNNI") or _avx512(isa)


def _avx512(isa: str) -> bool:
    return at_least(isa, "AVX512_CORE")


def _up_to_avx2(isa: str) -> bool:
    return not _vector(isa)


def _only_avx2_vnni(isa: str) -> bool:
    return at_least(isa, "AVX2_VNNI") and not _avx512(isa)


_FLOOR = (3, 7, 0)
_AFTER_3_7 = (3, 8, 0)  # seen in 3.13, not in 3.7
_BEFORE_3_13 = (3, 13, 0)  # seen in 3.7, not in 3.13

_CONV = ("convolution",)
_DECONV = ("deconvolution",)
_MATMUL = ("matmul",)

# Patterns of names. Reference loops are right unless a row has no pattern; "gemm:jit" is a gemm.
_FAST = r"brg|brdgmm|jit|gemm"
_JIT = r"^(?!.*(?<!br)gemm).*(?:brg|brdgmm|jit)"
_AMX = r"amx"
_JIT_BELOW_AMX = r"^(?!.*amx)(?!.*(?<!br)gemm).*(?:brg|brdgmm|jit)"

GUARDS: tuple[Guard, ...] = (
    Guard(
        id="matmul-plain-b-k-tail",
        since=_AFTER_3_7,
        until=None,
        isas=has_amx,
        kinds=_MATMUL,
        impl=_AMX,
        condition=when.k_tail_with_plain_b,
        effect="wrong values in part of the rows, depending on what memory holds",
        remedy="pack the weights or pass them transposed, pad K to a multiple of 64, or give src a "
        "zero point of 0",
        source="measured: 3.13.2, AMX, 118 of 630 shapes, K of 65 to 200, M >= 31, N >= 48; "
        "confirmed by a minimal program",
    ),
    Guard(
        id="conv-one-column-out",
        since=_FLOOR,
        until=None,
        isas=has_amx,
        kinds=_CONV,
        impl=r"brg.*amx",  # the older AMX kernel behind it is right
        condition=when.one_column_out,
        effect="wrong values",
        remedy="the next implementation, or swap height and width",
        source="measured: 3.7.2 and 3.13.2, AMX, 224 of 350 shapes",
    ),
    Guard(
        id="grouped-conv-src-zero-point",
        since=_FLOOR,
        until=None,
        isas=has_amx,
        kinds=(*_CONV, *_DECONV),  # a deconvolution of stride 1 runs the same convolution kernel
        impl=_AMX,
        condition=when.ragged_groups_with_src_zero_point,
        effect="wrong values",
        remedy="the next implementation, or the zero point's part as a full-tensor binary add",
        source="measured: 3.13.2, more rarely 3.7.2, AMX, random shapes",
    ),
    Guard(
        id="deconv-stride-src-zero-point",
        since=_AFTER_3_7,
        until=None,
        isas=_vector,
        kinds=_DECONV,
        impl=_JIT,
        condition=when.risky_stride_with_src_zero_point,
        effect="wrong values; at stride 4 heap corruption or a crash",
        remedy="u8 without zero point, its part as a full-tensor binary add",
        source="measured: 3.13.2, all levels above AVX2, random shapes",
    ),
    Guard(
        id="deconv-stride-s8",
        since=_AFTER_3_7,
        until=None,
        isas=_vector,
        kinds=_DECONV,
        impl=_JIT_BELOW_AMX,
        condition=when.risky_stride_with_s8,
        effect="wrong values; at stride 4 heap corruption or a crash",
        remedy="u8 sources, shifted by 128, the shift's part as a full-tensor binary add",
        source="measured: 3.13.2, all levels above AVX2 without AMX, random shapes",
    ),
    Guard(
        id="deconv-kernel-below-stride",
        since=_FLOOR,
        until=None,
        isas=_any,
        kinds=_DECONV,
        impl=_JIT,
        condition=when.kernel_below_stride,
        effect="wrong values",
        remedy="u8 without zero point, its part as a full-tensor binary add",
        source="measured: 3.7.2 all levels, 3.13.2 AVX2, kernel 1 at stride 3, 2 at stride 4; "
        "on AVX2 208 and 204 of 220 problems, and none of 192 with a kernel one shorter",
    ),
    Guard(
        id="deconv-places-without-taps",
        since=_AFTER_3_7,
        until=None,
        isas=has_amx,
        kinds=_DECONV,
        impl=r"^brg_deconv.*amx",
        condition=when.places_without_taps,
        effect="bias, post-ops and zero point are missing where no tap meets the source",
        remedy="the next implementation",
        source="measured: 3.13.2, AMX, all of 504 problems with kernels of 2 to 4 below the "
        "stride; right are kernels of 1, and 0 alone",
    ),
    Guard(
        id="matmul-4d-broadcast-b",
        since=_FLOOR,
        until=_BEFORE_3_13,
        isas=_vector,
        kinds=_MATMUL,
        impl=_JIT,
        condition=when.broadcast_b_4d,
        effect="wrong values or a crash",
        remedy="three or two dimensions",
        source="measured: 3.7.2, all levels above AVX2, repeatable crashes in random shapes",
    ),
    Guard(
        id="matmul-4d-per-row-binary",
        since=_FLOOR,
        until=_BEFORE_3_13,
        isas=has_amx,
        kinds=_MATMUL,
        impl=_JIT,
        condition=when.per_row_operand_4d,
        effect="wrong values",
        remedy="three dimensions",
        source="measured: 3.7.2, AMX, operands (1, 1, M, 1) and (1, B, M, 1)",
    ),
    Guard(
        id="matmul-4d-mask-binary",
        since=_AFTER_3_7,
        until=None,
        isas=has_amx,
        kinds=_MATMUL,
        impl=_JIT,
        condition=when.mask_operand_4d,
        effect="wrong values",
        remedy="an operand of dst's dimensions, or three dimensions with (1, M, N)",
        source="measured: 3.13.2, AMX, operand (1, 1, M, N) at batch 2",
    ),
    Guard(
        id="inner-product-spatial-packing",
        since=_AFTER_3_7,
        until=None,
        isas=_up_to_avx2,
        kinds=("inner_product",),
        impl=r"^gemm",  # the wrapper of matmul; x64:gemm behind it is right
        condition=when.spatial_src_and_packed_wei,
        effect="weights packed in the wrong order: all values wrong",
        remedy="flatten the source and use matmul",
        source="measured: 3.13.2, AVX2, 143 of 4000 random problems, channels-last 4-D sources",
    ),
    Guard(
        id="conv-per-channel-dst-scale",
        since=_FLOOR,
        until=(3, 9, 0),
        isas=_any,
        kinds=_CONV,
        impl=None,
        condition=when.per_channel_dst_scale,
        effect="multiplied by the scale instead of divided",
        remedy="a binary div post-op per channel",
        source="measured: 3.7.2, all levels, reference loop included; refused since 3.9",
    ),
    Guard(
        id="matmul-per-column-dst-scale",
        since=_AFTER_3_7,
        until=None,
        isas=_any,
        kinds=_MATMUL,
        impl=None,
        condition=when.per_channel_dst_scale,
        effect="the first scale is used for all columns",
        remedy="a binary div post-op per column",
        source="measured: 3.13.2, all levels, reference loop included",
    ),
    Guard(
        id="matmul-wei-scale-along-k",
        since=_FLOOR,
        until=None,
        isas=_any,
        kinds=_MATMUL,
        impl=_FAST,
        condition=when.wei_scale_along_k,
        effect="scales along K are read as scales along N, or as one",
        remedy="weight scales along N only",
        source="measured: 3.7.2 and 3.13.2, all levels",
    ),
    Guard(
        id="matmul-wei-scale-along-k-reference",
        since=_AFTER_3_7,
        until=None,
        isas=_any,
        kinds=_MATMUL,
        impl=r"^ref",
        condition=when.wei_scale_of_single_rows,
        effect="the reference loop is wrong as well",
        remedy="weight scales along N only, or f32 scales in groups of several rows, (g, 1)",
        source="measured: 3.13.2, AVX2 and SSE41: masks of K and of K and N, without groups and in "
        "groups (1, 1), f32, f16 and bf16 scales, f32 and u8 dst",
    ),
    Guard(
        id="depthwise-wei-zero-point",
        since=_FLOOR,
        until=(3, 9, 0),
        isas=has_vnni,
        kinds=_CONV,
        impl=_FAST,
        condition=when.depthwise_wei_zero_point,
        effect="the zero point of the weights is ignored",
        remedy="weights without zero point",
        source="measured: 3.7.2, all levels with VNNI; refused since 3.9",
    ),
    Guard(
        id="conv-bias-and-operand",
        since=_AFTER_3_7,
        until=None,
        isas=_avx512,
        kinds=(*_CONV, *_DECONV),
        impl=r"brg.*avx2_vnni",  # the kernel of a lower level, taken for few output channels
        condition=when.bias_and_operand,
        effect="bias and operand are missing, depending on what memory holds",
        remedy="the next implementation",
        source="measured: 3.13.2, AMX, 35 of about 5400 runs, all with bias and operand; none of "
        "6772 with eltwise post-ops, none on AVX2_VNNI",
    ),
    Guard(
        id="conv-bf16-bias",
        since=_FLOOR,
        until=None,
        isas=_avx512,
        kinds=_CONV,
        impl=_FAST,
        condition=when.int8_with_bf16_bias,
        effect="the bias is read past its end",
        remedy="an f32 bias",
        source="measured: 3.7.2 and 3.13.2, all AVX-512 levels",
    ),
    Guard(
        id="matmul-src-scale-unit-groups",
        since=_AFTER_3_7,
        until=None,
        isas=_any,
        kinds=_MATMUL,
        impl=None,
        condition=when.src_scale_unit_groups,
        effect="wrong values, from the reference loop",
        remedy="src scales in groups of several columns, or a binary mul per row",
        source="measured: 3.13.2, AVX2, groups (1, 1), f32 and u8 dst; 3.7.2 is right, and so "
        "are groups of 16, 32 and 64",
    ),
    Guard(
        id="matmul-scale-groups-along-n",
        since=_AFTER_3_7,
        until=None,
        isas=_any,
        kinds=_MATMUL,
        impl=None,
        condition=when.scale_groups_along_n,
        effect="wrong values, from the reference loop too",
        remedy="f32 scales in groups along K, (g, 1)",
        source="measured: 3.13.2, groups (1, 16)",
    ),
    Guard(
        id="matmul-scale-groups",
        since=_FLOOR,
        until=_BEFORE_3_13,
        isas=_vector,
        kinds=_MATMUL,
        impl=_FAST,
        condition=when.scale_groups,
        effect="wrong values",
        remedy="no groups before oneDNN 3.13",
        source="measured: 3.7.2, brgemm, groups (1, 1) and (32, 1); AVX2 has only the "
        "reference loop, which is right",
    ),
    Guard(
        id="conv-sum-twice",
        since=_FLOOR,
        until=None,
        isas=_any,
        kinds=_CONV,
        impl=r"jit_uni_int8:",
        condition=when.sum_with_ragged_channels,
        effect="a column where threads share a row is computed twice, and the sum added twice",
        remedy="the residual as a full-tensor binary add, or no zero points beside the sum",
        source="measured: 3.7.2 and 3.13.2, AVX2 (32 output channels) and SSE41 (16), 3 input "
        "channels, padded width, 1 and 3 rows: 24 of 1296 shapes",
    ),
    Guard(
        id="dilated-depthwise-sum",
        since=_FLOOR,
        until=None,
        isas=_only_avx2_vnni,
        kinds=_CONV,
        impl=_FAST,
        condition=when.dilated_depthwise_sum,
        effect="a few wrong values",
        remedy="the next implementation, or a sum without zero point",
        source="measured: 3.7.2 and 3.13.2, AVX2_VNNI, 15 channels, 25 of 2520 values",
    ),
    Guard(
        id="reorder-per-channel-zero-point",
        since=_AFTER_3_7,
        until=None,
        isas=_any,
        kinds=("reorder",),
        impl=None,
        condition=when.per_channel_zero_point,
        effect="values match no per-channel model",
        remedy="one zero point for the tensor",
        source="measured: 3.13.2, f32 to u8; refused by 3.7.2",
    ),
)
