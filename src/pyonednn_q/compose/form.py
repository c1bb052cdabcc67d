"""A rewritten chain between its two ends, ready to be lowered; and its left end split up."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.rewrite.ends import Acc, Dst, not_storable
from pyonednn_q.rewrite.rule import Trace

__all__ = ["Left", "Rewritten", "split_left"]

_ONE, _ZERO = Vec(1.0), Vec(0.0)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What rewriting leaves: scale and bias, steps, store, and the trace that justifies it."""

    acc: Acc
    steps: tuple[Step, ...]
    dst: Dst
    trace: Trace
    bias_dtype: str = "f32"


@dataclass(frozen=True, slots=True)
class Left:
    """The left end as a primitive takes it.

    Attributes
    ----------
    wei_scale : Vec
        Above 0 in every channel: what oneDNN's attribute takes.
    wei_factor : Vec
        What the weights themselves are multiplied by.
    bias_scale, shift : Vec
        The bias is bias_scale · (given bias) + shift; only shift, when its values are known.
    steps : tuple of Step
        What must be done after it, and before the chain.
    """

    wei_scale: Vec
    wei_factor: Vec
    bias_scale: Vec
    shift: Vec
    steps: tuple[Step, ...] = ()


def split_left(form: Rewritten, facts: PrimitiveFacts) -> Left:
    """Split scale and shift of the left end into weight scale, weights, bias, and a sign left over.

    A weight scale is above 0. A channel of scale 0 gets weights of 0. A channel of negative scale
    gets weights of the other sign, unless they may hold the lowest value of their type, which has
    no opposite: then its sign becomes a step.
    """
    acc = form.acc
    # With a bias to come, acc stands for x0 itself: its scale multiplies weights and bias alike.
    # But an s32 bias joins the sums, and no scale is folded into either.
    folded = _ONE if form.bias_dtype == "s32" else facts.folded_scale
    scale = acc.scale * folded if facts.bias_later else acc.scale
    bias_scale = acc.scale * folded if facts.bias_in_acc else acc.scale
    if not facts.is_int8:
        return Left(_ONE, scale, bias_scale, acc.shift)
    problem = not_storable("weight scale", scale)
    if problem:
        raise ArgumentError("wei_scale", str(scale), f"scales that float32 can hold: {problem}")
    if scale.least > 0.0:
        return Left(scale, _ONE, bias_scale, acc.shift)
    signs = Vec(_signs(scale))
    size = abs(scale) + Vec((scale.values() == 0.0).astype(float))
    if signs.least >= 0.0 or not (facts.wei_has_min or facts.wei_zero_point):
        return Left(size, signs, bias_scale, acc.shift)
    zeros = Vec((scale.values() != 0.0).astype(float))
    turned = Vec((scale.values() < 0.0) * -2.0 + 1.0)
    step = Affine(turned)
    return Left(size, zeros, bias_scale * turned, acc.shift * turned, (step,))


def _signs(scale: Vec) -> Vec:
    return Vec((scale.values() > 0.0) * 1.0 - (scale.values() < 0.0) * 1.0)
