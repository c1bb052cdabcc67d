"""Faults of post-ops: comparisons, sums and operands."""

from __future__ import annotations

from pyonednn_q.faults.guards import products
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    BEFORE_3_13,
    CONV,
    DECONV,
    FAST,
    FLOOR,
    MATMUL,
    Guard,
    any_isa,
    ymm,
)
from pyonednn_q.primitive.dense_facts import KINDS
from pyonednn_q.primitive.isa import InstructionSet

POST_OP_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="conv-sum-twice",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"jit_uni_int8:",
        condition=products.sum_with_ragged_channels,
        effect="a column where threads share a row is computed twice, and the sum added twice",
        remedy="the residual as a full-tensor binary add, or no zero points beside the sum",
        source="measured: 3.7.2 and 3.13.2, AVX2 (32 output channels) and SSE41 (16), 3 input "
        "channels, padded width, 1 and 3 rows: 24 of 1296 shapes",
    ),
    Guard(
        id="depthwise-sum-twice",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.vex_vnni,
        kinds=CONV,
        impl=r"jit_uni_int8:",
        condition=products.depthwise_sum,
        effect="a column where threads share a row is computed twice, and the sum added twice",
        remedy="a sum of scale 1 without zero point, or the residual as a full-tensor binary add",
        source="measured: 3.7.2 and 3.13.2, AVX2_VNNI and AMX, two threads, 121 of 674 problems, "
        "and AVX512_CORE_BF16 beside AVX_VNNI; a sum of scale 1 was right, and so are AVX2, "
        "AVX512_CORE and AVX512_CORE_VNNI",
    ),
    Guard(
        id="sum-off-16-bytes",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"jit_(?:dw|1x1):sse41",
        condition=products.sum_in_f32,
        effect="the process ends: the sum's earlier values are read as if they began on 16 bytes",
        remedy="the residual as a full-tensor binary add",
        source="measured: 3.7.2 and 3.13.2, SSE41, depthwise of 7, 9, 17 and 47 channels, kernels "
        "of 1 and 3; of 8 and 48 channels, and 1x1 of 16, with an out that begins 4 bytes later; "
        "other post-ops, jit:sse41 and int8 were right, and so is AVX2",
    ),
    Guard(
        id="comparison-without-code",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_avx512,
        kinds=KINDS,
        impl=r"^(?!jit_uni_int8|.*(?:avx2|sse41)$|.*(?<!br)gemm).*(?:brg|brdgmm|jit)",
        condition=products.comparison_of_ragged_channels,
        effect="code generation fails, or a call crashes; then the thread's every later primitive "
        "fails too",
        remedy="the next implementation, or channels filled up to a multiple of 16",
        source="measured: 3.7.2, all AVX-512 levels, every shape tried; an operand of one value "
        "was right, and so are the kernels for AVX2",
    ),
    Guard(
        id="comparison-in-gemm",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=("convolution", "inner_product", "matmul"),
        impl=r"(?<!br)gemm",
        condition=products.comparison,
        effect="code generation fails (3.7, more than one value), or wrong values (convolution, "
        "one value)",
        remedy="the implementations before it",
        source="measured: 3.7.2, all AVX-512 levels, every shape tried; 3.7.2 and 3.13.2, "
        "convolution, 13 of 272 problems",
    ),
    Guard(
        id="comparison-beside-dense",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_avx512,
        kinds=("binary", "pooling", "softmax"),
        impl=r"jit",
        condition=products.comparison,
        effect="code generation fails; then the thread's every later primitive fails too",
        remedy="oneDNN 3.13, or the comparison as a primitive of its own",
        source="measured: 3.7.2, AMX, f32, 19 channels (16 were right); a binary comparison itself "
        "is right, and an eltwise with one behind it",
    ),
    Guard(
        id="comparison-in-binary",
        since=FLOOR,
        until=None,
        isas=ymm,
        kinds=("binary",),
        impl=r"jit:uni",
        condition=products.comparison_stored_as_u8,
        effect="1 is stored where 0 and all below it should be",
        remedy="an f32 result, stored as u8 by a primitive behind it",
        source="measured: 3.7.2 and 3.13.2, AVX2 and AVX2_VNNI, rows of 8 values and more; s8 and "
        "f32 results were right, and so are SSE41, AVX-512, an operand of one value, a comparison "
        "that is the primitive itself, and u8 results of all other primitives",
    ),
    Guard(
        id="comparison-in-groups",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8|jit_deconvolution",
        condition=products.comparison_of_ragged_groups,
        effect="code generation fails; then the thread's every later primitive fails too",
        remedy="the next implementation",
        source="measured: 3.13.2, all AVX-512 levels, 8 and 24 channels a group on either side, "
        "every shape tried; a 1x1 deconvolution takes the process along",
    ),
    Guard(
        id="operand-in-avx2-vnni",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=KINDS,
        impl=r"brg.*avx2_vnni",
        condition=products.operand_of_ragged_channels,
        effect="a few wrong values, as if the operand was missing: a mask register holds what "
        "another kernel left there",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, the kernel for AVX2_VNNI on AVX-512 machines, where it "
        "comes first for few channels, and behind the one for AVX-512; 1, 3, 4, 5, 9, 12, 19 and "
        "37 channels, on 3.7.2 423 of 3100 problems of all kinds; none of 6772 with eltwise "
        "post-ops, none on an AVX2_VNNI machine",
    ),
    Guard(
        id="operand-of-one-place",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8|jit_uni_int8:|jit_deconvolution:avx(?:512|10)|jit:avx10",
        condition=products.operand_of_one_place,
        effect="operands are read as if neighbouring channels were places of one",
        remedy="a dst that is declared channels last, which are the same bytes",
        source="measured: 3.7.2 and 3.13.2, all levels, s8 and u8, kernels of 1 to 4, groups and "
        "depthwise, every problem of 2 images and such a dst; none with 1 image, an operand of one "
        "value or of dst's size, or a dst channels last, unless the library's cache hands out a "
        "primitive that was made for the row-major one; brgemm, gemm and f32 kernels are right",
    ),
    Guard(
        id="operand-of-gapped-rows",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=MATMUL,
        impl=FAST,
        condition=products.operand_of_gapped_rows,
        effect="operands are read from places that the gaps move along",
        remedy="a dst without gaps",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_BF16 beside AVX_VNNI, u8, s8 and f32, "
        "all kernels, one to three dimensions of batches: 509 of about 9000 problems with gaps, "
        "operands of every extent; none of about 10000 without, and gaps in src do no harm",
    ),
    Guard(
        id="depthwise-to-bf16",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.has("AVX512_CORE_VNNI") and not isa.has("AVX512_CORE_BF16"),
        kinds=CONV,
        impl=r"jit_int8:avx512_core_vnni",
        condition=products.depthwise_to_bf16,
        effect="a sixth of all values are rounded up that should not be: by one bf16 step",
        remedy="an f32 result, converted by a primitive behind it",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_VNNI, which emulates the conversion; the "
        "kernel of that name for AVX512_CORE, all others, s8 and zero points are right",
    ),
    Guard(
        id="mean-beyond-16-bits",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.has("AVX2"),
        kinds=("pooling",),
        impl=r"jit_int:avx2",
        condition=products.pooled_beyond_16_bits,
        effect="values above 32767 are stored as 0, not as 255",
        remedy="a clip to the type's range as the last post-op",
        source="measured: 3.7.2 and 3.13.2, AVX2, and behind the kernel for AVX-512 on AVX512_CORE "
        "and AMX, every value; s8 and the kernels for SSE41 and AVX-512 were right up to 2^31",
    ),
    Guard(
        id="mean-beyond-32-bits",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("pooling",),
        impl=r"jit_int",
        condition=products.pooled_beyond_32_bits,
        effect="values of 2^31 and above are stored as the type's least value",
        remedy="a clip to the type's range as the last post-op",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2, AVX512_CORE and AMX, every value",
    ),
)
