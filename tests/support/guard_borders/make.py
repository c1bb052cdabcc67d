"""Problems and attributes on which conditions of the guard table are tried, in few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pyonednn_q.primitive.attr import Attr, ZeroPoint
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    Problem,
)
from pyonednn_q.primitive.tensor import TensorSpec

Dims: TypeAlias = tuple[int, ...]
Condition: TypeAlias = Callable[[Any, Attr], bool]  # the problem: of the row's kinds
Cases: TypeAlias = Sequence[tuple[Problem, Attr]]
# A condition, what matches it, and what stands beside that and does not.
Border: TypeAlias = tuple[Condition, Cases, Cases]

PLAIN, SRC, WEI, DST = (
    Attr(),
    Attr(src_zero_point=ZeroPoint()),
    Attr(wei_zero_point=ZeroPoint()),
    Attr(dst_zero_point=ZeroPoint()),
)


def conv(src: Dims, wei: Dims, dtype: str = "u8", /, **more: Any) -> ConvProblem:
    return ConvProblem.of(src, wei, src=dtype, **more)


def deconv(
    src: Dims, wei: Dims, dtype: str = "u8", /, *, tail: int = 0, **more: Any
) -> DeconvProblem:
    least = DeconvProblem.of(src, wei, src=dtype, **more)
    *dims, width = least.dst.dims
    return replace(least, dst=TensorSpec.channels_last((*dims, width + tail), least.dst.dtype))


def matmul(src: Dims, wei: Dims, strides: Dims | None = None, /, **more: Any) -> MatMulProblem:
    """A product; weights are packed where no strides are given."""
    problem = MatMulProblem.of(src, wei, **more)
    return replace(problem, wei=TensorSpec(wei, problem.wei.dtype, strides))


def scaled(**scales: Any) -> Attr:
    return replace(PLAIN, **scales)


def after(*post_ops: PostOp) -> Attr:
    return Attr(post_ops=post_ops)


def operand(alg: str, *dims: int, dtype: str = "f32") -> BinaryPostOp:
    return BinaryPostOp(alg, TensorSpec.dense(dims, dtype))


def mean(dst: str = "u8", alg: str = "avg_exclude_padding") -> PoolingProblem:
    src, out = (TensorSpec.channels_last((1, 8, n, n), dst) for n in (4, 2))
    return PoolingProblem(src, out, alg, (2, 2), (2, 2), (1, 1), (0, 0), (0, 0))


def times(alpha: float, beta: float = 0.0) -> EltwisePostOp:
    return EltwisePostOp("linear", alpha, beta)


def eltwise(alg: str, alpha: float = 0.0, beta: float = 0.0) -> EltwisePostOp:
    return EltwisePostOp(alg, alpha, beta)


def compared(src: str, dst: str) -> BinaryProblem:
    spec = TensorSpec.dense((6, 8), src)
    return BinaryProblem(spec, spec, TensorSpec.dense((6, 8), dst), "mul")


def grouped(groups: int, channels: int, outputs: int, dtype: str = "u8", **more: Any) -> Any:
    kernel = more.pop("kernel", (3, 3))
    return conv((1, groups * channels, 8, 8), (groups, outputs, channels, *kernel), dtype, **more)


def single(outputs: int, groups: int = 1, dtype: str = "s8", **more: Any) -> Any:
    """One input channel a group."""
    return conv((1, groups, 6, 6), (groups, outputs, 1, 3, 3), dtype, **more)


def inner(dims: Dims, oc: int = 5, wei: Dims | None = None, **src: Any) -> InnerProductProblem:
    problem = InnerProductProblem.of(dims, oc)
    spec = TensorSpec(dims, "u8", **src) if src else problem.src
    return replace(problem, src=spec, wei=TensorSpec(problem.wei.dims, "s8", wei))
