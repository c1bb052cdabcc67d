"""Problems on which orders of dimensions and gaps show faults, as `faults` has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    PReluProblem,
    Problem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.fault import Fault
from support.guard_borders.layouts import DENSE, LAST, Layout
from support.guard_borders.make import Dims

VNNI, AVX512, AVX2, SSE41, ALL = "AVX512_CORE_VNNI", "AVX512_CORE", "AVX2", "SSE41", "ALL"
LEVELS = (SSE41, AVX2, AVX512)
IMAGE = (2, 8, 3, 5)
TURNED = (128, 4, 1, 256)  # of (2, 32, 4, 5): columns outside everything


def binary(alg: str, src: TensorSpec, dst: TensorSpec, src1: TensorSpec) -> BinaryProblem:
    return BinaryProblem(src, src1, dst, alg)


def added(spec: TensorSpec) -> Attr:
    return Attr(post_ops=(BinaryPostOp("add", spec),))


def pooled(dtype: str, to: str, layout: Layout, alg: str = "max") -> PoolingProblem:
    dims, out = (2, 16, 6, 6), (2, 16, 3, 3)
    window: tuple[Dims, ...] = ((2, 2), (2, 2), (1, 1), (0, 0), (0, 0))
    return PoolingProblem(layout(dims, dtype), layout(out, to), alg, *window)


def resized(src: Layout, dst: Layout) -> ResamplingProblem:
    return ResamplingProblem(src((4, 33, 1), "f32"), dst((4, 33, 4), "f32"), "nearest")


def _orders() -> list[tuple[str, Problem, Attr]]:
    f32, single, each = (
        DENSE(IMAGE, "f32"),
        DENSE((47, 7, 1), "f32"),
        added(DENSE((1, 7, 1), "f32")),
    )
    turned = TensorSpec((2, 32, 4, 5), "f32", TURNED)
    bytes_of = [TensorSpec((16, 8, 8), "u8", strides) for strides in ((64, 1, 8), (64, 8, 1))]
    shifted = Attr(src_zero_point=ZeroPoint())
    return [
        ("reorder-shifted-blocks", ReorderProblem(bytes_of[0], bytes_of[1]), shifted),
        ("reorder-shifted-blocks", ReorderProblem(bytes_of[1], bytes_of[0]), shifted),
        ("reorder-shifted-blocks", ReorderProblem(bytes_of[0], DENSE((16, 8, 8), "f32")), shifted),
        ("binary-of-other-layouts", binary("add", f32, LAST(IMAGE, "u8"), f32), Attr()),
        ("binary-operand-across-layout", binary("mul", single, single, single), each),
        ("resampling-of-one-place", resized(DENSE, LAST), Attr()),
        ("resampling-of-one-place", resized(LAST, DENSE), Attr()),
        ("maxima-stored-early", pooled("s32", "u8", DENSE), added(DENSE((1, 16, 1, 1), "f32"))),
        ("prelu-across-layout", sloped(turned), Attr()),
    ]


def along(dims: Dims) -> Attr:
    """Return an operand along the last dimension."""
    return added(DENSE((1,) * (len(dims) - 1) + dims[-1:], "f32"))


def sloped(src: TensorSpec) -> PReluProblem:
    return PReluProblem(src, DENSE((1, src.dims[1], 1, 1), "f32"), src)


def _gaps() -> list[tuple[str, Problem, Attr]]:
    apart = added(TensorSpec((1, 16, 1, 1), "f32", (32, 2, 1, 1)))
    dims = (2, 16, 3, 5)
    conv = ConvProblem.of((2, 8, 3, 5), (16, 8, 3, 3), dst="f32", padding=1)
    alike = [TensorSpec((4, 9), dtype, (16, 1)) for dtype in ("u8", "f32")]
    like = LAST(dims, "f32")
    return [
        *(("reorder-of-gaps-alike", ReorderProblem(alike[0], to), Attr()) for to in alike),
        ("sum-into-gaps", SumProblem((DENSE((4, 9), "u8"),), (2.0,), alike[0]), Attr()),
        ("operand-with-gaps", conv, apart),
        ("operand-with-gaps", binary("mul", like, like, like), apart),
        ("operand-with-gaps", pooled("f32", "f32", LAST), apart),
        (
            "operand-with-gaps",
            ResamplingProblem(like, LAST((2, 16, 6, 5), "f32"), "nearest"),
            apart,
        ),
    ]


def _somewhere() -> list[Fault]:
    """Return what only some versions or levels have."""
    last, wide = LAST(IMAGE, "f32"), LAST((2, 40, 3, 5), "f32")
    beside, dst = pooled("f32", "f32", DENSE), DENSE((2, 16, 3, 3), "f32")
    crossed = binary("mul", last, last, last)
    images = [DENSE((2, 8, length, length), "u8") for length in (14, 20)]
    row = DENSE((1, 37, 1), "u8")
    return [
        Fault("pooling-beside-operand", AVX512, beside, added(dst)),
        # Without a limit: limited to AVX2, a CPU with AVX-512 has the register, and is right.
        Fault("prelu-beyond-registers", ALL, PReluProblem(last, LAST(IMAGE, "u8"), last)),
        Fault("prelu-beyond-registers", ALL, PReluProblem(wide, LAST((1, 40, 1, 1), "s8"), wide)),
        *(
            Fault("binary-operand-across-layout", level, crossed, along(IMAGE), since=(3, 8, 0))
            for level in LEVELS
        ),
        Fault("binary-of-other-layouts", AVX2, binary("add", row, row, LAST(row.dims, "f32"))),
        *(
            Fault(
                "binary-operand-along-rows", level, binary("add", *[image] * 3), along(image.dims)
            )
            for level, image in ((SSE41, images[0]), (AVX2, images[0]), (AVX512, images[1]))
        ),
    ]


def _layers() -> list[Fault]:
    deconv = DeconvProblem.of((1, 16, 12, 3), (16, 16, 7, 3), stride=(3, 1), dst="f32")
    column = MatMulProblem.of((7, 96), (96, 1))
    fc = InnerProductProblem.of((49, 5, 2, 1), 3, dst="f32")
    fc = replace(fc, src=LAST(fc.src.dims, "u8"), wei=TensorSpec((3, 5, 2, 1), "s8", (1, 6, 3, 1)))
    halved = Attr(post_ops=(EltwisePostOp("linear", 0.5, 3.0),))
    gapped = TensorSpec(deconv.dst.dims, "f32", (16 * 41 * 6, 41 * 6, 6, 1))
    several = MatMulProblem.of((3, 1, 48), (3, 48, 49), dst="s32")
    several = replace(several, dst=TensorSpec((3, 1, 49), "s32", (49, 1, 1)))
    several = replace(several, wei=DENSE((3, 48, 49), "s8"))
    within = MatMulProblem.of((2, 8, 4), (1, 4, 64), src="s8", dst="s32")
    within = replace(within, dst=TensorSpec((2, 8, 64), "s32", (64, 128, 1)))
    heads = MatMulProblem.of((1, 3, 16, 16), (1, 3, 16, 32), src="f32", wei="f32", dst="f32")
    heads = replace(heads, wei=TensorSpec((1, 3, 16, 32), "f32", (1536, 32, 96, 1)))
    tap = DeconvProblem.of((1, 8, 6), (4, 8, 1), src="f32", wei="f32", dst="f32", layout="dense")
    tap = replace(tap, wei=DENSE((4, 8, 1), "f32"))
    images = InnerProductProblem.of((49, 1, 7), 64, dst="f32")
    images = replace(images, src=TensorSpec((49, 1, 7), "u8", (1, 343, 49)))
    images = replace(images, wei=TensorSpec((64, 1, 7), "s8", (1, 448, 64)))
    ends = ((2, 3),)
    bf16 = ConvProblem.of((2, 1, 3), (1, 1, 8), src="bf16", wei="bf16", dst="bf16", padding=ends)
    bf16 = replace(bf16, dst=TensorSpec((2, 1, 1), "bf16", (2, 1, 1)))
    f32 = ConvProblem.of((2, 4, 5, 6), (8, 4, 2, 2), src="f32", wei="f32", dst="f32", stride=2)
    f32 = replace(f32, src=TensorSpec(f32.src.dims, "f32", (136, 1, 24, 4)))
    floats: dict[str, Any] = {"src": "f32", "wei": "f32", "dst": "f32"}
    rows = DeconvProblem.of((3, 16, 6), (2, 8, 1), groups=2, layout="dense", **floats)
    rows = replace(rows, src=TensorSpec(rows.src.dims, "f32", (97, 6, 1)))
    steps = DeconvProblem.of((3, 8, 3, 4), (16, 8, 2, 2), stride=(1, 2), dst="u8")
    steps = replace(steps, dst=TensorSpec(steps.dst.dims, "u8", (528, 1, 128, 16)))
    reals = DeconvProblem.of((3, 3, 4, 6), (16, 3, 2, 2), stride=(2, 1), **floats)
    reals = replace(reals, src=TensorSpec(reals.src.dims, "f32", (88, 1, 18, 3)))
    return [
        *(Fault("inner-product-innermost-images", level, images) for level in LEVELS),
        Fault("conv-gemm-with-gaps", AVX512, bf16),
        *(Fault("conv-gemm-with-gaps", AVX2, problem) for problem in (f32, rows)),
        *(Fault("deconv-strided-with-gaps", AVX512, problem) for problem in (steps, reals)),
        Fault("deconv-pointwise-plain-wei", AVX512, tap),
        *(Fault("matmul-4d-wei-batches-within", level, heads) for level in (AVX2, AVX512)),
        *(Fault("inner-product-in-two-orders", level, fc) for level in (AVX2, AVX512)),
        Fault(
            "matmul-column-with-gaps", AVX2, replace(column, dst=TensorSpec((7, 1), "f32", (2, 1)))
        ),
        Fault("deconv-into-gaps", AVX2, replace(deconv, dst=gapped), halved),
        Fault("matmul-row-declared-short", AVX2, several, added(DENSE((1, 1, 49), "f32"))),
        Fault("matmul-batches-within-rows", VNNI, within, added(DENSE((1, 1, 64), "f32"))),
    ]


LAYOUT_FAULTS = [
    *_layers(),
    *(
        Fault(row, level, problem, attr)
        for row, problem, attr in (*_orders(), *_gaps())
        for level in LEVELS
        if (row, level) != ("reorder-shifted-blocks", SSE41)
    ),
    *_somewhere(),
]
