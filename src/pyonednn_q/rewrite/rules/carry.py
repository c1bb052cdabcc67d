"""Rules that carry scales and shifts to the left, over steps that let them pass.

`carry` knows what passes what. `carry_affine_left` decides what to carry, all of it, the scale
alone or the shift alone, and whether that is worth it.

A step f lets s*f(x) + t pass if some f' and (s', t') give s*f(x) + t = f'(s'*x + t'). The table:

    =============== ==================== ========================================================
    f               passes               f', s', t'
    =============== ==================== ========================================================
    clip(l, h)      s, t                 clip(s*l+t, s*h+t), swapped where s < 0;  s;  t
    relu, slope a   s >= 0               same;  s
                    s < 0, a > 0         slope 1/a;  a*s
    prelu, slope a  per channel as relu  slope a or 1/a;  s or a*s
    abs             s >= 0, s <= 0       same;  |s|;  the sign stays behind
    square          s >= 0, s <= 0       same;  sqrt(|s|);  the sign stays behind
    sqrt            s > 0, s < 0         same;  s*s;  the sign stays behind
    pow             s per tensor         alpha*s;  1
    sum             s per tensor, t      sum's scale*s;  s;  t
    round           s = +-1, t even      same;  s;  t
    binary mul, div s                    same;  s
    binary add, sub t, if s is 1         same;  1;  t
    =============== ==================== ========================================================

(relu with slope 0 is a clip: s*relu(x) = min(s*x, 0) for s < 0.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.driver import falls
from pyonednn_q.rewrite.ends import Acc, Takes, not_storable, overflows
from pyonednn_q.rewrite.rule import REAL, RUN, Outcome, Refusal, rule
from pyonednn_q.rewrite.rules.affine import absorbed, composed

_ONE, _ZERO = Vec(1.0), Vec(0.0)
_IDENTITY = Affine(_ONE, _ZERO)


@rule(
    "s*f(a*x + b) + t = f'(s'*(a*x + b) + t'), if f lets s and t pass (see `carry`).",
    (Affine, Acc),
    RUN,
    Affine,
    exactness=REAL,
)
def carry_affine_left(anchor: Affine | Acc, run: tuple[Step, ...], last: Affine) -> Outcome:
    """Tried whole, then the scale alone (t stays behind), then the shift alone (as t/s, s stays
    behind). Refused when it would not save a constant.
    """
    if isinstance(anchor, Acc) and anchor.takes_scale is anchor.takes_shift is Takes.NOTHING:
        return Refusal(anchor.because) if anchor.because else None
    if last.scale.is_all(0.0):
        return None
    for step in reversed(run):
        barred = bars(step)
        if barred:
            return barred
    window = (anchor, *run, last)
    reasons: list[str] = []
    for part, rest in _parts(last):
        items = _carried(anchor, run, part, rest)
        if isinstance(items, Refusal):
            reasons.append(items.reason)
        elif falls(window, items):
            return items
        else:
            reasons.append("it would not save a constant")
    return Refusal(reasons[0])


def _parts(last: Affine) -> Iterator[tuple[Affine, Affine]]:
    """Yield ways to split an affine step into what is carried and what stays behind."""
    scale, shift = last.scale, last.shift
    yield last, _IDENTITY
    if shift.is_all(0.0) or scale.is_all(1.0):
        return
    yield Affine(scale, _ZERO), Affine(_ONE, shift)
    if not (scale.values() == 0.0).any():
        early = shift / scale
        if early.is_finite and not not_storable("shift", early):
            yield Affine(_ONE, early), Affine(scale, _ZERO)


def _carried(
    anchor: Affine | Acc, run: tuple[Step, ...], part: Affine, rest: Affine
) -> tuple[Acc | Step, ...] | Refusal:
    scale, shift, sign = part.scale, part.shift, 1.0
    passed: list[Step] = []
    for step in reversed(run):
        result = carry(step, scale, shift)
        if isinstance(result, Refusal):
            return result
        if result.sign != 1.0:
            if passed:
                return Refusal(f"{step} would leave a sign behind, before {passed[-1]}")
            sign = result.sign
        scale, shift = result.scale, result.shift
        passed.append(result.step)
    problem = not_storable("scale", scale) or not_storable("shift", shift)
    if problem:
        return Refusal(problem)
    front = Affine(scale, shift)
    if isinstance(anchor, Affine):
        affine = composed(anchor, front)
        if isinstance(affine, Refusal):
            return affine
        head: tuple[Acc | Step, ...] = (affine,)
    elif front == _IDENTITY:
        head = (anchor,)
    else:
        left_end = absorbed(anchor, front)
        if isinstance(left_end, Refusal):
            return left_end
        head = left_end
    behind = rest if sign == 1.0 else Affine(rest.scale * sign, rest.shift)
    tail = () if behind is _IDENTITY else (behind,)
    return (*head, *reversed(passed), *tail)


_INF = math.inf
_OVERFLOW = Refusal("a bound would overflow float32")


class Carried(NamedTuple):
    """s*f(x) + t = sign*step(scale*x + shift)."""

    step: Step
    scale: Vec
    shift: Vec = _ZERO
    sign: float = 1.0


def carry(step: Step, scale: Vec, shift: Vec) -> Carried | Refusal:
    """Move scale*step(x) + shift to the other side of the step, or say why it cannot pass."""
    return bars(step) or _TABLE[type(step)](step, scale, shift)


def bars(step: Step) -> Refusal | None:
    """Say why no scale and no shift can pass a step, or ``None`` if some may."""
    if isinstance(step, Eltwise):
        return None if step.alg in _ELTWISE else _no_pass(step.alg)
    if isinstance(step, Binary):
        if not isinstance(step.operand, Leaf):
            return _no_pass(f"{step.alg} with a constant")
        if step.alg not in {"add", "sub", "mul", "div"}:
            return _no_pass(f"{step.alg} with {step.operand}")
    return None


def carry_over_clip(clip: Clip, scale: Vec, shift: Vec) -> Clip | Refusal:
    """Return the clip that does behind an affine step what this one does before it."""
    # Where the scale is 0 the result is the shift, also for an open side.
    lo, hi = clip.lo.scaled(scale) + shift, clip.hi.scaled(scale) + shift
    if overflows(clip.lo, lo) or overflows(clip.hi, hi):
        return _OVERFLOW
    return Clip(lo.minimum(hi), lo.maximum(hi)) if scale.least < 0.0 else Clip(lo, hi)


def carry_over_round(scale: Vec, shift: Vec) -> Refusal | None:
    """Say why scale*round(x) + shift is not round(scale*x + shift), or ``None`` if it is."""
    if not abs(scale).is_all(1.0):
        return Refusal(
            f"scale is {scale.first(lambda s: np.abs(s) != 1)}: only 1 and -1 pass a round"
        )
    if not shift.is_integer:
        fraction = shift.first(lambda t: np.rint(t) != t)
        return Refusal(f"shift is {fraction}: only whole numbers pass a round")
    if not shift.is_even:
        odd = shift.first(lambda t: t % 2 != 0)
        return Refusal(f"shift is odd, {odd}: ties would go the other way")
    return None


def _clip(step: Clip, scale: Vec, shift: Vec) -> Carried | Refusal:
    clip = carry_over_clip(step, scale, shift)
    return clip if isinstance(clip, Refusal) else Carried(clip, scale, shift)


def _round(step: Round, scale: Vec, shift: Vec) -> Carried | Refusal:
    return carry_over_round(scale, shift) or Carried(step, scale, shift)


def _eltwise(step: Eltwise, scale: Vec, shift: Vec) -> Carried | Refusal:
    return _ELTWISE[step.alg](step, scale) if shift.is_all(0.0) else _no_shift(step.alg)


def _no_pass(name: str) -> Refusal:
    return Refusal(f"{name} passes neither a scale nor a shift")


def _no_shift(name: str) -> Refusal:
    return Refusal(f"{name} passes no shift")


def _relu(step: Eltwise, scale: Vec) -> Carried | Refusal:
    if scale.least >= 0.0:
        return Carried(step, scale)
    bent = _bent(Vec(step.alpha), scale)
    if isinstance(bent, Refusal):
        return bent
    slope, inner = bent
    if slope.array is None:
        return Carried(Eltwise("relu", slope.least), inner)
    return Carried(PRelu(slope), inner)


def _prelu(step: PRelu, scale: Vec, shift: Vec) -> Carried | Refusal:
    if not shift.is_all(0.0):
        return _no_shift("prelu")
    if scale.least >= 0.0:
        return Carried(step, scale)
    bent = _bent(step.slope, scale)
    return bent if isinstance(bent, Refusal) else Carried(PRelu(bent[0]), bent[1])


def _bent(slope: Vec, scale: Vec) -> tuple[Vec, Vec] | Refusal:
    """Turn a two-piece line over, where the scale is negative: slope 1/a, scale a*s."""
    a, s = np.broadcast_arrays(slope.values(), scale.values())
    turned = s < 0.0
    flat = turned & (a <= 0.0)
    if flat.any():
        index = int(np.argmax(flat))
        where = f" in channel {index}" if len(s) > 1 else ""
        return Refusal(f"scale is negative{where} and slope {a[index]:g} is not above 0")
    inverse = Vec(np.where(turned, 1.0 / np.where(turned, a, 1.0), a))
    problem = not_storable("slope", inverse)
    return Refusal(problem) if problem else (inverse, Vec(np.where(turned, a * s, s)))


def _sign(scale: Vec, name: str) -> float | Refusal:
    if scale.least >= 0.0:
        return 1.0
    if scale.greatest <= 0.0:
        return -1.0
    return Refusal(f"{name} passes one sign, and the scale is {scale.first(lambda s: s < 0)}")


def _even(
    inner: Callable[[Vec], Vec],
) -> Callable[[Eltwise, Vec], Carried | Refusal]:
    def over(step: Eltwise, scale: Vec) -> Carried | Refusal:
        sign = _sign(scale, step.alg)
        return sign if isinstance(sign, Refusal) else Carried(step, inner(abs(scale)), _ZERO, sign)

    return over


def _sqrt(step: Eltwise, scale: Vec) -> Carried | Refusal:
    if scale.least <= 0.0 <= scale.greatest and (scale.values() == 0.0).any():
        return Refusal("sqrt is not a number below 0, and 0 times that is not 0")
    return _even(lambda s: s * s)(step, scale)


def _pow(step: Eltwise, scale: Vec) -> Carried | Refusal:
    if scale.array is not None:
        return Refusal("pow has one alpha for all channels")
    alpha = Vec(step.alpha) * scale
    problem = not_storable("alpha", alpha)
    if problem:
        return Refusal(problem)
    return Carried(replace(step, alpha=alpha.least), _ONE)


def _sum(step: Sum, scale: Vec, shift: Vec) -> Carried | Refusal:
    if scale.array is not None:
        return Refusal("sum has one scale for all channels")
    factor = Vec(step.scale) * scale
    problem = not_storable("scale of sum", factor)
    if problem:
        return Refusal(problem)
    return Carried(replace(step, scale=factor.least), scale, shift)


def _binary(step: Binary, scale: Vec, shift: Vec) -> Carried | Refusal:
    if step.alg in {"mul", "div"}:
        if shift.is_all(0.0):
            return Carried(step, scale)
        return _no_shift(f"{step.alg} by {step.operand}")
    if scale.is_all(1.0):
        return Carried(step, scale, shift)
    return Refusal(f"{step.operand} is known only when the chain runs, so it cannot be scaled")


def _affine(_: Affine, __: Vec, ___: Vec) -> Refusal:
    return Refusal("affine steps are composed, not passed")


_ELTWISE: dict[str, Callable[[Eltwise, Vec], Carried | Refusal]] = {
    "relu": _relu,
    "abs": _even(lambda s: s),
    "square": _even(lambda s: s.map(np.sqrt)),
    "sqrt": _sqrt,
    "pow": _pow,
}

_TABLE: dict[type[Step], Callable[[Any, Vec, Vec], Carried | Refusal]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}
