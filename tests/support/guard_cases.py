"""What the guard table must match: every case failed against the oracle, on one library or both."""

from __future__ import annotations

from typing import Any

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PReluPostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    Problem,
    ReorderProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support import pooled

OLD, NEW = (3, 7, 2), (3, 13, 2)
AMX, VNNI, AVX512 = "AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE"
AVX2_VNNI, AVX2 = "AVX2_VNNI", "AVX2"
BF16, ZEN5 = "AVX512_CORE_BF16", "AVX512_CORE_BF16+AVX_VNNI"

PLAIN = Attr()
SRC_POINT = Attr(src_zero_point=ZeroPoint())
CONV_AMX, MATMUL_AMX = "brg_conv_fwd:avx10_1_512_amx", "brg_matmul:avx10_1_512_amx"
DECONV_AMX = "brg_deconv:avx10_1_512_amx+brgconv_strided:avx10_1_512_amx"
DECONV_VNNI = "brg_deconv:avx512_core_vnni+brgconv_strided:avx512_core_vnni"
CONV_1X1 = "jit_int8_1x1:avx512_core"
CONV_VNNI, CONV_AVX2 = "brg_conv_fwd:avx512_core_vnni", "brg_conv_fwd:avx2_vnni"
# The older kernels that stand behind those of brgemm.
DECONV_OLDER, CONV_OLDER = "jit_deconvolution:avx512_core_vnni", "jit:avx10_1_512_amx"


def matmul(m: int, k: int, n: int, *, b: str = "plain", batch: tuple[int, ...] = ()) -> Any:
    dims = (*batch, k, n)
    problem = MatMulProblem.of((*batch, m, k), dims)
    if b == "packed":
        return problem
    spec = TensorSpec.dense(dims, "s8")
    if b == "transposed":
        assert spec.strides is not None
        spec = TensorSpec(dims, "s8", (*spec.strides[:-2], 1, k))
    return MatMulProblem(problem.src, spec, problem.dst, None)


def deconv(kernel: int, stride: int, src: str = "u8", groups: int = 1, **more: Any) -> Any:
    wei = (16, 16, kernel, kernel) if groups == 1 else (groups, 16, 16, kernel, kernel)
    return DeconvProblem.of((1, 16 * groups, 9, 9), wei, src=src, stride=stride, **more)


def one_channel(channels: int, groups: int = 1, **more: Any) -> Any:
    """A convolution of one input channel a group, s8."""
    wei = (channels, 1, 3, 3) if groups == 1 else (groups, channels, 1, 3, 3)
    return ConvProblem.of((1, groups, 5, 6), wei, src="s8", **more)


def f32_conv(dst: str) -> Any:
    return ConvProblem.of((1, 16, 5, 6), (16, 16, 1, 1), src="f32", wei="f32", dst=dst)


def inner(channels: int, dtype: str = "f32", layout: Any = "channels_last") -> Any:
    dims = (4, 8, 2, 4)
    return InnerProductProblem.of(dims, channels, src=dtype, wei=dtype, dst="f32", layout=layout)


def pixels(count: int, src: str = "u8", **more: Any) -> Any:
    return ConvProblem.of((1, 16, count), (2, 32, 8, 1), src=src, **more)


def depthwise(channels: int = 15, dilation: int = 2) -> ConvProblem:
    return ConvProblem.of((1, channels, 9, 9), (channels, 1, 1, 3, 3), dilation=dilation)


def taps(height: int, width: int, src: str = "u8") -> ConvProblem:
    return ConvProblem.of((1, 16, 9, 9), (16, 1, 1, height, width), src=src)


def binary(*dims: int) -> Attr:
    return Attr(post_ops=(EltwisePostOp("relu"), BinaryPostOp("add", TensorSpec(dims, "f32"))))


def wei_scale(mask: int, groups: tuple[int, ...] = (), dtype: str = "f32") -> Attr:
    return Attr(wei_scale=Scale(mask, dtype, groups))


def reorder(zero_point: int) -> tuple[ReorderProblem, Attr]:
    src, dst = (TensorSpec.dense((1, 8, 3, 3), dtype) for dtype in ("f32", "u8"))
    return ReorderProblem(src, dst), Attr(dst_zero_point=ZeroPoint(zero_point))


