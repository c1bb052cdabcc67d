"""What the hunt found, as `guard_cases` has it: wrong, and right beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem, MatMulProblem, Problem
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault_problems import by_bf16, compared_with, few_columns, one_tap
from support.guard_cases import (
    AMX,
    AVX2,
    AVX2_VNNI,
    AVX512,
    CONV_AVX2,
    CONV_VNNI,
    DECONV_OLDER,
    DECONV_VNNI,
    M2,
    MATMUL_AMX,
    NEW,
    OLD,
    PLAIN,
    SRC_POINT,
    VNNI,
    binary,
    one_channel,
    wei_scale,
)

SUM_F32 = Attr(post_ops=(SumPostOp(),))
MATMUL_VNNI, MATMUL_AVX2 = "brg_matmul:avx512_core_vnni", "brg_matmul:avx2_vnni"


def one_plane(
    depth: int = 1, groups: int = 1, kernel: int = 3, padding: Any = 1, **more: Any
) -> Any:
    """A 3-D convolution of one input channel a group."""
    wei = (8, 1, kernel, 3, 3) if groups == 1 else (groups, 8, 1, kernel, 3, 3)
    return ConvProblem.of((1, groups, depth, 6, 6), wei, padding=padding, **more)


def longer(
    tail: int, kernel: int = 3, stride: int = 2, src: str = "u8", padding: Any = 0, length: int = 5
) -> DeconvProblem:
    """A 1-D deconvolution whose dst is longer than the least."""
    of = DeconvProblem.of
    least = of((1, 16, length), (16, 16, kernel), src=src, stride=stride, padding=padding)
    *dims, width = least.dst.dims
    return replace(least, dst=TensorSpec.channels_last((*dims, width + tail), "s32"))


def nibbles(k: int, n: int, wei: str = "s4", dst: str = "f32", **more: Any) -> MatMulProblem:
    return MatMulProblem.of((8, k), (k, n), wei=wei, dst=dst, **more)


def depthwise_f32(channels: int, images: int = 2) -> ConvProblem:
    """A 2-D depthwise convolution of f32."""
    src, wei = (images, channels, 7, 3), (channels, 1, 1, 3, 3)
    return ConvProblem.of(src, wei, src="f32", wei="f32", dst="f32", padding=1)


def one_place(
    images: int = 2, length: int = 3, src: str = "u8", last: bool = False, channels: int = 8
) -> ConvProblem:
    """A 2-D convolution of one output place, dst row-major unless it is to be channels last."""
    dims, wei = (images, channels, length, length), (16, channels, 3, 3)
    of = ConvProblem.of(dims, wei, src=src, dst="f32", padding=(3 - length) // 2)
    return of if last else replace(of, dst=TensorSpec.dense(of.dst.dims, "f32"))


def rounded(kernel: int = 7) -> ConvProblem:
    """A depthwise convolution that stores bf16."""
    of, wei = (1, 24, 8, 40), (24, 1, 1, kernel, kernel)
    return ConvProblem.of(of, wei, dst="bf16", padding=kernel // 2)


def stepped(step: int = 480) -> MatMulProblem:
    """A product of batches by batches, whose src has one dimension of them further apart."""
    of = MatMulProblem.of((2, 3, 5, 16), (2, 3, 16, 16), dst="f32")
    return replace(of, src=TensorSpec(of.src.dims, "u8", (step, 80, 16, 1)))


def gapped(batch: tuple[int, ...] = (2, 3), m: int = 1, gap: int = 3) -> MatMulProblem:
    """A product whose rows of dst have gaps between them."""
    of = MatMulProblem.of((*batch, m, 16), (*batch, 16, 16), dst="f32")
    wide = TensorSpec.dense((*batch, m, 16 + gap), "f32")
    return replace(of, dst=replace(of.dst, strides=wide.strides))


OUTSIDE = ConvProblem.of((1, 32, 4, 6), (32, 1, 1, 1, 1), padding=((0, 1), (0, 0)), src="s8")


def taps(outputs: int, width: int, inputs: int = 1, groups: int | None = None) -> ConvProblem:
    """A 1-D convolution, s8; depthwise unless its groups are given."""
    count = outputs if groups is None else groups
    wei = (count, outputs // count, inputs, width)
    return ConvProblem.of((1, count * inputs, width + 1), wei, src="s8", dst="s32")


def dilated() -> ConvProblem:
    """A column whose window is dilated by 3, with padding behind it."""
    more: dict[str, Any] = {"dilation": (3, 1), "padding": ((0, 3), (0, 0))}
    return ConvProblem.of((1, 9, 12, 1), (5, 9, 4, 1), dst="s32", **more)


def padded_src(k: int, dtype: str) -> MatMulProblem:
    """A matmul whose source has gaps of 8 values between its rows."""
    wei = "s8" if dtype == "u8" else dtype
    problem = MatMulProblem.of((8, k), (k, 16), src=dtype, wei=wei, dst="f32")
    return replace(problem, src=TensorSpec((8, k), dtype, (k + 8, 1)))


HALF = Attr(src_scale=Scale(), wei_scale=Scale(0, "bf16"))
BF16: dict[str, Any] = {"src": "bf16", "wei": "bf16", "dst": "f32"}
CONV_BF16 = "brg_conv_fwd:avx512_core_bf16"
DW_VNNI = "brdgmm_dw:avx512_core_vnni"
UNIT, SINGLE_ROWS = Attr(src_scale=Scale()), wei_scale(3, (1, 1))
GROUPED_OUTPUTS = "one-channel-groups-in-odd-blocks"
IN_SHARES = MatMulProblem.of((2, 1, 33, 47), (1, 1, 47, 15), src="s8", dst="s32")

# Row, problem, attributes, version, instruction set, implementation.
HUNTED: list[tuple[str, Problem, Attr, Any, str, str]] = [
    *(
        (GROUPED_OUTPUTS, one_channel(oc, 2), PLAIN, version, isa, impl)
        for version in (OLD, NEW)
        for isa, impl in ((VNNI, CONV_VNNI), (AVX512, "brg_conv_fwd:avx512_core"))
        for oc in (33, 48, 65, 112, 129, 176, 257)
    ),
    *(
        (GROUPED_OUTPUTS, one_channel(oc, 3, padding=1), PLAIN, NEW, VNNI, CONV_VNNI)
        for oc in (17, 32, 33, 48, 49, 64, 65, 128, 192, 256)
    ),
    *(  # a stride leaves the last column over
        (
            GROUPED_OUTPUTS,
            ConvProblem.of((1, 8, 9, 12), (8, oc, 1, 1, 3), src="s8", stride=(1, 2)),
            PLAIN,
            NEW,
            AVX512,
            "brg_conv_fwd:avx512_core",
        )
        for oc in (17, 31, 32, 33)
    ),
    *(
        (
            GROUPED_OUTPUTS,
            ConvProblem.of((1, 2, 5, 6), (2, oc, 1, 3, 3)),
            SRC_POINT,
            OLD,
            VNNI,
            CONV_VNNI,
        )
        for oc in (33, 48, 65, 127)
    ),
    *(
        ("one-channel-one-plane", problem, attr, version, VNNI, CONV_VNNI)
        for version in (OLD, NEW)
        for problem, attr in (
            (one_plane(), PLAIN),
            (one_plane(kernel=2), SRC_POINT),
            (one_plane(groups=3, src="s8"), PLAIN),
        )
    ),
    (
        "one-channel-one-plane",
        one_plane(kernel=2, **BF16),
        PLAIN,
        OLD,
        "AVX512_CORE_BF16",
        CONV_BF16,
    ),
    (
        "conv-one-column-out-of-one-channel",
        ConvProblem.of((1, 1, 7, 3), (1, 1, 3, 3), stride=2, **BF16),
        PLAIN,
        NEW,
        "AVX512_CORE_BF16",
        CONV_BF16,
    ),
    *(
        ("conv-gemm-transposed-wei", problem, PLAIN, OLD, VNNI, "x64:gemm_s8s8s32:jit")
        for problem in (
            taps(63, 64),
            taps(8, 8),
            taps(17, 1, 64, groups=1),
            taps(8, 1, 192, groups=1),
            taps(8, 1, 136, groups=1),
            taps(3, 16, 31, groups=1),
            taps(30, 16, 31, groups=2),
        )
    ),
    ("depthwise-eight-taps", taps(16, 256), PLAIN, OLD, AVX2_VNNI, "jit_uni_int8:avx2_vnni"),
    *(
        ("depthwise-window-outside", OUTSIDE, attr, version, VNNI, DW_VNNI)
        for version in (OLD, NEW)
        for attr in (PLAIN, SRC_POINT)
    ),
    *(
        ("deconv-beyond-taps", longer(1, 4, padding=((1, 0),)), PLAIN, version, isa, impl)
        for version in (OLD, NEW)
        for isa, impl in (
            (VNNI, DECONV_OLDER),
            (AVX2_VNNI, "jit_uni_int8:avx2_vnni"),
            (AVX2, "jit_uni_int8:sse41"),
        )
    ),
    *(
        ("deconv-beyond-taps", longer(tail, kernel, 3), PLAIN, NEW, VNNI, DECONV_OLDER)
        for tail, kernel in ((2, 2), (1, 3), (2, 5))
    ),
    ("deconv-stride-s8", longer(0, src="s8", length=1), PLAIN, NEW, VNNI, DECONV_VNNI),
    ("deconv-stride-s8", longer(1, 4, src="s8", length=2), PLAIN, NEW, VNNI, DECONV_VNNI),
    ("deconv-stride-src-zero-point", longer(1, 2), SRC_POINT, NEW, VNNI, DECONV_VNNI),
    *(
        ("matmul-wei-scale-along-k", nibbles(64, 16, src=src), SINGLE_ROWS, NEW, isa, impl)
        for src in ("u8", "s8")
        for isa, impl in ((VNNI, MATMUL_VNNI), (AVX2_VNNI, MATMUL_AVX2))
    ),
    *(
        (
            "matmul-batch-of-single-rows",
            replace(
                MatMulProblem.of((2, 1, 31), (1, 31, n)),
                src=TensorSpec((2, 1, 31), "u8", (31, 1, 1)),
            ),
            Attr(wei_zero_point=ZeroPoint()),
            version,
            isa,
            impl,
        )
        for n in (1, 31)
        for version in (OLD, NEW)
        for isa, impl in ((VNNI, MATMUL_VNNI), (AVX2_VNNI, MATMUL_AVX2))
    ),
    ("matmul-in-shares", IN_SHARES, PLAIN, OLD, AVX512, "gemm:jit"),
    *(
        ("conv-dilated-padded-src-zero-point", dilated(), SRC_POINT, OLD, isa, impl)
        for isa, impl in ((VNNI, CONV_VNNI), (AVX512, "brg_conv_fwd:avx512_core"))
    ),
    *(
        (row, ConvProblem.of((1, ic, 3), (49, ic, 1), src="s8", stride=3), PLAIN, OLD, isa, impl)
        for row, isa, impl, more in (
            ("conv-1x1-strided-odd-channels", "SSE41", "jit_uni_int8_1x1:sse41", ()),
            ("conv-1x1-strided-uneven-channels", "AVX2", "jit_uni_int8_1x1:avx2", (8, 24)),
        )
        for ic in (3, 4, 17, 20, 33, *more)
    ),
    *(
        ("matmul-nibbles-of-one-row", nibbles(1, n, wei), UNIT, NEW, isa, impl)
        for wei in ("s4", "u4")
        for n in (3, 65, 129)
        for isa, impl in ((VNNI, MATMUL_VNNI), (AMX, MATMUL_AMX))
    ),
    *(
        ("matmul-bare-nibbles", nibbles(64, 16, wei, src=src), PLAIN, NEW, isa, impl)
        for wei, src in (("s4", "u8"), ("u4", "u8"), ("s4", "s8"), ("u4", "s8"))
        for isa, impl in ((VNNI, MATMUL_VNNI), (AVX2_VNNI, MATMUL_AVX2), (AMX, MATMUL_AMX))
    ),
    ("operand-in-avx2-vnni", M2, binary(1, 12), OLD, AMX, MATMUL_AVX2),
    *(
        ("operand-of-one-place", problem, binary(1, 16, 1, 1), version, isa, impl)
        for version in (OLD, NEW)
        for isa, impl in ((AVX2, "jit_uni_int8:avx2"), (VNNI, "jit_int8:avx512_core_vnni"))
        for problem in (one_place(), one_place(src="s8"), one_place(length=1))
    ),
    *(
        ("matmul-batches-at-two-steps", stepped(), PLAIN, OLD, isa, impl)
        for isa, impl in ((VNNI, MATMUL_VNNI), (AVX2_VNNI, MATMUL_AVX2))
    ),
    *(
        ("sum-off-16-bytes", depthwise_f32(channels), SUM_F32, version, isa, "jit_dw:sse41")
        for version in (OLD, NEW)
        for isa in ("SSE41", AVX2)
        for channels in (7, 8, 47)
    ),
    *(
        ("depthwise-to-bf16", rounded(), PLAIN, version, VNNI, "jit_int8:avx512_core_vnni")
        for version in (OLD, NEW)
    ),
    *(
        ("operand-of-gapped-rows", gapped(), binary(*dims), version, VNNI, impl)
        for version in (OLD, NEW)
        for dims in ((1, 1, 1, 16), (1, 1, 1, 1), (2, 3, 1, 16))
        for impl in (MATMUL_VNNI, "gemm:jit")
    ),
    *(
        ("matmul-padded-src-k-tail", padded_src(k, dtype), PLAIN, version, AMX, MATMUL_AMX)
        for version in (OLD, (3, 13, 0))
        for k, dtype in ((100, "u8"), (33, "bf16"))
    ),
    ("matmul-half-wei-scale", M2, HALF, (3, 13, 0), AMX, MATMUL_AMX),
    *(
        ("conv-f32-by-bf16", by_bf16(dst), PLAIN, NEW, isa, "brg_conv_fwd:avx512_core")
        for dst in ("u8", "s8", "s32", "bf16")
        for isa in (AVX512, VNNI, AMX)
    ),
    *(
        ("conv-padding-left-over", few_columns(oc), PLAIN, version, VNNI, CONV_VNNI)
        for version in (OLD, NEW)
        for oc in (1, 5, 16, 64)
    ),
    ("conv-padding-left-over", few_columns(5, "f32"), SUM_F32, NEW, VNNI, CONV_VNNI),
    *(
        ("deconv-1x1-comparison", one_tap(), compared_with(*dims), OLD, isa, impl)
        for dims in ((1, 1, 1, 1), (1, 8, 1, 1))
        for isa, impl in (
            (VNNI, "jit_1x1_deconvolution:undef+jit_int8_1x1:avx512_core_vnni"),
            (AVX512, "jit_1x1_deconvolution:undef+jit_int8_1x1:avx512_core"),
        )
    ),
]

HUNTED_RIGHT: list[tuple[Problem, Attr, Any, str, str]] = [
    (by_bf16("f32"), PLAIN, NEW, VNNI, "brg_conv_fwd:avx512_core"),
    (by_bf16("u8"), PLAIN, NEW, VNNI, "ref:any"),
    (few_columns(5, "s32"), PLAIN, NEW, VNNI, CONV_VNNI),
    (few_columns(5, "f32"), PLAIN, NEW, VNNI, CONV_VNNI),
    (few_columns(5, stride=2), PLAIN, NEW, VNNI, CONV_VNNI),
    (few_columns(5, padding=1), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_tap(), compared_with(1, 1, 1, 1), NEW, VNNI, "jit_1x1_deconvolution:undef"),
    (one_tap(), binary(1, 8, 1, 1), OLD, VNNI, "jit_1x1_deconvolution:undef"),
    (depthwise_f32(7), SUM_F32, NEW, "SSE41", "jit:sse41"),
    (depthwise_f32(7), SUM_F32, NEW, AVX2, "jit_dw:avx2"),
    (depthwise_f32(7), PLAIN, NEW, "SSE41", "jit_dw:sse41"),
    *((one_channel(oc, 2), PLAIN, NEW, VNNI, CONV_VNNI) for oc in (1, 16)),
    *((one_channel(oc, 3, padding=1), PLAIN, NEW, VNNI, CONV_VNNI) for oc in (8, 16)),
    (ConvProblem.of((1, 2, 5, 6), (2, 48, 1, 3, 3)), PLAIN, NEW, VNNI, CONV_VNNI),
    (ConvProblem.of((1, 4, 5, 6), (2, 48, 2, 3, 3), src="s8"), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_channel(48, 2, dilation=(1, 2)), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_channel(48, 2), PLAIN, NEW, VNNI, CONV_AVX2),
    *(
        (
            ConvProblem.of((1, ic, 3), (49, ic, 1), src="s8", stride=3),
            PLAIN,
            OLD,
            isa,
            impl,
        )
        for isa, impl, channels in (
            ("AVX2", "jit_uni_int8_1x1:avx2", (16, 32, 48, 64)),
            ("SSE41", "jit_uni_int8_1x1:sse41", (8, 16, 24, 64)),
        )
        for ic in channels
    ),
    (one_plane(2), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_plane(kernel=1, padding=(0, 1, 1)), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_plane(dilation=(1, 1, 2)), PLAIN, NEW, VNNI, CONV_VNNI),
    (one_plane(), PLAIN, NEW, VNNI, CONV_AVX2),
    (
        replace(OUTSIDE, src=TensorSpec.channels_last((1, 32, 4, 6), "u8")),
        PLAIN,
        NEW,
        VNNI,
        DW_VNNI,
    ),
    *(
        (problem, PLAIN, version, VNNI, "x64:gemm_s8s8s32:jit")
        for version, problem in (
            (OLD, taps(24, 1, 64, groups=1)),
            (OLD, taps(16, 1, 64, groups=1)),
            (OLD, taps(64, 9)),
            (NEW, taps(63, 64)),
        )
    ),
    (longer(1, 4), PLAIN, NEW, VNNI, DECONV_VNNI),
    (longer(1, 4, padding=1), PLAIN, NEW, VNNI, DECONV_OLDER),
    (longer(1, 3, 3, padding=((0, 1),)), PLAIN, NEW, AVX2, "jit_uni_int8:avx2"),
    (longer(1, 4), PLAIN, NEW, AVX2, "conv:any+x64:gemm_s8u8s32:jit"),
    (longer(0), PLAIN, NEW, VNNI, DECONV_OLDER),
    (longer(0, src="s8", length=2), PLAIN, NEW, VNNI, DECONV_VNNI),
    (longer(0, 4, src="s8", length=1), PLAIN, NEW, VNNI, DECONV_VNNI),
    (nibbles(64, 16), wei_scale(3, (2, 1)), NEW, VNNI, MATMUL_VNNI),
    *((nibbles(k, n), UNIT, NEW, VNNI, MATMUL_VNNI) for k, n in ((1, 1), (1, 64), (2, 65))),
    (nibbles(1, 65), UNIT, NEW, VNNI, MATMUL_AVX2),
    (nibbles(64, 16), UNIT, NEW, VNNI, MATMUL_VNNI),
    (nibbles(64, 16, bias="f32"), PLAIN, NEW, VNNI, MATMUL_VNNI),
    (nibbles(64, 16, "s8"), PLAIN, NEW, VNNI, MATMUL_VNNI),
    (M2, binary(1, 12), OLD, AMX, MATMUL_AMX),
    (one_place(), binary(1, 16, 1, 1), NEW, VNNI, CONV_VNNI),
    (one_place(last=True), binary(1, 16, 1, 1), NEW, AVX2, "jit_uni_int8:avx2"),
    (one_place(length=1), binary(1, 16, 1, 1), NEW, AVX2, "jit_uni_int8_1x1:avx2"),
    (one_place(images=1), binary(1, 16, 1, 1), NEW, AVX2, "jit_uni_int8:avx2"),
    (stepped(), PLAIN, NEW, VNNI, MATMUL_VNNI),
    (stepped(), PLAIN, OLD, VNNI, "gemm:jit"),
    (stepped(240), PLAIN, OLD, VNNI, MATMUL_VNNI),
    (rounded(), PLAIN, NEW, VNNI, DW_VNNI),
    (rounded(), PLAIN, NEW, AVX512, "jit_int8:avx512_core"),
    (rounded(), PLAIN, NEW, "AVX512_CORE_BF16", "jit_int8:avx512_core_vnni"),
    (gapped(), PLAIN, NEW, VNNI, MATMUL_VNNI),
    (gapped(gap=0), binary(1, 1, 1, 16), NEW, VNNI, MATMUL_VNNI),
    (padded_src(128, "u8"), PLAIN, OLD, AMX, MATMUL_AMX),
    (padded_src(100, "u8"), PLAIN, NEW, VNNI, MATMUL_VNNI),
    (padded_src(60, "u8"), PLAIN, (3, 13, 1), AMX, MATMUL_AMX),
    *((M2, HALF, version, AMX, MATMUL_AMX) for version in (OLD, (3, 13, 1))),
    (M2, Attr(src_scale=Scale(), wei_scale=Scale()), (3, 13, 0), AMX, MATMUL_AMX),
]
