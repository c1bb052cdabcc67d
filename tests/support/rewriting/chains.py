"""Random chains between random ends: up to eight steps, dyadic, or without shifts and extreme."""

from __future__ import annotations

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
from support.rewriting import draws
from support.rewriting.draws import Window, windows

MOST_STEPS = 8
BINARIES: tuple[BinaryAlg, ...] = ("add", "sub", "mul", "max", "min", "gt")


def _step(w: Window, scales: draws.Values, shifts: draws.Values) -> Step:
    """Draw a step; affine steps, clips and rounds come most often."""
    name = w.pick(
        ("affine", "affine", "affine", "clip", "clip", "round", "round", "relu", "leaky", "prelu",
         "abs", "sum", "leaf", "binary", "barrier", "quantize", "identity")
    )  # fmt: skip
    if name == "affine":
        return Affine(w.vec(scales), w.vec(shifts) if w.chance(60) else 0.0)
    if name == "binary":
        return Binary(w.pick(BINARIES), w.vec(draws.signed_powers))
    if name == "sum":
        return Sum(w.pick((0.5, 1.0, -2.0)), w.pick((0, 3)), w.pick((None, "s8")))
    makers: dict[str, Step] = {
        "clip": w.clip(),
        "round": Round(),
        "relu": Eltwise("relu"),
        "leaky": Eltwise("relu", w.pick((0.25, 0.5, -1.0))),
        "prelu": PRelu(w.vec(draws.signed_powers)),
        "abs": Eltwise("abs"),
        "leaf": Binary(w.pick(("add", "mul", "max")), Leaf("res")),
        "barrier": Eltwise(w.pick(("tanh", "logistic", "elu")), 0.0),
        "quantize": Clip(w.pick((0.0, -128.0)), w.pick((127.0, 255.0))),
        "identity": Affine(),
    }
    return makers[name]


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
    steps = [_step(w, scales, shifts) for _ in range(w.pick(range(1, MOST_STEPS + 1)))]
    dst = Dst(w.pick(("u8", "s8", "f32", None)), zero_point=0)
    return (_acc(w), *steps, dst)


chains = windows(_items)
