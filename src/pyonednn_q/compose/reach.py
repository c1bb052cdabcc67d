"""Reach: what can arrive at a plan's store, and what a caller should know of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.expr.interval import ANYTHING, Interval, affine, after
from pyonednn_q.expr.steps import Sum
from pyonednn_q.expr.vec import Vec

if TYPE_CHECKING:
    from pyonednn_q.expr.chain import Chain
    from pyonednn_q.expr.steps import Step
    from pyonednn_q.primitive.dense_facts import PrimitiveFacts

__all__ = ["store_notes", "through_float32"]

_BYTE = ("u8", "s8")


def _at_store(chain: Chain, facts: PrimitiveFacts) -> Interval:
    """Bound the value that is rounded and stored, in units of dst and its zero point included."""
    x = ANYTHING
    if not facts.src_later and not facts.bias_later:
        bias = facts.bias or Vec(0.0)
        if facts.bias_in_acc:
            bias = bias * facts.folded_scale
        x = affine(facts.folded_scale, bias, facts.acc)
    for step in chain:
        x = after(_reading(step, facts.dst), x)
    return affine(Vec(1.0 / facts.dst_scale), Vec(float(facts.dst_zero_point)), x)


def _reading(step: Step, dst: str) -> Step:
    """Return a step with the type that it reads: a Sum without one reads dst's own."""
    if isinstance(step, Sum) and step.dtype is None and dtypes.is_integer(dst):
        return Sum(step.scale, step.zero_point, dst)
    return step


def store_notes(chain: Chain, facts: PrimitiveFacts) -> tuple[str, ...]:
    """Return what a caller should know: few codes of 8 bits in use, integers through float32."""
    if not dtypes.is_integer(facts.dst):
        return ()
    x = _at_store(chain, facts)
    if facts.dst in _BYTE:
        return _few_codes(x, facts.dst)
    return through_float32(x) if facts.dst == "s32" else ()


def _few_codes(x: Interval, dtype: str) -> tuple[str, ...]:
    """Say so where less than half of the codes can be stored."""
    least, greatest = dtypes.qmin(dtype), dtypes.qmax(dtype)
    lo, hi = (round(min(max(end, least), greatest)) for end in (x.lo.least, x.hi.greatest))
    used, codes = hi - lo + 1, greatest - least + 1
    if 2 * used >= codes:
        return ()
    found = f"results take at most {used} of the {codes} codes of {dtype} ({lo} to {hi})"
    return (f"{found}: dst_fq, dst_q or dst_scale says what a code is worth",)


def through_float32(x: Interval) -> tuple[str, ...]:
    """Say how inexact s32 results are that may be as large as this, if they are."""
    most = max(abs(x.lo.least), abs(x.hi.greatest))
    if most <= F32_WHOLE:
        return ()
    if not math.isfinite(most):
        return ("s32 by way of float32, which has 24 bits: every step rounds beyond 2^24",)
    most = min(most, 2.0**31)
    step = 2 ** (math.ceil(math.log2(most)) - 24)
    size = f"numbers of up to {most:.2e} are multiples of {step}"
    return (f"s32 by way of float32, where {size}: every step rounds beyond 2^24",)
