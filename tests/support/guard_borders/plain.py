"""On which primitives without weights faults show, and where they end."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.faults.guards import plain
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.post_ops import SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PReluProblem,
    Problem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.guard_borders.make import DST, PLAIN, SRC, Border, after, eltwise, mean, operand

DIMS = (2, 8, 4, 4)


def spec(dtype: str = "s32") -> TensorSpec:
    return TensorSpec.dense(DIMS, dtype)


def binary(alg: str, src: str, src1: str, dst: str) -> BinaryProblem:
    return BinaryProblem(spec(src), spec(src1), spec(dst), alg)


def clip(lo: float, hi: float) -> EltwiseProblem:
    return EltwiseProblem(spec(), spec(), "clip", lo, hi)


def resized(alg: str, dst: str, src: str = "s32") -> ResamplingProblem:
    return ResamplingProblem(spec(src), TensorSpec.dense((2, 8, 8, 8), dst), alg)


def reorder(src: str, dst: str) -> ReorderProblem:
    return ReorderProblem(spec(src), spec(dst))


def sum_of(dst: str, *types: str) -> SumProblem:
    return SumProblem(tuple(map(spec, types)), (1.0,) * len(types), spec(dst))


def prelu(src: str, dst: str) -> PReluProblem:
    return PReluProblem(spec(src), TensorSpec.dense((1, 8, 1, 1), "f32"), spec(dst))


def sloped(dims: tuple[int, ...], wei: str, *slopes: int, src: str = "f32") -> PReluProblem:
    """Channels lie last; slopes have dimensions of their own, or those of src."""
    channels_last = TensorSpec.channels_last(dims, src)
    of_slopes = TensorSpec.channels_last(slopes or dims, wei)
    return PReluProblem(channels_last, of_slopes, channels_last)


def stored(problem: Problem, dtype: str) -> Problem:
    return replace(problem, dst=replace(problem.tensors["dst"], dtype=dtype))


UNIT_SRC, UNIT_DST = Attr(src_scale=Scale()), Attr(dst_scale=Scale())
FULL = after(operand("add", *DIMS, dtype="s32"))
MEAN = mean("s32")
ADDED = after(operand("add", 1, 8, 1, 1))

BORDERS: list[Border] = [
    (
        plain.s32_in_float32,
        [
            *((binary(alg, "s32", "s32", "s32"), PLAIN) for alg in ("add", "mul", "max", "lt")),
            *((binary(alg, "s32", "u8", "u8"), PLAIN) for alg in ("add", "sub", "div", "eq")),
            *((binary(alg, "s8", "s32", "f32"), PLAIN) for alg in ("add", "sub", "ge")),
            (binary("mul", "f32", "s32", "s32"), PLAIN),
            (binary("gt", "s32", "f32", "u8"), PLAIN),
            (binary("mul", "f32", "f32", "s32"), FULL),
            (binary("mul", "f32", "f32", "s32"), after(SumPostOp())),
            (binary("mul", "f32", "f32", "s32"), after(SumPostOp(1.0, 0, "s32"))),
            (EltwiseProblem(spec(), spec(), "relu"), PLAIN),
            (EltwiseProblem(spec(), spec(), "linear", 1.0, 0.0), PLAIN),
            (clip(0.0, 2.0**24 + 2), PLAIN),
            (clip(-(2.0**24) - 2, 0.0), PLAIN),
            (clip(0.0, 1.0), after(eltwise("linear", 1.0, 0.0))),
            (sum_of("s32", "s32"), PLAIN),
            (sum_of("u8", "s32", "u8"), PLAIN),
            (MEAN, PLAIN),
            (stored(MEAN, "u8"), PLAIN),
            (resized("nearest", "s32"), PLAIN),
            (resized("linear", "s32"), PLAIN),
            (resized("linear", "u8"), PLAIN),
            (prelu("s32", "s32"), PLAIN),
            (reorder("s32", "s32"), UNIT_SRC),
            (reorder("s32", "s32"), UNIT_DST),
            (reorder("s32", "s32"), SRC),
            (reorder("s32", "s32"), DST),
            (reorder("s32", "s32"), after(SumPostOp())),
            (reorder("f32", "s32"), after(SumPostOp())),
        ],
        [
            *((binary(alg, "s32", "s32", "u8"), PLAIN) for alg in ("mul", "max", "min")),
            *((binary(alg, "u8", "s8", "s32"), PLAIN) for alg in ("add", "mul", "eq")),
            *((binary(alg, "s32", "f32", "f32"), PLAIN) for alg in ("add", "sub", "mul", "div")),
            (binary("div", "s32", "s32", "f32"), PLAIN),
            (binary("add", "f32", "f32", "s32"), PLAIN),
            (binary("add", "f32", "f32", "f32"), FULL),
            (binary("add", "f32", "f32", "s32"), after(SumPostOp(1.0, 0, "f32"))),
            (EltwiseProblem(spec("s8"), spec("s8"), "relu"), PLAIN),
            (clip(-(2.0**24), 2.0**24), PLAIN),
            (sum_of("u8", "s32"), PLAIN),
            (sum_of("s32", "u8", "s8"), PLAIN),
            (stored(MEAN, "f32"), PLAIN),
            (mean("u8"), PLAIN),
            (mean("s32", "max"), PLAIN),
            (resized("nearest", "u8"), PLAIN),
            (resized("linear", "f32"), PLAIN),
            (resized("linear", "s32", "u8"), PLAIN),
            (prelu("f32", "s32"), PLAIN),
            (reorder("s32", "s32"), PLAIN),
            (reorder("s32", "u8"), UNIT_SRC),
            (reorder("u8", "s32"), DST),
        ],
    ),
    (
        plain.s32_maxima,
        [(mean("s32", "max"), PLAIN)],
        [
            (mean("s32"), PLAIN),
            (mean("u8", "max"), PLAIN),
            (stored(mean("s32", "max"), "u8"), PLAIN),
            (reorder("s32", "s32"), PLAIN),
        ],
    ),
    (
        plain.maxima_stored_early,
        [
            (stored(mean("s8", "max"), "u8"), ADDED),
            (stored(mean("s32", "max"), "s8"), after(eltwise("relu"))),
        ],
        [
            (stored(mean("s8", "max"), "u8"), PLAIN),
            (stored(mean("s8", "max"), "f32"), ADDED),
            (mean("s8", "max"), ADDED),
            (stored(mean("s8"), "u8"), ADDED),
        ],
    ),
    (
        plain.slopes_beyond_registers,
        [
            (sloped((1, 8, 8, 16), "u8"), PLAIN),
            (sloped((1, 40, 1, 1), "s8"), PLAIN),
            (sloped((2, 48, 3, 3), "s32", 1, 48, 1, 1), PLAIN),
            (sloped((7, 40), "bf16", 1, 40), PLAIN),
        ],
        [
            (sloped((1, 8, 8, 16), "f32"), PLAIN),
            (sloped((1, 8, 8, 16), "u8", src="s32"), PLAIN),
            (sloped((1, 32, 1, 1), "u8"), PLAIN),
            (sloped((1, 41, 3, 3), "u8"), PLAIN),
            (sloped((2, 32, 4, 4), "u8", 1, 32, 1, 1), PLAIN),
            (sloped((2, 42, 4, 4), "u8", 1, 42, 1, 1), PLAIN),
            (sloped((8, 48, 4, 4), "u8", 1, 1, 1, 1), PLAIN),
        ],
    ),
]
