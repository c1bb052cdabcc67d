"""On which primitives the order of dimensions, or gaps, show faults, and where these end."""

from __future__ import annotations

from collections.abc import Callable

from pyonednn_q.faults.guards import layouts
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, PReluPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_borders.make import DST, PLAIN, SRC, Border, Dims, after, conv

DIMS = (2, 8, 4, 4)
Layout = Callable[[Dims, str], TensorSpec]
DENSE: Layout = TensorSpec.dense
LAST: Layout = TensorSpec.channels_last
TURNED = (128, 16, 1, 4)  # DIMS, with columns inside rows


def copied(
    dims: tuple[int, ...], src: tuple[int, ...], dst: tuple[int, ...], dtype: str = "u8"
) -> ReorderProblem:
    return ReorderProblem(TensorSpec(dims, "u8", src), TensorSpec(dims, dtype, dst))


def ordered(
    *types: str,
    src: Layout = DENSE,
    src1: Layout = DENSE,
    dst: Layout = DENSE,
    dims: tuple[int, ...] = DIMS,
) -> BinaryProblem:
    """Return a sum of tensors in layouts of their own; dims: of src1."""
    src_type, src1_type, dst_type = types
    return BinaryProblem(src(DIMS, src_type), src1(dims, src1_type), dst(DIMS, dst_type), "add")


def row_of(dtype: str, dims: Dims, src1: str = "") -> BinaryProblem:
    """Return a sum of tensors whose elements lie alike, dst declared otherwise."""
    return BinaryProblem(LAST(dims, dtype), LAST(dims, src1 or dtype), DENSE(dims, dtype), "add")


def resized(
    src: Layout, dst: Layout, lengths: int, to: int, channels: int = 9
) -> ResamplingProblem:
    dims, out = (2, channels, lengths), (2, channels, to)
    return ResamplingProblem(src(dims, "f32"), dst(out, "f32"), "nearest")


def multiplied(dst: Layout | Dims, dims: Dims = DIMS, src1: Layout | None = None) -> BinaryProblem:
    spec = dst(dims, "f32") if callable(dst) else TensorSpec(dims, "f32", dst)
    return BinaryProblem(spec, src1(dims, "f32") if src1 else spec, spec, "mul")


def bytes_of(*dims: int, dst: str = "u8", layout: Layout = DENSE) -> BinaryProblem:
    spec = layout(dims, "u8")
    return BinaryProblem(spec, spec, layout(dims, dst), "add")


def pooled(layout: Layout, channels: int = 8, length: int = 4) -> PoolingProblem:
    src, dst = (layout((2, channels, n), "f32") for n in (2 * length, length))
    return PoolingProblem(src, dst, "max", (2,), (2,), (1,), (0,), (0,))


def sloped(strides: Dims, *wei: int) -> PReluProblem:
    src = TensorSpec(DIMS, "f32", strides)
    return PReluProblem(src, DENSE(wei, "f32"), src)


def summed(dtype: str, strides: Dims) -> SumProblem:
    return SumProblem((DENSE((4, 8), dtype),), (2.0,), TensorSpec((4, 8), dtype, strides))


def turned(src: str, dst: str, strides: Dims = (1, 8)) -> ReorderProblem:
    return ReorderProblem(DENSE((8, 8), src), TensorSpec((8, 8), dst, strides))


def added(*dims: int, layout: Layout = DENSE) -> Attr:
    return after(BinaryPostOp("add", layout(dims, "f32")))


GAPPED = after(BinaryPostOp("add", TensorSpec((1, 8, 1, 1), "f32", (16, 2, 1, 1))))
CONV = conv((2, 4, 5, 5), (8, 4, 3, 3))

