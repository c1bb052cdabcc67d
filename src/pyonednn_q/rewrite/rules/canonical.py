"""Rules that give a step its simplest form: activations, constant operands, empty sums.

relu           -> clip            linear -> affine          round -> round step
clip, clip_v2  -> clip            prelu with one slope -> relu with that slope
hardsigmoid    -> affine, clip    pow with exponent 1 -> affine
x + c, x - c -> affine      x * c, x / c -> affine      max(x, c), min(x, c) -> clip
x + 0*(dst - z) -> x
"""

from __future__ import annotations

from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.driver import weight
from pyonednn_q.rewrite.ends import Acc, Item, not_storable
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, rule
from pyonednn_q.rewrite.rules.affine import absorbed, composed

_UNIT = Clip(0.0, 1.0)
_POSITIVE = Clip(lo=0.0)


@rule("relu(x, a) = clip(x, 0, inf), if a is 0.", Eltwise, exactness=BITWISE)
def make_clip_of_relu(eltwise: Eltwise) -> Outcome:
    return (_POSITIVE,) if eltwise.alg == "relu" and eltwise.alpha == 0.0 else None


@rule("relu(x, a) = x, if a is 1.", Eltwise, exactness=BITWISE)
def drop_relu_with_slope_one(eltwise: Eltwise) -> Outcome:
    return () if eltwise.alg == "relu" and eltwise.alpha == 1.0 else None


@rule("Eltwise clip(x, a, b) = clip(x, a, b).", Eltwise, exactness=BITWISE)
def make_clip_of_eltwise(eltwise: Eltwise) -> Outcome:
    return (Clip(eltwise.alpha, eltwise.beta),) if eltwise.alg in {"clip", "clip_v2"} else None


@rule("Eltwise linear(x, a, b) = a*x + b.", Eltwise, exactness=BITWISE)
def make_affine_of_linear(eltwise: Eltwise) -> Outcome:
    return (Affine(eltwise.alpha, eltwise.beta),) if eltwise.alg == "linear" else None


@rule("Eltwise round(x) = round(x).", Eltwise, exactness=BITWISE)
def make_round_of_eltwise(eltwise: Eltwise) -> Outcome:
    return (Round(),) if eltwise.alg == "round" else None


@rule("a*x**b = a*x, if b is 1.", Eltwise, exactness=REAL)
def make_affine_of_pow(eltwise: Eltwise) -> Outcome:
    return (Affine(eltwise.alpha),) if eltwise.alg == "pow" and eltwise.beta == 1.0 else None


@rule("prelu(x, a) = relu(x, a), if a is one value.", PRelu, exactness=BITWISE)
def make_relu_of_prelu(prelu: PRelu) -> Outcome:
    return (Eltwise("relu", prelu.slope.least),) if prelu.slope.array is None else None


@rule(
    "hardsigmoid(s*x + t, a, b) = clip((a*s)*x + (a*t + b), 0, 1).",
    (Affine, Acc),
    Eltwise,
    exactness=REAL,
)
def make_clip_of_hardsigmoid(before: Affine | Acc, eltwise: Eltwise) -> Outcome:
    """Only behind an affine step or an accumulator that takes one.

    Alone it is one post-op already.
    """
    if eltwise.alg != "hardsigmoid":
        return None
    inner = Affine(eltwise.alpha, eltwise.beta)
    if isinstance(before, Acc):
        head = absorbed(before, inner)
        if isinstance(head, Refusal):
            return head
        items: tuple[Item, ...] = (*head, _UNIT)
    else:
        affine = composed(before, inner)
        if isinstance(affine, Refusal):
            return affine
        items = (affine, _UNIT)
    if weight(items) > weight((before, eltwise)):
        return Refusal("its scale and shift would cost more outside than inside")
    return items


_ONE, _ZERO = Vec(1.0), Vec(0.0)


@rule(
    "1*x + c = x + c, 1*x + (-c) = x - c, c*x + 0 = x * c, if c is a constant.",
    Binary,
    exactness=BITWISE,
)
def make_affine_of_binary(binary: Binary) -> Outcome:
    operand = binary.operand
    if not isinstance(operand, Vec):
        return None
    if binary.alg == "mul":
        return (Affine(operand, _ZERO),)
    if binary.alg == "add":
        return (Affine(_ONE, operand),)
    return (Affine(_ONE, -operand),) if binary.alg == "sub" else None


@rule("(1/c)*x = x / c, if c is a constant and float32 can hold 1/c.", Binary, exactness=REAL)
def make_affine_of_division(binary: Binary) -> Outcome:
    """The reciprocal is rounded, so the last bit may differ unless c is a power of two."""
    operand = binary.operand
    if binary.alg != "div" or not isinstance(operand, Vec):
        return None
    inverse = _ONE / operand
    problem = not_storable("1/c", inverse)
    return Refusal(problem) if problem else (Affine(inverse, _ZERO),)


@rule(
    "max(x, c) = clip(x, c, inf), min(x, c) = clip(x, -inf, c), if c is a constant.",
    Binary,
    exactness=BITWISE,
)
def make_clip_of_binary(binary: Binary) -> Outcome:
    if not isinstance(binary.operand, Vec):
        return None
    if binary.alg == "max":
        return (Clip(lo=binary.operand),)
    return (Clip(hi=binary.operand),) if binary.alg == "min" else None


@rule("s*(dst - z) + x = x, if s is 0.", Sum, exactness=BITWISE)
def drop_sum_of_nothing(residual: Sum) -> Outcome:
    return () if residual.scale == 0.0 else None
