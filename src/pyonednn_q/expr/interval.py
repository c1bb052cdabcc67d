"""Interval: what is known of a value at one place of a chain, and how a step changes it.

Bounds are per channel. They are computed in float64 with the constants of the chain; that folding
error (about 1e-16 of the bound) is the only thing between them and a proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec

_INF = math.inf
_OPEN_LO, _OPEN_HI = Vec(-_INF), Vec(_INF)


@dataclass(frozen=True, slots=True)
class Interval:
    """lo <= x <= hi in every channel.

    Parameters
    ----------
    lo, hi : Vec
        Bounds, for the tensor or for each channel; -inf and inf: open.
    integer : bool
        Whether x is always a whole number.

    Raises
    ------
    ArgumentError
        lo is above hi in some channel.
    """

    lo: Vec = _OPEN_LO
    hi: Vec = _OPEN_HI
    integer: bool = False

    def __post_init__(self) -> None:
        if self.lo.greatest > self.hi.least and (self.lo.values() > self.hi.values()).any():
            raise ArgumentError(
                "lo", f"lo {self.lo} with hi {self.hi}", "lo <= hi in every channel"
            )

    @property
    def is_anything(self) -> bool:
        """Whether no side of any channel is known."""
        return self.lo.greatest == -_INF and self.hi.least == _INF

    @property
    def is_constant(self) -> bool:
        """Whether every channel can hold one value only."""
        return self.lo == self.hi

    def __str__(self) -> str:
        return f"[{self.lo}, {self.hi}]" + (" whole" if self.integer else "")


ANYTHING = Interval()


def of_dtype(name: str | None) -> Interval:
    """Every value a data type can hold; anything for floats and for ``None``."""
    if name is None or not dtypes.is_integer(name):
        return ANYTHING
    return Interval(Vec(float(dtypes.qmin(name))), Vec(float(dtypes.qmax(name))), integer=True)


def after(step: Step, x: Interval) -> Interval:
    """Bound the value that leaves a step, given a bound of what enters it."""
    return _TRANSFER[type(step)](step, x)


def affine(scale: Vec, shift: Vec, x: Interval) -> Interval:
    """Bound scale*x + shift."""
    integer = x.integer and scale.is_integer and shift.is_integer
    if x.is_anything and not scale.least <= 0.0 <= scale.greatest:
        return Interval(integer=True) if integer else ANYTHING
    if scale.least >= 0.0:
        lo, hi = x.lo.scaled(scale), x.hi.scaled(scale)
    else:
        a, b = x.lo.scaled(scale), x.hi.scaled(scale)
        lo, hi = a.minimum(b), a.maximum(b)
    return Interval(lo + shift, hi + shift, integer)


def _affine(step: Affine, x: Interval) -> Interval:
    return affine(step.scale, step.shift, x)


def _clip(step: Clip, x: Interval) -> Interval:
    integer = x.integer and _whole_or_open(step.lo) and _whole_or_open(step.hi)
    return Interval(x.lo.clamp(step.lo, step.hi), x.hi.clamp(step.lo, step.hi), integer)


def _whole_or_open(bound: Vec) -> bool:
    return bound.rint() == bound


def _round(_: Round, x: Interval) -> Interval:
    return x if x.integer else Interval(x.lo.rint(), x.hi.rint(), integer=True)


def _bent(slope: Vec, x: Interval) -> Interval:
    """Bound the two-piece line x if x >= 0 else slope*x: its extremes lie at the ends and at 0."""
    integer = x.integer and slope.is_integer
    ends = [_bend(slope, x.lo), _bend(slope, x.hi)]
    if x.lo.least < 0.0 < x.hi.greatest:
        ends.append(Vec(0.0))
    lo = hi = ends[0]
    for end in ends[1:]:
        lo, hi = lo.minimum(end), hi.maximum(end)
    return Interval(lo, hi, integer)


def _bend(slope: Vec, end: Vec) -> Vec:
    if end.least >= 0.0:
        return end
    bent = end.scaled(slope)
    if end.greatest < 0.0:
        return bent
    channels = end.channels or bent.channels or 1
    return Vec(np.where(end.values() >= 0.0, end.spread(channels), bent.spread(channels)))


def _eltwise(step: Eltwise, x: Interval) -> Interval:
    if step.alg == "relu":
        return _bent(Vec(step.alpha), x)
    if step.alg in {"abs", "square"}:
        bent = _bent(Vec(-1.0), x)
        return (
            bent if step.alg == "abs" else Interval(bent.lo * bent.lo, bent.hi * bent.hi, x.integer)
        )
    if step.alg == "sqrt" and x.lo.least < 0.0:
        return ANYTHING
    alg = ALGS[step.alg]
    lo, hi = map(Vec, alg.image(step.alpha, step.beta))
    if step.alg != "log" and alg.rises(step.alpha, step.beta) and x.lo.is_finite and x.hi.is_finite:
        with np.errstate(all="ignore"):
            lo = lo.maximum(alg(x.lo.values(), step.alpha, step.beta))
            hi = hi.minimum(alg(x.hi.values(), step.alpha, step.beta))
    return Interval(lo, hi)


def _prelu(step: PRelu, x: Interval) -> Interval:
    return _bent(step.slope, x)


def _sum(step: Sum, x: Interval) -> Interval:
    before = of_dtype(step.dtype)
    return _added(x, affine(Vec(step.scale), Vec(-step.scale * step.zero_point), before))


def _added(x: Interval, y: Interval) -> Interval:
    lo, hi = x.lo + y.lo, x.hi + y.hi
    if not (x.is_constant and y.is_constant) and (lo == hi or not (hi - lo).least > 0.0):
        lo, hi = _apart(lo, hi, x, y)
    return Interval(lo, hi, x.integer and y.integer)


def _apart(lo: Vec, hi: Vec, x: Interval, y: Interval) -> tuple[Vec, Vec]:
    """Keep ends apart where a small number vanished beside a large one: it is no constant."""
    below, above = lo.values(), hi.values()
    varies = (x.lo.values() < x.hi.values()) | (y.lo.values() < y.hi.values())
    vanished = (below == above) & varies
    return (
        Vec(np.where(vanished, np.nextafter(below, -np.inf), below)),
        Vec(np.where(vanished, np.nextafter(above, np.inf), above)),
    )


def _binary(step: Binary, x: Interval) -> Interval:
    operand = step.operand
    if step.alg in {"ge", "gt", "le", "lt", "eq", "ne"}:
        return Interval(Vec(0.0), Vec(1.0), integer=True)
    y = of_dtype(operand.dtype) if isinstance(operand, Leaf) else _exactly(operand)
    rule = _BINARY.get(step.alg)
    return ANYTHING if rule is None else rule(x, y)


def _exactly(value: Vec) -> Interval:
    return Interval(value, value, value.is_integer)


_BINARY: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": _added,
    "sub": lambda x, y: _added(x, Interval(-y.hi, -y.lo, y.integer)),
    "max": lambda x, y: Interval(x.lo.maximum(y.lo), x.hi.maximum(y.hi), x.integer and y.integer),
    "min": lambda x, y: Interval(x.lo.minimum(y.lo), x.hi.minimum(y.hi), x.integer and y.integer),
}

_TRANSFER: dict[type[Step], Callable[[Any, Interval], Interval]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}
