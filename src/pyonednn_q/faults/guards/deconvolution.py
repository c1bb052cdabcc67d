"""Faults of deconvolution."""

from __future__ import annotations

from pyonednn_q.faults.guards import windows
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    BEFORE_3_13,
    DECONV,
    FLOOR,
    STRIDED,
    Guard,
    any_isa,
)
from pyonednn_q.primitive.isa import InstructionSet

DECONVOLUTION_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="deconv-stride-src-zero-point",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.is_beyond_avx2,
        kinds=DECONV,
        impl=STRIDED,
        condition=windows.risky_stride_with_src_zero_point,
        effect="wrong values, with padding only now and then, from two threads on; at stride 4, or "
        "with wide padding, heap corruption or a crash",
        remedy="the next implementation, or u8 without zero point, its part as a full-tensor "
        "binary add",
        source="measured: 3.13.2, all levels above AVX2, random shapes; 3x3, stride 2, padding 1: "
        "219 of 1860 runs with two threads, none of 1860 with one; without padding none of 3288 at "
        "strides of 1 and 2; jit_deconvolution, which stands behind it, was right",
    ),
    Guard(
        id="deconv-stride-s8",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.is_beyond_avx2,
        kinds=DECONV,
        impl=rf"^(?!.*amx).*{STRIDED}",
        condition=windows.risky_stride_with_s8,
        effect="wrong values, with padding only now and then, from two threads on; at stride 4, or "
        "with wide padding, heap corruption or a crash",
        remedy="the next implementation, or u8 sources, shifted by 128, the shift's part as a "
        "full-tensor binary add",
        source="measured: 3.13.2, kernels for all levels above AVX2 but AMX, random shapes; at "
        "AVX2_VNNI 8 of 630 runs with padding, none of 762 without; 3 taps on a single place of "
        "src, and a dst longer than the least: wrong in every run; those of AMX were right on all "
        "of 775 problems",
    ),
    Guard(
        id="deconv-places-without-taps",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=DECONV,
        impl=r"^brg_deconv.*amx",
        condition=windows.places_without_taps,
        effect="bias, post-ops and zero point are missing where no tap meets the source",
        remedy="the next implementation",
        source="measured: 3.13.2, AMX, all of 504 problems with square kernels of 2 to 4 below the "
        "stride, 161 of 339 random ones, 1-D kernels of 1 among them; right is 0 alone",
    ),
    Guard(
        id="deconv-beyond-taps",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=DECONV,
        impl=r"jit_deconvolution|jit_uni_int8",
        condition=windows.beyond_taps,
        effect="what lies behind src is read, and its taps are added",
        remedy="the next implementation, or a dst of the least length",
        source="measured: 3.7.2 and 3.13.2, kernels for SSE4.1, AVX2, AVX2_VNNI and AVX-512, 278 "
        "of 1400 1-D problems, 53 of 418 random ones; those of brgemm were right, and so is the "
        "matrix product",
    ),
    Guard(
        id="deconv-kernel-below-stride",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=DECONV,
        impl=r"^(?!.*amx).*(?:jit_deconvolution|jit_uni_int8)",
        condition=windows.kernel_below_stride,
        effect="wrong values",
        remedy="u8 without zero point, its part as a full-tensor binary add",
        source="measured: 3.7.2 and 3.13.2, all levels, kernel 1 at stride 3, 2 at stride 4; "
        "on AVX2 208 and 204 of 220 problems, and none of 192 with a kernel one shorter; kernels "
        "of AMX were right on all of 1134 problems",
    ),
    Guard(
        id="deconv-1x1-comparison",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_avx512,
        kinds=DECONV,
        impl=r"jit_1x1_deconvolution",
        condition=windows.compared_product_of_one_tap,
        effect="a crash",
        remedy="the next implementation, or the comparison outside",
        source="measured: 3.7.2, AVX512_CORE and AVX512_CORE_VNNI, one channel's and a single "
        "operand, u8 and s32 dst; sums and products with such operands were right; 3.13.2 is right",
    ),
)
