"""Rules on rounding to nearest, ties to even.

round(round(x))      -> round(x)
round(clip(x, l, h)) -> clip(round(x), round(l), round(h))
round(x) + k         -> round(x + k), k even
-round(x)            -> round(-x)
"""

from __future__ import annotations

from pyonednn_q.expr.steps import Affine, Clip, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.progress import weight
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, rule
from pyonednn_q.rewrite.rules.homogeneity import carry_over_clip, carry_over_round

__all__ = [
    "drop_second_round",
    "move_clip_behind_round",
    "move_clip_near_tie_behind_round",
    "move_shift_before_clipped_round",
    "move_shift_before_round",
]


@rule("round(round(x)) = round(x).", Round, Round, exactness=BITWISE)
def drop_second_round(first: Round, _: Round) -> Outcome:
    return (first,)


@rule(
    "round(clip(x, l, h)) = clip(round(x), round(l), round(h)), if float32 rounds l and h alike.",
    Clip,
    Round,
    exactness=BITWISE,
)
def move_clip_behind_round(clip: Clip, rnd: Round) -> Outcome:
    """Rounding never falls, so it passes min and max. A bound such as 2.50000001 is 2.5 in float32
    and rounds the other way there.
    """
    lo, hi = _rounded(clip.lo), _rounded(clip.hi)
    if lo is None or hi is None:
        bound = clip.lo if lo is None else clip.hi
        return Refusal(f"bound {bound} rounds differently once it is float32")
    return (rnd, Clip(lo, hi))


@rule("round(clip(x, l, h)) = clip(round(x), round(l), round(h)).", Clip, Round, exactness=REAL)
def move_clip_near_tie_behind_round(clip: Clip, rnd: Round) -> Outcome:
    return (rnd, Clip(clip.lo.rint(), clip.hi.rint()))


def _rounded(bound: Vec) -> Vec | None:
    rounded, narrow = bound.rint(), bound.narrow()
    if rounded == bound == narrow:
        return bound
    return rounded if narrow.rint() == rounded.narrow() else None


@rule(
    "s*round(x) + k = round(s*x + k), if s is 1 or -1 and k is even.",
    Round,
    Affine,
    exactness=REAL,
)
def move_shift_before_round(rnd: Round, affine: Affine) -> Outcome:
    """An odd k turns ties the other way: round(0.5) + 1 is 1, round(1.5) is 2."""
    if not _may_pass(affine):
        return None
    problem = carry_over_round(affine.scale, affine.shift)
    return problem or (affine, rnd)


@rule(
    "s*clip(round(x), l, h) + k = clip(round(s*x + k), s*l + k, s*h + k), if |s| = 1, k is even.",
    Round,
    Clip,
    Affine,
    exactness=REAL,
)
def move_shift_before_clipped_round(rnd: Round, clip: Clip, affine: Affine) -> Outcome:
    """Bounds are swapped where s is -1. Refused where the bounds would become per channel."""
    if not _may_pass(affine):
        return None
    problem = carry_over_round(affine.scale, affine.shift)
    if problem:
        return problem
    carried = carry_over_clip(clip, affine.scale, affine.shift)
    if isinstance(carried, Refusal):
        return carried
    if weight((carried,)) > weight((clip,)):
        return Refusal("the clip would become per channel")
    return (affine, rnd, carried)


def _may_pass(affine: Affine) -> bool:
    # Any other scale is no shape of these rules: a dequantizer behind a round is no event.
    return abs(affine.scale).is_all(1.0)
