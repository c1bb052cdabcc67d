"""Random chains between random ends: up to eight steps, dyadic, or without shifts and extreme."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from hypothesis import strategies as st

from pyonednn_q.expr.interval import ANYTHING, Interval
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
from pyonednn_q.rewrite.ends import Acc, Dst, Item, Takes
from pyonednn_q.rewrite.rule import Trace
from support.rewriting import draws
from support.rewriting.draws import Window, windows
from support.rewriting.soundness import Claim, Near, check_claims

MOST_STEPS = 8
BINARIES: tuple[BinaryAlg, ...] = ("mul", "max", "min", "gt")
LEAF_ALGS: tuple[BinaryAlg, ...] = ("add", "mul", "max")


def _step(w: Window, scales: draws.Values, shifts: draws.Values, reading: str | None) -> Step:
    """Draw a step; affine steps, clips and rounds come most often. Sums read dst in one way."""
    makers: tuple[Callable[[], Step], ...] = (
        *[lambda: Affine(w.vec(scales), w.vec(shifts) if w.chance(60) else 0.0)] * 3,
        *[w.clip] * 2,
        *[Round] * 2,
        lambda: Eltwise("relu", w.pick((0.0, 0.25, 0.5, -1.0))),
        lambda: PRelu(w.vec(draws.signed_powers)),
        lambda: Eltwise(w.pick(("abs", "tanh", "logistic"))),
        lambda: Sum(w.pick((0.5, 1.0, -2.0)), w.pick((0, 3)), reading),
        lambda: Binary(w.pick(LEAF_ALGS), Leaf("res")),
        lambda: Binary(w.pick(BINARIES), w.vec(scales)),
        lambda: Clip(w.pick((0.0, -128.0)), w.pick((127.0, 255.0))),
        Affine,
    )
    return w.make(makers)


def _acc(w: Window) -> Acc:
    if w.chance(40):
        return Acc()
    takes = (Takes.NOTHING, Takes.PER_TENSOR, Takes.PER_CHANNEL, Takes.PER_CHANNEL)
    lo = w.vec(st.sampled_from((-40.0, -8.0, 0.0, 3.0)))
    known = Interval(lo, lo + w.vec(st.sampled_from((0.0, 5.0, 60.0))), integer=w.chance(50))
    return Acc(
        known if w.chance(70) else ANYTHING,
        w.vec(draws.powers),
        w.vec(draws.eighths) if w.chance(50) else Vec(0.0),
        takes_scale=w.pick(takes),
        takes_shift=w.pick(takes),
    )


def _items(w: Window) -> tuple[Item, ...]:
    scales, shifts = draws.signed_powers, draws.eighths
    if w.chance(20):
        # Folds of a shift with a scale of 2**100 are not exact in float64, so these have none.
        scales, shifts = draws.extremes, st.just(0.0)
    elif w.chance(20):
        shifts = draws.even
    reading = w.pick((None, "s8"))
    steps = [_step(w, scales, shifts, reading) for _ in range(w.pick(range(1, MOST_STEPS + 1)))]
    dst = Dst(w.pick(("u8", "s8", "f32", None)), zero_point=0)
    return (_acc(w), *steps, dst)


chains = windows(_items)


def keep_promises(
    old: tuple[Item, ...], rewrites: Iterable[tuple[tuple[Item, ...], Trace]]
) -> None:
    """Raise Unsound where a rewritten chain means something else than its trace admits.

    Equal claims are checked once: policies often come to the same.
    """
    smooth = any(isinstance(i, Eltwise) and i.alg in {"tanh", "logistic"} for i in old)
    # What follows a transcendental is not dyadic, so its folds round; a tie is still a tie.
    near = Near(distance=Fraction(1, 2**40)) if smooth else Near()
    claims: list[Claim] = []
    for new, trace in rewrites:
        claim = Claim(new, trace.exactness, near)
        # With a note: snapped or approximated, by rules whose own properties bound it.
        if new != old and claim not in claims and not any(event.note for event in trace.fired):
            claims.append(claim)
    check_claims(old, claims)


def count_post_ops(items: tuple[Item, ...]) -> int:
    """Count what a lowering step by step would append: per-channel constants one by one."""
    return sum(_count(item) for item in items)


def _count(item: Item) -> int:
    if isinstance(item, (Acc, Dst)):
        return 0
    if isinstance(item, Affine):
        parts = (not item.scale.is_all(1.0)) + (not item.shift.is_all(0.0))
        return min(parts, 1) if item.channels is None else parts
    if isinstance(item, Clip) and item.channels is not None:
        return (item.lo.greatest > -draws.INF) + (item.hi.least < draws.INF)
    return 1
