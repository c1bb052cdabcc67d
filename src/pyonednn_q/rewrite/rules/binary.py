"""Rules that give binary steps with a constant operand their simplest form.

x + c, x - c -> affine      x * c, x / c -> affine      max(x, c), min(x, c) -> clip
"""

from __future__ import annotations

from pyonednn_q.expr.steps import Affine, Binary, Clip
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.limits import not_storable
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, rule

__all__ = ["make_affine_of_binary", "make_affine_of_division", "make_clip_of_binary"]

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
