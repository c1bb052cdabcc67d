"""The guard table: the measured failures match their row, the measured successes match none."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pyonednn_q.compose.attr import Attr, Scale, ZeroPoint
from pyonednn_q.compose.guards import GUARDS, Facts, matching
from pyonednn_q.compose.implementation import ISA_ORDER
from pyonednn_q.compose.post_ops import BinaryPostOp, EltwisePostOp, PReluPostOp, SumPostOp
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    Problem,
    ReorderProblem,
)
from pyonednn_q.compose.tensor import TensorSpec

OLD, NEW = (3, 7, 2), (3, 13, 2)
AMX, VNNI, AVX512 = "AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE"
AVX2_VNNI, AVX2 = "AVX2_VNNI", "AVX2"

PLAIN = Attr()
SRC_POINT = Attr(src_zero_point=ZeroPoint())
CONV_AMX, MATMUL_AMX = "brg_conv_fwd:avx10_1_512_amx", "brg_matmul:avx10_1_512_amx"
DECONV_AMX = "brg_deconv:avx10_1_512_amx+brgconv_strided:avx10_1_512_amx"
DECONV_VNNI = "brg_deconv:avx512_core_vnni+brgconv_strided:avx512_core_vnni"


def ids(
    problem: Problem, attr: Attr = PLAIN, version: Any = NEW, isa: str = AMX, impl: str = ""
) -> set[str]:
    return {guard.id for guard in matching(problem, attr, Facts(version, isa, "OMP"), impl)}


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
    return DeconvProblem.of((1, 16 * groups, 9, 9), wei, src=src, strides=stride, **more)


def depthwise(channels: int = 15, dilation: int = 2) -> ConvProblem:
    return ConvProblem.of((1, channels, 9, 9), (channels, 1, 1, 3, 3), dilation=dilation)


def binary(*dims: int) -> Attr:
    return Attr(post_ops=(EltwisePostOp("relu"), BinaryPostOp("add", TensorSpec(dims, "f32"))))


def wei_scale(mask: int, groups: tuple[int, ...] = (), dtype: str = "f32") -> Attr:
    return Attr(wei_scale=Scale(mask, dtype, groups))


def reorder(zero_point: int) -> tuple[ReorderProblem, Attr]:
    src, dst = (TensorSpec.dense((1, 8, 3, 3), dtype) for dtype in ("f32", "u8"))
    return ReorderProblem(src, dst), Attr(dst_zero_point=ZeroPoint(zero_point))


CONV = ConvProblem.of((1, 16, 9, 9), (16, 16, 3, 3))
M4 = MatMulProblem.of((2, 3, 8, 16), (2, 3, 16, 12))
M2 = MatMulProblem.of((8, 64), (64, 12))
GROUPED = ConvProblem.of((1, 12, 9, 9), (2, 8, 6, 3, 3))
SHIFTED_SUM = Attr(post_ops=(EltwisePostOp("clip", 0, 6), SumPostOp(1.0, 3)))
FEW = ConvProblem.of((1, 2, 9, 9), (2, 4, 1, 3, 3), bias="f32")
DST_POINT = Attr(dst_zero_point=ZeroPoint())
SUM = Attr(dst_zero_point=ZeroPoint(), post_ops=(SumPostOp(),))

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
        ConvProblem.of((1, 16, 9, 3), (16, 16, 3, 3), strides=2),
        PLAIN,
        OLD,
        AMX,
        CONV_AMX,
    ),
    ("grouped-conv-src-zero-point", GROUPED, SRC_POINT, NEW, AMX, CONV_AMX),
    ("deconv-stride-src-zero-point", deconv(3, 3), SRC_POINT, NEW, AMX, DECONV_AMX),
    ("deconv-stride-src-zero-point", deconv(5, 2), SRC_POINT, NEW, AVX2_VNNI, "brg_deconv:x"),
    ("deconv-stride-src-zero-point", deconv(1, 2), SRC_POINT, NEW, AVX512, DECONV_VNNI),
    ("deconv-stride-src-zero-point", deconv(3, 2, groups=2), SRC_POINT, NEW, AMX, DECONV_AMX),
    ("deconv-stride-s8", deconv(6, 4, "s8"), PLAIN, NEW, VNNI, DECONV_VNNI),
    # An AMX machine that has stepped down to the kernel of a lower level.
    ("deconv-stride-s8", deconv(3, 3, "s8"), PLAIN, NEW, AMX, DECONV_VNNI),
    ("deconv-kernel-below-stride", deconv(2, 4), SRC_POINT, OLD, AVX512, DECONV_VNNI),
    ("deconv-kernel-below-stride", deconv(1, 3, "s8"), PLAIN, OLD, AVX2, "jit_uni_int8:avx2"),
    ("deconv-kernel-below-stride", deconv(1, 3), SRC_POINT, NEW, AVX2, "jit_uni_int8:avx2"),
    ("conv-bias-and-operand", FEW, binary(1, 8, 1, 1), NEW, AMX, "brg_conv_fwd:avx2_vnni"),
    ("deconv-places-without-taps", deconv(2, 3, bias="f32"), PLAIN, NEW, AMX, DECONV_AMX),
    ("deconv-places-without-taps", deconv(3, 4), SUM, NEW, AMX, DECONV_AMX),
    ("deconv-places-without-taps", deconv(4, 5, groups=2), DST_POINT, NEW, AMX, DECONV_AMX),
    (
        "matmul-4d-broadcast-b",
        MatMulProblem.of((2, 3, 8, 16), (1, 3, 16, 12)),
        PLAIN,
        OLD,
        AVX2_VNNI,
        "brg_matmul:avx2_vnni",
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
    ("dilated-depthwise-sum", depthwise(), SHIFTED_SUM, NEW, AVX2_VNNI, "jit_uni_int8:avx2_vnni"),
    ("reorder-per-channel-zero-point", *reorder(2), NEW, AVX2, "jit:uni"),
]

# What stands beside them and was measured as right, or is the remedy of a row.
RIGHT: list[tuple[Problem, Attr, Any, str, str]] = [
    (matmul(31, 64, 48), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 128, 48), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 33, 48), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(8, 100, 48), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 100, 48, b="packed"), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 100, 48, b="transposed"), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 100, 48, b="transposed", batch=(2, 3)), PLAIN, NEW, AMX, MATMUL_AMX),
    (matmul(31, 100, 48), SRC_POINT, NEW, AMX, MATMUL_AMX),
    (matmul(31, 100, 48), PLAIN, NEW, AMX, "brg_matmul:avx512_core_vnni"),
    (matmul(31, 100, 48), PLAIN, NEW, VNNI, "brg_matmul:avx512_core_vnni"),
    (matmul(31, 100, 48), PLAIN, OLD, AMX, MATMUL_AMX),
    # One column out: another kernel, another width, height or stride.
    *(
        (ConvProblem.of((1, 16, *size), (16, 16, *k), strides=s), PLAIN, NEW, AMX, impl)
        for size, k, s, impl in (
            ((9, 3), (3, 3), 2, "jit:avx512_core_amx"),
            ((9, 3), (3, 3), 2, "brg_conv_fwd:avx512_core_vnni"),
            ((9, 5), (3, 3), 2, CONV_AMX),
            ((3, 3), (3, 3), 2, CONV_AMX),
            ((9, 3), (3, 3), 1, CONV_AMX),
            ((9, 1), (3, 1), 2, CONV_AMX),
        )
    ),
    (ConvProblem.of((1, 32, 9, 9), (2, 8, 16, 3, 3)), SRC_POINT, NEW, AMX, CONV_AMX),
    (GROUPED, PLAIN, NEW, AMX, CONV_AMX),
    (GROUPED, SRC_POINT, NEW, AMX, "brg_conv_fwd:avx512_core_vnni"),
    (depthwise(dilation=1), SRC_POINT, NEW, AMX, CONV_AMX),
    # Deconvolutions: u8 without zero point always, stride 2 with kernels of 2, 3, 4.
    *((deconv(k, s), PLAIN, NEW, AMX, DECONV_AMX) for k in (1, 3, 6) for s in (2, 3, 4)),
    *((deconv(k, 2), SRC_POINT, NEW, VNNI, DECONV_VNNI) for k in (2, 3, 4)),
    (deconv(4, 2, groups=2, padding=1), SRC_POINT, NEW, AMX, DECONV_AMX),
    (deconv(3, 1, "s8"), SRC_POINT, NEW, AMX, DECONV_AMX),
    (deconv(3, 3, "s8"), PLAIN, NEW, AMX, DECONV_AMX),
    (deconv(3, 3), SRC_POINT, OLD, AMX, DECONV_AMX),
    (deconv(1, 3), SRC_POINT, OLD, AVX2, "conv:any+x64:gemm_s8u8s32:jit"),
    (deconv(1, 3), SRC_POINT, OLD, AVX2, "conv:any+ref:any"),
    (FEW, PLAIN, NEW, AMX, "brg_conv_fwd:avx2_vnni"),
    (FEW, binary(1, 8, 1, 1), NEW, AVX2_VNNI, "brg_conv_fwd:avx2_vnni"),
    (FEW, binary(1, 8, 1, 1), OLD, AMX, "brg_conv_fwd:avx2_vnni"),
    # Places without taps that hold 0, kernels of one tap or as long as the stride, other levels.
    (deconv(2, 3), PLAIN, NEW, AMX, DECONV_AMX),
    *((deconv(k, 2, bias="f32"), SUM, NEW, AMX, DECONV_AMX) for k in (1, 2)),
    (deconv(2, 3, bias="f32"), SUM, NEW, AMX, DECONV_VNNI),
    (deconv(2, 3, bias="f32"), SUM, NEW, VNNI, DECONV_VNNI),
    *((deconv(k, k + 1, "s8"), SRC_POINT, OLD, AVX2, "jit_uni_int8:avx2") for k in (1, 2, 3)),
    # Matmul operands.
    (M4, PLAIN, OLD, AMX, MATMUL_AMX),
    (MatMulProblem.of((2, 8, 16), (1, 16, 12)), PLAIN, OLD, AMX, MATMUL_AMX),
    (MatMulProblem.of((2, 3, 8, 16), (1, 3, 16, 12)), PLAIN, OLD, AVX2, "gemm:jit"),
    (MatMulProblem.of((2, 3, 8, 16), (1, 3, 16, 12)), PLAIN, NEW, AMX, MATMUL_AMX),
    (M4, binary(1, 1, 1, 12), OLD, AMX, MATMUL_AMX),
    (M4, binary(2, 3, 8, 12), OLD, AMX, MATMUL_AMX),
    (M4, binary(1, 1, 8, 1), NEW, AMX, MATMUL_AMX),
    (M4, binary(2, 3, 8, 12), NEW, AMX, MATMUL_AMX),
    (M4, binary(1, 3, 8, 12), NEW, AMX, MATMUL_AMX),
    (M4, binary(1, 1, 8, 12), NEW, VNNI, "brg_matmul:avx512_core_vnni"),
    # Inner products.
    (InnerProductProblem.of((3, 16), 17), PLAIN, NEW, AVX2, "gemm:jit"),
    (InnerProductProblem.of((3, 4, 2, 2), 17), PLAIN, NEW, AVX2, "x64:gemm_s8u8s32:jit"),
    (
        InnerProductProblem.of((3, 4, 2, 2), 17, layout="dense"),
        PLAIN,
        NEW,
        AVX2,
        "gemm:jit",
    ),
    (InnerProductProblem.of((3, 4, 2, 2), 17), PLAIN, OLD, AVX2, "gemm:jit"),
    # Scales and zero points.
    (CONV, Attr(dst_scale=Scale()), OLD, AVX2, "jit_uni_int8:avx2"),
    (M2, Attr(dst_scale=Scale(), wei_scale=Scale(2)), NEW, AVX2, "gemm:jit"),
    (M2, wei_scale(3, (16, 1)), NEW, AMX, MATMUL_AMX),
    (M2, wei_scale(3, (16, 1)), NEW, AVX2, "ref_int8:any"),
    (M2, wei_scale(3), OLD, AVX2, "ref_int8:any"),
    (MatMulProblem.of((1, 1, 8, 16), (1, 1, 16, 12)), PLAIN, OLD, AMX, MATMUL_AMX),
    (depthwise(), SRC_POINT, OLD, AVX2_VNNI, "brdgmm_dw:avx2_vnni"),
    (CONV, Attr(wei_zero_point=ZeroPoint()), OLD, AVX2_VNNI, "brg_conv_fwd:avx2_vnni"),
    (ConvProblem.of((1, 16, 9, 9), (16, 16, 3, 3), bias="f32"), PLAIN, NEW, AMX, CONV_AMX),
    (deconv(3, 1, bias="bf16"), PLAIN, NEW, AMX, "conv:any+x64:gemm_s8u8s32:jit"),
    (*reorder(0), NEW, AVX2, "jit:uni"),
    # Sums.
    (
        ConvProblem.of((1, 4, 1, 9), (32, 4, 3, 3), padding=1),
        SUM,
        NEW,
        AVX2,
        "jit_uni_int8:avx2",
    ),
    (depthwise(dilation=1), SHIFTED_SUM, NEW, AVX2_VNNI, "brdgmm_dw:avx2_vnni"),
    (
        depthwise(),
        Attr(post_ops=(EltwisePostOp("relu"), SumPostOp())),
        NEW,
        AVX2_VNNI,
        "jit_uni_int8:avx2_vnni",
    ),
    (depthwise(16), SHIFTED_SUM, NEW, AVX2_VNNI, "jit_uni_int8:avx2_vnni"),
    (depthwise(), SHIFTED_SUM, NEW, VNNI, "jit_int8:avx512_core"),
]


@pytest.mark.parametrize(("row", "problem", "attr", "version", "isa", "impl"), WRONG)
def test_what_was_seen_wrong_is_matched(
    row: str, problem: Problem, attr: Attr, version: Any, isa: str, impl: str
) -> None:
    assert row in ids(problem, attr, version, isa, impl)
    assert row in ids(problem, attr, version, isa, "")  # the name may be hidden


@pytest.mark.parametrize(("problem", "attr", "version", "isa", "impl"), RIGHT)
def test_what_was_seen_right_is_not(
    problem: Problem, attr: Attr, version: Any, isa: str, impl: str
) -> None:
    assert ids(problem, attr, version, isa, impl) == set()


def test_every_row_has_an_example() -> None:
    assert {case[0] for case in WRONG} == {guard.id for guard in GUARDS}


def test_ordinary_problems_match_nothing_anywhere() -> None:
    relu = Attr(wei_scale=Scale(1), dst_scale=Scale(), post_ops=(EltwisePostOp("relu"),))
    row_wise = Attr(wei_scale=Scale(2), src_zero_point=ZeroPoint(), dst_zero_point=ZeroPoint())
    for isa in ISA_ORDER:
        for version in (OLD, (3, 9, 1), NEW, (3, 14, 0)):
            assert ids(CONV, relu, version, isa) == set()
            assert ids(deconv(4, 2, padding=1), relu, version, isa) == set()
            assert ids(MatMulProblem.of((8, 64), (64, 32)), row_wise, version, isa) == set()
            assert ids(MatMulProblem.of((64, 100), (100, 96)), row_wise, version, isa) == set()
            assert ids(InnerProductProblem.of((8, 64), 32), relu, version, isa) == set()


def test_versions_between_the_measured_ones_have_the_faults_of_both() -> None:
    broadcast = MatMulProblem.of((2, 3, 64, 100), (1, 3, 100, 64))
    assert ids(broadcast, version=(3, 10, 0)) == {"matmul-plain-b-k-tail", "matmul-4d-broadcast-b"}
    assert ids(broadcast, version=OLD) == {"matmul-4d-broadcast-b"}
    assert ids(broadcast, version=NEW) == {"matmul-plain-b-k-tail"}
    assert ids(broadcast, version=(3, 20, 0)) == {"matmul-plain-b-k-tail"}


def test_fixed_faults_end_with_the_version_that_fixed_them() -> None:
    per_channel = Attr(dst_scale=Scale(2))
    assert ids(CONV, per_channel, (3, 8, 9)) == {"conv-per-channel-dst-scale"}
    assert ids(CONV, per_channel, (3, 9, 0)) == set()


def test_a_source_whose_layout_is_open_may_become_channels_last() -> None:
    known = InnerProductProblem.of((3, 4, 2, 2), 17)
    undecided = InnerProductProblem(TensorSpec(known.src.dims, "u8"), known.wei, known.dst, None)
    assert ids(undecided, isa=AVX2) == {"inner-product-spatial-packing"}
    plain = InnerProductProblem(known.src, TensorSpec.dense(known.wei.dims, "s8"), known.dst, None)
    assert ids(plain, isa=AVX2) == set()


def test_prelu_slopes_count_as_operands() -> None:
    def prelu(mask: int) -> Attr:
        return Attr(post_ops=(PReluPostOp(mask),))

    assert ids(M4, prelu(0b0100), OLD) == {"matmul-4d-per-row-binary"}
    assert ids(M4, prelu(0b1100), NEW) == {"matmul-4d-mask-binary"}
    assert ids(M4, prelu(0b1000), OLD) == ids(M4, prelu(0b1111), NEW) == set()


def test_rows_are_complete_sentences_of_data() -> None:
    assert len({guard.id for guard in GUARDS}) == len(GUARDS)
    for guard in GUARDS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", guard.id)
        assert guard.since >= (3, 7, 0)
        assert guard.until is None or guard.until > guard.since
        assert guard.source.startswith("measured: 3.")
        assert guard.effect
        assert guard.remedy
        if guard.impl is not None:
            re.compile(guard.impl)
        assert any(guard.isas(isa) for isa in ISA_ORDER)
