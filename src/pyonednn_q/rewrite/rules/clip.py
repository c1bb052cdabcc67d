"""Rules of clips: merged, moved, and what bounds or the store make superfluous.

clip(clip(x, l1, h1), l2, h2)      -> one clip, bounds clamped
clip(s*clip(x, l1, h1) + t, l2, h2) -> one affine and one clip, in the cheaper order
round(s*clip(x, l, h) + t)         -> clip(round(s*x + t), l', h')
store: dst = saturate(rne(x/scale + zero_point)), into qmin..qmax

A rule that is `ranged` takes first the interval of the value that enters the step.
"""

from __future__ import annotations

import math

from pyonednn_q import dtypes
from pyonednn_q.expr.interval import Interval, after
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec, nearest_float32, nearest_whole
from pyonednn_q.rewrite.driver import weight
from pyonednn_q.rewrite.ends import NOISE, Dst, not_storable, overflows
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, Rewrite, rule
from pyonednn_q.rewrite.rules.carry import carry_over_clip

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


_OPEN_LO, _OPEN_HI = Vec(-_INF), Vec(_INF)


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


@rule(
    "store(round(x)) = store(x), if the store is to an integer type, without scale or zero point.",
    Round,
    Dst,
    exactness=BITWISE,
)
def drop_round_before_store(_: Round, dst: Dst) -> Outcome:
    """The store rounds to nearest even itself. Its zero point is added before that rounding: an odd
    one would turn ties the other way.
    """
    if not dst.is_integer:
        return None
    return (dst,) if dst.is_plain else Refusal("dst has a scale or a zero point")


@rule(
    "store(clip(round(x), l, h)) = store(clip(x, l, h)), if the store is as above.",
    Round,
    Clip,
    Dst,
    exactness=BITWISE,
)
def drop_round_before_clipped_store(_: Round, clip: Clip, dst: Dst) -> Outcome:
    """For any bounds: rounding never falls.

    So both sides are clip(round(x), round(l), round(h)).
    """
    if not dst.is_integer:
        return None
    return (clip, dst) if dst.is_plain else Refusal("dst has a scale or a zero point")


@rule(
    "store(clip(x, l, h)) = store(clip(x, -inf, h)) if l stores as qmin; and l, inf if h as qmax.",
    Clip,
    Dst,
    exactness=BITWISE,
)
def open_saturated_bounds(clip: Clip, dst: Dst) -> Outcome:
    """A relu before an unsigned store is the case l = 0."""
    if dst.dtype is None or not dst.is_integer:
        return None
    # A store never falls, so the highest l and the lowest h speak for all channels.
    highest, lowest = clip.lo.greatest, clip.hi.least
    lo = highest > -_INF and _stored(highest, dst) <= dtypes.qmin(dst.dtype)
    hi = lowest < _INF and _stored(lowest, dst) >= dtypes.qmax(dst.dtype)
    if not (lo or hi):
        return _inside(clip, dst)
    if lo and hi:
        return (dst,)
    return (Clip(_OPEN_LO if lo else clip.lo, _OPEN_HI if hi else clip.hi), dst)


def _stored(bound: float, dst: Dst) -> float:
    # As float32, which is what a kernel clips with; rounded before saturation.
    return nearest_whole(nearest_float32(bound) / dst.scale + dst.zero_point)


def _inside(clip: Clip, dst: Dst) -> Refusal:
    return Refusal(f"{clip} is narrower than {dst.dtype} on every side that it closes")
