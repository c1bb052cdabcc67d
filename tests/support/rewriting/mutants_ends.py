"""Wrong variants of the guards of interval, store and approximate rules."""

from __future__ import annotations

from support.rewriting.mutant import Mutant

_STORE = "return (dst,) if dst.is_plain else"
_CLIPPED = "return (clip, dst) if dst.is_plain else"
_INTEGER = "    if not dst.is_integer:\n        return None\n    return (dst,)"
_ODD = "not affine.shift.is_integer or"

MUTANTS = (
    # interval
    Mutant(
        "open_implied_bounds", "if value.least >= bound.greatest:", "if value.least >= bound.least:"
    ),
    Mutant(
        "open_implied_bounds",
        "(value.values() >= bound.values()).all()",
        "(value.values() >= bound.values()).any()",
    ),
    Mutant("open_implied_bounds", "_never_below(x.lo, clip.lo)", "_never_below(x.hi, clip.lo)"),
    Mutant("open_implied_bounds", "_never_below(clip.hi, x.hi)", "_never_below(clip.hi, x.lo)"),
    Mutant("drop_round_of_whole", "if x.integer", "if x.lo.is_integer"),
    Mutant("drop_round_of_whole", "if x.integer", "if x.lo.is_integer and x.hi.is_integer"),
    Mutant("drop_relu_of_positive", "x.lo.least >= 0.0", "x.lo.greatest >= 0.0"),
    Mutant("drop_relu_of_positive", "x.lo.least >= 0.0", "x.lo.least >= -0.25"),
    Mutant(
        "drop_relu_of_positive",
        'step.alg not in {"relu", "abs"}',
        'step.alg not in {"relu", "abs", "square"}',
    ),
    Mutant("make_affine_of_negative_relu", "x.hi.greatest > 0.0", "x.hi.least > 0.0"),
    Mutant("make_affine_of_negative_relu", "x.hi.greatest > 0.0", "x.hi.greatest > 0.25"),
    Mutant("make_affine_of_negative_relu", '"abs": -1.0', '"abs": 1.0'),
    Mutant("make_constant_of_step", "y.is_constant and", "y.lo.least == y.hi.least and"),
    Mutant("make_constant_of_step", "y.is_constant and", ""),
    Mutant("make_constant_of_step", 'problem = not_storable("constant", y.lo)', "problem = None"),
    Mutant("make_constant_of_step", "if weight((constant,)) > weight((step,)):", "if False:"),
    # store
    Mutant("open_saturated_bounds", "= clip.lo.greatest, clip.hi", "= clip.lo.least, clip.hi"),
    Mutant("open_saturated_bounds", "greatest, clip.hi.least", "greatest, clip.hi.greatest"),
    Mutant("open_saturated_bounds", "<= dtypes.qmin(dst.dtype)", "<= 1"),
    Mutant("open_saturated_bounds", ">= dtypes.qmax(dst.dtype)", ">= 127"),
    Mutant("open_saturated_bounds", "+ dst.zero_point", ""),
    Mutant("open_saturated_bounds", "(bound) / dst.scale", "(bound)"),
    Mutant(
        "open_saturated_bounds",
        "if dst.dtype is None or not dst.is_integer:",
        "if dst.dtype is None:",
    ),
    Mutant("drop_round_before_store", _STORE, "return (dst,) if True else"),
    Mutant("drop_round_before_store", _STORE, "return (dst,) if dst.scale == 1.0 else"),
    Mutant("drop_round_before_store", _STORE, "return (dst,) if dst.zero_point == 0 else"),
    Mutant("drop_round_before_store", _INTEGER, "    return (dst,)"),
    Mutant("drop_round_before_clipped_store", _CLIPPED, "return (clip, dst) if True else"),
    Mutant(
        "drop_round_before_clipped_store", _CLIPPED, "return (clip, dst) if dst.scale == 1.0 else"
    ),
    Mutant("drop_round_before_clipped_store", "(clip, dst) if", "(dst,) if"),
    # approximate
    Mutant("level_shift", "SHIFT_SPREAD = 5e-5", "SHIFT_SPREAD = 5e-4"),
    Mutant(
        "drop_negligible_shift", "if shift.greatest >= SHIFT_TO_RANGE * span.least:", "if False:"
    ),
    Mutant("drop_negligible_shift", "MOST_LEVELS = 255.0", "MOST_LEVELS = 65535.0"),
    Mutant("drop_negligible_shift", "SHIFT_TO_RANGE = 1e-5", "SHIFT_TO_RANGE = 1e-4"),
    Mutant("move_odd_shift_before_round", "if not abs(affine.scale).is_all(1.0):", "if False:"),
    Mutant("move_odd_shift_before_round", _ODD, ""),
    Mutant(
        "move_odd_shift_before_round",
        "Rewrite((affine, rnd), note)",
        "Rewrite((Affine(1.0, affine.shift), rnd), note)",
    ),
    Mutant("move_odd_shift_before_clipped_round", _ODD, ""),
    Mutant(
        "move_odd_shift_before_clipped_round", "if not abs(affine.scale).is_all(1.0):", "if False:"
    ),
    Mutant("level_shift", "if off > SHIFT_SPREAD:\n", "if False:\n"),
    Mutant("level_shift_before_store", "> SHIFT_SPREAD:", "> 8 * SHIFT_SPREAD:"),
    Mutant("level_shift_before_store", "(dst,), dst.scale)", "(dst,), 4.0)"),
    Mutant("level_shift_before_clipped_store", "(clip, dst), dst.scale)", "(dst,), dst.scale)"),
    Mutant("level_shift_before_clipped_store", "(clip, dst), dst.scale)", "(clip, dst), 4.0)"),
    Mutant("level_shift", "Affine(affine.scale, target)", "Affine(affine.scale, 0.0)"),
    Mutant(
        "move_odd_shift_before_clipped_round",
        "if weight((carried,)) > weight((clip,)):",
        "if False:",
    ),
    Mutant(
        "move_odd_shift_before_clipped_round",
        "Rewrite((affine, rnd, carried), note)",
        "Rewrite((affine, rnd, clip), note)",
    ),
    Mutant("drop_round_before_residual", "if levels > 1:", "if False:"),
    Mutant(
        "drop_round_before_residual",
        "levels = math.floor(stretch / 2.0) + 1",
        "levels = math.floor(stretch / 4.0) + 1",
    ),
    Mutant(
        "drop_round_before_residual",
        "return abs(step.scale).greatest",
        "return abs(step.scale).least",
    ),
    Mutant(
        "drop_round_before_residual",
        "if factor is None:\n            return",
        "if factor is None:\n            continue\n            return",
    ),
    Mutant("drop_round_before_residual", "return max(1.0, abs(step.slope).greatest)", "return 1.0"),
)
