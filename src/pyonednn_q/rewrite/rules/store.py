"""Rules at the right end: what the store to an integer type does anyway.

dst = saturate(rne(x/scale + zero_point)), into qmin..qmax
"""

from __future__ import annotations

import math

from pyonednn_q import dtypes
from pyonednn_q.expr.steps import Clip, Round
from pyonednn_q.expr.vec import Vec, nearest_float32, nearest_whole
from pyonednn_q.rewrite.ends import Dst
from pyonednn_q.rewrite.rule import BITWISE, Outcome, Refusal, rule

__all__ = [
    "drop_round_before_clipped_store",
    "drop_round_before_store",
    "open_saturated_bounds",
]

_INF = math.inf
_OPEN_LO, _OPEN_HI = Vec(-_INF), Vec(_INF)


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
    lower, upper = _OPEN_LO if lo else clip.lo, _OPEN_HI if hi else clip.hi
    return (dst,) if lower is _OPEN_LO and upper is _OPEN_HI else (Clip(lower, upper), dst)


def _stored(bound: float, dst: Dst) -> float:
    # As float32, which is what a kernel clips with; rounded before saturation.
    return nearest_whole(nearest_float32(bound) / dst.scale + dst.zero_point)


def _inside(clip: Clip, dst: Dst) -> Refusal:
    return Refusal(f"{clip} is narrower than {dst.dtype} on every side that it closes")
