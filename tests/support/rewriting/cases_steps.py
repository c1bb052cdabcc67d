"""Cases of the rules that simplify one step: activation, binary, residual, affine, snapping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

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
from pyonednn_q.rewrite.ends import Acc, Dst, Takes
from pyonednn_q.rewrite.rules import affine, canonical
from support.rewriting import draws
from support.rewriting.case import Case
from support.rewriting.draws import Window
from support.rewriting.soundness import Near

_NOISE = Fraction(1, 2**40)


def _eltwise(*likely: tuple[str, float, float]) -> Callable[[Window], tuple[Eltwise]]:
    others = (
        ("relu", 0.0, 0.0), ("relu", 1.0, 0.0), ("relu", 0.25, 0.0), ("relu", -1.0, 0.0),
        ("clip", -1.0, 2.0), ("clip_v2", 0.5, 0.5), ("linear", 2.0, 0.5), ("round", 0.0, 0.0),
        ("pow", 2.0, 1.0), ("pow", 2.0, 2.0), ("abs", 0.0, 0.0), ("hardsigmoid", 0.25, 0.5),
    )  # fmt: skip

    def build(w: Window) -> tuple[Eltwise]:
        return (Eltwise(*w.pick(likely if w.chance(40) else others)),)

    return build


def _prelu(w: Window) -> tuple[PRelu]:
    return (PRelu(w.vec(draws.signed_powers)),)


def _hardsigmoid(w: Window) -> tuple[Affine | Acc, Eltwise]:
    alg = w.pick(("hardsigmoid", "hardsigmoid", "hardsigmoid", "linear"))
    if w.chance(20):
        return (Affine(w.vec(draws.extremes)), Eltwise(alg, w.pick((2.0**120, 2.0**-100)), 0.0))
    before: Acc | Affine = w.affine()
    if w.chance(50):
        before = replace(acc(w), takes_scale=Takes.PER_CHANNEL) if w.chance(60) else acc(w)
    return (before, Eltwise(alg, w.pick((0.25, 0.5, -2.0)), w.pick((0.5, 0.0))))


def _binary(w: Window) -> tuple[Binary]:
    algs: tuple[BinaryAlg, ...] = ("add", "sub", "mul", "max", "min", "div", "gt")
    alg = w.pick(algs)
    if w.chance(20):
        return (Binary(alg, Leaf("res")),)
    return (Binary(alg, w.vec(draws.signed_powers)),)


def _division(w: Window) -> tuple[Binary]:
    algs: tuple[BinaryAlg, ...] = ("div", "div", "div", "mul")
    alg = w.pick(algs)
    if w.chance(20):
        return (Binary(alg, Leaf("res")),)
    tiny = st.sampled_from((2.0**-130, 2.0, 0.5, 2.0**127))
    return (Binary(alg, w.vec(tiny if w.chance(40) else draws.signed_powers)),)


def _sum(w: Window) -> tuple[Sum]:
    return (Sum(w.pick((0.0, 0.5, 1.0)), w.pick((0, 3)), w.pick((None, "s8"))),)


def _identity(w: Window) -> tuple[Affine]:
    near_one = st.sampled_from((1.0, 1.0, 1.0, -1.0, 1.25))
    return (Affine(w.vec(near_one), w.vec(st.sampled_from((0.0, 0.0, 0.0, 0.25)))),)


def _two_affines(w: Window) -> tuple[Affine, Affine]:
    if w.chance(30):
        return (Affine(w.vec(draws.extremes)), Affine(w.vec(draws.extremes)))
    if w.chance(20):
        scale = w.vec(draws.powers, per_channel=True)
        return (Affine(1.0, w.vec(draws.eighths, per_channel=False)), Affine(scale))
    return (w.affine(), w.affine())


def acc(w: Window) -> Acc:
    """Draw an accumulator that takes something, or nothing with or without a reason."""
    takes = (Takes.NOTHING, Takes.PER_TENSOR, Takes.PER_CHANNEL, Takes.PER_CHANNEL)
    return Acc(
        scale=w.vec(draws.powers),
        shift=w.vec(draws.eighths) if w.chance(50) else Vec(0.0),
        takes_scale=w.pick(takes),
        takes_shift=w.pick(takes),
        because=w.pick(("", "the bias is a run-time argument")),
    )


def _acc_affine(w: Window) -> tuple[Acc, Affine]:
    if w.chance(20):
        everything = Takes.PER_CHANNEL
        taker = Acc(scale=w.vec(draws.extremes), takes_scale=everything, takes_shift=everything)
        return (taker, Affine(w.vec(draws.extremes)))
    return (acc(w), w.affine())


def _any_step(w: Window) -> Step:
    makers: tuple[Callable[[], Step], ...] = (
        w.affine,
        w.clip,
        Round,
        lambda: Eltwise("relu", 0.25),
        *[lambda: Eltwise(w.pick(("exp", "log", "sqrt", "tanh")))] * 3,
        lambda: Eltwise("pow", 1.0, 0.5),
        lambda: Sum(0.5, 1),
        *[lambda: Binary(w.pick(_FACTORS), Leaf("res"))] * 2,
        lambda: PRelu(w.vec(draws.powers)),
    )
    return w.make(makers)


_FACTORS: tuple[BinaryAlg, ...] = ("mul", "div")


def _before_constant(w: Window) -> tuple[Step, Affine]:
    scale = w.vec(st.just(0.0)) if w.chance(80) else w.vec(st.sampled_from((0.0, 1.0)))
    return (_any_step(w), Affine(scale, w.vec(draws.eighths)))


def _constant_folded(w: Window) -> tuple[Affine, Step]:
    makers: tuple[Callable[[], Step], ...] = (
        w.clip,
        Round,
        lambda: Eltwise("relu", 0.5),
        lambda: PRelu(w.vec(draws.powers)),
        *[lambda: Eltwise(w.pick(("square", "exp", "log")))] * 3,
        lambda: Binary("gt", 0.5),
        lambda: Binary("add", Leaf("res")),
    )
    scale = w.vec(st.just(0.0)) if w.chance(85) else w.vec(draws.scales)
    shift = st.sampled_from((2.0**70, 0.0, 1.5)) if w.chance(30) else draws.eighths
    return (Affine(scale, w.vec(shift)), w.make(makers))


def _splittable(w: Window) -> tuple[Affine]:
    with_zero = st.sampled_from((0.0, 1.0, 2.0))
    scale = w.vec(with_zero if w.chance(20) else draws.signed_powers, per_channel=w.chance(90))
    shift = scale * w.pick((-128.0, 3.5, -0.25))
    if w.chance(20):
        shift = shift + w.vec(st.sampled_from((0.0, 0.0, 0.25, 2.0**-30)), per_channel=True)
    if w.chance(15):
        scale = w.vec(st.sampled_from((0.25, 0.125)), per_channel=True)
        shift = scale * 2.0**129
    if w.chance(20):
        shift = shift * (1.0 + 2.0**-45)
    return (Affine(scale, shift),)


_noise = st.sampled_from((0.0, 2.0**-45, -(2.0**-42), 2.0**-50))
_more = st.sampled_from((0.0, 2.0**-38, 2.0**-45, 0.25))


def _near_one(w: Window) -> tuple[Affine]:
    off = _noise if w.chance(70) else _more
    return (Affine(Vec(w.pick((1.0, 1.0, 2.0))) + w.vec(off), w.vec(draws.eighths)),)


def _near_whole(w: Window) -> Vec:
    return w.vec(draws.whole) + w.vec(_noise if w.chance(70) else _more)


def _shift_before(w: Window) -> tuple[Affine | Acc, Round | Dst]:
    ends: tuple[Round | Dst, ...] = (
        Round(), Round(), Dst("u8"), Dst("s8"), Dst("f32"), Dst("u8", scale=2.0)
    )  # fmt: skip
    scale, shift = w.vec(draws.powers), _near_whole(w)
    first = Acc(scale=scale, shift=shift) if w.chance(30) else Affine(scale, shift)
    return (first, w.pick(ends))


def _shift_after(w: Window) -> tuple[Round, Affine]:
    scale = w.vec(st.sampled_from((1.0, 1.0, 1.0, -1.0, 0.5)), per_channel=w.chance(20))
    return (Round(), Affine(scale, _near_whole(w)))


def _shift_after_clip(w: Window) -> tuple[Round, Clip, Affine]:
    rnd, step = _shift_after(w)
    return (rnd, w.clip(), step)


def _nearly_equal(w: Window) -> tuple[Affine]:
    off = st.sampled_from((1.0, 1.0 + 2.0**-44, 1.0 - 2.0**-50))
    if w.chance(30):
        off = st.sampled_from((1.0, 1.0 + 2.0**-36, 1.0 + 2.0**-20))
    # One part only: with both per tensor, a fused multiply-add would take the place of two steps.
    if w.chance(50):
        return (Affine(1.0, w.vec(off, per_channel=True) * w.pick((3.0, -0.5))),)
    return (Affine(w.vec(off, per_channel=True) * w.pick((1.0, 0.75, 0.1, 1.0 + 2.0**-24))),)


CASES = (
    Case(canonical.make_clip_of_relu, _eltwise(("relu", 0.0, 0.0))),
    Case(canonical.drop_relu_with_slope_one, _eltwise(("relu", 1.0, 0.0), ("relu", 1.5, 0.0))),
    Case(canonical.make_clip_of_eltwise, _eltwise(("clip", -2.0, 2.0), ("clip_v2", 0.0, 6.0))),
    Case(canonical.make_affine_of_linear, _eltwise(("linear", -0.5, 3.0))),
    Case(canonical.make_round_of_eltwise, _eltwise(("round", 0.0, 0.0))),
    Case(canonical.make_affine_of_pow, _eltwise(("pow", 3.0, 1.0), ("pow", 3.0, 2.0))),
    Case(canonical.make_relu_of_prelu, _prelu),
    Case(
        canonical.make_clip_of_hardsigmoid,
        _hardsigmoid,
        (
            "beyond float32",
            "below float32",
            "takes no scale",
            "takes no shift",
            "run-time",
            "would cost more",
        ),
    ),
    Case(canonical.make_affine_of_binary, _binary),
    Case(canonical.make_clip_of_binary, _binary),
    Case(canonical.make_affine_of_division, _division, ("beyond float32", "below float32")),
    Case(canonical.drop_sum_of_nothing, _sum),
    Case(affine.drop_identity_affine, _identity),
    Case(
        affine.compose_affines,
        _two_affines,
        ("beyond float32", "below float32", "fewer per-channel constants"),
    ),
    Case(
        affine.absorb_affine_in_acc,
        _acc_affine,
        ("takes no scale", "takes no shift", "run-time", "beyond float32", "below float32"),
    ),
    Case(
        affine.drop_before_constant,
        _before_constant,
        ("finite everywhere", "may be 0"),
    ),
    Case(affine.fold_constant, _constant_folded, ("is not finite", "beyond float32")),
    Case(
        affine.split_per_channel_shift,
        _splittable,
        ("nothing to divide", "not one number", "beyond float32"),
        near=Near(distance=128 * _NOISE),
    ),
    Case(
        affine.snap_scale_to_one,
        _near_one,
        near=Near(distance=8 * _NOISE),
        same_float32=True,
    ),
    Case(affine.snap_shift_before_round, _shift_before, near=Near(1, _NOISE)),
    Case(affine.snap_shift_after_round, _shift_after, near=Near(distance=_NOISE)),
    Case(affine.snap_shift_after_clipped_round, _shift_after_clip, near=Near(distance=_NOISE)),
    Case(
        affine.collapse_equal_channels,
        _nearly_equal,
        near=Near(distance=8 * _NOISE),
        same_float32=True,
    ),
)
