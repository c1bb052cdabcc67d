"""Faults of primitives that read a value once and store it: whole numbers in float32, registers.

With what is known about where they end. Every condition holds wherever a failure was seen.
"""

# ruff: noqa: ARG001 - all conditions have one signature

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.faults.guards.guard import AFTER_3_7, FLOOR, Guard, any_isa, condition, ymm
from pyonednn_q.primitive.post_ops import COMPARISONS, BinaryPostOp, SumPostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PoolingProblem,
    PReluProblem,
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
def maxima_stored_early(problem: PoolingProblem, attr: Attr) -> bool:
    """Match maxima that are stored as another type than src's, but f32, behind post-ops."""
    return (
        problem.alg == "max"
        and bool(attr.post_ops)
        and problem.dst.dtype not in (problem.src.dtype, "f32")
    )


@condition("src f32")
def slopes_beyond_registers(problem: PReluProblem, attr: Attr) -> bool:
    """Match slopes of another type than f32, one beside each value, for 40 values in a row or more.

    The kernel takes five times eight values at once where nothing is left over, and counts three
    registers for each eight; such slopes need a fourth, and the 17th register is one of AVX-512.
    """
    src, wei = problem.src, problem.wei
    if wei.dtype == "f32":
        return False
    if wei.dims == src.dims:
        in_a_row = math.prod(src.dims)
    elif wei.dims[1] == src.dims[1] and src.strides is not None and src.strides[1] == 1:
        in_a_row = src.dims[1]
    else:
        return False
    return in_a_row >= 40 and in_a_row % 8 == 0


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
        id="maxima-stored-early",
        since=AFTER_3_7,
        until=None,
        isas=any_isa,
        kinds=("pooling",),
        impl=r"^ref",
        condition=maxima_stored_early,
        effect="maxima are rounded to dst's type before post-ops read them",
        remedy="an f32 dst, or one of src's type",
        source="measured: 3.13.2, all levels, SSE41 to AMX, reference loops, which alone take two "
        "types, `tools/hunt/hunt.py --plain --ignore` this row, seed 77, 20 000 problems: 45 of "
        "368 wrong, where maxima are below 0 or beyond the type; 3.7.2 has no such problem",
    ),
    Guard(
        id="prelu-beyond-registers",
        since=FLOOR,
        until=None,
        isas=ymm,
        kinds=("prelu",),
        impl=r"jit",
        condition=slopes_beyond_registers,
        effect="an illegal instruction ends the process on CPUs without AVX-512",
        remedy="f32 slopes",
        source="measured: 3.7.2, 3.12.1 and 3.13.2 on an AMD Zen 3, u8 and s8 slopes, `tools/hunt/"
        "hunt.py --plain --levels AVX2`; CPUs with AVX-512 that are limited to AVX2 execute the "
        "instruction and are right",
    ),
)
