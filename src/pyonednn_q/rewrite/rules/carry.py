"""The rule that carries an affine step left, to an affine step or the accumulator.

`homogeneity` knows what passes what. This rule decides what to carry, all of it, the scale alone or
the shift alone, and whether that is worth it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Takes
from pyonednn_q.rewrite.limits import not_storable
from pyonednn_q.rewrite.progress import falls
from pyonednn_q.rewrite.rule import REAL, RUN, Outcome, Refusal, rule
from pyonednn_q.rewrite.rules.affine import absorbed, composed
from pyonednn_q.rewrite.rules.homogeneity import bars, carry

__all__ = ["carry_affine_left"]

_ONE, _ZERO = Vec(1.0), Vec(0.0)
_IDENTITY = Affine(_ONE, _ZERO)


@rule(
    "s*f(a*x + b) + t = f'(s'*(a*x + b) + t'), if f lets s and t pass (see `homogeneity`).",
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
