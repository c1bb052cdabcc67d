"""Wrong variants of the guards of clip, rounding and carrying rules."""

from __future__ import annotations

from support.rewriting.mutant import Mutant

_MERGED = "Clip(first.lo.clamp(lo, hi), first.hi.clamp(lo, hi))"
_SWAP = "if scale.least < 0.0:\n        lo, hi ="
_HOME = "carry"

MUTANTS = (
    # clip
    Mutant("drop_open_clip", "clip.lo.greatest == -_INF and", ""),
    Mutant("drop_open_clip", "and clip.hi.least == _INF", ""),
    Mutant("make_constant_of_clip", "if clip.lo != clip.hi", "if clip.lo.least != clip.hi.least"),
    Mutant("make_constant_of_clip", "if clip.lo != clip.hi", "if not clip.lo.is_finite"),
    Mutant("make_constant_of_clip", "Refusal(problem) if problem else", ""),
    # The intersection of the intervals, which is what others ship.
    Mutant("merge_clips", _MERGED, "Clip(first.lo.maximum(lo), first.hi.minimum(hi))"),
    Mutant(
        "merge_clips", _MERGED, "Clip(lo.clamp(first.lo, first.hi), hi.clamp(first.lo, first.hi))"
    ),
    Mutant(
        "merge_clips",
        _MERGED,
        "Clip(first.lo.maximum(lo).minimum(first.hi), first.hi.clamp(lo, hi))",
    ),
    Mutant("merge_clips", "if weight((merged,)) > weight((first, second)):", "if False:"),
    Mutant("merge_clips", "weight((merged,)) > weight((first, second))", "weight((merged,)) > 9"),
    Mutant(
        "merge_clips_over_affine",
        "if weight(best.items) > weight((first, affine, second)):",
        "if False:",
    ),
    Mutant(
        "merge_clips_over_affine",
        "if scale.least <= 0.0 <= scale.greatest and (scale.values() == 0.0).any():",
        "if False:",
    ),
    Mutant(
        "merge_clips_over_affine", "if level == whole:\n        return whole\n", "return whole\n"
    ),
    Mutant("merge_clips_over_affine", "<= noise.values()", "<= noise.values() + 0.25"),
    Mutant("merge_clips_over_affine", "(bound - shift) / scale", "bound / scale - shift"),
    Mutant(
        "merge_clips_over_affine",
        "if scale.least < 0.0 else Clip(lo, hi)",
        "if scale.greatest < 0.0 else Clip(lo, hi)",
        _HOME,
    ),
    Mutant("move_clip_behind_rounded_affine", "carried.lo.rint()", "(carried.lo - 0.25).rint()"),
    Mutant("move_clip_behind_rounded_affine", "overflows(clip.lo, lo) or", "", _HOME),
    Mutant("move_clip_behind_rounded_affine", "or overflows(clip.hi, hi)", "", _HOME),
    Mutant(
        "move_clip_behind_rounded_affine", "if weight((behind,)) > weight((clip,)):", "if False:"
    ),
    Mutant(
        "move_clip_behind_rounded_affine",
        "if weight((behind,)) > weight((clip,)):",
        "if weight((behind,)) > 7 + weight((clip,)):",
    ),
    Mutant(
        "move_clip_behind_rounded_affine", "Clip(carried.lo.rint(), carried.hi.rint())", "carried"
    ),
    Mutant(
        "move_clip_behind_rounded_affine",
        "if scale.least < 0.0 else Clip(lo, hi)",
        "if False else Clip(lo, hi)",
        _HOME,
    ),
    Mutant(
        "move_clip_behind_rounded_affine",
        "clip.hi.scaled(scale)",
        "clip.hi * scale",
        _HOME,
    ),
    Mutant("merge_clips_over_affine", "if overflows(bound, level):", "if False:"),
    Mutant("merge_clips_over_affine", _SWAP, _SWAP.replace("scale.least < 0.0", "False")),
    Mutant("merge_clips_over_affine", _SWAP, _SWAP.replace("least", "greatest")),
    # rounding
    Mutant("drop_second_round", "return (first,)", "return ()"),
    Mutant("drop_second_round", "return (first,)", "return (Affine(2.0), first)"),
    Mutant("move_clip_behind_round", "if narrow.rint() == rounded.narrow() else None", ""),
    Mutant("move_clip_behind_round", "return (rnd, Clip(lo, hi))", "return (rnd, clip)"),
    Mutant("move_clip_near_tie_behind_round", "Clip(clip.lo.rint(), clip.hi.rint())", "clip"),
    Mutant(
        "move_clip_near_tie_behind_round",
        "Clip(clip.lo.rint(), clip.hi.rint())",
        "Clip(clip.lo.rint(), (clip.hi + 0.25).rint())",
    ),
    Mutant("move_shift_before_round", "if not shift.is_even:", "if False:", _HOME),
    Mutant("move_shift_before_round", "if not shift.is_even:", "if shift.least % 2.0:", _HOME),
    Mutant(
        "move_shift_before_clipped_round", "if weight((carried,)) > weight((clip,)):", "if False:"
    ),
    Mutant(
        "move_shift_before_clipped_round",
        "return (affine, rnd, carried)",
        "return (affine, rnd, clip)",
    ),
    Mutant("move_shift_before_clipped_round", "if not shift.is_even:", "if False:", _HOME),
    Mutant(
        "move_shift_before_clipped_round",
        "if scale.least < 0.0 else Clip(lo, hi)",
        "if scale.greatest < 0.0 else Clip(lo, hi)",
        _HOME,
    ),
    # carrying
    Mutant("carry_affine_left", "elif falls(window, items):", "elif True:"),
    Mutant("carry_affine_left", "if passed:", "if False:"),
    Mutant("carry_affine_left", "rest.scale * sign, rest.shift", "rest.scale, rest.shift"),
    Mutant(
        "carry_affine_left",
        "yield Affine(_ONE, early), Affine(scale, _ZERO)",
        "yield Affine(_ONE, shift), Affine(scale, _ZERO)",
    ),
    Mutant(
        "carry_affine_left",
        "yield Affine(scale, _ZERO), Affine(_ONE, shift)",
        "yield Affine(scale, _ZERO), Affine(_ONE, shift * scale)",
    ),
    Mutant("carry_affine_left", "(*head, *reversed(passed), *tail)", "(*head, *passed, *tail)"),
)
