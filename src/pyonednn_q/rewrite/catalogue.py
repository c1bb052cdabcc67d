"""The catalogue: every rule in the order in which it is tried, and the normal form that they reach.

First come the rules that give a step its simplest form, so that all others meet few kinds of step;
they have a sweep of their own, for a rule that carries constants to the left looks at steps far to
its right. Then merging, then moving, then what the ends make superfluous. Bounded rules come last:
at equal places an exact rule wins.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.expr.steps import Chain, Step
from pyonednn_q.rewrite.driver import rewrite
from pyonednn_q.rewrite.ends import Acc, Dst
from pyonednn_q.rewrite.rule import Policy, RuleSet, Trace
from pyonednn_q.rewrite.rules import affine, canonical, carry, clip, round_rules

CANONICAL = RuleSet(
    (
        canonical.make_clip_of_relu,
        canonical.drop_relu_with_slope_one,
        canonical.make_clip_of_eltwise,
        canonical.make_affine_of_linear,
        canonical.make_round_of_eltwise,
        canonical.make_affine_of_pow,
        canonical.make_relu_of_prelu,
        canonical.make_affine_of_binary,
        canonical.make_affine_of_division,
        canonical.make_clip_of_binary,
        canonical.drop_sum_of_nothing,
    )
)

SIMPLIFY = RuleSet(
    (
        affine.drop_identity_affine,
        clip.drop_open_clip,
        clip.make_constant_of_clip,
        affine.drop_before_constant,
        affine.fold_constant,
        # Noise goes before anything compares a constant with 0, 1 or a whole number.
        affine.collapse_equal_channels,
        affine.snap_scale_to_one,
        affine.snap_shift_before_round,
        affine.snap_shift_after_round,
        affine.snap_shift_after_clipped_round,
        affine.absorb_affine_in_acc,
        affine.compose_affines,
        clip.merge_clips,
        round_rules.drop_second_round,
        round_rules.move_clip_behind_round,
        round_rules.move_clip_near_tie_behind_round,
        round_rules.move_shift_before_round,
        round_rules.move_shift_before_clipped_round,
        # Behind the round before anything else: there the bounds of all channels are the same.
        clip.move_clip_behind_rounded_affine,
        clip.merge_clips_over_affine,
        canonical.make_clip_of_hardsigmoid,
        carry.carry_affine_left,
        affine.split_per_channel_shift,
    )
)

KNOWLEDGE = RuleSet(
    (
        clip.make_constant_of_step,
        clip.open_implied_bounds,
        clip.drop_round_of_whole,
        clip.drop_relu_of_positive,
        clip.make_affine_of_negative_relu,
        clip.open_saturated_bounds,
        clip.drop_round_before_store,
        clip.drop_round_before_clipped_store,
    )
)

APPROXIMATE = RuleSet(
    (
        round_rules.level_shift,
        round_rules.level_shift_before_store,
        round_rules.level_shift_before_clipped_store,
        round_rules.drop_negligible_shift,
        round_rules.move_odd_shift_before_round,
        round_rules.move_odd_shift_before_clipped_round,
        round_rules.drop_round_before_residual,
    )
)

CATALOGUE = RuleSet(CANONICAL, leading=CANONICAL) + SIMPLIFY + KNOWLEDGE + APPROXIMATE


@dataclass(frozen=True, slots=True)
class Normal:
    """A rewritten chain between its ends, and how it came about."""

    acc: Acc
    chain: Chain
    dst: Dst
    trace: Trace


def normalise(
    chain: Chain,
    *,
    acc: Acc | None = None,
    dst: Dst | None = None,
    policy: Policy = "real",
    rules: RuleSet = CATALOGUE,
) -> Normal:
    """Rewrite a chain until no rule fires.

    Parameters
    ----------
    chain : Chain
        Steps to compute from the accumulator.
    acc, dst : Acc and Dst, optional
        Properties of the accumulator and of the destination, and steps that they can absorb. By
        default nothing.
    policy : {"bitwise", "real", "fast"}
        Rewrites that may fire. "bitwise": those that promise BITWISE. "real": those of REAL too.
        "fast": those of BOUNDED too.
    rules : RuleSet
        Rules, in the order in which they are tried.

    Examples
    --------
    >>> from pyonednn_q.expr.steps import Affine, Clip, Round
    >>> quantize = Chain(Clip(0, 2.5), Affine(4), Round(), Clip(0, 255))
    >>> print(normalise(quantize, dst=Dst("u8")).chain)
    4*x > min(x, 10)
    """
    items, trace = rewrite((acc or Acc(), *chain.steps, dst or Dst()), rules, policy)
    left, right = items[0], items[-1]
    steps = tuple(item for item in items if isinstance(item, Step))
    if not (isinstance(left, Acc) and isinstance(right, Dst) and len(steps) == len(items) - 2):
        msg = "a rule moved an end of the chain"
        raise AssertionError(msg)
    return Normal(left, Chain(*steps), right, trace)
