"""On which windows of convolutions and deconvolutions faults show, and where they end."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.faults.guards import windows
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_borders.make import (
    DST,
    PLAIN,
    SRC,
    WEI,
    Border,
    after,
    conv,
    deconv,
    eltwise,
    grouped,
    matmul,
    single,
)

CHANNELS_FIRST = TensorSpec.dense((1, 16, 6, 6), "u8")
WIDE = conv((1, 16, 6, 6), (16, 16, 3, 3))

BORDERS: list[Border] = [
    (
        windows.one_column_out,
        [
            (conv((1, 4, 5, 3), (4, 4, 2, 3), stride=(2, 2)), PLAIN),
            (conv((1, 4, 4, 3), (4, 4, 3, 2), stride=(1, 2)), PLAIN),
            (conv((1, 4, 2, 1, 3), (4, 4, 1, 1, 3), stride=(1, 1, 2)), PLAIN),
        ],
        [
            (conv((1, 4, 3), (4, 4, 3), stride=2), PLAIN),  # one dimension
            (conv((1, 4, 5, 4), (4, 4, 2, 2), stride=2), PLAIN),  # two columns
            (conv((1, 4, 3, 3), (4, 4, 3, 3), stride=2), PLAIN),  # one row
            (conv((1, 4, 5, 1), (4, 4, 2, 1), stride=2), PLAIN),  # kernel of width 1
            (conv((1, 4, 5, 3), (4, 4, 2, 3), stride=(2, 1)), PLAIN),  # stride 1
            (deconv((1, 4, 3, 1), (4, 4, 1, 1), stride=2), PLAIN),
        ],
    ),
    (
        windows.one_column_out_of_one_channel,
        [(conv((1, 2, 5, 3), (2, 4, 1, 2, 3), stride=2), PLAIN)],
        [
            (conv((1, 4, 5, 3), (2, 4, 2, 2, 3), stride=2), PLAIN),
            (conv((1, 2, 5, 3), (2, 4, 1, 2, 3)), PLAIN),
        ],
    ),
    (
        windows.shifted_window_outside,
        [
            (conv((1, 4, 1), (4, 4, 1), "s8", padding=1), PLAIN),
            (conv((1, 4, 1), (4, 4, 1), padding=1), SRC),
        ],
        [
            (conv((1, 4, 1), (4, 4, 1), padding=1), PLAIN),
            (conv((1, 4, 2), (4, 4, 2), "s8", padding=1), PLAIN),
        ],
    ),
    (
        windows.ragged_groups_with_src_zero_point,
        [
            (grouped(2, 15, 8), SRC),
            (grouped(2, 17, 8), SRC),
            (grouped(2, 16, 8, kernel=(1, 4)), SRC),
            (deconv((1, 32, 5, 5), (2, 8, 16, 1, 4)), SRC),
            (deconv((1, 30, 5, 5), (2, 8, 15, 1, 4), stride=2), SRC),
            (conv((1, 2, 6, 6), (2, 2, 1, 3, 3)), SRC),
        ],
        [
            (grouped(2, 15, 8), PLAIN),
            (grouped(1, 15, 8), SRC),
            (grouped(2, 16, 8, kernel=(4, 3)), SRC),
            (grouped(2, 32, 8, kernel=(1, 4)), SRC),
            (grouped(8, 1, 1), SRC),  # depthwise
            (deconv((1, 32, 5, 5), (2, 8, 16, 1, 4), stride=2), SRC),
            (matmul((4, 15), (15, 8)), SRC),
        ],
    ),
    (
        windows.beyond_src_with_src_zero_point,
        [
            (conv((1, 4, 4, 9), (4, 4, 3, 3), dilation=2, padding=1), SRC),
            (conv((1, 4, 4, 9), (4, 4, 5, 3), padding=1), SRC),
        ],
        [
            (conv((1, 4, 4, 9), (4, 4, 3, 3), dilation=2, padding=1), PLAIN),
            (conv((1, 4, 5, 9), (4, 4, 3, 3), dilation=2, padding=1), SRC),
            (conv((1, 4, 5, 9), (4, 4, 5, 3), padding=1), SRC),
        ],
    ),
    (
        windows.even_rows_of_odd_in_padding,
        [
            (conv((1, 4, 7, 9), (4, 4, 3, 3), dilation=2, padding=((2, 4), (0, 0))), SRC),
            (conv((1, 4, 9, 9), (4, 4, 7, 3), padding=((2, 6), (0, 0))), SRC),
            (conv((1, 4, 3, 7, 9), (4, 4, 1, 5, 3), padding=((0, 0), (2, 4), (0, 0))), SRC),
            (conv((1, 4, 9, 9), (4, 4, 9, 3), stride=2, padding=((4, 8), (0, 0))), SRC),
        ],
        [
            (conv((1, 4, 7, 9), (4, 4, 3, 3), dilation=2, padding=((2, 4), (0, 0))), PLAIN),
            (conv((1, 4, 8, 9), (4, 4, 3, 3), dilation=2, padding=((2, 4), (0, 0))), SRC),
            (conv((1, 4, 7, 9), (4, 4, 3, 3), dilation=2, padding=((2, 3), (0, 0))), SRC),
            (conv((1, 4, 7, 9), (4, 4, 3, 3), dilation=2, padding=((4, 2), (0, 0))), SRC),
            (conv((1, 4, 8, 9), (4, 4, 6, 3), padding=((1, 5), (0, 0))), SRC),
            (conv((1, 4, 7), (4, 4, 3), dilation=2, padding=((2, 4),)), SRC),
        ],
    ),
    (
        windows.packed_depth,
        [
            (conv((1, 64, 3, 3), (15, 64, 1, 1)), PLAIN),
            (conv((1, 128, 3, 3), (17, 128, 1, 1)), PLAIN),
            (conv((1, 128, 3, 3), (2, 20, 64, 1, 1)), PLAIN),
        ],
        [
            (conv((1, 64, 3, 3), (16, 64, 1, 1)), PLAIN),
            (conv((1, 32, 3, 3), (15, 32, 1, 1)), PLAIN),
            (conv((1, 64, 3, 3), (15, 64, 1, 2)), PLAIN),
            (conv((1, 128, 3, 3), (2, 16, 64, 1, 1)), PLAIN),
        ],
    ),
    (
        windows.transposed_wei,
        [
            (conv((1, 3, 5, 5), (4, 3, 4, 4), "s8"), PLAIN),
            (conv((1, 3, 5, 9), (4, 3, 4, 8)), SRC),
            (conv((1, 64, 3, 3), (8, 64, 1, 1), "s8"), PLAIN),
            (conv((1, 128, 3, 3), (3, 128, 1, 1), "s8"), PLAIN),
            (conv((1, 128, 3, 3), (2, 5, 64, 1, 1), "s8"), PLAIN),
            (conv((1, 8, 3, 3), (8, 8, 1, 1), "s8"), PLAIN),
            (conv((1, 136, 3, 3), (8, 136, 1, 1), "s8"), PLAIN),
            (conv((1, 2, 3, 3), (8, 2, 2, 2), "s8"), PLAIN),
        ],
        [
            (conv((1, 3, 5, 5), (4, 3, 4, 4)), PLAIN),
            (conv((1, 3, 5, 5), (4, 3, 3, 5), "s8"), PLAIN),
            (conv((1, 3, 5, 9), (4, 3, 3, 8), "s8"), PLAIN),
            (conv((1, 64, 3, 3), (12, 64, 1, 1), "s8"), PLAIN),
            (conv((1, 32, 3, 3), (8, 32, 1, 1), "s8"), PLAIN),
            (conv((1, 120, 3, 3), (8, 120, 1, 1), "s8"), PLAIN),
            (conv((1, 132, 3, 3), (8, 132, 1, 1), "s8"), PLAIN),
            (conv((1, 64, 3, 3), (8, 64, 1, 2), "s8"), PLAIN),
            (conv((1, 8, 3, 3), (12, 8, 1, 1), "s8"), PLAIN),
            (conv((1, 9, 3, 3), (8, 9, 1, 1), "s8"), PLAIN),
            (conv((1, 4, 3, 3), (8, 4, 3, 3), "bf16", wei="bf16", dst="f32"), SRC),
            (deconv((1, 3, 5, 5), (4, 3, 4, 4), "s8"), PLAIN),
        ],
    ),
    (
        windows.not_channels_last,
        [
            (replace(WIDE, src=CHANNELS_FIRST), PLAIN),
            (replace(WIDE, dst=TensorSpec.dense(WIDE.dst.dims, "u8")), PLAIN),
        ],
        [(WIDE, PLAIN), (replace(WIDE, src=TensorSpec(WIDE.src.dims, "u8")), PLAIN)],
    ),
    (
        windows.places_without_taps,
        [
            (deconv((1, 4, 3), (4, 4, 2), stride=3, bias="f32"), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), stride=3), after(eltwise("relu"))),
            (deconv((1, 4, 3), (4, 4, 2), stride=3), DST),
            (deconv((1, 4, 3, 3), (4, 4, 3, 1), stride=2), DST),
        ],
        [
            (deconv((1, 4, 3), (4, 4, 2), stride=3), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), stride=3, bias="f32"), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), stride=3, dilation=2, bias="f32"), PLAIN),
            (conv((1, 4, 9), (4, 4, 2), stride=3, bias="f32"), PLAIN),
        ],
    ),
    (
        windows.kernel_below_stride,
        [
            (deconv((1, 4, 3), (4, 4, 2), "s8", stride=4), PLAIN),
            (deconv((1, 4, 3), (4, 4, 1), stride=3), SRC),
            (deconv((1, 4, 3, 3), (4, 4, 3, 1), stride=3), SRC),
        ],
        [
            (deconv((1, 4, 3), (4, 4, 2), stride=4), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=4), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), "s8", stride=4, dilation=2), PLAIN),
            (conv((1, 4, 9), (4, 4, 1), "s8", stride=3), PLAIN),
        ],
    ),
    (
        windows.beyond_taps,
        [
            (deconv((1, 4, 3), (4, 4, 2), tail=1, stride=2), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), tail=1, stride=3, padding=((1, 0),)), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), tail=2, stride=3, padding=((0, 1),)), PLAIN),
        ],
        [
            (deconv((1, 4, 3), (4, 4, 2), stride=2), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), tail=1, stride=3, padding=((0, 1),)), PLAIN),
            (deconv((1, 4, 3), (4, 4, 2), stride=3, padding=((1, 0),)), PLAIN),
            (conv((1, 4, 9), (4, 4, 2)), PLAIN),
        ],
    ),
    (
        windows.risky_stride_with_s8,
        [
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=3), PLAIN),
            (deconv((1, 4, 3), (4, 4, 1), "s8", stride=2), PLAIN),
            (deconv((1, 4, 3), (4, 4, 5), "s8", stride=2), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=2, padding=((0, 1),)), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=2, padding=((1, 0),)), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=2, dilation=2), PLAIN),
            (deconv((1, 4, 3), (2, 2, 2, 3), "s8", stride=2), PLAIN),
            (deconv((1, 4, 1), (4, 4, 3), "s8", stride=2), PLAIN),
            (deconv((1, 4, 3), (4, 4, 4), "s8", tail=1, stride=2), PLAIN),
            (deconv((1, 4, 3, 3), (4, 4, 1, 3), "s8", stride=(1, 3)), PLAIN),
        ],
        [
            (deconv((1, 4, 3), (4, 4, 3), stride=3), PLAIN),
            (deconv((1, 4, 3), (4, 4, 5), "s8", padding=1), PLAIN),
            *((deconv((1, 4, 3), (4, 4, kernel), "s8", stride=2), PLAIN) for kernel in (2, 3, 4)),
            *((deconv((1, 4, 3), (2, 2, 2, kernel), "s8", stride=2), PLAIN) for kernel in (2, 4)),
            *((deconv((1, 4, 1), (4, 4, kernel), "s8", stride=2), PLAIN) for kernel in (2, 4)),
            (deconv((1, 4, 1, 3), (4, 4, 3, 3), "s8", stride=(1, 2)), PLAIN),
            (deconv((1, 4, 3, 3), (4, 4, 5, 3), "s8", stride=(1, 2)), PLAIN),
            (conv((1, 4, 9), (4, 4, 3), "s8", stride=3), PLAIN),
        ],
    ),
    (
        windows.risky_stride_with_src_zero_point,
        [(deconv((1, 4, 3), (4, 4, 3), stride=3), SRC)],
        [
            (deconv((1, 4, 3), (4, 4, 3), "s8", stride=3), PLAIN),
            (deconv((1, 4, 3), (4, 4, 3), stride=2), SRC),
        ],
    ),
    (
        windows.one_channel_in_odd_blocks,
        [(single(oc), SRC) for oc in (33, 48, 65, 112, 129, 176, 200)]
        + [(single(40, 2), SRC), (deconv((1, 1, 6, 6), (33, 1, 3, 3), "s8"), SRC)],
        [(single(oc), SRC) for oc in (1, 16, 17, 32, 49, 64, 113, 128, 192)]
        + [
            (single(33), PLAIN),
            (single(33, dtype="u8"), SRC),
            (single(32, 2), SRC),
            (conv((1, 2, 6, 6), (33, 2, 3, 3), "s8"), SRC),
            (matmul((4, 1), (1, 33), src="s8"), SRC),
        ],
    ),
    (
        windows.one_channel_groups_in_odd_blocks,
        [(single(oc, 2), PLAIN) for oc in (17, 32, 33, 48, 49, 64, 65, 112, 128)]
        + [(single(oc, 2, padding=1), PLAIN) for oc in (17, 32, 49, 64)]
        + [(single(33, 2, "u8"), SRC)],
        [(single(oc, 2), PLAIN) for oc in (1, 16)]
        + [(single(16, 2, padding=1), PLAIN)]
        + [
            (single(33), PLAIN),
            (single(33, 2, "u8"), PLAIN),
            (single(33, 2, dilation=(1, 2)), PLAIN),
            (conv((1, 2, 6, 6), (2, 33, 1, 3, 3), "bf16", wei="bf16", dst="f32"), PLAIN),
            (conv((1, 4, 6, 6), (2, 33, 2, 3, 3), "s8"), PLAIN),
            (deconv((1, 2, 6, 6), (2, 33, 1, 3, 3), "s8"), PLAIN),
        ],
    ),
    (
        windows.one_channel_padded,
        [
            (single(4, padding=((0, 0), (0, 1))), PLAIN),
            (single(4, padding=((0, 0), (1, 0))), PLAIN),
            (conv((1, 1, 6, 6), (4, 1, 2, 2), "s8", padding=((0, 0), (0, 1))), PLAIN),
            (conv((1, 1, 3, 1, 6), (4, 1, 2, 1, 3), "s8", padding=(0, 0, 1)), PLAIN),
            (deconv((1, 1, 6, 6), (4, 1, 3, 3), "s8", padding=((0, 0), (1, 2))), PLAIN),
            (deconv((1, 1, 6, 6), (4, 1, 3, 3), "s8", padding=((0, 0), (2, 1))), PLAIN),
        ],
        [
            (single(4), PLAIN),
            (single(4, padding=((1, 1), (0, 0))), PLAIN),
            (single(4, dtype="u8", padding=1), PLAIN),
            (conv((1, 2, 6, 6), (4, 2, 3, 3), "s8", padding=1), PLAIN),
            (conv((1, 1, 6, 6), (4, 1, 3, 1), "s8", padding=1), PLAIN),
            (conv((1, 1, 6, 6), (4, 1, 1, 3), "s8", padding=(0, 1)), PLAIN),
            (conv((1, 1, 6), (4, 1, 3), "s8", padding=1), PLAIN),
            (deconv((1, 1, 6, 6), (4, 1, 3, 3), "s8", padding=2), PLAIN),
            (deconv((1, 1, 6, 6), (4, 1, 5, 3), "s8", padding=2), PLAIN),
        ],
    ),
    (
        windows.pointwise_s8_with_src_zero_point,
        [(conv((1, 4, 3, 3), (4, 4, 1, 1), "s8"), SRC), (deconv((1, 4, 3), (4, 4, 1), "s8"), SRC)],
        [
            (conv((1, 4, 3, 3), (4, 4, 1, 2), "s8"), SRC),
            (conv((1, 4, 3, 3), (4, 4, 1, 1), "s8"), PLAIN),
            (conv((1, 4, 3, 3), (4, 4, 1, 1)), SRC),
        ],
    ),
    (
        windows.five_pixels,
        [(conv((9, 4, 5, 1), (4, 4, 1, 1)), PLAIN), (conv((1, 4, 5), (4, 4, 1), "s8"), PLAIN)],
        [
            (conv((5, 4, 2, 2), (4, 4, 1, 1)), PLAIN),
            (conv((1, 5, 2, 3), (5, 5, 1, 1)), PLAIN),
            (conv((1, 4, 5), (4, 4, 1), "f32", wei="f32", dst="f32"), PLAIN),
        ],
    ),
    (
        windows.dilated_and_padded_with_src_zero_point,
        [
            (conv((1, 9, 12, 1), (5, 9, 4, 1), dilation=(3, 1), padding=((0, 3), (0, 0))), SRC),
            (conv((1, 9, 12, 4), (5, 9, 4, 1), dilation=(2, 1), padding=((1, 0), (0, 0))), SRC),
        ],
        [
            (conv((1, 9, 12, 1), (5, 9, 4, 1), dilation=(3, 1), padding=((0, 3), (0, 0))), PLAIN),
            (conv((1, 9, 12, 1), (5, 9, 4, 1), dilation=(3, 1)), SRC),
            (conv((1, 9, 12, 1), (5, 9, 4, 1), padding=((0, 3), (0, 0))), SRC),
        ],
    ),
    (
        windows.strided_1x1_of_eighths,
        [
            (conv((1, 3, 3), (49, 3, 1), "s8", stride=3), PLAIN),
            (conv((1, 20, 8, 8), (8, 20, 1, 1), stride=(1, 2)), PLAIN),
            (conv((1, 24, 8, 8), (2, 8, 12, 1, 1), stride=2), PLAIN),
        ],
        [
            (conv((1, 3, 3), (49, 3, 1), "s8"), PLAIN),
            (conv((1, 8, 8, 8), (8, 8, 1, 1), stride=2), PLAIN),
            (conv((1, 32, 8, 8), (2, 8, 16, 1, 1), stride=2), PLAIN),
            (conv((1, 3, 9), (49, 3, 2), "s8", stride=3), PLAIN),
            (conv((1, 3, 3), (4, 3, 1), "f32", wei="f32", dst="f32", stride=3), PLAIN),
            (deconv((1, 3, 3), (4, 3, 1), "s8", stride=3), PLAIN),
        ],
    ),
    (
        windows.strided_1x1_of_sixteenths,
        [(conv((1, ic, 4, 4), (16, ic, 1, 1), stride=2), PLAIN) for ic in (1, 8, 24, 33)],
        [(conv((1, ic, 4, 4), (16, ic, 1, 1), stride=2), PLAIN) for ic in (16, 32, 48)]
        + [(conv((1, 8, 4, 4), (16, 8, 1, 1)), PLAIN)],
    ),
    (
        windows.eight_taps,
        [
            (grouped(3, 1, 1, "s8", kernel=(2, 4)), PLAIN),
            (grouped(3, 1, 1, kernel=(8, 1)), SRC),
            (conv((1, 2, 16, 16), (2, 1, 1, 12, 16), "s8"), PLAIN),
            (conv((1, 2, 16, 16), (2, 1, 1, 16, 16), "s8"), PLAIN),
            (deconv((1, 2, 5, 5), (2, 1, 1, 4, 2), "s8"), PLAIN),
        ],
        [
            (grouped(3, 1, 1, kernel=(2, 4)), PLAIN),
            (grouped(3, 1, 1, "s8", kernel=(3, 3)), PLAIN),
            (grouped(3, 1, 1, "s8", kernel=(7, 1)), PLAIN),
            (grouped(3, 1, 1, "s8", kernel=(8, 8)), PLAIN),
            (conv((1, 2, 16, 16), (2, 1, 1, 8, 16), "s8"), PLAIN),
            (conv((1, 2, 16, 16), (2, 1, 1, 15, 16), "s8"), PLAIN),
            (grouped(3, 1, 2, "s8", kernel=(2, 4)), PLAIN),
        ],
    ),
    (
        windows.depthwise_wei_zero_point,
        [(grouped(3, 1, 1), WEI)],
        [
            (grouped(3, 1, 1), SRC),
            (grouped(3, 1, 2), WEI),
            (deconv((1, 2, 5), (2, 1, 1, 3)), WEI),
        ],
    ),
    (
        windows.f32_stored_smaller,
        [(conv((1, 4, 3), (4, 4, 1), "f32", wei="f32", dst=dst), PLAIN) for dst in ("bf16", "f16")],
        [
            (conv((1, 4, 3), (4, 4, 1), "f32", wei="f32", dst="f32"), PLAIN),
            (conv((1, 4, 3), (4, 4, 1), dst="bf16"), PLAIN),
        ],
    ),
    (
        windows.int8_with_bf16_bias,
        [(conv((1, 4, 3), (4, 4, 1), src, bias="bf16"), PLAIN) for src in ("u8", "s8")],
        [
            (conv((1, 4, 3), (4, 4, 1), bias="f32"), PLAIN),
            (conv((1, 4, 3), (4, 4, 1)), PLAIN),
            (conv((1, 4, 3), (4, 4, 1), "bf16", wei="bf16", dst="bf16", bias="bf16"), PLAIN),
        ],
    ),
]
