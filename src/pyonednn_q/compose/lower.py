"""Lowering: what carries each step of a rewritten chain, and what results lose at the store.

=================  ============================  ==================================
step               per tensor                    per channel
=================  ============================  ==================================
affine             linear                        binary mul, binary add
clip               relu (0, inf), else clip      binary max, binary min
round              round                         -
eltwise            the same algorithm            -
prelu              relu with a slope             prelu
sum                sum                           -
binary             the same, a scalar operand    the same, an operand {1, C, 1, 1}
=================  ============================  ==================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyonednn_q import dtypes
from pyonednn_q.compose.choice import Carrier, Choice, binary, choose, linear, operand
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.expr.interval import ANYTHING, Interval, affine, after
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import Ask, forbidden, operand_dims
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.rewrite.ends import FLT_MAX
from pyonednn_q.rewrite.rule import Policy

if TYPE_CHECKING:
    from pyonednn_q.expr.steps import Chain

_INF = math.inf


@dataclass(frozen=True, slots=True)
class Lowered:
    """Post-ops for the first steps of a sequence.

    Attributes
    ----------
    carriers : tuple of Carrier
        Carriers in order.
    taken : int
        Number of steps that they carry.
    reason : str
        Reason why the next step stays behind; empty when none does.
    choices : tuple of Choice
        Steps that could have been lowered in other ways.
    post_ops : tuple of PostOp
        The post-ops alone.
    """

    carriers: tuple[Carrier, ...]
    taken: int
    reason: str = ""
    choices: tuple[Choice, ...] = ()
    post_ops: tuple[PostOp, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        post_ops = tuple(carrier.post_op for carrier in self.carriers)
        object.__setattr__(self, "post_ops", post_ops)


NOTHING = Lowered((), 0)  # of no steps


def lower(steps: Sequence[Step], facts: PrimitiveFacts, policy: Policy | None = None) -> Lowered:
    """Lower steps one by one, in order, without changing any.

    Parameters
    ----------
    steps : sequence of Step
        Steps after scale and bias.
    facts : PrimitiveFacts
        Facts of the primitive that carries the post-ops.
    policy : {"bitwise", "real", "fast"}, optional
        Take the cheapest post-ops that promise enough. None: those of the table.

    Returns
    -------
    Lowered
        Ends before the first step that has no post-op, or that `capability.NEVER_ASK` speaks
        against.

    Examples
    --------
    >>> facts = PrimitiveFacts("convolution", channels=2)
    >>> [op.text() for op in lower([Affine(2.0, 1.0), Clip([0, 1], 6)], facts).post_ops]
    ['eltwise_linear:2.0:1.0', 'binary_max:f32:1x2x1x1', 'eltwise_clip:-inf:6.0']
    """
    carriers: list[Carrier] = []
    before: tuple[PostOp, ...] = ()
    choices: list[Choice] = []
    for taken, step in enumerate(steps):
        lowered = _LOWER[type(step)](step, facts)
        if isinstance(lowered, str):
            return Lowered(tuple(carriers), taken, lowered, tuple(choices))
        choice = None
        if policy is not None:
            lowered, choice = choose(step, lowered, before, facts, policy)
        after = before
        for carrier in lowered:
            row = forbidden(Ask(carrier.post_op, after, facts))
            if row is not None:
                reason = f"{row.id}: {row.effect}; instead: {row.instead}"
                return Lowered(tuple(carriers), taken, reason, tuple(choices))
            after = (*after, carrier.post_op)
        carriers.extend(lowered)
        choices += [choice] if choice else []
        before = after
    return Lowered(tuple(carriers), len(steps), "", tuple(choices))


_Found = Sequence[Carrier] | str


def _affine(step: Affine, facts: PrimitiveFacts) -> _Found:
    scale, shift = step.scale, step.shift
    if scale.is_per_tensor and shift.is_per_tensor:
        return [linear(scale, shift)]
    one, zero = Vec(1.0), Vec(0.0)
    carriers: list[Carrier] = []
    if not scale.is_per_tensor:
        carriers.append(binary("mul", scale, facts))
    elif not scale.is_all(1.0):
        carriers.append(linear(scale, zero))
    if not shift.is_per_tensor:
        carriers.append(binary("add", shift, facts))
    elif not shift.is_all(0.0):
        carriers.append(linear(one, shift))
    return carriers


def _clip(step: Clip, facts: PrimitiveFacts) -> _Found:
    lo, hi = step.lo, step.hi
    if lo.is_per_tensor and hi.is_per_tensor:
        return [_bounds(lo, hi)]
    carriers: list[Carrier] = []
    for alg, bound, side in (("max", lo, -_INF), ("min", hi, _INF)):
        if bound.is_all(side):
            continue
        if not bound.is_per_tensor:
            # A side that is open in some channels only: the largest number is as good as none.
            carriers.append(binary(alg, bound.clamp(Vec(-FLT_MAX), Vec(FLT_MAX)), facts))
        elif alg == "max":
            carriers.append(_bounds(bound, Vec(_INF)))
        else:
            carriers.append(_bounds(Vec(-_INF), bound))
    return carriers


def _bounds(lo: Vec, hi: Vec) -> Carrier:
    if lo.least == 0.0 and hi.least == _INF:
        return Carrier(EltwisePostOp("relu"))
    # No -0.0, which a negative factor makes of a 0.
    return Carrier(EltwisePostOp("clip", lo.narrow().least + 0.0, hi.narrow().least + 0.0))


def _round(_: Round, __: PrimitiveFacts) -> _Found:
    return [Carrier(EltwisePostOp("round"))]


def _eltwise(step: Eltwise, _: PrimitiveFacts) -> _Found:
    alpha, beta = Vec(step.alpha).narrow().least, Vec(step.beta).narrow().least
    return [Carrier(EltwisePostOp(step.alg, alpha, beta))]


def _prelu(step: PRelu, facts: PrimitiveFacts) -> _Found:
    if step.slope.is_per_tensor:
        return [Carrier(EltwisePostOp("relu", step.slope.narrow().least))]
    dims = operand_dims(facts, "per_channel")
    assert dims is not None
    mask = sum(1 << axis for axis, dim in enumerate(dims) if dim > 1)
    if dims == facts.dst_dims:  # of rows alone: slopes of all of dst run in reference loops
        mask = 1 << facts.axis
    return [Carrier(PReluPostOp(mask), step.slope.narrow())]


def _sum(step: Sum, facts: PrimitiveFacts) -> _Found:
    # Naming dst's own type costs the fast kernel on some machines.
    dtype = None if step.dtype == facts.dst else step.dtype
    return [Carrier(SumPostOp(Vec(step.scale).narrow().least, step.zero_point, dtype))]


def _binary(step: Binary, facts: PrimitiveFacts) -> _Found:
    leaf = step.operand
    if not isinstance(leaf, Leaf):
        return [binary(step.alg, leaf, facts)]
    dims = operand_dims(facts, leaf.extent)
    if dims is None:
        return f"{leaf} is {leaf.extent}, of a size that is not known here: give dst_dims"
    return [Carrier(BinaryPostOp(step.alg, operand(dims, leaf.dtype, facts)), leaf=leaf.name)]


_LOWER: dict[type[Step], Callable[[Any, PrimitiveFacts], _Found]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}


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
    """Return notes for the caller: few codes of 8 bits in use, integers through float32."""
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
    few = f"results take at most {used} of the {codes} codes of {dtype} ({lo} to {hi})"
    return (f"{few}: dst_fq, dst_q or dst_scale says what a code is worth",)


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
