"""FakeQuantize in rational arithmetic: exactly, and in float32 with every rounding written out.

float32 is a function here, applied where an operation rounds. Nothing computes in floating point,
so nothing is shared with what is tested, not even NumPy's arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Order: TypeAlias = Callable[[Fraction, Fraction, Fraction, Fraction, Fraction, int], Fraction]


def f32(value: Fraction) -> Fraction:
    """Round to the nearest float32, ties to even; subnormal below 2**-126."""
    if value == 0:
        return value
    # The binary exponent of a fraction is that of its numerator over its denominator, or one less.
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, -126) - 23)
    return round(value / step) * step


def exact_level(x: Fraction, low: Fraction, high: Fraction, n: int) -> int:
    """Return the level that the definition gives a value, without any rounding but its own."""
    if x <= min(low, high):
        return 0
    return n if x > max(low, high) else round((x - low) / (high - low) * n)


def exact(x: Fraction, il: Fraction, ih: Fraction, ol: Fraction, oh: Fraction, n: int) -> Fraction:
    """Return the definition's result in real arithmetic."""
    return Fraction(exact_level(x, il, ih, n), n) * (oh - ol) + ol


def core(x: Fraction, il: Fraction, ih: Fraction, ol: Fraction, oh: Fraction, n: int) -> Fraction:
    """Divide by the range, then times n; divide by n, then times the range, then the offset."""
    if x <= min(il, ih):
        return ol
    if x > max(il, ih):
        return oh
    level = round(f32(f32(f32(x - il) / f32(ih - il)) * n))
    return f32(f32(f32(Fraction(level, n)) * f32(oh - ol)) + ol)


def fma(x: Fraction, il: Fraction, ih: Fraction, ol: Fraction, oh: Fraction, n: int) -> Fraction:
    """Clamp, one fused multiply-add into levels, one out of them."""
    scale, shift = f32(n / f32(ih - il)), f32(f32(-il * n) / f32(ih - il))
    level = round(f32(min(max(x, il), ih) * scale + shift))
    return f32(level * f32(f32(oh - ol) / n) + ol)


def subgraph(
    x: Fraction, il: Fraction, ih: Fraction, ol: Fraction, oh: Fraction, n: int
) -> Fraction:
    """Clamp, a product less a product into levels, one fused multiply-add out of them."""
    scale = f32(n / f32(ih - il))
    level = round(f32(f32(min(max(x, il), ih) * scale) - f32(il * scale)))
    return f32(level * f32(f32(oh - ol) / n) + ol)


ORDERS: dict[str, Order] = {"core": core, "fma": fma, "subgraph": subgraph}


def apply(function: Order, x: ArrayLike, ranges: tuple[ArrayLike, ...], levels: int) -> Any:
    """Apply to arrays of float32, ranges broadcast to x; return float32."""
    arrays = np.broadcast_arrays(*(np.asarray(value, np.float32) for value in (x, *ranges)))
    rows = zip(*(array.reshape(-1).tolist() for array in arrays), strict=True)
    flat = []
    for row in rows:
        value, il, ih, ol, oh = map(Fraction, row)
        flat.append(float(function(value, il, ih, ol, oh, levels - 1)))
    return np.array(flat, np.float32).reshape(arrays[0].shape)


def beside_ties(
    low: ArrayLike, high: ArrayLike, levels: int, shape: tuple[int, ...], seed: int
) -> NDArray[np.float32]:
    """Draw float32 values: half of them at or one step beside the middle of two levels.

    The others are spread over the range and a bit beyond it, its ends among them.
    """
    rng = np.random.default_rng(seed)
    il, ih = (np.broadcast_to(np.asarray(v, np.float64), shape) for v in (low, high))
    middle = il + (rng.integers(0, levels - 1, shape) + 0.5) * ((ih - il) / (levels - 1))
    tie = middle.astype(np.float32)
    beside = np.nextafter(tie, rng.choice([-np.inf, np.inf], shape).astype(np.float32))
    spread = (il + rng.uniform(-0.2, 1.2, shape) * (ih - il)).astype(np.float32)
    ends = np.where(rng.random(shape) < 0.5, il, ih).astype(np.float32)
    which = rng.integers(0, 8, shape)
    return np.select([which < 2, which < 4, which < 5], [tie, beside, ends], spread)
