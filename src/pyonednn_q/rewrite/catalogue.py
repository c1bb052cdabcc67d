"""The catalogue: every rule, in the order in which they are tried.

First come the rules that give a step its simplest form, so that all others meet few kinds of step;
they have a sweep of their own, for a rule that carries constants to the left looks at steps far to
its right. Then merging, then moving, then what the ends make superfluous. Bounded rules come last:
at equal places an exact rule wins.
"""

from __future__ import annotations

from pyonednn_q.rewrite.rules import (
    activation,
    affine,
    approximate,
    binary,
    carry,
    clip,
    interval,
    residual,
    rounding,
    snapping,
    store,
)
from pyonednn_q.rewrite.ruleset import RuleSet

__all__ = ["APPROXIMATE", "CANONICAL", "CATALOGUE", "KNOWLEDGE", "SIMPLIFY"]

CANONICAL = RuleSet(
    (
        activation.make_clip_of_relu,
        activation.drop_relu_with_slope_one,
        activation.make_clip_of_eltwise,
        activation.make_affine_of_linear,
        activation.make_round_of_eltwise,
        activation.make_affine_of_pow,
        activation.make_relu_of_prelu,
        binary.make_affine_of_binary,
        binary.make_affine_of_division,
        binary.make_clip_of_binary,
        residual.drop_sum_of_nothing,
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
        snapping.collapse_equal_channels,
        snapping.snap_scale_to_one,
        snapping.snap_shift_before_round,
        snapping.snap_shift_after_round,
        snapping.snap_shift_after_clipped_round,
        affine.absorb_affine_in_acc,
        affine.compose_affines,
        clip.merge_clips,
        rounding.drop_second_round,
        rounding.move_clip_behind_round,
        rounding.move_clip_near_tie_behind_round,
        rounding.move_shift_before_round,
        rounding.move_shift_before_clipped_round,
        # Behind the round before anything else: there the bounds of all channels are the same.
        clip.move_clip_behind_rounded_affine,
        clip.merge_clips_over_affine,
        activation.make_clip_of_hardsigmoid,
        carry.carry_affine_left,
        affine.split_per_channel_shift,
    )
)

KNOWLEDGE = RuleSet(
    (
        interval.make_constant_of_step,
        interval.open_implied_bounds,
        interval.drop_round_of_whole,
        interval.drop_relu_of_positive,
        interval.make_affine_of_negative_relu,
        store.open_saturated_bounds,
        store.drop_round_before_store,
        store.drop_round_before_clipped_store,
    )
)

APPROXIMATE = RuleSet(
    (
        approximate.level_shift,
        approximate.drop_negligible_shift,
        approximate.move_odd_shift_before_round,
        approximate.move_odd_shift_before_clipped_round,
        approximate.drop_round_before_residual,
    )
)

CATALOGUE = RuleSet(CANONICAL, leading=CANONICAL) + SIMPLIFY + KNOWLEDGE + APPROXIMATE
