"""The exact form: the integers of ONNX's QLinearConv and QLinearMatMul.

    dst = saturate(rne(acc · M) + dst_zero_point),   M = f32(f32(src_scale · wei_scale) / dst_scale)

Without a bias, M is the weight scale. A bias is in units of the accumulator and is added before M
is applied: an s32 bias, then a multiplication by M. Either way one post-op rounds, and the zero
point is added to whole numbers.
"""

from __future__ import annotations

import math

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.absorb import Rewritten, split_left
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.errors import ArgumentError, DTypeError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise, Round, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.faults.capability import ACCEPTS
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.rewrite.catalogue import CANONICAL
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import FLT_MAX, FLT_MIN, Acc, Dst, Takes
from pyonednn_q.rewrite.rule import RuleSet, Trace
from pyonednn_q.rewrite.rules import clip as clip_rules
from pyonednn_q.rewrite.rules import clip as store_rules

_CLIPS = CANONICAL + RuleSet(
    (clip_rules.drop_open_clip, clip_rules.merge_clips, store_rules.open_saturated_bounds)
)


def _onnx_multiplier(facts: PrimitiveFacts) -> Vec:
    """Return f32(f32(src_scale · wei_scale) / dst_scale), each operation rounded to float32.

    Raises
    ------
    ArgumentError
        The result leaves float32's range, on the way or in the end.
    """
    with np.errstate(all="ignore"):
        src, dst = np.float32(facts.src_scale), np.float32(facts.dst_scale)
        wei = facts.wei_scale.values().astype(np.float32)
        product = src * wei
        multiplier = (product / dst).astype(np.float64)
    smallest = float(np.min(np.minimum(product, multiplier)))
    if not (smallest >= FLT_MIN and np.max(multiplier) <= FLT_MAX):
        got = (
            f"src_scale {facts.src_scale}, wei_scale {facts.wei_scale}, dst_scale {facts.dst_scale}"
        )
        raise ArgumentError("exact_rounding", got, "scales whose product float32 can hold")
    return Vec(multiplier)


def exact_form(chain: Chain, facts: PrimitiveFacts) -> Rewritten:
    """Return the exact form of a chain of clips (relu among them), or refuse.

    Raises
    ------
    DTypeError
        dst is not an integer type.
    ArgumentError
        A bias in real units: ONNX's is in units of the accumulator.
    UnsupportedError
        The chain holds more than clips, or sums beyond 2**24 are possible with a bias.
    """
    if not dtypes.is_integer(facts.dst) or not facts.is_int8:
        got = f"{facts.wei} to {facts.dst}"
        raise DTypeError("exact_rounding", got, "8-bit weights and an integer dst")
    if facts.src_later:
        wanted = "a scale of the source that is known: it is part of the multiplier"
        raise ArgumentError("exact_rounding", "a scale that comes with each call", wanted)
    if facts.has_bias and not facts.bias_in_acc:
        wanted = "one in units of the accumulator (bias_in_acc)"
        raise ArgumentError("bias", "a bias in real units", wanted)
    dst = Dst(facts.dst, zero_point=facts.dst_zero_point)
    levels, trace = _levels(chain, facts, dst)
    steps: tuple[Step, ...] = (Round(), *levels)
    if dst.zero_point and ACCEPTS[facts.kind].dst_zero_point is Takes.NOTHING:
        # Behind the round it is added to whole numbers, which a post-op does as exactly.
        steps, dst = (*steps, Affine(1.0, float(dst.zero_point))), Dst(facts.dst)
    multiplier = _onnx_multiplier(facts)
    if not facts.has_bias:
        # An Acc that takes nothing more: its scale is the attribute, bit for bit.
        return split_left(Acc(facts.acc, multiplier), steps, dst, trace, facts)
    _check_bias(facts)
    acc = Acc(facts.acc, Vec(1.0), facts.bias or Vec(0.0))
    return split_left(acc, (Affine(multiplier), *steps), dst, trace, facts, bias_dtype="s32")


def _levels(chain: Chain, facts: PrimitiveFacts, dst: Dst) -> tuple[tuple[Step, ...], Trace]:
    """Return the chain's clips in levels of dst, without those that the store makes superfluous."""
    for step in chain:
        is_relu = isinstance(step, Eltwise) and step.alg == "relu" and step.alpha == 0.0
        if not (isinstance(step, Clip) or is_relu):
            detail = f"{step}: with exact_rounding only clips and relu stand before the rounding"
            raise UnsupportedError("refused", "composing", facts.text(), detail)
    items, _ = rewrite((*chain, Dst()), _CLIPS, "bitwise")
    levels = []
    for item in items[:-1]:
        assert isinstance(item, Clip)
        levels.append(Clip(_level(item.lo, facts), _level(item.hi, facts)))
    items, trace = rewrite((Acc(takes_scale=Takes.NOTHING), *levels, dst), _CLIPS, "bitwise")
    return tuple(item for item in items if isinstance(item, Step)), trace


def _level(bound: Vec, facts: PrimitiveFacts) -> Vec:
    return (bound / facts.dst_scale).rint()


def _check_bias(facts: PrimitiveFacts) -> None:
    if facts.bias is None:
        return
    if not facts.bias.is_integer:
        raise ArgumentError("bias", str(facts.bias), "whole numbers: units of the accumulator")
    lo, hi = facts.acc.lo + facts.bias, facts.acc.hi + facts.bias
    largest = max(abs(lo).greatest, abs(hi).greatest)
    if math.isfinite(largest) and largest >= F32_WHOLE:
        detail = f"sums can reach {largest:.0f}, and float32 is exact below 2**24"
        raise UnsupportedError("refused", "composing", facts.text(), detail)
