"""Rules on clips: merge them, move them to where they cost least.

clip(clip(x, l1, h1), l2, h2)      -> one clip, bounds clamped
clip(s*clip(x, l1, h1) + t, l2, h2) -> one affine and one clip, in the cheaper order
round(s*clip(x, l, h) + t)         -> clip(round(s*x + t), l', h')
"""

from __future__ import annotations

import math

from pyonednn_q.expr.steps import Affine, Clip, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.limits import NOISE, not_storable, overflows
from pyonednn_q.rewrite.progress import weight
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, Rewrite, rule
from pyonednn_q.rewrite.rules.homogeneity import carry_over_clip

__all__ = [
    "drop_open_clip",
    "make_constant_of_clip",
    "merge_clips",
    "merge_clips_over_affine",
    "move_clip_behind_rounded_affine",
]

_INF = math.inf
_ZERO = Vec(0.0)


@rule("clip(x, -inf, inf) = x.", Clip, exactness=BITWISE)
def drop_open_clip(clip: Clip) -> Outcome:
    return () if clip.lo.greatest == -_INF and clip.hi.least == _INF else None


@rule(
    "clip(clip(x, l1, h1), l2, h2) = clip(x, clip(l1, l2, h2), clip(h1, l2, h2)).",
    Clip,
    Clip,
    exactness=BITWISE,
)
def merge_clips(first: Clip, second: Clip) -> Outcome:
    """The bounds are clamped, not intersected: clip to [0, 1] and then to [2, 3] is 2 everywhere,
    and the intersection of the two intervals is empty. Refused where that would make a bound per
    channel that is not.
    """
    merged = _merged(first, second)
    if weight((merged,)) > weight((first, second)):
        return Refusal("apart they need fewer per-channel bounds than together")
    return (merged,)


def _merged(first: Clip, second: Clip) -> Clip:
    lo, hi = second.lo, second.hi
    return Clip(first.lo.clamp(lo, hi), first.hi.clamp(lo, hi))


@rule("clip(x, c, c) = 0*x + c, if float32 can hold c.", Clip, exactness=REAL)
def make_constant_of_clip(clip: Clip) -> Outcome:
    if clip.lo != clip.hi:
        return None
    problem = not_storable("constant", clip.lo)
    return Refusal(problem) if problem else (Affine(_ZERO, clip.lo),)


@rule(
    "clip(s*clip(x, l1, h1) + t, l2, h2) = one clip and s*x + t, in either order, if s is not 0.",
    Clip,
    Affine,
    Clip,
    exactness=REAL,
)
def merge_clips_over_affine(first: Clip, affine: Affine, second: Clip) -> Outcome:
    """The first clip moves right as clip(s*l1 + t, s*h1 + t), bounds swapped where s < 0; or the
    second moves left as clip((l2 - t)/s, (h2 - t)/s). The cheaper form is taken; between equals the
    left one if its bounds are whole, for then they are levels of a rounding before.
    """
    forms = [_left_form(first, affine, second), _right_form(first, affine, second)]
    best = min((form for form in forms if form), key=lambda form: weight(form.items), default=None)
    if best is None:
        return Refusal("a moved bound would overflow, or the scale is 0 in a channel")
    if weight(best.items) > weight((first, affine, second)):
        return Refusal("one clip with per-channel bounds would cost more than two without")
    return best


def _right_form(first: Clip, affine: Affine, second: Clip) -> Rewrite | None:
    carried = carry_over_clip(first, affine.scale, affine.shift)
    if isinstance(carried, Refusal):
        return None
    return Rewrite((affine, _merged(carried, second)))


def _left_form(first: Clip, affine: Affine, second: Clip) -> Rewrite | None:
    scale, shift = affine.scale, affine.shift
    if scale.least <= 0.0 <= scale.greatest and (scale.values() == 0.0).any():
        return None
    lo, hi = _level(second.lo, scale, shift), _level(second.hi, scale, shift)
    if lo is None or hi is None:
        return None
    exact = lo * scale + shift == second.lo and hi * scale + shift == second.hi
    if scale.least < 0.0:
        lo, hi = lo.minimum(hi), lo.maximum(hi)
    moved = (_merged(first, Clip(lo, hi)), affine)
    return Rewrite(moved, "" if exact else f"bounds of {second} taken as the levels {lo} and {hi}")


def _level(bound: Vec, scale: Vec, shift: Vec) -> Vec | None:
    """Return (bound - shift)/scale if it is open, or whole but for folding noise."""
    # Not bound/scale - shift/scale: the zero of a relu then lands on the zero point exactly.
    level = (bound - shift) / scale
    if overflows(bound, level):
        return None
    whole = level.rint()
    if level == whole:
        return whole
    if not bound.is_finite:
        return None
    noise = abs(bound).maximum(abs(shift)) / abs(scale) * NOISE
    return whole if (abs(level - whole).values() <= noise.values()).all() else None


@rule(
    "round(s*clip(x, l, h) + t) = clip(round(s*x + t), round(s*l + t), round(s*h + t)).",
    Clip,
    Affine,
    Round,
    exactness=REAL,
)
def move_clip_behind_rounded_affine(clip: Clip, affine: Affine, rnd: Round) -> Outcome:
    """Bounds are swapped where s < 0. This is what makes the crops of a per-channel FakeQuantize
    per tensor: in levels they are 0 and n in every channel.
    """
    carried = carry_over_clip(clip, affine.scale, affine.shift)
    if isinstance(carried, Refusal):
        return carried
    behind = Clip(carried.lo.rint(), carried.hi.rint())
    if weight((behind,)) > weight((clip,)):
        return Refusal("the clip would become per channel")
    return (affine, rnd, behind)
