"""Faults of convolution and deconvolution, and those of post-ops that more primitives share."""

from __future__ import annotations

from pyonednn_q.compose import guard_conditions as attributes
from pyonednn_q.compose import guard_operands as operands
from pyonednn_q.compose import guard_windows as windows
from pyonednn_q.compose.guard import Guard
from pyonednn_q.compose.guard_scope import (
    AFTER_3_7,
    AMX,
    BEFORE_3_13,
    CONV,
    DECONV,
    DENSE,
    FAST,
    FLOOR,
    STRIDED,
    any_isa,
    avx512,
    has_amx,
    has_avx2_vnni,
    has_vnni,
    vector,
)

CONVOLUTION_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="conv-one-column-out",
        since=FLOOR,
        until=None,
        isas=has_amx,
        kinds=CONV,
        impl=r"brg.*amx",  # the older AMX kernel behind it is right
        condition=windows.one_column_out,
        effect="wrong values",
        remedy="the next implementation, or swap height and width",
        source="measured: 3.7.2 and 3.13.2, AMX, 224 of 350 shapes",
    ),
    Guard(
        id="conv-window-outside",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=(*CONV, *DECONV),
        impl=r"brg",
        condition=windows.window_outside,
        effect="a crash, or wrong values",
        remedy="the next implementation, or less padding",
        source="measured: 3.7.2 and 3.13.2, AMX, 18 of 207 and 18 of 208 problems, most of them "
        "crashes; below AMX 20 of 3227, most of them with src zero point; 3.7.2 crashed in f32 too",
    ),
    Guard(
        id="conv-dilated-src-zero-point",
        since=FLOOR,
        until=None,
        isas=has_amx,
        kinds=CONV,
        impl=r"^jit:.*amx",
        condition=windows.beyond_src_with_src_zero_point,
        effect="heap corruption, a crash or wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, AMX, the older of the two kernels, 4 of 79 and 3 of 72 "
        "problems, none of 353 others with src zero point",
    ),
    Guard(
        id="conv-gemm-packed-depth",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=has_amx,
        kinds=CONV,
        impl=r"^x64:gemm",
        condition=windows.packed_depth,
        effect="wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2, AMX, 64 input and 19 or 37 output channels, 13 problems; 1, 3, "
        "16, 17 and 100 input channels were right, and so are larger kernels",
    ),
    Guard(
        id="grouped-conv-src-zero-point",
        since=FLOOR,
        until=None,
        isas=has_amx,
        kinds=(*CONV, *DECONV),  # a deconvolution of stride 1 runs the same convolution kernel
        impl=AMX,
        condition=windows.ragged_groups_with_src_zero_point,
        effect="wrong values",
        remedy="the next implementation, or the zero point's part as a full-tensor binary add",
        source="measured: 3.7.2 and 3.13.2, AMX, random shapes; of 16 channels a group, 8 of 49 "
        "and 13 of 60 with kernels wider than 3",
    ),
    Guard(
        id="one-channel-s8-src-zero-point",
        since=FLOOR,
        until=None,
        isas=avx512,
        kinds=(*CONV, *DECONV),
        impl=r"brg_conv_fwd:avx512_core(?:_vnni)?$",
        condition=windows.one_channel_in_odd_blocks,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.7.2 and 3.13.2, every AVX-512 level, 1 or 2 groups, 33 to 48, 65 to "
        "112, 129 to 144 and 200 output channels, all of 44 shapes; 64, 128 and 192 were right, "
        "and so are 2 input channels",
    ),
    Guard(
        id="one-channel-s8-padding",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=avx512,
        kinds=(*CONV, *DECONV),
        impl=r"brg_conv_fwd:avx512_core(?:_vnni)?$",
        condition=windows.one_channel_padded,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.7.2, every AVX-512 level, 1 or 2 groups, all of 24 problems with "
        "padded width and 12 of 72 with padded height too; 2 input channels were right",
    ),
    Guard(
        id="conv-1x1-s8-src-zero-point",
        since=AFTER_3_7,
        until=None,
        isas=avx512,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8_1x1:avx512_core$",
        condition=windows.s8_with_src_zero_point,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.13.2, AVX512_CORE, all of 276 shapes; the kernel for VNNI was right",
    ),
    Guard(
        id="conv-1x1-five-pixels",
        since=FLOOR,
        until=None,
        isas=avx512,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8_1x1:avx512_core$",
        condition=windows.five_pixels,
        effect="wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE, 79 of 255 shapes with 5 places in dst, "
        "256 output channels or groups; none of 3570 with 1 to 30 other places; the kernel for "
        "VNNI was right",
    ),
    Guard(
        id="deconv-stride-src-zero-point",
        since=AFTER_3_7,
        until=None,
        isas=vector,
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
        isas=vector,
        kinds=DECONV,
        impl=rf"^(?!.*amx).*{STRIDED}",
        condition=windows.risky_stride_with_s8,
        effect="wrong values, with padding only now and then, from two threads on; at stride 4, or "
        "with wide padding, heap corruption or a crash",
        remedy="the next implementation, or u8 sources, shifted by 128, the shift's part as a "
        "full-tensor binary add",
        source="measured: 3.13.2, kernels for all levels above AVX2 but AMX, random shapes; at "
        "AVX2_VNNI 8 of 630 runs with padding, none of 762 without",
    ),
    Guard(
        id="deconv-places-without-taps",
        since=AFTER_3_7,
        until=None,
        isas=has_amx,
        kinds=DECONV,
        impl=r"^brg_deconv.*amx",
        condition=windows.places_without_taps,
        effect="bias, post-ops and zero point are missing where no tap meets the source",
        remedy="the next implementation",
        source="measured: 3.13.2, AMX, all of 504 problems with square kernels of 2 to 4 below the "
        "stride, 161 of 339 random ones, 1-D kernels of 1 among them; right is 0 alone",
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
        "on AVX2 208 and 204 of 220 problems, and none of 192 with a kernel one shorter; the AMX "
        "kernel was right",
    ),
    Guard(
        id="conv-per-channel-dst-scale",
        since=FLOOR,
        until=(3, 9, 0),
        isas=any_isa,
        kinds=CONV,
        impl=None,
        condition=attributes.per_channel_dst_scale,
        effect="multiplied by the scale instead of divided",
        remedy="a binary div post-op per channel",
        source="measured: 3.7.2, all levels, reference loop included; refused since 3.9",
    ),
    Guard(
        id="depthwise-wei-zero-point",
        since=FLOOR,
        until=(3, 9, 0),
        isas=has_vnni,
        kinds=CONV,
        impl=FAST,
        condition=windows.depthwise_wei_zero_point,
        effect="the zero point of the weights is ignored",
        remedy="weights without zero point",
        source="measured: 3.7.2, all levels with VNNI; refused since 3.9",
    ),
    Guard(
        id="conv-bf16-bias",
        since=FLOOR,
        until=None,
        isas=avx512,
        kinds=CONV,
        impl=FAST,
        condition=windows.int8_with_bf16_bias,
        effect="the bias is read past its end",
        remedy="an f32 bias",
        source="measured: 3.7.2 and 3.13.2, all AVX-512 levels",
    ),
    Guard(
        id="conv-sum-twice",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"jit_uni_int8:",
        condition=operands.sum_with_ragged_channels,
        effect="a column where threads share a row is computed twice, and the sum added twice",
        remedy="the residual as a full-tensor binary add, or no zero points beside the sum",
        source="measured: 3.7.2 and 3.13.2, AVX2 (32 output channels) and SSE41 (16), 3 input "
        "channels, padded width, 1 and 3 rows: 24 of 1296 shapes",
    ),
    Guard(
        id="depthwise-sum-twice",
        since=FLOOR,
        until=None,
        isas=has_avx2_vnni,
        kinds=CONV,
        impl=r"jit_uni_int8:",
        condition=operands.depthwise_sum,
        effect="a column where threads share a row is computed twice, and the sum added twice",
        remedy="a sum of scale 1 without zero point, or the residual as a full-tensor binary add",
        source="measured: 3.7.2 and 3.13.2, AVX2_VNNI and AMX, two threads, 121 of 674 problems; a "
        "sum of scale 1 was right, and so are AVX2, AVX512_CORE and AVX512_CORE_VNNI",
    ),
    Guard(
        id="comparison-without-code",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=avx512,
        kinds=DENSE,
        impl=r"^(?!jit_uni_int8|.*(?:avx2|sse41)$|.*(?<!br)gemm).*(?:brg|brdgmm|jit)",
        condition=operands.comparison_of_ragged_channels,
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
        isas=avx512,
        kinds=("convolution", "inner_product", "matmul"),
        impl=r"(?<!br)gemm",
        condition=operands.comparison,
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
        isas=avx512,
        kinds=("binary", "pooling", "softmax"),
        impl=r"jit",
        condition=operands.comparison,
        effect="code generation fails; then the thread's every later primitive fails too",
        remedy="oneDNN 3.13, or the comparison as a primitive of its own",
        source="measured: 3.7.2, AMX, f32, 19 channels (16 were right); a binary comparison itself "
        "is right, and an eltwise with one behind it",
    ),
    Guard(
        id="comparison-in-groups",
        since=AFTER_3_7,
        until=None,
        isas=avx512,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8|jit_deconvolution",
        condition=operands.comparison_of_ragged_groups,
        effect="code generation fails; then the thread's every later primitive fails too",
        remedy="the next implementation",
        source="measured: 3.13.2, all AVX-512 levels, 8 and 24 channels a group, every shape tried",
    ),
    Guard(
        id="operand-in-avx2-vnni",
        since=AFTER_3_7,
        until=None,
        isas=avx512,
        kinds=DENSE,
        impl=r"brg.*avx2_vnni",
        condition=operands.operand_of_ragged_channels,
        effect="a few wrong values, as if bias and operand were missing; depending on what memory "
        "holds",
        remedy="the next implementation",
        source="measured: 3.13.2, the kernel for AVX2_VNNI on AVX-512 machines, where it comes "
        "first for few channels; 1, 3, 4, 5, 9, 12, 19 and 37 channels; none of 6772 with eltwise "
        "post-ops, none on an AVX2_VNNI machine",
    ),
)
