"""Rules that use what is known of a value: bounds that follow from weights and data types.

The first argument is the interval of the value that enters the step.
"""

from __future__ import annotations

import math

from pyonednn_q.expr.interval import Interval, after
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.limits import not_storable
from pyonednn_q.rewrite.progress import weight
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, rule

__all__ = [
    "drop_relu_of_positive",
    "drop_round_of_whole",
    "make_affine_of_negative_relu",
    "make_constant_of_step",
    "open_implied_bounds",
]

_INF = math.inf
_ZERO, _OPEN_LO, _OPEN_HI = Vec(0.0), Vec(-_INF), Vec(_INF)


@rule(
    "clip(x, l, h) = min(x, h) if every x >= l, and max(x, l) if every x <= h.",
    Clip,
    exactness=REAL,
    ranged=True,
)
def open_implied_bounds(x: Interval, clip: Clip) -> Outcome:
    if x.is_anything:
        return None
    lo = clip.lo.greatest > -_INF and _never_below(x.lo, clip.lo)
    hi = clip.hi.least < _INF and _never_below(clip.hi, x.hi)
    if not (lo or hi):
        return None
    lower, upper = _OPEN_LO if lo else clip.lo, _OPEN_HI if hi else clip.hi
    return () if lower is _OPEN_LO and upper is _OPEN_HI else (Clip(lower, upper),)


def _never_below(value: Vec, bound: Vec) -> bool:
    if value.least >= bound.greatest:
        return True
    if value.array is None and bound.array is None:
        return False
    return bool((value.values() >= bound.values()).all())


@rule("round(x) = x, if x is always a whole number.", Round, exactness=BITWISE, ranged=True)
def drop_round_of_whole(x: Interval, _: Round) -> Outcome:
    return () if x.integer else None


@rule(
    "relu(x, a) = prelu(x, a) = abs(x) = x, if x >= 0.",
    (Eltwise, PRelu),
    exactness=REAL,
    ranged=True,
)
def drop_relu_of_positive(x: Interval, step: Eltwise | PRelu) -> Outcome:
    if isinstance(step, Eltwise) and step.alg not in {"relu", "abs"}:
        return None
    return () if x.lo.least >= 0.0 else None


@rule(
    "relu(x, a) = prelu(x, a) = a*x and abs(x) = -x, if x <= 0.",
    (Eltwise, PRelu),
    exactness=REAL,
    ranged=True,
)
def make_affine_of_negative_relu(x: Interval, step: Eltwise | PRelu) -> Outcome:
    if x.hi.greatest > 0.0:
        return None
    if isinstance(step, PRelu):
        return (Affine(step.slope),)
    slopes = {"relu": step.alpha, "abs": -1.0}
    return (Affine(slopes[step.alg]),) if step.alg in slopes else None


@rule(
    "f(x) = 0*x + c, if f takes every x of its interval to the same c.",
    (Clip, Round, Eltwise, PRelu, Sum, Binary),
    exactness=REAL,
    ranged=True,
)
def make_constant_of_step(x: Interval, step: Step) -> Outcome:
    if x.is_anything:
        return None
    y = after(step, x)
    if not (y.is_constant and y.lo.is_finite):
        return None
    problem = not_storable("constant", y.lo)
    if problem:
        return Refusal(problem)
    constant = Affine(_ZERO, y.lo)
    if weight((constant,)) > weight((step,)):
        return Refusal(
            f"{step} always gives {y.lo}, but that constant would cost more than the step"
        )
    return (constant,)
