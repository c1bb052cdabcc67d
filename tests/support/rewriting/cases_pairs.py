"""Cases of the rules on neighbours: clips, rounds, and what is carried over what."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    BinaryAlg,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Takes
from pyonednn_q.rewrite.rules import carry, clip, round_rules
from support.rewriting import draws
from support.rewriting.case import Case
from support.rewriting.cases_steps import acc
from support.rewriting.draws import INF, Window


def _clip(w: Window) -> tuple[Clip]:
    return (w.pick((Clip(), Clip(), Clip(lo=0), w.clip())),)


def _narrow_clip(w: Window) -> tuple[Clip]:
    point = w.vec(draws.quarters if w.chance(80) else draws.extremes)
    return (Clip(point, point) if w.chance(50) else w.clip(draws.whole),)


def _two_clips(w: Window) -> tuple[Clip, Clip]:
    return (w.clip(), w.clip())


def _far_clip(w: Window) -> Clip:
    """Draw a clip one side of which passes 2**60 and the other does not."""
    return w.pick((Clip(-(2.0**100), 2.0**40), Clip(-(2.0**40), 2.0**100), Clip(hi=2.0**100)))


def _clip_affine_clip(w: Window) -> tuple[Clip, Affine, Clip]:
    if w.chance(20):
        return (Clip(-1.0, 2.0**40), Affine(w.vec(draws.extremes)), w.clip())
    if w.chance(10):
        return (_far_clip(w), Affine(-(2.0**60)), w.clip())
    if w.chance(10):
        return (w.clip(draws.even), Affine(w.pick((2.0**-60, -(2.0**-60)))), _far_clip(w))
    scale = draws.scales if w.chance(20) else draws.signed_powers
    middle = Affine(w.vec(scale), w.vec(draws.even))
    return (w.clip(draws.whole), middle, w.clip(draws.even))


def _clip_affine_round(w: Window) -> tuple[Clip, Affine, Round]:
    if w.chance(10):
        return (_far_clip(w), Affine(w.pick((2.0**60, -(2.0**60)))), Round())
    return (w.clip(), w.affine(draws.scales if w.chance(30) else draws.signed_powers), Round())


def _near_tie(w: Window) -> tuple[Clip, Round]:
    if w.chance(70):
        return (w.clip(), Round())
    off = st.sampled_from((2.5 + 2.0**-30, 2.5, 3.5 - 2.0**-40, 2.0**24 + 1.0, -INF, INF))
    lo = w.vec(st.sampled_from((0.5 + 2.0**-40, -INF, -1.5 - 2.0**-30, 0.0)))
    return (Clip(lo, w.vec(off.filter(lambda v: v > 0))), Round())


_unit_scales = st.sampled_from((1.0, 1.0, -1.0))


def _unit_affine(w: Window) -> Affine:
    scales = w.pick((_unit_scales, _unit_scales, _unit_scales, draws.scales))
    scale = w.vec(scales, per_channel=w.chance(40))
    shift = w.pick((draws.even, draws.even, draws.whole, draws.eighths))
    return Affine(scale, w.vec(shift))


def _round_affine(w: Window) -> tuple[Round, Affine]:
    return (Round(), _unit_affine(w))


def _round_clip_affine(w: Window) -> tuple[Round, Clip, Affine]:
    if w.chance(5):
        return (Round(), Clip(-(2.0**127), 0.0), Affine(1.0, -(2.0**127)))
    return (Round(), w.clip(draws.whole), _unit_affine(w))


def carrier(w: Window) -> Step:
    """Draw a step that lets something pass, most of the time."""
    algs: tuple[BinaryAlg, ...] = ("add", "sub", "mul", "div", "max", "gt")
    makers: tuple[Callable[[], Step], ...] = (
        w.clip,
        *[lambda: Eltwise("relu", w.pick((0.25, 0.5, 2.0, -1.0)))] * 4,
        lambda: PRelu(w.vec(w.pick((draws.powers, draws.signed_powers)))),
        lambda: Eltwise(w.pick(("abs", "square", "sqrt", "tanh"))),
        lambda: Eltwise("pow", w.pick((0.5, -2.0, 2.0**100)), 2.0),
        lambda: Sum(w.pick((0.5, 1.0, 2.0**100)), w.pick((0, 3))),
        *[Round] * 3,
        *[lambda: Binary(w.pick(algs), Leaf("res"))] * 2,
        lambda: Binary("gt", 0.5),
    )
    return w.make(makers)


def _anchor(w: Window) -> Affine | Acc:
    if w.chance(50):
        return w.affine(draws.signed_powers)
    if w.chance(20):
        return acc(w)
    return Acc(
        scale=w.vec(draws.powers),
        takes_scale=Takes.PER_CHANNEL,
        takes_shift=w.pick((Takes.PER_CHANNEL, Takes.PER_CHANNEL, Takes.PER_TENSOR)),
    )


def _carried(w: Window) -> tuple[Affine | Acc, tuple[Step, ...], Affine]:
    run = tuple(carrier(w) for _ in range(w.pick((1, 1, 1, 2))))
    if any(isinstance(step, Round) for step in run):
        return (w.affine(draws.signed_powers), run, _unit_affine(w))
    if w.chance(10):
        run = (w.pick((Eltwise("abs"), Eltwise("square"))), w.pick((Sum(0.5), w.clip())))
        return (w.affine(draws.powers), run, Affine(w.vec(st.sampled_from((-4.0, -0.25)))))
    # Squares of powers of two, so that the roots a square asks for are exact.
    roots = st.sampled_from((0.25, 1.0, 4.0, 16.0, -4.0, -0.25))
    if w.chance(8):
        return (Affine(w.vec(draws.extremes)), run, Affine(w.vec(draws.extremes)))
    square = any(isinstance(step, Eltwise) and step.alg == "square" for step in run)
    shift = w.vec(draws.eighths) if w.chance(35) else Vec(0.0)
    # A shift is carried alone as shift / scale: a third of an eighth is no float64.
    scales = draws.scales if shift.is_all(0.0) else draws.signed_powers
    last = Affine(w.vec(roots if square or w.chance(60) else scales), shift)
    return (_anchor(w), run, last)


TABLE_REASONS = (
    "passes no shift",
    "passes neither a scale nor a shift",
    "is not above 0",
    "passes one sign",
    "is not a number below 0",
    "sum has one scale",
    "pow has one alpha",
    "known only when the chain runs",
    "pass a round",
    "ties would go the other way",
    "below float32",
    "takes no scale",
    "takes no shift",
)

CASES: tuple[Case, ...] = (
    Case(clip.drop_open_clip, _clip),
    Case(clip.make_constant_of_clip, _narrow_clip, ("below float32",)),
    Case(clip.merge_clips, _two_clips, ("fewer per-channel bounds",)),
    Case(clip.merge_clips_over_affine, _clip_affine_clip, ("would overflow", "cost more")),
    Case(
        clip.move_clip_behind_rounded_affine,
        _clip_affine_round,
        ("become per channel", "would overflow"),
    ),
    Case(round_rules.drop_second_round, lambda _: (Round(), Round())),
    Case(round_rules.move_clip_behind_round, _near_tie, ("rounds differently",)),
    Case(round_rules.move_clip_near_tie_behind_round, _near_tie),
    Case(
        round_rules.move_shift_before_round,
        _round_affine,
        ("shift is odd", "only whole numbers"),
    ),
    Case(
        round_rules.move_shift_before_clipped_round,
        _round_clip_affine,
        ("shift is odd", "only whole numbers", "become per channel", "would overflow"),
    ),
    Case(
        carry.carry_affine_left,
        _carried,
        ("would not save", "would leave a sign behind", "run-time", "beyond float32"),
        TABLE_REASONS,
    ),
)
