"""The quantized operators as oneDNN's primitives compute them, in rational arithmetic.

Each float32 operation of the kernels is spelt out; `x` is a code less its zero point.
"""

from __future__ import annotations

from fractions import Fraction

from pyonednn_q.qparams import QParams
from support.definitions.operators import LIMITS, scale
from support.definitions.requantization import bounded, f32, f64

Value = int | Fraction


def ratio(of: Value, to: Value) -> Fraction:
    """A ratio of scales, divided in float64."""
    return f32(f64(Fraction(of) / Fraction(to)))


def code(value: Fraction, q: QParams) -> int:
    """The nearest code, ties to even."""
    return bounded(round(value), LIMITS[q.dtype])


def stored(value: Value, by: Value, q: QParams) -> int:
    """The code of a float32 value in units of `by`: one multiplication and addition, fused."""
    return code(f32(value * ratio(by, scale(q)) + int(q.zero_point)), q)


def leaky_relu(x: int, slope: Value, src_q: QParams, q: QParams) -> int:
    return stored(x if x > 0 else f32(Fraction(x * slope)), scale(src_q), q)


def power(x: int, p: int, factor: Fraction, shift: Fraction, src_q: QParams, q: QParams) -> int:
    base = f32(x * f32(scale(src_q) * factor) + shift)
    return stored(f32(base * base) if p == 2 else base, 1, q)


def add(a: int, b: int, a_q: QParams, b_q: QParams, q: QParams) -> int:
    """Of codes as they are: all zero points are one constant."""
    left, right = ratio(scale(a_q), scale(q)), ratio(scale(b_q), scale(q))
    first = f64(int(q.zero_point) - left * int(a_q.zero_point))
    constant = f32(f64(first - right * int(b_q.zero_point)))
    return code(f32(f32(f32(a * left) + f32(b * right)) + constant), q)


def rescaled(value: Fraction, src_q: QParams, q: QParams) -> int:
    """A float32 value in units of a code of src, its zero point included."""
    if (scale(src_q), src_q.zero_point) == (scale(q), q.zero_point):
        return code(value, q)
    r = ratio(scale(src_q), scale(q))
    return code(f32(value * r + f32(f64(int(q.zero_point) - r * int(src_q.zero_point)))), q)


def mean(window: list[int], outside: int, count: int, src_q: QParams, q: QParams) -> int:
    """Of codes, where padding holds the zero point."""
    total = sum(window) + outside * int(src_q.zero_point)
    return rescaled(f32(total * f32(Fraction(1, count))), src_q, q)


def joined(x: int, src_q: QParams, q: QParams) -> int:
    product = f32(x * ratio(scale(src_q), scale(q)))
    return code(f32(product + int(q.zero_point)), q)


def places(length: int, wanted: int) -> list[tuple[int, int, Fraction]]:
    """The two neighbours of every place between the centres of pixels, the second one's share."""
    found = []
    for place in range(wanted):
        product = f32((place + Fraction(1, 2)) * length)
        at = f32(f32(product / wanted) - Fraction(1, 2))
        low, high = max(at.__floor__(), 0), min(at.__ceil__(), length - 1)
        found.append((low, high, abs(at - low)))
    return found


def mixed(low: Value, high: Value, share: Fraction) -> Fraction:
    return f32(high * share + f32(low * f32(1 - share)))
