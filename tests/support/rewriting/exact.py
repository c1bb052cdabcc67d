"""The meaning of items in exact rational arithmetic, for one channel at a time.

Shares nothing with `expr.evaluate` but the transcendental functions, which are taken as they are:
float64 in, float64 out. ``None`` is "not a number": undefined, or beyond float32 in a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, isinf, isqrt
from typing import Any, TypeAlias

import numpy as np

from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Item

Number: TypeAlias = Fraction | None
Function: TypeAlias = Callable[[Fraction, "World"], Number]
RANGES = {"u8": (0, 255), "s8": (-128, 127), "s32": (-(2**31), 2**31 - 1)}


@dataclass(frozen=True)
class World:
    """What a chain reads beside its input."""

    dst_before: Fraction = Fraction(0)
    leaves: Mapping[str, Fraction] = field(default_factory=dict)


def at(vec: Vec, channel: int) -> float:
    """One channel of a constant."""
    return vec.least if vec.array is None else float(vec.array[channel])


def channels_of(items: Sequence[Item]) -> int:
    """How many channels must be looked at to have seen all."""
    return max((item.channels or 1 for item in items if not isinstance(item, Dst)), default=1)


def meaning(items: Sequence[Item], channel: int) -> Callable[[Fraction, World], Number]:
    """Turn items into one function; with a Dst at the end, into what is stored."""
    functions = [_FUNCTIONS[type(item)](item, channel) for item in items]

    def run(x: Fraction, world: World) -> Number:
        value: Number = x
        for function in functions:
            if value is None:
                return None
            value = function(value, world)
        return value

    return run


def _clamp(lo: float, hi: float) -> Callable[[Fraction], Fraction]:
    # Bounds may be infinite, which Fraction is not.
    low = None if isinf(lo) else Fraction(lo)
    high = None if isinf(hi) else Fraction(hi)

    def clamp(x: Fraction) -> Fraction:
        if low is not None and x < low:
            x = low
        return high if high is not None and x > high else x

    return clamp


def _linear(scale: float, shift: float) -> Function:
    a, b = Fraction(scale), Fraction(shift)
    if not b:
        # Sums and products of fractions are what most of a property's time goes into.
        return (lambda x, _: x) if a == 1 else (lambda x, _: a * x)
    return lambda x, _: a * x + b


def _affine(step: Affine, c: int) -> Function:
    return _linear(at(step.scale, c), at(step.shift, c))


def _clip(step: Clip, c: int) -> Function:
    clamp = _clamp(at(step.lo, c), at(step.hi, c))
    return lambda x, _: clamp(x)


def _round(_: Round, __: int) -> Function:
    return lambda x, _world: Fraction(round(x))


def _bent(slope: float) -> Function:
    a = Fraction(slope)
    return lambda x, _: x if x >= 0 else a * x


def _root(x: Fraction) -> Number:
    if x < 0:
        return None
    up, down = isqrt(x.numerator), isqrt(x.denominator)
    # Only squares of rationals have an exact root; others are no test points.
    return Fraction(up, down) if up * up == x.numerator and down * down == x.denominator else None


def _eltwise(step: Eltwise, _: int) -> Function:
    unit = _clamp(0.0, 1.0)
    if step.alg.startswith("clip"):
        clamp = _clamp(step.alpha, step.beta)
        return lambda x, _: clamp(x)
    alpha, beta = Fraction(step.alpha), Fraction(step.beta)
    exact: dict[str, Function] = {
        "relu": _bent(step.alpha),
        "abs": lambda x, _: abs(x),
        "square": lambda x, _: x * x,
        "sqrt": lambda x, _: _root(x),
        "linear": lambda x, _: alpha * x + beta,
        "round": lambda x, _: Fraction(round(x)),
        "hardsigmoid": lambda x, _: unit(alpha * x + beta),
        "hardswish": lambda x, _: x * unit(alpha * x + beta),
    }
    if step.alg in exact:
        return exact[step.alg]
    if step.alg == "pow" and beta.denominator == 1 and beta >= 0:
        return lambda x, _: alpha * x ** int(beta)

    def approximate(x: Fraction, _: World) -> Number:
        with np.errstate(all="ignore"):
            y = float(ALGS[step.alg](np.float64(x), step.alpha, step.beta))
        return Fraction(y) if abs(y) < 2.0**128 else None

    return approximate


def _prelu(step: PRelu, c: int) -> Function:
    return _bent(at(step.slope, c))


def _sum(step: Sum, _: int) -> Function:
    scale, zero_point = Fraction(step.scale), step.zero_point
    return lambda x, world: x + scale * (world.dst_before - zero_point)


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: None if y == 0 else x / y,
    "max": max,
    "min": min,
    "ge": lambda x, y: Fraction(x >= y),
    "gt": lambda x, y: Fraction(x > y),
    "le": lambda x, y: Fraction(x <= y),
    "lt": lambda x, y: Fraction(x < y),
    "eq": lambda x, y: Fraction(x == y),
    "ne": lambda x, y: Fraction(x != y),
}


def _binary(step: Binary, c: int) -> Function:
    operate, operand = _OPERATIONS[step.alg], step.operand
    if isinstance(operand, Leaf):
        name = operand.name
        return lambda x, world: operate(x, world.leaves[name])
    value = Fraction(at(operand, c))
    return lambda x, _: operate(x, value)


def _acc(acc: Acc, c: int) -> Function:
    return _linear(at(acc.scale, c), at(acc.shift, c))


def _dst(dst: Dst, _: int) -> Function:
    if dst.dtype not in RANGES:
        return lambda x, _world: x
    lo, hi = RANGES[dst.dtype]
    scale, zero_point = Fraction(dst.scale), dst.zero_point
    return lambda x, _world: Fraction(min(max(round(x / scale + zero_point), lo), hi))


_FUNCTIONS: dict[type[Item], Callable[[Any, int], Function]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
    Acc: _acc,
    Dst: _dst,
}


def telling_points(
    items: Sequence[Item], channel: int, *, neighbours: bool = True
) -> set[Fraction]:
    """Find inputs at which items may bend, tie or saturate; and what lies around them."""
    points: set[Fraction] = set()
    for item in reversed(items):
        if isinstance(item, (Affine, Acc)):
            scale, shift = (Fraction(at(v, channel)) for v in (item.scale, item.shift))
            points = {(p - shift) / scale for p in points} if scale else set()
        points |= _own_points(item, channel)
    if not neighbours:
        return points
    around = {p + d for p in points for d in (Fraction(-1, 8), Fraction(1, 8))}
    return points | around | {Fraction(n, 4) for n in range(-24, 25, 6)}


def _own_points(item: Item, channel: int) -> set[Fraction]:
    if isinstance(item, Clip):
        bounds = (at(item.lo, channel), at(item.hi, channel))
        return {Fraction(b) for b in bounds if b not in {-inf, inf}}
    if isinstance(item, Round):
        return {Fraction(n, 2) for n in range(-7, 9)}
    if isinstance(item, Dst) and item.dtype in RANGES:
        ends = [Fraction(v) + Fraction(n, 2) for v in RANGES[item.dtype] for n in (-2, -1, 0, 1, 2)]
        ties = [Fraction(n, 2) for n in range(-5, 6)]
        return {(v - item.zero_point) * Fraction(item.scale) for v in ends + ties}
    if isinstance(item, Eltwise) and item.alg in {"exp", "log", "sqrt", "square", "pow"}:
        return {Fraction(v) for v in (-100, -1, 0, 1, 4, 9, 100)} | {Fraction(9, 4)}
    return {Fraction(0), Fraction(1), Fraction(-1)}