CONV = ConvProblem.of((1, 16, 9, 9), (16, 16, 3, 3))
SPEC = TensorSpec.channels_last((2, 19, 5, 4), "f32")
SOFTMAX = SoftmaxProblem(SPEC, SPEC, 1)
POOLING = PoolingProblem(SPEC, SPEC, "max", (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
M4 = MatMulProblem.of((2, 3, 8, 16), (2, 3, 16, 12))
M2 = MatMulProblem.of((8, 64), (64, 12))
GROUPED = ConvProblem.of((1, 12, 9, 9), (2, 8, 6, 3, 3))
SHIFTED_SUM = Attr(post_ops=(EltwisePostOp("clip", 0, 6), SumPostOp(1.0, 3)))
SUM = Attr(dst_zero_point=ZeroPoint(), post_ops=(SumPostOp(),))
DST_POINT = Attr(dst_zero_point=ZeroPoint())
HOLE = {"dilation": (3, 1), "padding": ((1, 3), (0, 0)), "stride": (2, 1)}
BESIDE = {"stride": 2, "padding": ((0, 0), (1, 0))}
AROUND = {"stride": 2, "padding": ((0, 1), (1, 0))}
BELOW = {"padding": ((2, 0), (0, 1))}


def compare(*dims: int, dtype: str = "f32") -> Attr:
    return Attr(post_ops=(BinaryPostOp("gt", TensorSpec(dims, dtype)),))


def binary_of(dst: str) -> BinaryProblem:
    src = TensorSpec.dense((6, 8), "f32")
    return BinaryProblem(src, src, TensorSpec.dense((6, 8), dst), "mul")


def conv(src: tuple[int, ...], wei: tuple[int, ...], **more: Any) -> ConvProblem:
    return ConvProblem.of(src, wei, **more)


# Row, problem, attributes, version, instruction set, implementation. All measured as wrong.
WRONG: list[tuple[str, Problem, Attr, Any, str, str]] = [
    *(
        ("matmul-plain-b-k-tail", matmul(31, k, 48), PLAIN, NEW, AMX, MATMUL_AMX)
        for k in (65, 66, 68, 77, 100, 129, 160, 197, 200)
    ),
    ("matmul-plain-b-k-tail", matmul(197, 197, 64, batch=(12,)), PLAIN, NEW, AMX, MATMUL_AMX),
    (
        "matmul-plain-b-k-tail",
        matmul(197, 197, 64, b="packed", batch=(1, 12)),
        PLAIN,
        NEW,
        AMX,
        MATMUL_AMX,
    ),
    (
        "conv-one-column-out",
        ConvProblem.of((1, 16, 9, 3), (16, 16, 3, 3), stride=2),
        PLAIN,
        OLD,
        AMX,
        CONV_AMX,
    ),
    *(
        (
            "conv-one-column-out-of-one-channel",
            ConvProblem.of((2, 8, 5, 3), (8, 8, 1, 2, 2), src=src, stride=(1, 2)),
            PLAIN,
            version,
            VNNI,
            CONV_VNNI,
        )
        for version in (OLD, NEW)
        for src in ("u8", "s8")
    ),
    ("grouped-conv-src-zero-point", GROUPED, SRC_POINT, NEW, AMX, CONV_AMX),
    *(
        ("grouped-conv-src-zero-point", problem, SRC_POINT, version, AMX, CONV_AMX)
        for problem in (
            conv((2, 48, 4, 16), (3, 48, 16, 1, 6)),
            conv((1, 32, 7, 7), (2, 8, 16, 2, 5)),
        )
        for version in (OLD, NEW)
    ),
    ("depthwise-eight-taps", taps(2, 4, "s8"), PLAIN, OLD, AVX2_VNNI, "jit_uni_int8:avx2_vnni"),
    ("depthwise-eight-taps", taps(8, 1), SRC_POINT, OLD, AVX2, "jit_uni_int8:avx2"),
    ("conv-rows-of-taps", conv((1, 16, 3, 9), (32, 16, 1, 8)), PLAIN, NEW, AMX, CONV_AMX),
    ("conv-rows-of-taps", conv((1, 8, 5, 20), (16, 8, 2, 16)), PLAIN, OLD, AMX, CONV_AMX),
    # Windows in the padding: below src, beside it, around it, and of one tap.
    *(
        ("conv-window-outside", conv(src, wei, **more), attr, version, isa, impl)
        for src, wei, more, attr, version, isa, impl in (
            ((1, 16, 1, 6), (16, 16, 2, 1), HOLE, PLAIN, OLD, AMX, CONV_AMX),
            ((1, 16, 1, 6), (16, 16, 2, 1), HOLE, PLAIN, NEW, AMX, CONV_AMX),
            ((1, 64, 5, 1), (16, 64, 3, 1), BESIDE, SRC_POINT, NEW, AMX, CONV_VNNI),
            ((2, 16, 1, 1), (37, 16, 1, 1), AROUND, SRC_POINT, NEW, VNNI, CONV_VNNI),
            ((1, 32, 1, 2), (16, 32, 3, 1), BELOW, PLAIN, OLD, VNNI, CONV_VNNI),
        )
    ),
    (
        "conv-window-outside",
        DeconvProblem.of((1, 32, 5, 1), (16, 32, 4, 2), src="s8", dilation=2, padding=(3, 1)),
        PLAIN,
        NEW,
        VNNI,
        "brg_deconv:avx512_core_vnni+brg_conv_fwd:avx512_core_vnni",
    ),
    *(
        (
            "conv-dilated-src-zero-point",
            conv(src, wei, dilation=(2, 1), padding=((7, 6), (0, 0)), stride=2),
            SRC_POINT,
            version,
            AMX,
            CONV_OLDER,
        )
        for src, wei in (((1, 48, 8, 7), (48, 48, 5, 3)), ((2, 16, 4, 3), (16, 16, 5, 1)))
        for version in (OLD, NEW)
    ),
    (
        "conv-gemm-packed-depth",
        conv((2, 64, 5, 6), (37, 64, 1, 1)),
        PLAIN,
        OLD,
        AMX,
        "x64:gemm_s8s8s32:jit",
    ),
    *(
        ("one-channel-s8-src-zero-point", one_channel(37, groups), SRC_POINT, version, isa, impl)
        for groups in (1, 2)
        for version, isa, impl in (
            (OLD, AVX512, "brg_conv_fwd:avx512_core"),
            (NEW, VNNI, CONV_VNNI),
            (NEW, AMX, CONV_VNNI),
        )
    ),
    ("one-channel-s8-src-zero-point", one_channel(200), SRC_POINT, NEW, VNNI, CONV_VNNI),
    ("f32-to-bf16", f32_conv("bf16"), PLAIN, NEW, AMX, "brgconv_1x1:avx10_1_512_amx"),
    ("one-channel-s8-padding", one_channel(16, padding=(0, 1)), PLAIN, OLD, VNNI, CONV_VNNI),
    ("one-channel-s8-padding", one_channel(8, 2, padding=1), SRC_POINT, OLD, AMX, CONV_VNNI),
    ("conv-1x1-s8-src-zero-point", pixels(7, src="s8"), SRC_POINT, NEW, AVX512, CONV_1X1),
    ("conv-1x1-five-pixels", pixels(5), PLAIN, NEW, AVX512, CONV_1X1),
    ("conv-1x1-five-pixels", pixels(5), SRC_POINT, OLD, AVX512, CONV_1X1),
    # Now and then, with two threads; compare `tests/faults/test_guards_shown.py`.
    ("deconv-stride-src-zero-point", deconv(3, 2, padding=1), SRC_POINT, NEW, AMX, DECONV_AMX),
    ("deconv-stride-s8", deconv(3, 2, "s8", padding=1), PLAIN, NEW, VNNI, DECONV_VNNI),
    ("deconv-stride-src-zero-point", deconv(3, 3), SRC_POINT, NEW, AMX, DECONV_AMX),
    (
        "deconv-stride-src-zero-point",
        deconv(5, 2),
        SRC_POINT,
        NEW,
        AVX2_VNNI,
        "brg_deconv:avx2_vnni+brgconv_strided:avx2_vnni",
    ),
    ("deconv-stride-src-zero-point", deconv(1, 2), SRC_POINT, NEW, AVX512, DECONV_VNNI),
    ("deconv-stride-src-zero-point", deconv(3, 2, groups=2), SRC_POINT, NEW, AMX, DECONV_AMX),
    ("deconv-stride-s8", deconv(6, 4, "s8"), PLAIN, NEW, VNNI, DECONV_VNNI),
    # An AMX machine that has stepped down to the kernel of a lower level.
    ("deconv-stride-s8", deconv(3, 3, "s8"), PLAIN, NEW, AMX, DECONV_VNNI),
    ("deconv-places-without-taps", deconv(2, 3, bias="f32"), PLAIN, NEW, AMX, DECONV_AMX),
    ("deconv-places-without-taps", deconv(3, 4), SUM, NEW, AMX, DECONV_AMX),
    ("deconv-places-without-taps", deconv(4, 5, groups=2), DST_POINT, NEW, AMX, DECONV_AMX),
    *(
        ("gemm-not-channels-last", problem, PLAIN, version, isa, "x64:gemm_s8u8s32:jit")
        for version in (OLD, NEW)
        for isa in (AVX2, AMX)
        for problem in (
            DeconvProblem.of((2, 4, 3), (1, 4, 3), layout="dense"),
            DeconvProblem.of((2, 2, 1), (3, 2, 1), layout="dense"),
            ConvProblem.of((2, 1, 8), (3, 1, 2), layout="dense"),
        )
    ),
    *(
        ("deconv-kernel-below-stride", deconv(2, 4), SRC_POINT, version, isa, DECONV_OLDER)
        for version in (OLD, NEW)
        for isa in (VNNI, AMX)
    ),
    ("deconv-places-without-taps", deconv(1, 3, bias="f32"), PLAIN, NEW, AMX, DECONV_AMX),
    ("deconv-kernel-below-stride", deconv(1, 3, "s8"), PLAIN, OLD, AVX2, "jit_uni_int8:avx2"),
    ("deconv-kernel-below-stride", deconv(1, 3), SRC_POINT, NEW, AVX2, "jit_uni_int8:avx2"),
    (
        "matmul-4d-broadcast-b",
        MatMulProblem.of((2, 1, 8, 16), (1, 1, 16, 12)),
        PLAIN,
        OLD,
        AVX2_VNNI,
        "brg_matmul:avx2_vnni",
    ),
    (
        "matmul-4d-broadcast-b",
        MatMulProblem.of((3, 1, 17, 17), (1, 1, 17, 3), src="f32", wei="f32", dst="f32"),
        PLAIN,
        OLD,
        AVX2,
        "brg_matmul:avx2",
    ),
    ("matmul-4d-per-row-binary", M4, binary(1, 1, 8, 1), OLD, AMX, MATMUL_AMX),
    ("matmul-4d-per-row-binary", M4, binary(1, 3, 8, 1), OLD, AMX, MATMUL_AMX),
    ("matmul-4d-mask-binary", M4, binary(1, 1, 8, 12), NEW, AMX, MATMUL_AMX),
    (
        "inner-product-spatial-packing",
        InnerProductProblem.of((3, 4, 2, 2), 17),
        PLAIN,
        NEW,
        AVX2,
        "gemm:jit",
    ),
    ("inner-product-one-output", inner(1), PLAIN, NEW, AVX2, "brg_matmul:avx2"),
    ("inner-product-one-output", inner(1, "bf16"), PLAIN, NEW, AMX, "brg_matmul:avx512_core_bf16"),
    *(
        ("conv-per-channel-dst-scale", CONV, Attr(dst_scale=Scale(2)), OLD, AVX2, impl)
        for impl in ("jit_uni_int8:avx2", "ref:any")
    ),
    *(
        ("matmul-per-column-dst-scale", M2, Attr(dst_scale=Scale(2)), NEW, AVX2, impl)
        for impl in ("gemm:jit", "ref_int8:any")
    ),
    *(
        ("matmul-wei-scale-along-k", M2, wei_scale(mask), version, isa, impl)
        for mask in (1, 3)
        for version in (OLD, NEW)
        for isa, impl in ((AMX, MATMUL_AMX), (AVX2, "gemm:jit"))
    ),
    *(
        ("matmul-wei-scale-along-k-reference", M2, attr, NEW, AVX2, "ref_int8:any")
        for attr in (
            wei_scale(1),
            wei_scale(3),
            wei_scale(3, (1, 1)),
            wei_scale(3, (1, 1), "f16"),
        )
    ),
    (
        "depthwise-wei-zero-point",
        depthwise(),
        Attr(wei_zero_point=ZeroPoint()),
        OLD,
        AVX2_VNNI,
        "brdgmm_dw:avx2_vnni",
    ),
    (
        "conv-bf16-bias",
        ConvProblem.of((1, 16, 9, 9), (16, 16, 3, 3), bias="bf16"),
        PLAIN,
        NEW,
        AVX512,
        "x64:gemm_s8u8s32:jit",
    ),
    (
        "matmul-src-scale-unit-groups",
        M2,
        Attr(src_scale=Scale(3, groups=(1, 1))),
        NEW,
        AMX,
        "ref_int8:any",
    ),
    ("matmul-scale-groups-along-n", M2, wei_scale(3, (1, 4)), NEW, AMX, "ref_int8:any"),
    *(
        ("matmul-scale-groups", M2, wei_scale(3, groups), OLD, AMX, MATMUL_AMX)
        for groups in ((1, 1), (32, 1))
    ),
    (
        "conv-sum-twice",
        ConvProblem.of((1, 3, 1, 9), (32, 3, 3, 3), padding=1),
        SUM,
        NEW,
        AVX2,
        "jit_uni_int8:avx2",
    ),
    *(
        ("depthwise-sum-twice", depthwise(*shape), attr, version, isa, "jit_uni_int8:avx2_vnni")
        for shape in ((15, 2), (16, 1), (40, 1))
        for attr in (SHIFTED_SUM, Attr(post_ops=(SumPostOp(0.5),)))
        for version in (OLD, NEW)
        for isa in (AVX2_VNNI, AMX, ZEN5)
    ),
    # Comparisons: no code for channels that 16 does not divide, and none in a GEMM.
    *(
        ("comparison-without-code", problem, compare(*dims), OLD, isa, impl)
        for problem, dims, isa, impl in (
            (M2, (1, 12), AVX512, "brg_matmul:avx512_core"),
            (M2, (8, 12), AMX, "brg_matmul:avx2_vnni"),
            (conv((1, 16, 9, 9), (19, 16, 3, 3)), (1, 19, 1, 1), AMX, CONV_AMX),
            (conv((1, 19, 9, 9), (19, 1, 1, 3, 3)), (1, 19, 1, 1), VNNI, "brdgmm_dw:x"),
            (conv((1, 32, 9, 9), (2, 8, 16, 3, 3)), (1, 16, 1, 1), AMX, CONV_AMX),
        )
    ),
    ("comparison-in-gemm", M2, compare(8, 12), OLD, AMX, "gemm:jit"),
    *(
        ("comparison-beside-dense", problem, compare(1, 1, 1, 1), OLD, AMX, "jit:avx512_core")
        for problem in (POOLING, SOFTMAX)
    ),
    ("comparison-in-gemm", CONV, compare(1, 1, 1, 1), NEW, AVX512, "x64:gemm_s8u8s32:jit"),
    *(
        ("comparison-in-binary", binary_of("u8"), compare(1, 8), version, isa, "jit:uni")
        for version, isa in ((OLD, AVX2), (NEW, AVX2_VNNI))
    ),
    *(
        ("comparison-in-groups", problem, attr, NEW, VNNI, "jit_int8:avx512_core_vnni")
        for problem, attr in (
            (conv((1, 64, 9, 9), (2, 24, 32, 3, 3)), compare(1, 48, 1, 1)),
            (conv((1, 48, 9, 9), (2, 16, 24, 3, 3)), compare(1, 32, 1, 1)),
            (conv((1, 64, 9, 9), (2, 24, 32, 3, 3)), compare(1, 1, 1, 1, dtype="s8")),
        )
    ),
    *(
        ("operand-in-avx2-vnni", conv((1, 16, 9, 9), (37, 16, 3, 3)), attr, NEW, AMX, CONV_AVX2)
        for attr in (binary(1, 37, 1, 1), Attr(post_ops=(PReluPostOp(2),)))
    ),
    ("reorder-per-channel-zero-point", *reorder(2), NEW, AVX2, "jit:uni"),
    *((row, problem, attr, OLD, isa, impl) for row, problem, attr, impl, isa in pooled.ANYWHERE),
]
