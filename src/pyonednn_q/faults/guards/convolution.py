"""Faults of convolution, and those that it shares with deconvolution."""

from __future__ import annotations

from pyonednn_q.faults.guards import products, windows
from pyonednn_q.faults.guards.guard import (
    AFTER_3_7,
    AMX,
    BEFORE_3_13,
    CONV,
    DECONV,
    FAST,
    FLOOR,
    Guard,
    any_isa,
    bare_avx512,
)
from pyonednn_q.primitive.isa import InstructionSet

# The kernel that copies a single input channel's rows beside each other.
_ONE_CHANNEL = r"brg_conv_fwd:(?!.*amx).*512"

CONVOLUTION_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="conv-one-column-out",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=r"brg.*amx",  # the older AMX kernel behind it is right
        condition=windows.one_column_out,
        effect="wrong values",
        remedy="the next implementation, or swap height and width",
        source="measured: 3.7.2 and 3.13.2, AMX, 224 of 350 shapes",
    ),
    Guard(
        id="conv-one-column-out-of-one-channel",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=r"brg_conv",
        condition=windows.one_column_out_of_one_channel,
        effect="wrong values in all rows but the first",
        remedy="the next implementation, or swap height and width",
        source="measured: 3.7.2 and 3.13.2, every AVX-512 level, 11 of 32 shapes, f32 and bf16 17 "
        "of 124; depthwise kernels and those for AVX2 were right, and so were 2 channels and more",
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
        id="depthwise-window-outside",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"brdgmm",
        condition=windows.shifted_window_outside,
        effect="wrong values, also where windows meet src",
        remedy="the next implementation, or less padding",
        source="measured: 3.7.2 and 3.13.2, AVX512_CORE_VNNI, kernels one row high whose rows lie "
        "in the padding, 9 of 379 problems; u8 without zero point was right",
    ),
    Guard(
        id="conv-dilated-src-zero-point",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=r"^jit:.*amx",
        condition=windows.beyond_src_with_src_zero_point,
        effect="heap corruption, a crash or wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, AMX, the older of the two kernels: dilated, 4 of 79 "
        "and 3 of 72 problems; not dilated, 2 of 74 on 3.7.2 and none of 15 on 3.13.2",
    ),
    Guard(
        id="conv-rows-in-padding-src-zero-point",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=r"^jit:.*amx",
        condition=windows.even_rows_of_odd_in_padding,
        effect="wrong values in rows that meet the padding, or a crash",
        remedy="the next implementation",
        source="measured: 3.7.2 and 3.13.2, AMX, the older of the two kernels, u8 and s8, dilated "
        "or not: 33 of 52 and 10 of 13 problems, and crashes; of 2388 with other numbers of "
        "rows only 2 whose kernel reaches further than src; the newer kernel was right",
    ),
    Guard(
        id="conv-dilated-padded-src-zero-point",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=r"brg_conv_fwd:(?!.*amx).*512",
        condition=windows.dilated_and_padded_with_src_zero_point,
        effect="heap corruption, a crash or wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2, AVX512_CORE and above, rows that are dilated by 3, one column of "
        "dst; dilated by 2 and with more columns no crash was seen, and none by 3.13.2; beside AMX "
        "the same kernels crash, and its own were right on all of 1010 problems",
    ),
    Guard(
        id="conv-gemm-packed-depth",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_amx,
        kinds=CONV,
        impl=r"^x64:gemm",
        condition=windows.packed_depth,
        effect="wrong values",
        remedy="the next implementation",
        source="measured: 3.7.2, AMX, 64 input and 19 or 37 output channels, 13 problems; 1, 3, "
        "16, 17 and 100 input channels were right, and so are larger kernels",
    ),
    Guard(
        id="conv-gemm-transposed-wei",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=lambda isa: isa.has("AVX2"),
        kinds=CONV,
        impl=r"^x64:gemm",
        condition=windows.transposed_wei,
        effect="wrong values",
        remedy="u8 without zero point, its part as a full-tensor binary add",
        source="measured: 3.7.2, AVX512_CORE and AVX512_CORE_BF16, 313 of 4600 pairs of numbers of "
        "outputs, inputs, groups and taps; 3.13 was right, and so are deconvolutions",
    ),
    Guard(
        id="gemm-not-channels-last",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=(*CONV, *DECONV),
        impl=r"x64:gemm_s8",
        condition=windows.not_channels_last,
        effect="wrong values",
        remedy="src and dst in channels-last order",
        source="measured: 3.7.2 and 3.13.2, all levels, all row-major problems that it takes: "
        "those with a single channel or place",
    ),
    Guard(
        id="grouped-conv-src-zero-point",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_amx,
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
        isas=InstructionSet.has_avx512,
        kinds=(*CONV, *DECONV),
        impl=_ONE_CHANNEL,
        condition=windows.one_channel_in_odd_blocks,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.7.2 and 3.13.2, every AVX-512 level, 33 to 48, 65 to 112, 129 to 144 "
        "and 200 output channels, all of 44 shapes; 64, 128 and 192 were right, and so are 2 input "
        "channels; beside AMX the same kernels are wrong, and its own were right: 289 problems on "
        "3.7.2, 522 on 3.13.2",
    ),
    Guard(
        id="one-channel-groups-in-odd-blocks",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=_ONE_CHANNEL,
        condition=windows.one_channel_groups_in_odd_blocks,
        effect="wrong values in every group but the first",
        remedy="the next implementation, or u8 without zero point, its part as a full-tensor "
        "binary add",
        source="measured: 3.7.2, 3.13.1 and 3.13.2, every AVX-512 level, 2 to 8 groups, 1-D to "
        "3-D: 5867 of 35683 problems of a scan over strides, paddings and 2 to 256 outputs a "
        "group; none with dilated rows, none with 2 input channels, and no deconvolution; 49 to 64 "
        "outputs from 4 threads on, two fifths of a scan with 16; beside AMX the same kernels are "
        "wrong, and its own were right on all of 396 problems",
    ),
    Guard(
        id="one-channel-s8-padding",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=InstructionSet.has_avx512,
        kinds=(*CONV, *DECONV),
        impl=_ONE_CHANNEL,
        condition=windows.one_channel_padded,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.7.2, every AVX-512 level, 1 or 2 groups, all of 24 problems with "
        "padded width and 12 of 72 with padded height too; 2 input channels were right; beside AMX "
        "the same kernels are wrong, and its own were right on all of 762 problems",
    ),
    Guard(
        id="depthwise-eight-taps",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=lambda isa: isa.has("AVX2"),
        kinds=(*CONV, *DECONV),
        impl=FAST,
        condition=windows.eight_taps,
        effect="wrong values",
        remedy="u8 without zero point, its part as a full-tensor binary add",
        source="measured: 3.7.2, AVX2 and AVX2_VNNI, 8, 16, 24 and 32 channels, and 2x2x2 on "
        "AVX512_CORE, every implementation but the reference loop; 192 and 256 taps on AVX2_VNNI; "
        "4, 9, 16, 64 and 128 were right",
    ),
    Guard(
        id="conv-1x1-s8-src-zero-point",
        since=AFTER_3_7,
        until=None,
        isas=bare_avx512,
        kinds=(*CONV, *DECONV),
        impl=r"jit_int8_1x1:avx512_core$",
        condition=windows.pointwise_s8_with_src_zero_point,
        effect="wrong values",
        remedy="the next implementation, or u8 sources, shifted by 128",
        source="measured: 3.13.2, AVX512_CORE, all of 276 shapes; the kernel for VNNI was right",
    ),
    Guard(
        id="conv-1x1-five-pixels",
        since=FLOOR,
        until=None,
        isas=InstructionSet.has_avx512,
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
        id="conv-1x1-strided-odd-channels",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"jit_uni_int8_1x1:sse41",
        condition=windows.strided_1x1_of_eighths,
        effect="now and then a thread overwrites the source of the next one: wrong values",
        remedy="the next implementation, or a number of input channels that 8 divides",
        source="seen: 3.7.2 and 3.13.2, SSE41, 2 to 8 threads, 1, 3, 4, 17, 20 and 33 channels, "
        "one call in 2000 to 100000: the tail of a place's channels is copied as 8 bytes",
    ),
    Guard(
        id="conv-1x1-strided-uneven-channels",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=CONV,
        impl=r"jit_uni_int8_1x1:avx2",
        condition=windows.strided_1x1_of_sixteenths,
        effect="now and then a thread overwrites the source of the next one: wrong values",
        remedy="the next implementation, or a number of input channels that 16 divides",
        source="seen: 3.7.2 and 3.13.2, AVX2 and AVX2_VNNI, 2 to 8 threads, 1, 3, 4, 17, 20 and 33 "
        "channels, one call in 2000 to 100000; 3.7.2, AVX2, two threads, 8 channels, up to one in "
        "11; read: up to 3.13 the tail of a place's channels is copied as 16 bytes, so that 24 are "
        "struck, too; none of 190000 of the kernel for AVX-512, which copies as many as there are",
    ),
    Guard(
        id="conv-per-channel-dst-scale",
        since=FLOOR,
        until=(3, 9, 0),
        isas=any_isa,
        kinds=CONV,
        impl=None,
        condition=products.per_channel_dst_scale,
        effect="multiplied by the scale instead of divided",
        remedy="a binary div post-op per channel",
        source="measured: 3.7.2, all levels, reference loop included; refused since 3.9",
    ),
    Guard(
        id="depthwise-wei-zero-point",
        since=FLOOR,
        until=(3, 9, 0),
        isas=InstructionSet.has_vnni,
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
        isas=InstructionSet.has_avx512,
        kinds=CONV,
        impl=FAST,
        condition=windows.int8_with_bf16_bias,
        effect="the bias is read past its end",
        remedy="an f32 bias",
        source="measured: 3.7.2 and 3.13.2, all AVX-512 levels",
    ),
    Guard(
        id="f32-to-bf16",
        since=AFTER_3_7,
        until=None,
        isas=InstructionSet.has_amx,
        kinds=(*CONV, *DECONV),
        impl=r"brg.*amx",
        condition=windows.f32_stored_smaller,
        effect="a crash (1x1), or the primitive cannot be made",
        remedy="the next implementation, which AMX would not make faster",
        source="measured: 3.13.2, AMX, every shape tried; 3.7.2 offers no kernel",
    ),
    Guard(
        id="conv-f32-by-bf16",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=(*CONV, *DECONV),
        impl=r"brg",
        condition=windows.float_by_bf16_stored_otherwise,
        effect="nearly all values are wrong",
        remedy="an f32 dst, or src and weights of one type",
        source="measured: 3.13.2, AVX512_CORE_BF16, its kernels for AVX-512 and AVX2, every shape "
        "tried, 3x3 and 1x1, 2-D and 3-D, into u8, s8, s32 and bf16; f32 was right, with bias, sum "
        "and operand, too, and so is matmul; AVX2, 3.7.2 and, into u8, 3.12.1 offer no kernel",
    ),
    Guard(
        id="conv-padding-left-over",
        since=FLOOR,
        until=None,
        isas=lambda isa: isa.has("AVX2"),
        kinds=CONV,
        impl=r"brg_conv_fwd:(?!.*amx)",
        condition=windows.padding_left_over,
        effect="values of a column are added to what lies in dst, or memory is overwritten",
        remedy="the next implementation; an s32 or f32 dst without sum; or padding of the source",
        source="measured: 3.7.2 and 3.13.2, AVX2, AVX2_VNNI and every AVX-512 level, one thread or "
        "more, 1-D to 3-D, up to 128 output channels, 8 bits, f32 and bf16: 62 of 400 convolutions "
        "that match, and many more end the process; none of 11 900 others; s32 and f32 without sum "
        "were right; beside AMX the same kernels are wrong, or crash, and its own were right on "
        "all of 1511 problems",
    ),
)
