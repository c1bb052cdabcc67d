"""Problems on which the rows of the guard table show, each with a level where it does."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    ReorderProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault import Fault
from support.pooled import WIDE, WIDER, mean

AMX_FP16, AMX = "AVX512_CORE_AMX_FP16", "AVX512_CORE_AMX"
VNNI, AVX512 = "AVX512_CORE_VNNI", "AVX512_CORE"
AVX2_VNNI, AVX2, SSE41 = "AVX2_VNNI", "AVX2", "SSE41"
ZEN5 = "AVX512_CORE_BF16+AVX_VNNI"  # as a limit: a name that oneDNN passes over
SRC_POINT, DST_POINT = Attr(src_zero_point=ZeroPoint()), Attr(dst_zero_point=ZeroPoint())
POWERS = 2.0 ** (np.arange(64) % 5)


def conv(dims: tuple[int, ...], wei: tuple[int, ...], dst: str = "s32", **more: Any) -> ConvProblem:
    return ConvProblem.of(dims, wei, dst=dst, **more)


def deconv(kernel: int, stride: int, src: str = "u8", **more: Any) -> DeconvProblem:
    wei = (16, 16, kernel, kernel)
    return DeconvProblem.of((1, 16, 5, 5), wei, src=src, dst="s32", stride=stride, **more)


def matmul(
    a: tuple[int, ...], b: tuple[int, ...], dst: str = "f32", *, plain: bool = False
) -> MatMulProblem:
    problem = MatMulProblem.of(a, b, dst=dst)
    if not plain:
        return problem
    return MatMulProblem(problem.src, TensorSpec.dense(b, "s8"), problem.dst, None)


def binary(alg: str, *dims: int, dtype: str = "f32") -> Attr:
    return Attr(post_ops=(BinaryPostOp(alg, TensorSpec.dense(dims, dtype)),))


def wei_scale(mask: int, groups: tuple[int, ...] = (), count: int = 16) -> dict[str, Any]:
    """Attributes of a fault, and their values."""
    scale = Scale(mask, groups=groups)
    return {"attr": Attr(wei_scale=scale), "values": {"wei_scale": 2.0 ** (np.arange(count) % 7)}}


def _products() -> list[Fault]:
    small = matmul((4, 16), (16, 8))
    grouped = matmul((8, 64), (64, 32))
    per_column = Attr(dst_scale=Scale(2))
    four = matmul((2, 3, 31, 64), (2, 3, 64, 48))
    unit = Attr(src_scale=Scale(3, groups=(1, 1)))
    unit_values = {"src_scale": 2.0 ** (np.arange(512) % 5)}
    dense, codes = (TensorSpec.dense((4, 8), dtype) for dtype in ("f32", "u8"))
    return [
        Fault("matmul-plain-b-k-tail", AMX, matmul((64, 77), (77, 100), plain=True)),
        Fault("matmul-plain-b-k-tail", AMX, matmul((2, 197, 100), (2, 100, 64), plain=True)),
        Fault("matmul-plain-b-k-tail", AMX, matmul((2, 3, 5, 65), (1, 1, 65, 48))),
        *(
            Fault("matmul-4d-broadcast-b", level, matmul((2, 1, 48, 64), (1, 1, 64, 48)))
            for level in (AMX, VNNI, AVX512, AVX2_VNNI)
        ),
        Fault(
            "matmul-4d-broadcast-b",
            AVX2,
            MatMulProblem.of((3, 1, 17, 17), (1, 1, 17, 3), src="f32", wei="f32", dst="f32"),
            Attr(wei_scale=Scale(8)),  # without it, gemm comes first
            {"wei_scale": np.full(3, 4.0)},
        ),
        Fault("matmul-4d-per-row-binary", AMX, four, binary("mul", 1, 3, 31, 1)),
        Fault("matmul-4d-mask-binary", AMX, four, binary("add", 1, 1, 31, 48)),
        Fault(
            "inner-product-spatial-packing",
            AVX2,
            InnerProductProblem.of((4, 16, 3, 3), 32, dst="s32"),
        ),
        *(
            Fault(
                "inner-product-one-output",
                level,
                InnerProductProblem.of((4, 8, 2, 4), 1, src=dtype, wei=dtype, dst="f32"),
            )
            for level, dtype in ((AVX2, "f32"), (AMX, "bf16"))
        ),
        *(
            Fault("matmul-per-column-dst-scale", level, small, per_column, DST_SCALES)
            for level in (AVX2, AMX)
        ),
        *(
            Fault("matmul-wei-scale-along-k", level, small, **wei_scale(*scale))
            for level in (AVX2, AMX)
            for scale in ((1,), (3, (), 128))
        ),
        Fault("matmul-wei-scale-along-k-reference", AVX2, grouped, **wei_scale(3, (1, 1), 2048)),
        *(
            Fault("matmul-src-scale-unit-groups", level, grouped, unit, unit_values)
            for level in (AVX2, AMX_FP16)
        ),
        *(
            Fault("matmul-scale-groups-along-n", level, grouped, **wei_scale(3, (1, 16), 128))
            for level in (AVX2, AMX)
        ),
        *(
            Fault("matmul-scale-groups", level, grouped, **wei_scale(3, (32, 1), 64))
            for level in (AVX2_VNNI, AVX512, AMX)
        ),
        Fault(
            "reorder-per-channel-zero-point",
            AVX2,
            ReorderProblem(dense, codes),
            Attr(dst_zero_point=ZeroPoint(2)),
            {"dst_zero_point": np.arange(8)},
        ),
    ]


DST_SCALES = {"dst_scale": POWERS[:8]}


def _convolutions() -> list[Fault]:
    depthwise = conv((1, 32, 7, 7), (32, 1, 1, 3, 3))
    hole = conv((1, 16, 1, 6), (16, 16, 2, 1), stride=(2, 1), dilation=(3, 1), padding=HOLE)
    beside = conv((1, 64, 5, 1), (16, 64, 3, 1), stride=2, padding=((0, 0), (1, 0)))
    between = conv((1, 32, 5, 2), (32, 32, 3, 2), dilation=(1, 3), padding=((1, 0), (1, 1)))
    return [
        Fault("conv-one-column-out", AMX, conv((2, 3, 8, 2), (32, 3, 1, 3), **COLUMN)),
        Fault("conv-one-column-out", AMX, conv((1, 64, 6, 1), (32, 64, 1, 3), **COLUMN)),
        *(
            Fault(
                "conv-one-column-out-of-one-channel",
                level,
                conv((2, 8, 5, 3), (8, 8, 1, 2, 2), stride=(1, 2)),
            )
            for level in (AVX512, VNNI, AMX)
        ),
        Fault(
            "grouped-conv-src-zero-point",
            AMX,
            conv((1, 9, 6, 19), (3, 37, 3, 1, 3), src="s8", stride=(1, 2), padding=(0, 1)),
            SRC_POINT,
        ),
        Fault(
            "grouped-conv-src-zero-point",
            AMX,
            conv((1, 32, 7, 11), (2, 16, 16, 1, 8), src="s8", stride=(1, 2), padding=(0, 4)),
            SRC_POINT,
        ),
        Fault("conv-window-outside", AMX, hole),
        *(
            Fault("conv-window-outside", level, problem, SRC_POINT)
            for level, problem in ((VNNI, beside), (VNNI, between), (AVX2_VNNI, between))
        ),
        Fault(
            "conv-dilated-src-zero-point",
            AMX,
            conv((2, 16, 4, 3), (16, 16, 5, 1), stride=2, dilation=(2, 1), padding=TALL),
            SRC_POINT,
        ),
        *(
            Fault("depthwise-eight-taps", level, conv(src, wei, src="s8"))
            for level, src, wei in (
                (AVX2, (1, 16, 5, 6), (16, 1, 1, 2, 4)),
                (AVX2_VNNI, (1, 8, 4, 4, 4), (8, 1, 1, 2, 2, 2)),
            )
        ),
        Fault("conv-rows-of-taps", AMX, conv((1, 16, 3, 9), (32, 16, 1, 8))),
        *(
            Fault(
                "one-channel-s8-src-zero-point",
                level,
                conv((1, 1, 5, 6), (37, 1, 3, 3), src="s8"),
                SRC_POINT,
            )
            for level in (AMX, VNNI, AVX512)
        ),
        *(
            Fault(
                "f32-to-bf16",
                AMX,
                ConvProblem.of((2, 16, 5, 6), (16, 16, *kernel), src="f32", wei="f32", dst="bf16"),
            )
            for kernel in ((1, 1), (3, 3))
        ),
        *(
            Fault(
                "one-channel-s8-padding",
                level,
                conv((3, 1, 7, 7), (16, 1, 2, 2), src="s8", padding=((0, 0), (1, 0))),
            )
            for level in (AMX, VNNI, AVX512)
        ),
        Fault(
            "conv-1x1-s8-src-zero-point",
            AVX512,
            conv((1, 32, 4), (16, 32, 1), src="s8"),
            SRC_POINT,
        ),
        Fault("conv-1x1-five-pixels", AVX512, conv((1, 8, 5), (2, 32, 4, 1))),
        Fault("conv-gemm-packed-depth", AMX, conv((2, 64, 5, 6), (37, 64, 1, 1), src="s8")),
        Fault(
            "conv-per-channel-dst-scale",
            AVX2,
            conv((1, 16, 5, 5), (8, 16, 3, 3), "f32"),
            Attr(dst_scale=Scale(2)),
            DST_SCALES,
        ),
        *(
            Fault("depthwise-wei-zero-point", level, depthwise, Attr(wei_zero_point=ZeroPoint()))
            for level in (AMX, VNNI, AVX2_VNNI)
        ),
        *(
            Fault("conv-bf16-bias", level, conv((1, 16, 5, 5), (16, 16, 3, 3), "f32", bias="bf16"))
            for level in (AVX512, AMX)
        ),
        *(
            Fault(
                "conv-sum-twice",
                level,
                conv((1, 3, 1, 7), (channels, 3, 3, 3), "u8", padding=1),
                Attr(dst_zero_point=ZeroPoint(), post_ops=(SumPostOp(),)),
            )
            for level, channels in ((SSE41, 16), (AVX2, 32))
        ),
        *(
            Fault(
                "depthwise-sum-twice",
                level,
                conv((1, 16, 7, 11), (16, 1, 1, 2, 1), "f32", **TWO_ROWS),
                Attr(post_ops=(SumPostOp(0.5),)),
            )
            for level in (AVX2_VNNI, AMX, ZEN5)
        ),
    ]


TWO_ROWS: dict[str, Any] = {"stride": (2, 1), "dilation": (2, 1), "padding": (1, 0)}
HOLE, TALL = ((1, 3), (0, 0)), ((7, 6), (0, 0))
COLUMN: dict[str, Any] = {"stride": (1, 3), "padding": (0, 1)}


def _deconvolutions() -> list[Fault]:
    padded = DeconvProblem.of(
        (2, 3, 8, 4),
        (16, 3, 3, 4),
        src="s8",
        dst="s32",
        stride=(1, 2),
        padding=((2, 1), (3, 0)),
    )
    return [
        *(
            Fault("deconv-stride-src-zero-point", level, deconv(5, 4), SRC_POINT)
            for level in (AMX, VNNI, AVX512, AVX2_VNNI)
        ),
        *(
            Fault("deconv-stride-s8", level, deconv(6, 4, "s8"))
            for level in (AMX, VNNI, AVX512, AVX2_VNNI)
        ),
        Fault("deconv-stride-s8", AVX512, padded),
        Fault(
            "deconv-places-without-taps",
            AMX,
            deconv(2, 3),
            Attr(post_ops=(EltwisePostOp("linear", 1.0, 3.0),)),
        ),
        Fault("deconv-places-without-taps", AMX, deconv(3, 4), DST_POINT),
        *(
            Fault("gemm-not-channels-last", level, problem)
            for level in (AMX, AVX2)
            for problem in (
                DeconvProblem.of((2, 4, 3), (1, 4, 3), dst="s32", layout="dense"),
                DeconvProblem.of((1, 8, 3, 5), (1, 8, 2, 2), layout="dense"),
            )
        ),
        Fault(
            "gemm-not-channels-last",
            AMX,
            ConvProblem.of((2, 1, 8), (3, 1, 2), dst="s32", layout="dense"),
        ),
        *(
            Fault("deconv-kernel-below-stride", level, problem, attr)
            for level in (AMX, VNNI, AVX2_VNNI, AVX2)
            for problem, attr in (
                (deconv(2, 4, padding=1), SRC_POINT),
                (deconv(2, 4, "s8"), Attr()),
            )
        ),
    ]


def _operands() -> list[Fault]:
    ragged = conv((1, 16, 5, 5), (19, 16, 3, 3), "f32")
    grouped = conv((1, 64, 7, 7), (2, 24, 32, 3, 3), "f32")
    narrow = conv((1, 48, 7, 7), (2, 16, 24, 3, 3), "f32")
    whole = conv((2, 16, 3, 9), (19, 16, 3, 2), "u8", stride=(1, 2), padding=1)
    few = conv((1, 2, 4), (2, 4, 1, 4), "s8", bias="f32", stride=2, padding=((2, 0),))
    like_dst = TensorSpec.channels_last((1, 8, 2), "f32")
    spec = TensorSpec.channels_last((2, 19, 5, 4), "f32")
    row, codes = (TensorSpec.dense((6, 8), dtype) for dtype in ("f32", "u8"))
    return [
        *(
            Fault("comparison-without-code", level, matmul((7, 39), (39, 9)), binary("gt", 1, 9))
            for level in (AVX512, AMX)
        ),
        Fault("comparison-without-code", AMX, ragged, binary("le", 1, 19, 1, 1)),
        Fault("comparison-in-gemm", AVX512, whole, binary("ge", 1, 1, 1, 1)),
        Fault(
            "comparison-beside-dense", AMX, SoftmaxProblem(spec, spec, 1), binary("gt", 1, 1, 1, 1)
        ),
        *(
            Fault(
                "comparison-in-binary",
                level,
                BinaryProblem(row, row, codes, "mul"),
                binary("lt", *dims),
            )
            for level in (AVX2, AVX2_VNNI)
            for dims in ((6, 8), (1, 8))
        ),
        Fault("comparison-in-groups", VNNI, grouped, binary("ne", 1, 48, 1, 1)),
        Fault("comparison-in-groups", AVX512, narrow, binary("ge", 1, 32, 1, 1)),
        Fault("comparison-in-groups", VNNI, narrow, binary("lt", 1, 1, 1, 1, dtype="s8")),
        *(
            Fault("operand-in-avx2-vnni", AMX, problem, attr, since=(3, 8, 0))
            for problem, attr in (
                (few, Attr(post_ops=(BinaryPostOp("add", like_dst),))),
                (
                    conv((1, 16, 6, 11), (37, 16, 3, 5), "f32", padding=1),
                    binary("add", 1, 37, 1, 1),
                ),
            )
        ),
    ]


def _means() -> list[Fault]:
    return [
        *(
            Fault("mean-beyond-16-bits", level, mean("u8"), WIDE)
            for level in (AVX2, AVX2_VNNI, AVX512, AMX)
        ),
        *(
            Fault("mean-beyond-32-bits", level, mean(dtype), WIDER)
            for level in (AMX, AVX512, AVX2, SSE41)
            for dtype in ("u8", "s8")
        ),
    ]


FAULTS = [*_products(), *_convolutions(), *_deconvolutions(), *_operands(), *_means()]
