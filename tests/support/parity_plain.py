"""Parity cases of the primitives without weights."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PoolingProblem,
    ReorderProblem,
    SoftmaxProblem,
    SumProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from support.cases import Recipe
from support.parity_post_ops import BINARY, ELTWISE

if TYPE_CHECKING:
    from collections.abc import Iterator

DIMS = (2, 16, 5, 6)
INTEGERS = ("u8", "s8", "s32")
INTEGER_ELTWISE = ("relu", "linear", "clip")  # what the library takes on integer tensors
# name -> size, kernel, strides, low and high padding; averages over 2**n elements stay exact.
POOLS: dict[str, tuple[tuple[int, ...], ...]] = {
    "2x2": ((6, 8), (2, 2), (2, 2), (0, 0), (0, 0)),
    "2x2_padded": ((5, 7), (2, 2), (1, 1), (1, 1), (1, 1)),
    "asymmetric": ((5, 6), (2, 2), (2, 2), (0, 1), (1, 1)),
    "1d": ((10,), (4,), (2,), (0,), (0,)),
    "3d": ((4, 5, 6), (2, 2, 2), (2, 1, 2), (0, 0, 0), (0, 0, 0)),
}
MAX_POOLS: dict[str, tuple[tuple[int, ...], ...]] = {
    "3x3_padded": ((7, 7), (3, 3), (2, 2), (1, 1), (1, 1)),
    "global": ((7, 5), (7, 5), (1, 1), (0, 0), (0, 0)),
}


def _last(dims: tuple[int, ...], dtype: str) -> TensorSpec:
    return TensorSpec.channels_last(dims, dtype)


def reorder_recipes() -> Iterator[Recipe]:
    """Quantize, dequantize, requantize; between layouts; with a common or a channel scale."""
    for src, dst in product(("f32", *INTEGERS), repeat=2):
        problem = ReorderProblem(TensorSpec.dense(DIMS, src), _last(DIMS, dst))
        yield Recipe(f"reorder-{src}-{dst}", problem, Attr())
        scaled = Attr(dst_scale=Scale()) if src == "f32" else Attr(src_scale=Scale())
        yield Recipe(f"reorder-{src}-{dst}-scaled", problem, scaled)
        if dst in {"u8", "s8"} and src == "f32":
            channel = Attr(dst_scale=Scale(mask=2))
            yield Recipe(f"reorder-{src}-{dst}-per_channel", problem, channel)
            points = Attr(dst_scale=Scale(), dst_zero_point=ZeroPoint())
            yield Recipe(f"reorder-{src}-{dst}-zero_point", problem, points)
            sums = Attr(dst_scale=Scale(), post_ops=(SumPostOp(0.5),))
            yield Recipe(f"reorder-{src}-{dst}-sum", problem, sums)
        if src in {"u8", "s8"} and dst == "f32":
            channel = Attr(src_scale=Scale(mask=2))
            yield Recipe(f"reorder-{src}-{dst}-per_channel", problem, channel)
            points = Attr(src_scale=Scale(), src_zero_point=ZeroPoint())
            yield Recipe(f"reorder-{src}-{dst}-zero_point", problem, points)


def eltwise_recipes() -> Iterator[Recipe]:
    """Every algorithm on f32, and the three that integers take."""
    for alg, (alpha, beta) in ELTWISE.items():
        spec = _last(DIMS, "f32")
        yield Recipe(f"eltwise-{alg}", EltwiseProblem(spec, spec, alg, alpha, beta), Attr())
    for alg, dtype in product(INTEGER_ELTWISE, INTEGERS):
        spec = _last(DIMS, dtype)
        alpha, beta = ELTWISE[alg]
        yield Recipe(f"eltwise-{alg}-{dtype}", EltwiseProblem(spec, spec, alg, alpha, beta), Attr())


def binary_recipes() -> Iterator[Recipe]:
    """Every algorithm, three broadcasts, mixed dtypes, scales on both sides."""
    channel = (1, DIMS[1], 1, 1)
    for alg, dtypes in product(BINARY, (("f32", "f32", "f32"), ("s8", "u8", "s8"))):
        for name, dims in (("full", DIMS), ("per_channel", channel), ("scalar", (1, 1, 1, 1))):
            src, src1, dst = dtypes
            problem = BinaryProblem(_last(DIMS, src), _last(dims, src1), _last(DIMS, dst), alg)
            start = f"binary-{alg}-{name}-{src}-{src1}-{dst}"
            yield Recipe(start, problem, Attr())
            if src != "f32" and alg in {"add", "mul", "max", "sub"}:
                scales = Attr(src_scale=Scale(), src1_scale=Scale())
                yield Recipe(f"{start}-scaled", problem, scales)
                relu = Attr(post_ops=(EltwisePostOp("relu"),))
                yield Recipe(f"{start}-relu", problem, relu)


def sum_recipes() -> Iterator[Recipe]:
    """Two and three sources, equal and mixed dtypes."""
    for dtype, scales in product(("f32", "u8", "s8"), ((1.0, 1.0), (0.5, 2.0), (1.0, 0.5, 0.25))):
        sources = tuple(_last(DIMS, dtype) for _ in scales)
        name = f"sum-{dtype}-{'+'.join(map(str, scales))}"
        yield Recipe(name, SumProblem(sources, scales, _last(DIMS, dtype)), Attr())
    mixed = (_last(DIMS, "u8"), _last(DIMS, "s8"))
    yield Recipe("sum-mixed", SumProblem(mixed, (1.0, 0.5), _last(DIMS, "f32")), Attr())


def softmax_recipes() -> Iterator[Recipe]:
    """Both algorithms, every axis, a quantized dst."""
    for axis, log in product(range(2), (False, True)):
        spec = TensorSpec.dense((8, 24), "f32")
        name = f"softmax-{axis}{'-log' if log else ''}"
        yield Recipe(name, SoftmaxProblem(spec, spec, axis, log), Attr())
    src, dst = TensorSpec.dense((8, 24), "f32"), TensorSpec.dense((8, 24), "u8")
    yield Recipe("softmax-u8", SoftmaxProblem(src, dst, 1), Attr(dst_scale=Scale()))


def pooling_recipes() -> Iterator[Recipe]:
    """Maxima and means over padded, strided windows in one to three dimensions."""
    for alg, dtype in product(
        ("max", "avg_include_padding", "avg_exclude_padding"), ("u8", "s8", "f32")
    ):
        shapes = POOLS | MAX_POOLS if alg == "max" else POOLS
        for name, (size, kernel, strides, lo, hi) in shapes.items():
            out = tuple(
                (i + a + b - k) // s + 1
                for i, a, b, k, s in zip(size, lo, hi, kernel, strides, strict=True)
            )
            problem = PoolingProblem(
                _last((2, 16, *size), dtype),
                _last((2, 16, *out), dtype),
                alg,
                kernel,
                strides,
                (1,) * len(kernel),
                lo,
                hi,
            )
            yield Recipe(f"pooling-{alg}-{dtype}-{name}", problem, Attr())


def all_recipes() -> Iterator[Recipe]:
    """Every case of every primitive without weights."""
    families: tuple[Any, ...] = (
        reorder_recipes,
        eltwise_recipes,
        binary_recipes,
        sum_recipes,
        softmax_recipes,
        pooling_recipes,
    )
    for family in families:
        yield from family()
