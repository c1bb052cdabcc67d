"""Cases of the rules that know something: intervals, stores; and of those that approximate."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import Affine, Clip, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Dst, Item
from pyonednn_q.rewrite.rules import clip, round_rules
from support.rewriting import draws
from support.rewriting.case import Case
from support.rewriting.draws import INF, Window
from support.rewriting.soundness import Near


def _interval(w: Window, values: draws.Values = draws.quarters) -> Interval:
    known = w.clip(values)
    return Interval(known.lo, known.hi, integer=False)


def _whole_interval(w: Window) -> Interval:
    known = w.clip(draws.whole)
    return Interval(known.lo, known.hi, integer=w.chance(50))


def _implied(w: Window) -> tuple[Interval, Clip]:
    x = Interval() if w.chance(10) else _interval(w)
    if w.chance(60):
        lo = w.pick((x.lo, x.lo - 1.0, x.lo + 0.25)) if x.lo.is_finite else Vec(-INF)
        hi = w.pick((x.hi, x.hi + 1.0)) if x.hi.is_finite else Vec(INF)
        return (x, Clip(lo, hi.maximum(lo)))
    return (x, w.clip())


def _rounded(w: Window) -> tuple[Interval, Round]:
    return (_whole_interval(w), Round())


def _sided(w: Window) -> Interval:
    size, room = w.vec(draws.powers), w.vec(draws.powers)
    if w.chance(30):
        return _interval(w)
    floor = Vec(w.pick((0.0, 0.0, -0.25)))
    up = Interval(floor, floor + size + room)
    return up if w.chance(50) else Interval(-up.hi, -up.lo)


def _bent(w: Window) -> Eltwise | PRelu:
    bent: tuple[Eltwise | PRelu, ...] = (
        Eltwise("relu", 0.5),
        Eltwise("abs"),
        Eltwise("square"),
        Eltwise("relu", -1.0),
        PRelu(w.vec(draws.signed_powers)),
    )
    return w.pick(bent)


def _relu_of_sided(w: Window) -> tuple[Interval, Eltwise | PRelu]:
    return (_sided(w), _bent(w))


def _constant(w: Window) -> tuple[Interval, Step]:
    x = _interval(w, draws.eighths)
    if w.chance(60):
        point = w.vec(draws.eighths)
        x = Interval(point, point + w.vec(st.sampled_from((0.0, 0.0, 0.0, 0.0, 1.0))))
    if w.chance(10):
        return (Interval(Vec(2.0**70), Vec(2.0**70)), Eltwise("square"))
    outside = x.hi if x.hi.is_finite else Vec(0.0)
    steps: tuple[Step, ...] = (
        w.clip(),
        Clip(outside, outside + 1.0),
        Clip(lo=outside),
        Round(),
        _bent(w),
        Sum(0.5, 1, w.pick((None, "s8"))),
    )
    return (x, w.pick(steps))


_dtypes = ("u8", "s8", "s32", "f32", None)


def _dst(w: Window) -> Dst:
    if w.chance(40):
        return Dst(w.pick(("u8", "s8")), scale=w.pick((1.0, 0.5)), zero_point=w.pick((0, 2, 3)))
    return Dst(w.pick(_dtypes))


def _stored_clip(w: Window) -> Clip:
    near = st.sampled_from((-130.0, -128.0, -127.5, -127.0, -1.0, 0.0, 0.5, 0.75, 1.0))
    far = st.sampled_from((126.0, 126.5, 127.0, 254.5, 255.0, 300.0, 2.0**31, 254.25))
    if w.chance(30):
        near = near.map(lambda v: v / 2)
    lo = w.vec(near) if w.chance(80) else Vec(-INF)
    return Clip(lo, w.vec(far) if w.chance(80) else INF)


def _clip_store(w: Window) -> tuple[Clip, Dst]:
    return (_stored_clip(w), _dst(w))


def _round_store(w: Window) -> tuple[Round, Dst]:
    return (Round(), _dst(w))


def _round_clip_store(w: Window) -> tuple[Round, Clip, Dst]:
    bounds = w.clip(draws.whole) if w.chance(70) else w.clip(draws.quarters)
    if w.chance(10):
        bounds = Clip(-1.0, 2.0**24 + 1.0)
    return (Round(), bounds, _dst(w))


_tiny = st.sampled_from((0.0, 3e-5, -4e-5, 5e-6))


def _spread(w: Window) -> tuple[Affine, Round]:
    off = w.vec(_tiny, per_channel=w.chance(95))
    if w.chance(20):
        off = off * 8.0
    return (Affine(w.vec(draws.powers), off + w.pick((128.0, 0.0, 0.25))), Round())


def _spread_store(w: Window) -> tuple[Affine, Dst]:
    affine, _ = _spread(w)
    dtype = w.pick(("u8", "s8", "s32") if w.chance(80) else _dtypes)
    return (affine, Dst(dtype, zero_point=w.pick((0, 2, 3))))


def _spread_clip_store(w: Window) -> tuple[Affine, Clip, Dst]:
    affine, dst = _spread_store(w)
    return (affine, _stored_clip(w), dst)


def _negligible(w: Window) -> tuple[Affine, Round, Clip]:
    shift = w.vec(st.sampled_from((0.0, 1e-5, -3e-5, 2e-3, 0.5, 3e-3)))
    clip = w.pick((Clip(0, 255), Clip(0, 4), Clip(0, 65535), w.clip(draws.whole), Clip(lo=0)))
    return (Affine(w.vec(draws.powers), shift), Round(), clip)


def _odd(w: Window) -> Affine:
    scale = w.vec(st.sampled_from((1.0, 1.0, 1.0, -1.0, 0.5)), per_channel=w.chance(30))
    shift = w.pick((draws.odd, draws.odd, draws.whole, draws.eighths))
    return Affine(scale, w.vec(shift, per_channel=w.chance(30)))


def _odd_after(w: Window) -> tuple[Round, Affine]:
    return (Round(), _odd(w))


def _odd_after_clip(w: Window) -> tuple[Round, Clip, Affine]:
    if w.chance(8):
        return (Round(), Clip(-(2.0**127), 0.0), Affine(1.0, [-1.0, -(2.0**127)]))
    return (Round(), w.clip(draws.whole), _odd(w))


def _residual(w: Window) -> tuple[Round, tuple[Item, ...], Round]:
    parts: list[Item] = [Sum(0.5, 1)] if w.chance(85) else []
    for _ in range(w.pick((1, 2))):
        scale = w.vec(st.sampled_from((0.25, 0.5, 1.0, -0.5, 2.0, 3.0)))
        gentle = (
            Affine(scale, w.vec(draws.eighths)),
            Affine(scale),
            w.clip(),
            Eltwise("relu", 0.5),
        )
        other = (Eltwise("square"), PRelu(w.vec(draws.powers)), Eltwise("relu", -1.5))
        parts.insert(w.pick((0, len(parts))), w.pick(gentle if w.chance(85) else other))
    return (Round(), tuple(parts), Round())


_SPREAD = Fraction(5, 100_000)
_NEGLIGIBLE = Fraction(255, 100_000)

CASES = (
    Case(clip.open_implied_bounds, _implied),
    Case(clip.drop_round_of_whole, _rounded),
    Case(clip.drop_relu_of_positive, _relu_of_sided),
    Case(clip.make_affine_of_negative_relu, _relu_of_sided),
    Case(clip.make_constant_of_step, _constant, ("beyond float32", "would cost more")),
    Case(clip.drop_round_before_store, _round_store, ("a scale or a zero point",)),
    Case(clip.drop_round_before_clipped_store, _round_clip_store, ("a scale or a zero point",)),
    Case(clip.open_saturated_bounds, _clip_store, ("narrower than",)),
    Case(round_rules.level_shift, _spread, ("from their middle",), near=Near(1, _SPREAD)),
    Case(
        round_rules.level_shift_before_store,
        _spread_store,
        ("from their middle",),
        near=Near(1, _SPREAD),
    ),
    Case(
        round_rules.level_shift_before_clipped_store,
        _spread_clip_store,
        ("from their middle",),
        near=Near(1, _SPREAD),
    ),
    Case(round_rules.drop_negligible_shift, _negligible, near=Near(1, _NEGLIGIBLE)),
    Case(round_rules.move_odd_shift_before_round, _odd_after, near=Near(1)),
    Case(
        round_rules.move_odd_shift_before_clipped_round,
        _odd_after_clip,
        ("become per channel", "would overflow"),
        near=Near(1),
    ),
    Case(
        round_rules.drop_round_before_residual,
        _residual,
        ("is not known", "could move by"),
        near=Near(1, Fraction(1, 2)),
    ),
)