BORDERS: list[Border] = [
    (
        layouts.gaps_alike,
        [
            (copied((4, 3), (5, 1), (5, 1)), PLAIN),
            (copied((2, 3, 1, 4), (30, 2, 9, 7), (30, 2, 1, 7), "f32"), PLAIN),
            (copied((4,), (2,), (2,), "s32"), PLAIN),
        ],
        [
            (copied((4, 3), (5, 1), (3, 1)), PLAIN),
            (copied((4, 3), (5, 1), (6, 1)), PLAIN),
            (copied((4, 3), (3, 1), (3, 1)), PLAIN),
            (copied((4, 3), (1, 4), (1, 4)), PLAIN),
            (copied((1, 3), (9, 1), (9, 1)), PLAIN),
        ],
    ),
    (
        layouts.other_layouts_stored_narrow,
        [
            (ordered("u8", "f32", "u8", dst=LAST), PLAIN),
            (ordered("s8", "s8", "s8", src=LAST, src1=LAST), PLAIN),
            (ordered("s8", "f32", "s8", src1=LAST), PLAIN),
            (ordered("bf16", "f32", "bf16", src1=LAST), PLAIN),
            (row_of("s8", (2, 8, 1, 1)), PLAIN),
            (row_of("s8", (2, 1, 3, 4)), PLAIN),
            (row_of("u8", (1, 8, 1, 1), "f32"), PLAIN),
        ],
        [
            (ordered("u8", "f32", "u8"), PLAIN),
            (ordered("s8", "s8", "s8", src=LAST, src1=LAST, dst=LAST), PLAIN),
            (ordered("f32", "f32", "f32", dst=LAST), PLAIN),
            (ordered("u8", "f32", "u8", dst=LAST, dims=(1, 8, 1, 1)), PLAIN),
            (row_of("u8", (1, 8, 1, 1)), PLAIN),
            (row_of("f32", (1, 8, 1, 1), "u8"), PLAIN),
        ],
    ),
    (
        layouts.operand_with_gaps,
        [(CONV, GAPPED), (multiplied(DENSE), GAPPED), (multiplied(LAST), GAPPED)],
        [
            (CONV, added(1, 8, 1, 1)),
            (CONV, after(PReluPostOp(2))),
            (CONV, PLAIN),
            (multiplied(TURNED), added(*DIMS)),
        ],
    ),
    (
        layouts.one_place_in_two_orders,
        [
            (resized(DENSE, LAST, 1, 4), PLAIN),
            (resized(LAST, DENSE, 1, 4), PLAIN),
            (resized(DENSE, DENSE, 1, 1), PLAIN),
            (resized(LAST, DENSE, 4, 1), added(1, 9, 1)),
            (resized(LAST, LAST, 4, 1), added(2, 9, 1)),
        ],
        [
            (resized(DENSE, DENSE, 1, 4), PLAIN),
            (resized(LAST, LAST, 1, 4), PLAIN),
            (resized(LAST, LAST, 1, 1), PLAIN),
            (resized(DENSE, LAST, 1, 4, 1), PLAIN),
            (resized(LAST, DENSE, 4, 1), added(1, 1, 1)),
            (resized(DENSE, LAST, 4, 8), added(1, 9, 1)),
        ],
    ),
    (
        layouts.operand_across_layout,
        [
            (multiplied(LAST), added(1, 1, 1, 4)),
            (multiplied(TURNED), added(1, 8, 1, 1)),
            (multiplied(TURNED), added(1, 1, 1, 4)),
            (multiplied((1, 2), (2, 8)), added(1, 8)),
            (multiplied(DENSE, (2, 8, 1)), added(1, 8, 1)),
            (multiplied(DENSE, src1=LAST), added(1, 1, 1, 4)),
            (multiplied(DENSE, (2, 1, 1, 15), LAST), added(1, 1, 1, 15)),
        ],
        [
            (multiplied(DENSE, (2, 1, 1, 15)), added(1, 1, 1, 15)),
            (multiplied(DENSE, (2, 1, 1, 15), LAST), added(2, 1, 1, 15)),
            (multiplied(DENSE), added(1, 1, 1, 4)),
            (multiplied(DENSE), added(1, 8, 1, 1)),
            (multiplied(LAST), added(1, 8, 1, 1)),
            (multiplied(LAST), added(*DIMS)),
            (multiplied(TURNED), added(1, 1, 1, 1)),
            (multiplied(LAST, (2, 8, 1)), added(1, 8, 1)),
            (multiplied(DENSE, (1, 8, 1)), added(1, 8, 1)),
            (multiplied(DENSE, src1=LAST), added(*DIMS)),
        ],
    ),
    (
        layouts.operand_along_rows,
        [
            (bytes_of(2, 8, 14, 14), added(1, 1, 1, 14)),
            (bytes_of(1, 1, 3, 4, 9, dst="s8"), added(1, 1, 1, 1, 9)),
            (bytes_of(2, 3, 70), added(1, 1, 70)),
            (bytes_of(2, 2, 20, 32), added(1, 1, 1, 32)),
        ],
        [
            (bytes_of(2, 8, 14, 14, dst="f32"), added(1, 1, 1, 14)),
            (bytes_of(2, 8, 14, 14, layout=LAST), added(1, 1, 1, 14)),
            (bytes_of(2, 8, 14, 14), added(1, 8, 1, 1)),
            (bytes_of(2, 8, 14, 14), added(1, 1, 14, 14)),
            (bytes_of(2, 8, 14, 14), added(1, 1, 1, 1)),
            (bytes_of(2, 2, 20, 16), added(1, 1, 1, 16)),
            (bytes_of(2, 2, 3, 10), added(1, 1, 1, 10)),
            (bytes_of(1, 1, 40), added(1, 1, 40)),
            (bytes_of(2, 200), added(1, 200)),
        ],
    ),
    (
        layouts.pooled_beside_operand,
        [
            (pooled(DENSE), added(2, 8, 4)),
            (pooled(LAST), added(2, 8, 4)),
            (pooled(LAST, length=1), added(2, 8, 1, layout=LAST)),
        ],
        [
            (pooled(LAST), added(2, 8, 4, layout=LAST)),
            (pooled(DENSE), added(1, 8, 1)),
            (pooled(DENSE, channels=1), added(2, 1, 4)),
        ],
    ),
    (
        layouts.sum_with_gaps,
        [(summed("u8", (9, 1)), PLAIN), (summed("bf16", (16, 2)), PLAIN)],
        [(summed("f32", (9, 1)), PLAIN), (summed("u8", (8, 1)), PLAIN)],
    ),
    (
        layouts.slopes_across_layout,
        [(sloped(TURNED, 1, 8, 1, 1), PLAIN), (sloped(TURNED, 2, 8, 1, 1), PLAIN)],
        [
            (sloped(TURNED, 1, 1, 1, 1), PLAIN),
            (sloped(TURNED, *DIMS), PLAIN),
            (sloped((128, 16, 4, 1), 1, 8, 1, 1), PLAIN),
            (sloped((128, 1, 32, 8), 1, 8, 1, 1), PLAIN),
        ],
    ),
    (
        layouts.shifted_in_another_order,
        [
            (turned("u8", "u8"), SRC),
            (turned("u8", "s8"), DST),
            (turned("f32", "u8"), DST),
            (turned("s32", "f32"), SRC),
        ],
        [
            (turned("u8", "u8"), PLAIN),
            (turned("u8", "u8", (8, 1)), SRC),
            (ReorderProblem(DENSE((15, 7, 8), "u8"), LAST((15, 7, 8), "f32")), SRC),
            (ReorderProblem(DENSE((2, 9, 9), "u8"), LAST((2, 9, 9), "u8")), SRC),
            (turned("u8", "s8"), Attr(src_scale=Scale(), dst_zero_point=ZeroPoint())),
            (turned("u8", "s8"), Attr(dst_scale=Scale(), src_zero_point=ZeroPoint())),
        ],
    ),
]
