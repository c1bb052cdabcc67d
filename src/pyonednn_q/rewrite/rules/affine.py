"""Rules of affine steps: merging, folding, dropping, and noise of float64 folds taken out.

s2*(s1*x + t1) + t2        -> (s2*s1)*x + (s2*t1 + t2)
s*x + s*u                  -> s*(x + u)
f(constant)                -> constant

The rules that remove noise touch no difference above 2**-40 (`NOISE`): per scale relative to 1, per
shift in levels of the rounding beside it. Wider tolerances are in `rounding`, under policy "fast".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.rewrite.driver import weight
from pyonednn_q.rewrite.ends import NOISE, Acc, Dst, Item, is_noise, not_storable, vanishes
from pyonednn_q.rewrite.rule import BITWISE, REAL, Outcome, Refusal, Rewrite, rule

_ONE, _ZERO = Vec(1.0), Vec(0.0)


@rule("1*x + 0 = x.", Affine, exactness=BITWISE)
def drop_identity_affine(affine: Affine) -> Outcome:
    return () if affine.scale.is_all(1.0) and affine.shift.is_all(0.0) else None


@rule(
    "s2*(s1*x + t1) + t2 = (s2*s1)*x + (s2*t1 + t2), if float32 can hold the constants.",
    Affine,
    Affine,
    exactness=REAL,
)
def compose_affines(first: Affine, second: Affine) -> Outcome:
    """Refused where it would cost more: a per-tensor shift before a per-channel scale becomes a
    per-channel shift behind it.
    """
    affine = composed(first, second)
    if isinstance(affine, Refusal):
        return affine
    if weight((affine,)) > weight((first, second)):
        return Refusal("apart they need fewer per-channel constants than together")
    return (affine,)


def composed(first: Affine, second: Affine) -> Affine | Refusal:
    """Fold two affine steps into one, in float64, if float32 can hold the result."""
    folded = _folded(first, second)
    return folded if isinstance(folded, Refusal) else Affine(*folded)


def _folded(first: Affine | Acc, second: Affine) -> tuple[Vec, Vec] | Refusal:
    scale = second.scale * first.scale
    shift = second.scale * first.shift + second.shift
    problem = not_storable("scale", scale) or not_storable("shift", shift)
    if problem:
        return Refusal(problem)
    if vanishes(scale, second.scale, first.scale):
        return Refusal("the product of the scales is too small for float64")
    return scale, shift


@rule(
    "s*(w*acc + b) + t = (s*w)*acc + (s*b + t), if the primitive takes a scale s and a shift t.",
    Acc,
    Affine,
    exactness=REAL,
)
def absorb_affine_in_acc(acc: Acc, affine: Affine) -> Outcome:
    """A known bias is rescaled together with the weights, so it never blocks a scale, and s may
    have any sign.
    """
    return absorbed(acc, affine)


def absorbed(acc: Acc, affine: Affine) -> tuple[Acc] | tuple[Acc, Affine] | Refusal:
    """Move an affine step into the left end; a shift that it does not take stays behind."""
    moved = affine.scale
    if not (moved.is_all(1.0) or acc.takes_scale.admits(moved)):
        return Refusal(acc.because or f"the primitive takes no scale {moved}")
    folded = _folded(acc, affine)
    if isinstance(folded, Refusal):
        return folded
    scale, shift = folded
    if acc.takes_shift.admits(shift) or shift == acc.shift:
        return (replace(acc, scale=scale, shift=shift),)
    if moved.is_all(1.0) or not acc.shift.is_all(0.0):
        return Refusal(acc.because or f"the primitive takes no shift {shift}")
    return (replace(acc, scale=scale), Affine(_ONE, affine.shift))


@rule(
    "0*f(x) + t = 0*x + t, if f is finite for every finite x.",
    (Affine, Clip, Round, Eltwise, PRelu, Sum, Binary),
    Affine,
    exactness=REAL,
)
def drop_before_constant(step: Step, affine: Affine) -> Outcome:
    if not affine.scale.is_all(0.0):
        return None
    if isinstance(step, Eltwise) and step.alg in {"log", "sqrt", "pow", "exp"}:
        return Refusal(f"{step.alg} is not finite everywhere, and 0 times infinity is not 0")
    if isinstance(step, Binary) and step.alg == "div" and isinstance(step.operand, Leaf):
        return Refusal(f"{step.operand} may be 0, and 0 times infinity is not 0")
    return (affine,)


@rule(
    "f(0*x + t) = 0*x + f(t), if float32 can hold f(t).",
    Affine,
    (Clip, Round, Eltwise, PRelu, Binary),
    exactness=REAL,
)
def fold_constant(affine: Affine, step: Clip | Round | Eltwise | PRelu | Binary) -> Outcome:
    if not affine.scale.is_all(0.0):
        return None
    if isinstance(step, Binary) and isinstance(step.operand, Leaf):
        return None
    channels = affine.shift.channels or step.channels or 1
    value = evaluate(Chain(step), affine.shift.spread(channels), axis=0)
    if not np.isfinite(value).all():
        return Refusal(f"{step} of {affine.shift} is not finite")
    problem = not_storable("constant", Vec(value))
    return Refusal(problem) if problem else (Affine(_ZERO, Vec(value)),)


@rule(
    "s*x + t = s*(x + u), if t = u*s in every channel with one u for all of them.",
    Affine,
    exactness=REAL,
)
def split_per_channel_shift(affine: Affine) -> Outcome:
    """A dequantizer's shift is per channel only because its scale is: -zero_point*scale. Apart, the
    zero point is one number again. Quotients that differ by less than 2**-40 are one number; they
    are taken from folds in float64.
    """
    scale, shift = affine.scale, affine.shift
    if scale.array is None or shift.array is None:
        return None
    if bool((scale.array == 0.0).any()):
        return Refusal(f"scale is {scale.first(lambda s: s == 0)}: nothing to divide the shift by")
    before = shift / scale
    middle = _middle(before)
    error = abs(before - middle).greatest
    if error > NOISE * max(1.0, abs(middle.least)):
        return Refusal("shift/scale is not one number for all channels")
    problem = not_storable("shift", middle)
    if problem:
        return Refusal(problem)
    note = f"shift/scale {before} taken as {middle}" if error else ""
    return Rewrite((Affine(_ONE, middle), Affine(scale, _ZERO)), note)


def _middle(vec: Vec) -> Vec:
    """Return the whole number in reach of folding noise, else the middle of the channels."""
    middle = vec.least + 0.5 * (vec.greatest - vec.least)
    nearest = float(round(middle))
    return Vec(nearest if abs(nearest - middle) <= NOISE * max(1.0, abs(nearest)) else middle)


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
        snapped = replace(affine, shift=whole)
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
