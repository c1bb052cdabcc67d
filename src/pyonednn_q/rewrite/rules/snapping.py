"""Rules that remove what folding in float64 left behind, and say how much that was.

Nothing here touches a difference above 2**-40 (`limits.NOISE`): per scale relative to 1, per shift
in levels of the rounding beside it. Wider tolerances are in `approximate`, under policy "fast".
"""

from __future__ import annotations

from pyonednn_q.expr.steps import Affine, Clip, Round
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.rewrite.ends import Acc, Dst, Item
from pyonednn_q.rewrite.limits import NOISE, is_noise
from pyonednn_q.rewrite.rule import REAL, Outcome, Rewrite, rule

__all__ = [
    "collapse_equal_channels",
    "snap_scale_to_one",
    "snap_shift_after_clipped_round",
    "snap_shift_after_round",
    "snap_shift_before_round",
]

_ONE = Vec(1.0)


@rule("s*x + t = x + t, if every s is within 2**-40 of 1.", Affine, exactness=REAL)
def snap_scale_to_one(affine: Affine) -> Outcome:
    """Such an s is 1 in float32, so no kernel can tell the two apart."""
    scale = affine.scale
    if scale.is_all(1.0) or not is_noise(scale, _ONE):
        return None
    note = f"scale {scale} taken as 1"
    return Rewrite((Affine(_ONE, affine.shift),), note)


@rule(
    "round(s*x + t) = round(s*x + k), if every t is within 2**-40 of a whole number k.",
    (Affine, Acc),
    (Round, Dst),
    exactness=REAL,
)
def snap_shift_before_round(affine: Affine | Acc, end: Round | Dst) -> Outcome:
    """A bias that is nothing but such noise would cost a primitive its form without a bias."""
    if isinstance(end, Dst) and not (end.is_integer and end.scale == 1.0):
        return None
    return _snapped(affine, affine, end)


@rule(
    "round(x) + t = round(x) + k, if every t is within 2**-40 of a whole number k.",
    Round,
    Affine,
    exactness=REAL,
)
def snap_shift_after_round(rnd: Round, affine: Affine) -> Outcome:
    if not affine.scale.is_all(1.0) and not affine.scale.is_all(-1.0):
        return None
    return _snapped(affine, rnd, affine)


@rule(
    "clip(round(x), l, h) + t = clip(round(x), l, h) + k, if t is within 2**-40 of a whole k.",
    Round,
    Clip,
    Affine,
    exactness=REAL,
)
def snap_shift_after_clipped_round(rnd: Round, clip: Clip, affine: Affine) -> Outcome:
    if not affine.scale.is_all(1.0) and not affine.scale.is_all(-1.0):
        return None
    return _snapped(affine, rnd, clip, affine)


@rule(
    "s*x + t = u*x + v, if float32 cannot tell the channels of s from u, nor those of t from v.",
    Affine,
    exactness=REAL,
)
def collapse_equal_channels(affine: Affine) -> Outcome:
    """The channels must also lie within 2**-40 of each other, relative to the largest."""
    scale, shift = _one_value(affine.scale), _one_value(affine.shift)
    if scale is affine.scale and shift is affine.shift:
        return None
    parts = []
    if scale is not affine.scale:
        parts.append(f"scale {affine.scale} taken as {scale}")
    if shift is not affine.shift:
        parts.append(f"shift {affine.shift} taken as {shift}")
    return Rewrite((Affine(scale, shift),), "; ".join(parts))


def _snapped(affine: Affine | Acc, *window: Item) -> Outcome:
    shift = affine.shift
    # The ends tell cheaply that nothing can be near: most shifts are not.
    if abs(shift.least - round(shift.least)) > NOISE:
        return None
    whole = shift.rint()
    if whole == shift or not is_noise(shift, whole):
        return None
    off = abs(shift - whole).greatest
    snapped: Item = Affine(affine.scale, whole)
    if isinstance(affine, Acc):
        snapped = affine.holding(affine.scale, whole)
    items = tuple(snapped if item is affine else item for item in window)
    return Rewrite(items, f"shift {shift} taken as {whole}, off by {number(off)} levels")


def _one_value(vec: Vec) -> Vec:
    if vec.array is None or vec.greatest - vec.least > NOISE * max(
        abs(vec.least), abs(vec.greatest)
    ):
        return vec
    if Vec(vec.least).narrow() != Vec(vec.greatest).narrow():
        return vec
    return Vec(vec.least + 0.5 * (vec.greatest - vec.least))
