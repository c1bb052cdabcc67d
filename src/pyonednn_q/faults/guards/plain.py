"""Faults of primitives without weights that are read once and stored: whole numbers in float32.

With what is known about where they end. Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.faults.guards.guard import BEFORE_3_13, FLOOR, Guard, any_isa, condition
from pyonednn_q.primitive.post_ops import COMPARISONS, BinaryPostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PoolingProblem,
    ReorderProblem,
    ResamplingProblem,
    SumProblem,
)

if TYPE_CHECKING:
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.problem import Problem


@condition()
def s32_in_float32(problem: Problem, attr: Attr) -> bool:
    """Match an s32 result of an s32 operand, or s32 compared, added, averaged or interpolated.

    Right are plain reorders, maxima of windows in generated code (which `s32_maxima` has), a clip
    whose bounds float32 holds, and smaller integer types of one s32 value, for they saturate.
    """
    sources = {spec.dtype for name, spec in problem.tensors.items() if name != "dst"}
    stored = problem.tensors["dst"].dtype
    if "s32" not in sources:
        return stored == "s32" and _reads_s32(attr, stored)
    match problem:
        case ReorderProblem():
            return stored == "s32" and bool(attr.names or attr.post_ops)
        case PoolingProblem(alg="max"):
            return False
        case EltwiseProblem(alg="clip", alpha=lo, beta=hi) if not attr.post_ops:
            return max(abs(lo), abs(hi)) > F32_WHOLE
        case BinaryProblem(alg=alg):
            whole = all(map(dtypes.is_integer, sources))
            cancels = alg in {"add", "sub"} or (alg == "div" and dtypes.is_integer(stored))
            return stored == "s32" or alg in COMPARISONS or (whole and cancels)
        case SumProblem():
            return stored == "s32" or len(problem.srcs) > 1
        case PoolingProblem() | ResamplingProblem(alg="linear"):
            return dtypes.is_integer(stored)
    return stored == "s32"


@condition()
def s32_maxima(problem: PoolingProblem, attr: Attr) -> bool:
    """Match maxima of s32 stored as s32."""
    return problem.alg == "max" and problem.src.dtype == problem.dst.dtype == "s32"


@condition()
def gaps_alike(problem: ReorderProblem, attr: Attr) -> bool:
    """Match copies of a tensor with gaps to the same strides."""
    src = problem.src
    return src.has_gaps and src.lies_as(problem.dst)


@condition()
def other_layouts_stored_narrow(problem: BinaryProblem, attr: Attr) -> bool:
    """Match two whole tensors, where one lies otherwise than a dst of less than 32 bits."""
    src1, dst = problem.src1, problem.dst
    if dtypes.bits(dst.dtype) >= 32 or src1.dims != dst.dims:
        return False
    return not (problem.src.lies_as(dst) and src1.lies_as(dst))


def _reads_s32(attr: Attr, stored: str) -> bool:
    """Tell whether a post-op reads s32."""
    return any(
        (isinstance(op, BinaryPostOp) and op.src1.dtype == "s32")
        or (isinstance(op, SumPostOp) and (op.dtype or stored) == "s32")
        for op in attr.post_ops
    )


PLAIN_GUARDS: tuple[Guard, ...] = (
    Guard(
        id="s32-in-float32",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("binary", "eltwise", "pooling", "prelu", "reorder", "resampling", "sum"),
        impl=None,
        condition=s32_in_float32,
        effect="whole numbers beyond 2^24 are rounded to float32 before anything is done to them",
        remedy="NumPy's integers; or f32 tensors where 24 bits are enough",
        source="measured: 3.7.2 and 3.13.2, AVX2 and AVX512_CORE_BF16, every implementation and "
        "reference loop that is offered, every value that float32 does not hold; a scale of 1 does "
        "it to a reorder, and a zero point lets it wrap at 2^31",
    ),
    Guard(
        id="s32-maxima",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("pooling",),
        impl=r"^(?:ref|simple)",
        condition=s32_maxima,
        effect="whole numbers beyond 2^24 are rounded to float32",
        remedy="channels-last tensors without post-ops, which generated code takes",
        source="measured: 3.7.2 and 3.13.2, the reference loop, 469 of 960 maxima; generated code "
        "for AVX512_CORE, AVX2 and SSE41 was right",
    ),
    Guard(
        id="reorder-of-gaps-alike",
        since=FLOOR,
        until=BEFORE_3_13,
        isas=any_isa,
        kinds=("reorder",),
        impl=r"jit_direct_copy",
        condition=gaps_alike,
        effect="as many elements are copied as there are, gaps counted: the last ones are left out",
        remedy="other strides: networks copy to layouts without gaps",
        source="measured: 3.7.2, 898 of 898 random layouts with gaps, u8, s8, s32 and f32 to each "
        "other; without gaps, and where strides differ, all were right; oneDNN's issue 3280",
    ),
    Guard(
        id="binary-of-other-layouts",
        since=FLOOR,
        until=None,
        isas=any_isa,
        kinds=("binary",),
        impl=r"jit",
        condition=other_layouts_stored_narrow,
        effect="values are stored in other places than theirs",
        remedy="tensors that lie as dst does, or an f32 dst",
        source="measured: 3.7.2 and 3.13.2, SSE41, AVX2 and AVX512_CORE_BF16: of 903 random "
        "problems with u8 or s8 dst and src in other orders 901 were wrong, and 11 of 335 where "
        "only an f32 src1 lies otherwise (of bf16 1 of 24 in 3.7.2); right were 5 000 of one "
        "layout, an src1 of fewer values, and f32 dst",
    ),
)
