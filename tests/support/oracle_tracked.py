"""A float64 value together with a bound on what float32 arithmetic may do to it.

Kernels compute in float32, in an order that the documentation leaves open. Every step here
carries the exact value and an absolute error bound that holds for every order: zero wherever
all float32 intermediates are representable (a clean fill), and the sum of the possible
rounding errors elsewhere. No step invents a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    F64 = NDArray[np.float64]
    Bools = NDArray[np.bool_]

UNIT = 2.0**-24  # half an ulp, relative to the value: one correctly rounded float32 operation
SUBNORMAL = 2.0**-150  # half of the smallest float32


@dataclass(frozen=True, slots=True)
class Tracked:
    """An exact value and a bound on a kernel's distance from it, element by element."""

    value: F64
    error: F64

    @classmethod
    def exact(cls, value: ArrayLike) -> Tracked:
        """Wrap a value that a kernel holds exactly."""
        array = np.asarray(value, dtype=np.float64)
        return cls(array, np.zeros_like(array))


def is_float32(value: F64) -> Bools:
    """Tell where a float64 value is also a float32 value."""
    with np.errstate(over="ignore"):
        return np.equal(value.astype(np.float32).astype(np.float64), value)


def rounded(value: F64, error: F64) -> Tracked:
    """Add what one correctly rounded float32 operation does to its result."""
    exact = (error == 0) & is_float32(value)
    step = np.where(exact, 0.0, UNIT * (np.abs(value) + error) + SUBNORMAL)
    return Tracked(value, error + step)


def add(a: Tracked, b: Tracked) -> Tracked:
    """Return a + b, rounded once."""
    return rounded(a.value + b.value, a.error + b.error)


def mul(a: Tracked, b: Tracked) -> Tracked:
    """Return a * b, rounded once."""
    with np.errstate(invalid="ignore"):  # an unknown (infinite) error times zero stays unknown
        error = np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error
    return rounded(a.value * b.value, error)


def divide(a: Tracked, b: F64) -> Tracked:
    """Return a / b for an exact divisor, rounded once (a true division)."""
    return rounded(a.value / b, a.error / np.abs(b))


def divide_or_reciprocal(a: Tracked, b: F64) -> Tracked:
    """Return a / b where a kernel may instead multiply by the float32 reciprocal of b."""
    reciprocal = rounded(1.0 / b, np.zeros_like(b))
    product = mul(a, reciprocal)
    quotient = divide(a, b)
    return Tracked(quotient.value, np.maximum(quotient.error, product.error))


def multiply_add(x: Tracked, factor: Tracked, shift: Tracked) -> Tracked:
    """Return x * factor + shift, whether the kernel fuses the two or rounds in between."""
    return add(mul(x, factor), shift)


def scaled(x: Tracked, first: F64 | None, second: F64 | None) -> Tracked:
    """Return x * first * second, in any order of the two multiplications."""
    if first is None:
        return x if second is None else mul(x, Tracked.exact(second))
    if second is None:
        return mul(x, Tracked.exact(first))
    one, two = Tracked.exact(first), Tracked.exact(second)
    orders = (mul(mul(x, one), two), mul(x, mul(one, two)), mul(mul(x, two), one))
    error = np.maximum(np.maximum(orders[0].error, orders[1].error), orders[2].error)
    return Tracked(orders[0].value, error)


def monotone(x: Tracked, lo: F64, value: F64, hi: F64) -> Tracked:
    """Carry an error through a monotone function: lo, value, hi are f(x - e), f(x), f(x + e)."""
    return Tracked(value, np.where(x.error == 0, 0.0, np.maximum(abs(hi - value), abs(value - lo))))


def lowest_bit(value: F64) -> F64:
    """Return the largest power of two that divides each value (0 for 0)."""
    mantissa, exponent = np.frexp(value)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    bits: F64 = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return bits


def grid(value: F64) -> float:
    """Return the coarsest power-of-two grid that holds every value (inf for no value)."""
    bits = lowest_bit(value)
    bits = bits[bits > 0]
    return float(bits.min()) if bits.size else float("inf")


def summed(value: F64, magnitude: F64, terms: int, step: float) -> Tracked:
    """Bound a float32 sum of products in any order.

    ``magnitude`` is the sum of the absolute terms and ``step`` a grid that holds every term:
    while magnitude / step stays within 24 bits every partial sum is exact.
    """
    with np.errstate(invalid="ignore"):
        exact = magnitude <= step * 2.0**24
    error = np.where(exact, 0.0, (terms + 2) * UNIT * magnitude + SUBNORMAL)
    return Tracked(value, error)
