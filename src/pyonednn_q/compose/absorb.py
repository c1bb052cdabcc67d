"""Absorbing: what the two ends of a primitive take in, so that no post-op is needed for it.

The left end is an `Acc` with the primitive's scale and bias. Rules of `rewrite` move affine steps
into it, through everything that lets them pass. The right end is a `Dst`; the rules that fill its
scale and zero point are here. They run after all others: what the left end takes is free and
exact to one float32 rounding, what is left may go right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.interval import ANYTHING
from pyonednn_q.expr.steps import Affine, Clip, Step
from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.rewrite.driver import weight
from pyonednn_q.rewrite.ends import FLT_MAX, FLT_MIN, Acc, Dst, Takes, not_storable
from pyonednn_q.rewrite.rule import (
    BITWISE,
    REAL,
    RUN,
    Outcome,
    Refusal,
    Rewrite,
    RuleSet,
    Trace,
    rule,
)
from pyonednn_q.rewrite.rules import clip
from pyonednn_q.rewrite.rules.carry import carry

_ONE, _ZERO = Vec(1.0), Vec(0.0)
_FINITE = (Vec(-FLT_MAX), Vec(FLT_MAX))  # an open side of a clip is no number to store


def left_end(facts: PrimitiveFacts) -> tuple[Acc, tuple[Step, ...]]:
    """Return the accumulator with what the primitive applies to it, and steps that must follow.

    Integers: src_scale · wei_scale as one weight scale, and the bias. With a bias whose values come
    later, x0 itself is the unknown: a scale then multiplies weights and bias alike.

    f32: scales and shifts go into the weights and the bias themselves. bf16 and f16 weights would
    round again, so they take shifts only; when they have a scale, nothing, and dequantization is a
    step, before the bias.

    A scale for each row comes after the weight scale and before the bias, which is a step then.
    """
    accepts, scale = ACCEPTS[facts.kind], facts.folded_scale
    takes, because = accepts.wei_scale, ""
    if facts.wei in {"bf16", "f16"}:
        takes, because = Takes.NOTHING, f"{facts.wei} weights would round again"
    if facts.bias_later:
        shift = accepts.bias if not because else Takes.NOTHING
        return Acc(ANYTHING, takes_scale=takes, takes_shift=shift, because=because), ()
    bias = facts.bias or _ZERO
    if facts.bias_in_acc:
        bias = bias * scale
    if facts.row_scale is not None:
        because = "the scale of each row comes first"
        acc = Acc(facts.acc, scale, _ZERO, takes, Takes.NOTHING, because)
        return acc, () if bias.is_all(0.0) else (Affine(_ONE, bias),)
    if because and not scale.is_all(1.0):
        because = f"{facts.wei} weights with a scale: the scale must come before the bias"
        return Acc(facts.acc, because=because), (Affine(scale, bias),)
    return Acc(facts.acc, scale, bias, takes, accepts.bias, because), ()


@cache
def right_end(dtype: str, kind: str | None = None) -> Dst:
    """Return the store; of a kind of primitives, it takes a scale and a zero point if that does.

    Only an integer dst takes them: for a float one, a scale is refused by newer versions, and
    a linear post-op does the same.
    """
    if kind is None or not dtypes.is_integer(dtype):
        return Dst(dtype)
    accepts = ACCEPTS[kind]
    return Dst(dtype, takes_scale=accepts.dst_scale, takes_zero_point=accepts.dst_zero_point)


@rule(
    "store(x + k) = store of x with zero point k, if k is one whole number in the type's range.",
    Affine,
    Dst,
    exactness=BITWISE,
)
def move_shift_to_zero_point(affine: Affine, dst: Dst) -> Outcome:
    """The store adds its zero point before it rounds, which is where the shift stood."""
    if not dst.is_integer or not affine.scale.is_all(1.0) or affine.shift.is_all(0.0):
        return None
    if not dst.is_plain:
        return Refusal("dst has a scale or a zero point already")
    problem = _no_zero_point(affine.shift, dst)
    if problem:
        return problem
    return (_with(dst, dst.scale, affine.shift),)


@rule(
    "store(s*x + k) = store of x with scale 1/s and zero point k, if s is one number above 0.",
    Affine,
    Dst,
    exactness=REAL,
)
def move_scale_to_dst(affine: Affine, dst: Dst) -> Outcome:
    """Kernels multiply by the float32 reciprocal of the scale, so the scale is chosen among the
    neighbours of 1/s for the reciprocal that comes nearest to s.
    """
    scale, shift = affine.scale, affine.shift
    if not dst.is_integer or scale.is_all(1.0):
        return None
    if not dst.is_plain:
        return Refusal("dst has a scale or a zero point already")
    if not dst.takes_scale.admits(scale):
        extent = "per channel" if scale.array is not None else "given"
        return Refusal(f"the scale is {extent}, and dst takes " + _plain_text(dst.takes_scale))
    if scale.least <= 0.0:
        return Refusal(f"scale {scale} is not above 0")
    if not shift.is_all(0.0):
        problem = _no_zero_point(shift, dst)
        if problem:
            return problem
    if not (FLT_MIN <= scale.least <= FLT_MAX and FLT_MIN <= 1.0 / scale.least <= FLT_MAX):
        return Refusal(f"the reciprocal of {scale} is beyond float32")
    stored, applied = nearest_dst_scale(scale.least)
    note = ""
    if applied != scale.narrow().least:
        note = f"kernels multiply by {number(applied)} instead of {scale}"
    return Rewrite((_with(dst, stored, shift),), note)


@rule(
    "store(f(s*x + k)) = store of f'(x) with scale 1/s, zero point k, if f lets 1/s and -k/s pass.",
    Affine,
    RUN,
    Dst,
    exactness=REAL,
)
def move_scale_over_steps_to_dst(affine: Affine, run: tuple[Step, ...], dst: Dst) -> Outcome:
    """Clips, sums and relus take scale and shift to their other side, so that the store can have
    them. Here s is one number above 0, and k one whole number: see `carry`.
    """
    if not dst.is_integer or any(isinstance(step, Affine) for step in run):
        return None
    scale, shift = affine.scale, affine.shift
    if scale.array is not None or scale.least <= 0.0:
        return Refusal(f"scale {scale} is not one number above 0")
    inverse = _ONE / scale
    moved = _behind(run, inverse, -shift * inverse)
    if isinstance(moved, Refusal):
        return moved
    rule_of_store = move_shift_to_zero_point if scale.is_all(1.0) else move_scale_to_dst
    stored = rule_of_store(affine, dst)
    if isinstance(stored, Rewrite):
        return Rewrite((*moved, *stored.items), stored.note)
    return (*moved, *stored) if isinstance(stored, tuple) else stored


def _behind(run: tuple[Step, ...], scale: Vec, shift: Vec) -> tuple[Step, ...] | Refusal:
    """Return steps f' with f'(scale*x + shift) = scale*f(x) + shift, in the order of the run."""
    moved: list[Step] = []
    for step in run:
        carried = carry(step, scale, shift)
        if isinstance(carried, Refusal):
            return carried
        if (carried.scale, carried.shift, carried.sign) != (scale, shift, 1.0):
            return Refusal(f"{step} changes the scale that passes it")
        if isinstance(carried.step, Clip):
            for bound in (carried.step.lo, carried.step.hi):
                problem = not_storable("bound", bound.clamp(*_FINITE))
                if problem:
                    return Refusal(problem)
        moved.append(carried.step)
    if weight(moved) > weight(run):
        return Refusal("a bound would become per channel")
    return tuple(moved)


# What a store without scale saturates anyway may be more with one, so that is asked again.
RIGHT_END = RuleSet(
    (
        clip.open_saturated_bounds,
        move_shift_to_zero_point,
        move_scale_to_dst,
        move_scale_over_steps_to_dst,
    )
)


def nearest_dst_scale(multiplier: float) -> tuple[float, float]:
    """Return (d, fl(1/d)): the float32 dst scale whose reciprocal is nearest the multiplier.

    Examples
    --------
    >>> nearest_dst_scale(4.0)
    (0.25, 4.0)
    >>> d, applied = nearest_dst_scale(1.2)
    >>> applied == float(np.float32(1.2))
    True
    """
    one = np.float32(1.0)
    middle = np.float32(1.0 / multiplier)
    near = (middle, np.nextafter(middle, np.float32(0.0)), np.nextafter(middle, np.float32(np.inf)))
    best = min(near, key=lambda d: abs(float(one / d) - multiplier))
    return float(best), float(one / best)


def _with(dst: Dst, scale: float, shift: Vec) -> Dst:
    zero_point = dst.zero_point + int(shift.least)
    return Dst(dst.dtype, scale, zero_point, dst.takes_scale, dst.takes_zero_point)


def _no_zero_point(shift: Vec, dst: Dst) -> Refusal | None:
    """Say why a shift cannot be the zero point, or ``None``."""
    if not dst.takes_zero_point.admits(shift):
        extent = "per channel" if shift.array is not None else "given"
        return Refusal(f"the shift is {extent}, and dst takes " + _plain_text(dst.takes_zero_point))
    if not shift.is_integer:
        return Refusal(f"shift {shift} is not a whole number")
    assert dst.dtype is not None
    lo, hi = dtypes.qmin(dst.dtype), dtypes.qmax(dst.dtype)
    if not lo <= dst.zero_point + shift.least <= hi or not math.isfinite(shift.least):
        return Refusal(f"zero point {shift} is outside {lo}..{hi}, the range of {dst.dtype}")
    return None


def _plain_text(takes: Takes) -> str:
    return {"NOTHING": "none", "PER_TENSOR": "one for the tensor"}.get(takes.name, "one each")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Result of rewriting, in the terms of a primitive.

    Attributes
    ----------
    wei_scale : Vec
        Above 0 in every channel: what oneDNN's attribute takes.
    wei_factor : Vec
        Factor of the weights themselves.
    bias_scale, shift : Vec
        The bias is bias_scale · (given bias) + shift; only shift, when its values are known.
    steps : tuple of Step
        Steps that remain to be done after it, before the store.
    dst : Dst
        The store.
    trace : Trace
        Rewrites that justify all of it.
    bias_dtype : str
        Data type of the bias.
    """

    wei_scale: Vec
    wei_factor: Vec
    bias_scale: Vec
    shift: Vec
    steps: tuple[Step, ...]
    dst: Dst
    trace: Trace
    bias_dtype: str = "f32"


