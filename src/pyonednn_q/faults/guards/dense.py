"""Faults of matmul and inner product, and the one of reorder."""

from __future__ import annotations

from pyonednn_q.faults.guards import products
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    AMX,
    BEFORE_3_13,
    FAST,
    FLOOR,
    JIT,
    MATMUL,
    Guard,
    any_isa,
)
from pyonednn_q.primitive.isa import InstructionSet

DENSE_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="matmul-plain-b-k-tail",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=AMX,
        condition=products.k_tail_with_plain_b,
        effect="wrong values in part of the rows, depending on what memory holds",
        remedy="pack the weights or pass them transposed, pad K to a multiple of 64, or give src a "
        "zero point of 0",
        source="measured: 3.13.2, AMX, 118 of 630 shapes, K of 65 to 200, M >= 31 (or M times a "
        "batch that B lacks), N >= 48; confirmed by a minimal program",
    ),
    Guard(
        id="matmul-padded-src-k-tail",
        since=FLOOR,
        until=(3, 13, 1),
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=AMX,
        condition=products.k_tail_with_padded_src,
        effect="what lies between the rows of src is multiplied",
        remedy="a source without gaps",
        source="read: release notes and sources of 3.7.3 and 3.13.1, which fix parts of it, for "
        "AMX; not seen: 3.7.2, AMX, u8, s8 and bf16, 1 to 64 values between rows, NaN among them, "
        "weights packed and row-major: 801 problems were right",
    ),
    Guard(
        id="matmul-batches-at-two-steps",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=MATMUL,
        impl=r"brg_matmul",
        condition=products.batches_at_two_steps,
        effect="matrices are read or stored one step of the last dimension of batches apart",
        remedy="tensors whose batches are without gaps, or one dimension of them",
        source="measured: 3.7.2, all levels with the kernel, src, B or dst with gaps behind a "
        "dimension of batches that is not the last: 5937 problems; which steps is not understood "
        "(of 2x3 matrices of 80 bytes, 480 and 500 were wrong, 1000 right). None of 1420 on "
        "3.13.2: release notes of 3.13.1 tell of source strides",
    ),
    Guard(
        id="matmul-half-wei-scale",
        since=(3, 10, 0),
        until=(3, 13, 1),
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=AMX,
        condition=products.half_wei_scale,
        effect="wrong values",
        remedy="an f32 scale of the weights",
        source="read: release notes and sources of 3.13.1, in which it is refused, for AMX; not "
        "run: neither 3.7.2 nor 3.13.2 takes such a scale there",
    ),
    Guard(
        id="matmul-4d-broadcast-b",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=MATMUL,
        impl=JIT,
        condition=products.broadcast_b_4d,
        effect="wrong values or a crash",
        remedy="three or two dimensions",
        source="measured: 3.7.2, all levels above AVX2, 66 of 243 problems below AMX, 13 of them "
        "crashes, and 36 of 162 in f32 on AVX2's brg_matmul; 1922 problems of other batches, and "
        "648 on gemm, were right",
    ),
    Guard(
        id="matmul-batch-of-single-rows",
        since=FLOOR,
        until=None,
        isas=InstructionSet.is_beyond_avx2,
        kinds=MATMUL,
        impl=r"brg",
        condition=products.batch_of_single_rows,
        effect="the sums of src of the first batch are taken for those of all",
        remedy="the next implementation, or the same rows as row-major src",
        source="measured: 3.7.2 and 3.13.2, AVX2_VNNI, AVX512_CORE and above, all of 800 problems "
        "with K of 2 and more; row-major src was right, and so were AVX2, two rows and more, and "
        "weights for each batch",
    ),
    Guard(
        id="matmul-batch-of-ragged-rows",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=r"brg.*amx",
        condition=products.batch_of_ragged_rows,
        effect="wrong values in every batch but the first",
        remedy="the next implementation, or the same rows as row-major src",
        source="measured: 3.7.2, AMX, u8, s8 and bf16: 27 findings of the hunt, and 61 of 96 "
        "problems of a scan, the others on primitives that the library's cache held for row-major "
        "src; that, two rows and more, and weights for each batch were right",
    ),
    Guard(
        id="matmul-in-shares",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.has_avx512() and not isa.has_vnni(),
        kinds=MATMUL,
        impl=r"gemm:jit",
        condition=products.in_shares,
        effect="pairs saturate in 16 bits where a thread's share begins or ends with one element "
        "of a row: there weights are shifted to u8, and src is the signed one",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.7.2, AVX512_CORE, 94 of 2400 products on 3 to 32 threads, none of 400 "
        "on 2, batches, and 3x9 by 9x7 stored as s8; all of 28 elements had the value of that "
        "model; u8, and AVX2 and AVX512_CORE_VNNI, were right on 500 each; 3.13.2 has another "
        "kernel there",
    ),
    Guard(
        id="matmul-4d-per-row-binary",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=AMX,
        condition=products.per_row_operand_4d,
        effect="wrong values",
        remedy="three dimensions",
        source="measured: 3.7.2, AMX, operands (1, 1, M, 1) and (1, B, M, 1), 73 of 122 problems; "
        "the kernels below AMX were right",
    ),
    Guard(
        id="matmul-4d-mask-binary",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=MATMUL,
        impl=AMX,
        condition=products.mask_operand_4d,
        effect="wrong values",
        remedy="an operand of dst's dimensions, or three dimensions with (1, M, N)",
        source="measured: 3.13.2, AMX, operand (1, 1, M, N) at batch 2, 25 of 45 problems; the "
        "kernels below AMX were right",
    ),
    Guard(
        id="inner-product-spatial-packing",
        since=AFTER_3_7,
        until=None,
        isas=lambda isa: not isa.is_beyond_avx2(),
        kinds=("inner_product",),
        impl=r"^gemm",  # the wrapper of matmul; x64:gemm behind it is right
        condition=products.spatial_src_and_packed_wei,
        effect="weights packed in the wrong order: all values wrong",
        remedy="flatten the source and use matmul",
        source="measured: 3.13.2, AVX2, 143 of 4000 random problems, channels-last 4-D sources",
    ),
    Guard(
        id="inner-product-one-output",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=("inner_product",),
        impl=r"brg_matmul",
        condition=products.spatial_src_and_one_output,
        effect="weights packed in the wrong order: all values wrong",
        remedy="the next implementation, or flatten the source and use matmul",
        source="measured: 3.13.2, AVX2 to AMX, f32 and bf16, every channels-last source tried; u8 "
        "was right on the kernels that were offered",
    ),
    Guard(
        id="matmul-per-column-dst-scale",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=None,
        condition=products.per_channel_dst_scale,
        effect="the first scale is used for all columns",
        remedy="a binary div post-op per column",
        source="measured: 3.13.2, all levels, reference loop included",
    ),
    Guard(
        id="matmul-wei-scale-along-k",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=FAST,
        condition=products.wei_scale_of_single_rows,
        effect="scales along K are read as scales along N, or as one",
        remedy="weight scales along N, or f32 ones of several rows, (g, 1)",
        source="measured: 3.7.2 and 3.13.2, all levels; 3.13.2 in groups (1, 1), AVX2_VNNI and "
        "above: u8 by 4 bits where 4 divides K, s8 by 4 bits but for K of 1, 5, 9, ..., 10 of 30 "
        "problems of s8 by s8; u8 by s8 was right without zero point of the weights",
    ),
    Guard(
        id="matmul-wei-scale-along-k-reference",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=r"^ref",
        condition=products.wei_scale_of_single_rows,
        effect="the reference loop is wrong as well",
        remedy="weight scales along N, or f32 ones of several rows, (g, 1)",
        source="measured: 3.13.2, AVX2 and SSE41: masks of K and of K and N, without groups and in "
        "groups (1, 1), f32, f16 and bf16 scales, f32 and u8 dst",
    ),
    Guard(
        id="matmul-src-scale-unit-groups",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=None,
        condition=products.src_scale_unit_groups,
        effect="wrong values, from the reference loop",
        remedy="src scales in groups of several columns, or a binary mul per row",
        source="measured: 3.13.2, AVX2, groups (1, 1), f32 and u8 dst; 3.7.2 is right, and so "
        "are groups of 16, 32 and 64",
    ),
    Guard(
        id="matmul-scale-groups-along-n",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=None,
        condition=products.scale_groups_along_n,
        effect="wrong values, from the reference loop too",
        remedy="f32 scales in groups along K, (g, 1)",
        source="measured: 3.13.2, groups (1, 16), SSE41, AVX2, AVX2_VNNI, AVX512_CORE, "
        "AVX512_CORE_BF16 and AMX: all values, from the loop that alone takes it; 3.7.2 refuses it",
    ),
    Guard(
        id="matmul-scale-groups",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.is_beyond_avx2,
        kinds=MATMUL,
        impl=FAST,
        condition=products.scale_groups,
        effect="wrong values",
        remedy="no groups before oneDNN 3.13",
        source="measured: 3.7.2, brgemm, groups (1, 1) and (32, 1); AVX2 has only the "
        "reference loop, which is right",
    ),
    Guard(
        id="matmul-bare-nibbles",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.is_beyond_avx2,
        kinds=MATMUL,
        impl=JIT,
        condition=products.bare_nibbles,
        effect="the bits of the s32 sums are stored as f32",
        remedy="a scale, 1 too: `prepare` gives the source one",
        source="measured: 3.13.2, AVX2_VNNI, AVX512_CORE and above, every shape tried; s8 sources "
        "with AMX (emulated) alone; any scale, zero point, bias or post-op makes it right, and so "
        "does another type of dst",
    ),
    Guard(
        id="matmul-nibbles-of-one-row",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=MATMUL,
        impl=r"brg.*avx(?:512|10)",  # of the latter are kernels of AMX and FP16
        condition=products.nibbles_of_one_row,
        effect="wrong values in every row of src",
        remedy="the next implementation, or an even number of columns",
        source="measured: 3.13.2, AVX512_CORE and above, u8 source, N of 3 to 129, every shape "
        "tried, and AMX, u8 and s8, all of 808; even N was right, and so are K of 2 and more, and "
        "the kernel for AVX2_VNNI",
    ),
    Guard(
        id="reorder-per-channel-zero-point",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=("reorder",),
        impl=None,
        condition=products.per_channel_zero_point,
        effect="values match no per-channel model",
        remedy="one zero point for the tensor",
        source="measured: 3.13.2, f32 to u8, SSE41, AVX2, AVX2_VNNI, AVX512_CORE, "
        "AVX512_CORE_BF16 and AMX; refused by 3.7.2 when it runs",
    ),
)
