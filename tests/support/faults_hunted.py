"""Problems that the hunt found, as `faults` has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp
from pyonednn_q.primitive.problem import ConvProblem, MatMulProblem, Problem
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault import Fault
from support.fault_problems import by_bf16, compared_with, few_columns, one_tap, rows_in_padding
from support.guard_cases_hunted import (
    OUTSIDE,
    SUM_F32,
    depthwise_f32,
    dilated,
    gapped,
    longer,
    nibbles,
    one_place,
    one_plane,
    rounded,
    stepped,
    taps,
)
from support.guard_cases_lowered import (
    BEYOND,
    BF16,
    as_columns,
    few_channels,
    in_steps,
    single_channel,
    swapped,
)

AMX, VNNI, AVX512 = "AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE"
AVX2_VNNI, AVX2, SSE41, ALL = "AVX2_VNNI", "AVX2", "SSE41", "ALL"
UNIT, SRC_POINT = Attr(src_scale=Scale()), Attr(src_zero_point=ZeroPoint())


def groups(outputs: int, src: str, **more: Any) -> ConvProblem:
    """Two groups of one input channel."""
    return ConvProblem.of((1, 2, 4, 4), (2, outputs, 1, 3, 3), src=src, dst="s32", **more)


def ragged(outputs: int) -> ConvProblem:
    """A convolution whose last block of outputs is not full."""
    wei, padding = (outputs, 2, 3, 2), ((1, 1), (0, 1))
    return ConvProblem.of((1, 2, 1, 1), wei, dst="f32", bias="f32", padding=padding)


def multiplied(outputs: int) -> Attr:
    """By a value per output."""
    return Attr(
        post_ops=(BinaryPostOp("mul", TensorSpec.channels_last((1, outputs, 1, 1), "f32")),)
    )


def added(batches: int) -> Attr:
    """A value per column of a product."""
    dims = (1,) * (batches + 1) + (16,)
    return Attr(post_ops=(BinaryPostOp("add", TensorSpec.dense(dims, "f32")),))


def along_columns(n: int) -> Attr:
    """A value per column of a product of four dimensions."""
    return Attr(post_ops=(BinaryPostOp("add", TensorSpec.dense((1, 1, 1, n), "f32")),))


def single_scales() -> dict[str, Any]:
    """A scale for each element of the weights."""
    values = {"wei_scale": [2.0 ** (at % 7) for at in range(1024)]}
    return {"attr": Attr(wei_scale=Scale(3, groups=(1, 1))), "values": values}


def _more() -> list[tuple[str, str, Problem, Attr]]:
    return [
        ("depthwise-window-outside", VNNI, OUTSIDE, Attr()),
        ("conv-dilated-padded-src-zero-point", VNNI, dilated(), SRC_POINT),
        ("conv-dilated-padded-src-zero-point", AVX512, dilated(), SRC_POINT),
        ("conv-gemm-transposed-wei", VNNI, taps(63, 64), Attr()),
        ("conv-gemm-transposed-wei", AVX512, taps(17, 1, 64, groups=1), Attr()),
        ("conv-gemm-transposed-wei", VNNI, taps(8, 1, 1000, groups=1), Attr()),
        ("depthwise-eight-taps", AVX2, taps(16, 192), Attr()),
        ("deconv-stride-s8", VNNI, longer(0, src="s8", length=1), Attr()),
        ("deconv-stride-s8", AVX2_VNNI, longer(1, 4, src="s8", length=2), Attr()),
        ("matmul-nibbles-of-one-row", VNNI, nibbles(1, 65), UNIT),
        ("matmul-nibbles-of-one-row", AVX512, nibbles(1, 3), UNIT),
        ("matmul-nibbles-of-one-row", AMX, nibbles(1, 65), UNIT),
        ("matmul-nibbles-of-one-row", AMX, nibbles(1, 17, src="s8"), UNIT),
        *(
            ("matmul-batch-of-single-rows", level, SINGLE_ROWS, WEI_POINT)
            for level in (VNNI, AVX512, AVX2_VNNI)
        ),
    ]


# The last column of src is in no window.
OVER_THE_STRIDE = ConvProblem.of((1, 8, 9, 12), (8, 31, 1, 1, 3), src="s8", stride=(1, 2))

SINGLE_ROWS = replace(
    MatMulProblem.of((2, 1, 31), (1, 31, 31), dst="f32"),
    src=TensorSpec((2, 1, 31), "u8", (31, 1, 1)),
)
WEI_POINT = Attr(wei_zero_point=ZeroPoint())

HUNTED_FAULTS = [
    *(
        Fault("one-channel-groups-in-odd-blocks", level, problem, attr)
        for level in (VNNI, AVX512)
        for problem, attr in (
            (groups(48, "s8"), Attr()),
            (groups(40, "u8", padding=1), SRC_POINT),
            (groups(48, "u8"), SRC_POINT),
        )
    ),
    *(  # with four threads or more
        Fault(
            "one-channel-groups-in-odd-blocks",
            level,
            ConvProblem.of((1, 2, 12), (2, oc, 1, 4), src="u8", dst="s32", stride=6),
            SRC_POINT,
            threads=8,
        )
        for level in (VNNI, AVX512)
        for oc in (49, 63)
    ),
    Fault(
        "matmul-in-shares",
        AVX512,
        MatMulProblem.of((2, 1, 36, 400), (1, 1, 400, 2), src="s8", dst="s32"),
        threads=16,  # of 9 elements each, so that every other one begins within a row
    ),
    *(
        Fault("one-channel-groups-in-odd-blocks", level, OVER_THE_STRIDE, since=(3, 8, 0))
        for level in (VNNI, AVX512)
    ),
    *(
        Fault("one-channel-one-plane", level, problem)
        for level in (VNNI, AVX512)
        for problem in (one_plane(), one_plane(groups=2, src="s8"))
    ),
    *(
        Fault("deconv-beyond-taps", level, longer(1, 4, length=2, padding=((1, 0),), src="s8"))
        for level in (VNNI, AVX512, AVX2, SSE41)
    ),
    *(
        Fault(
            "matmul-wei-scale-along-k", level, nibbles(64, 16), **single_scales(), since=(3, 8, 0)
        )
        for level in (AVX2_VNNI, AVX512, VNNI)
    ),
    *(Fault("matmul-bare-nibbles", level, nibbles(64, 16)) for level in (AVX2_VNNI, AVX512, VNNI)),
    Fault("matmul-bare-nibbles", AMX, nibbles(64, 16, src="s8")),
    *(Fault(*fault) for fault in _more()),
    *(
        Fault("operand-of-one-place", level, one_place(src=src, length=length), multiplied(16))
        for level in (AVX2, SSE41, VNNI)
        for src, length in (("u8", 3), ("s8", 3), ("u8", 1))
    ),
    *(
        Fault("matmul-batches-at-two-steps", level, stepped())
        for level in (VNNI, AVX512, AVX2_VNNI)
    ),
    *(Fault("sum-off-16-bytes", SSE41, depthwise_f32(c), SUM_F32) for c in (7, 9, 47)),
    *(Fault("depthwise-to-bf16", VNNI, rounded(kernel)) for kernel in (1, 7)),
    *(
        Fault("operand-of-gapped-rows", VNNI, gapped(batch, m), added(len(batch)))
        for batch, m in (((2, 3), 1), ((2, 2), 1))
    ),
    *(
        Fault("few-channels-one-plane", AMX, few_channels(channels, **types))
        for channels, types in ((1, {}), (17, {}), (28, {}), (3, BF16))
    ),
    *(
        Fault("conv-columns-as-channels", AMX, problem)
        for problem in (in_steps(48, 4, 3), in_steps(16, 8, 2), in_steps(16, 4, 2, **BF16))
    ),
    *(
        Fault("conv-one-column-as-channels", level, problem)
        for level in (VNNI, AMX)
        for problem in (in_steps(16, 8, 1), in_steps(20, 16, 1, **BEYOND))
    ),
    Fault("conv-columns-as-channels", AMX, in_steps(32, 8, 2, **BEYOND)),
    *(
        Fault("matmul-batch-of-ragged-rows", AMX, as_columns(k, dtype))
        for k, dtype in ((5, "u8"), (49, "u8"), (3, "bf16"))
    ),
    Fault("conv-pointwise-single-channel", VNNI, single_channel()),
    Fault("matmul-batches-swapped", VNNI, swapped(), along_columns(2)),
    Fault(
        "conv-rows-of-taps",
        AMX,
        ConvProblem.of((1, 8, 4, 27), (16, 8, 1, 8), stride=(2, 8), **BF16),
    ),
    *(
        Fault("conv-rows-in-padding-src-zero-point", AMX, rows_in_padding(*how), SRC_POINT)
        for how in ((3, 2, 2, 4), (4, 2, 2, 4))
    ),
    Fault("conv-padding-left-over", AVX2_VNNI, few_columns(5)),
    Fault("operand-in-avx2-vnni", ALL, ragged(19), multiplied(19), since=(3, 8, 0)),
    Fault("conv-f32-by-bf16", ALL, by_bf16("u8")),
    *(Fault("conv-padding-left-over", level, few_columns(5)) for level in (VNNI, AVX512)),
    *(
        Fault(
            "conv-padding-left-over",
            level,
            ConvProblem.of(
                (1, 47, 12, 17),
                (3, 47, 3, 8),
                dst="f32",
                stride=(3, 9),
                padding=((0, 1), (4, 4)),
            ),
            SUM_F32,
        )
        for level in (VNNI, AVX512)
    ),
    *(
        Fault("deconv-1x1-comparison", level, one_tap(), compared_with(1, 8, 1, 1))
        for level in (VNNI, AVX512)
    ),
]