def split_left(
    acc: Acc,
    steps: tuple[Step, ...],
    dst: Dst,
    trace: Trace,
    facts: PrimitiveFacts,
    bias_dtype: str = "f32",
) -> Rewritten:
    """Split scale and shift of the left end into weight scale, weights, bias, and a sign left over.

    A weight scale is above 0. A channel of scale 0 gets weights of 0. A channel of negative scale
    gets weights of the other sign, unless they may hold the lowest value of their type, which has
    no opposite: then its sign becomes a step.
    """
    # With a bias to come, acc stands for x0 itself: its scale multiplies weights and bias alike.
    # But an s32 bias joins the sums, and no scale is folded into either.
    folded = _ONE if bias_dtype == "s32" else facts.folded_scale
    scale = acc.scale * folded if facts.bias_later else acc.scale
    bias_scale = acc.scale * folded if facts.bias_in_acc else acc.scale
    rest: Any = (steps, dst, trace, bias_dtype)
    if not facts.is_int8:
        return Rewritten(_ONE, scale, bias_scale, acc.shift, *rest)
    problem = not_storable("weight scale", scale)
    if problem:
        raise ArgumentError("wei_scale", str(scale), f"scales that float32 can hold: {problem}")
    if scale.least > 0.0:
        return Rewritten(scale, _ONE, bias_scale, acc.shift, *rest)
    signs = Vec(_signs(scale))
    size = abs(scale) + Vec((scale.values() == 0.0).astype(float))
    if signs.least >= 0.0 or not (facts.wei_has_min or facts.wei_zero_point):
        return Rewritten(size, signs, bias_scale, acc.shift, *rest)
    zeros = Vec((scale.values() != 0.0).astype(float))
    turned = Vec((scale.values() < 0.0) * -2.0 + 1.0)
    rest = ((Affine(turned), *steps), dst, trace, bias_dtype)
    return Rewritten(size, zeros, bias_scale * turned, acc.shift * turned, *rest)


def _signs(scale: Vec) -> Vec:
    return Vec((scale.values() > 0.0) * 1.0 - (scale.values() < 0.0) * 1.0)
