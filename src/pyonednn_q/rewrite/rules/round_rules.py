"""Rules of rounding: what passes it exactly, and what within stated levels.

round(round(x))      -> round(x)
round(clip(x, l, h)) -> clip(round(x), round(l), round(h))
round(x) + k         -> round(x + k), k even
-round(x)            -> round(-x)

Those that promise levels (`bounded`) report what they dropped, in levels of the rounding that
follows, and the fraction of evenly spread values that can change.
"""

from __future__ import annotations

import math

from pyonednn_q.expr.steps import Affine, Clip, Eltwise, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.rewrite.driver import weight
from pyonednn_q.rewrite.ends import Dst, Item
from pyonednn_q.rewrite.rule import BITWISE, REAL, RUN, Outcome, Refusal, Rewrite, bounded, rule
from pyonednn_q.rewrite.rules.carry import carry_over_clip, carry_over_round


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


SHIFT_SPREAD = 5e-5  # levels that per-channel shifts may lie from their middle
SHIFT_TO_RANGE = 1e-5  # a shift is negligible below this part of the range of levels,
MOST_LEVELS = 255.0  # of which no more are counted: 65 536 levels would hide half a level

_ZERO = Vec(0.0)


@rule(
    "round(s*x + t) = round(s*x + u) but near ties, if every t is within 5e-5 of one number u.",
    Affine,
    Round,
    exactness=bounded(1),
)
def level_shift(affine: Affine, rnd: Round) -> Outcome:
    """u is whole if a whole number is as near as that, else the middle of all t."""
    return _levelled(affine, (rnd,), 1.0)


@rule(
    "store(s*x + t) = store(s*x + u) but near ties, if every t is within 5e-5 steps of one u.",
    Affine,
    Dst,
    exactness=bounded(1),
)
def level_shift_before_store(affine: Affine, dst: Dst) -> Outcome:
    """The store to an integer type rounds, in steps of its scale; u as in `level_shift`."""
    return _levelled(affine, (dst,), dst.scale) if dst.is_integer else None


@rule(
    "store(clip(s*x + t, l, h)) = store(clip(s*x + u, l, h)) but near ties, if t as above.",
    Affine,
    Clip,
    Dst,
    exactness=bounded(1),
)
def level_shift_before_clipped_store(affine: Affine, clip: Clip, dst: Dst) -> Outcome:
    """Clipping never moves two numbers apart."""
    return _levelled(affine, (clip, dst), dst.scale) if dst.is_integer else None


def _levelled(affine: Affine, behind: tuple[Item, ...], step: float) -> Outcome:
    shift = affine.shift
    if shift.array is None:
        return None
    middle = 0.5 * (shift.least + shift.greatest)
    target = round(middle / step) * step
    if max(abs(shift.least - target), abs(shift.greatest - target)) > SHIFT_SPREAD * step:
        target = middle
    off = max(target - shift.least, shift.greatest - target) / step
    if off > SHIFT_SPREAD:
        return Refusal(f"the shifts lie up to {number(off)} levels from their middle")
    note = f"shift {shift} taken as {number(target)}, off by {number(off)} levels"
    return Rewrite((Affine(affine.scale, target), *behind), note, rate=2.0 * off)


@rule(
    "clip(round(s*x + t), l, h) = clip(round(s*x), l, h) but near ties, if |t| < 1e-5*(h - l).",
    Affine,
    Round,
    Clip,
    exactness=bounded(1),
)
def drop_negligible_shift(affine: Affine, rnd: Round, clip: Clip) -> Outcome:
    """h - l counts as 255 at most, so no more than 0.00255 of a level is ever dropped."""
    shift = abs(affine.shift)
    if affine.shift.is_all(0.0):
        return None
    if not (clip.lo.is_finite and clip.hi.is_finite):
        return None
    span = (clip.hi - clip.lo).minimum(MOST_LEVELS)
    if shift.greatest >= SHIFT_TO_RANGE * span.least:
        return None
    note = f"shift {affine.shift} dropped"
    return Rewrite((Affine(affine.scale, _ZERO), rnd, clip), note, rate=2.0 * shift.greatest)


@rule(
    "s*round(x) + k = round(s*x + k) but at ties, if |s| = 1 and k is odd in some channel.",
    Round,
    Affine,
    exactness=bounded(1),
)
def move_odd_shift_before_round(rnd: Round, affine: Affine) -> Outcome:
    note = _odd(affine)
    return None if note is None else Rewrite((affine, rnd), note)


@rule(
    "s*clip(round(x), l, h) + k = clip(round(s*x + k), l', h') but at ties, if |s| = 1, k is odd.",
    Round,
    Clip,
    Affine,
    exactness=bounded(1),
)
def move_odd_shift_before_clipped_round(rnd: Round, clip: Clip, affine: Affine) -> Outcome:
    """l' and h' are s*l + k and s*h + k, swapped where s is -1."""
    note = _odd(affine)
    if note is None:
        return None
    carried = carry_over_clip(clip, affine.scale, affine.shift)
    if isinstance(carried, Refusal):
        return carried
    if weight((carried,)) > weight((clip,)):
        return Refusal("the clip would become per channel")
    return Rewrite((affine, rnd, carried), note)


def _odd(affine: Affine) -> str | None:
    if not abs(affine.scale).is_all(1.0):
        return None
    if not affine.shift.is_integer or affine.shift.is_even:
        return None
    return f"shift {affine.shift}: exact ties go to the other neighbour"


@rule(
    "round(g(round(x) + r)) = round(g(x + r)) but for one level, if g stretches by less than 2.",
    Round,
    RUN,
    Round,
    exactness=bounded(1),
)
def drop_round_before_residual(_: Round, run: tuple[Item, ...], last: Round) -> Outcome:
    """For a FakeQuantize whose result meets a residual and is quantized again: the first rounding
    moves the value by half a level of its own at most, and r may be anything.
    """
    if not any(isinstance(step, Sum) for step in run):
        return None
    stretch = 1.0
    for step in run:
        factor = _lipschitz(step)
        if factor is None:
            return Refusal(f"how far {step} stretches is not known")
        stretch *= factor
    levels = math.floor(stretch / 2.0) + 1
    if levels > 1:
        return Refusal(f"the result could move by {levels} levels")
    note = f"a rounding dropped: moves the value by at most {number(stretch / 2.0)} levels"
    return Rewrite((*run, last), note, rate=min(1.0, stretch / 2.0))


def _lipschitz(step: Item) -> float | None:
    if isinstance(step, Affine):
        return abs(step.scale).greatest
    if isinstance(step, (Clip, Sum)):
        return 1.0
    if isinstance(step, PRelu):
        return max(1.0, abs(step.slope).greatest)
    if isinstance(step, Eltwise):
        return {
            "relu": max(1.0, abs(step.alpha)), "elu": max(1.0, abs(step.alpha)),
            "abs": 1.0, "tanh": 1.0, "logistic": 0.25, "soft_relu": 1.0,
        }.get(step.alg)  # fmt: skip
    return None
