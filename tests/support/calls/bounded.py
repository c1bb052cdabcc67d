"""A float64 value and how far float32 may be from it, however a chain was rewritten.

`support.oracle_tracked` bounds one order of operations. An operator computes some other order: a
composer folds scales and shifts of neighbouring steps, and moves them through the steps between.
What no such rewrite changes is the size of the terms that are added up. So a value here carries the
sum of the absolute values of its terms, and every affine step adds four roundings of a term of that
size: of the folded scale, of the folded shift, of the product and of the sum. A rewritten chain has
fewer affine steps than the one that was written, hence fewer roundings than are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from support import oracle_eltwise
from support.oracle_tracked import SUBNORMAL, UNIT, Tracked

if TYPE_CHECKING:
    from support.oracle_tracked import F64

ROUNDINGS = 4  # of one affine step
FLOAT32_MAX = float(np.finfo(np.float32).max)
# A shift that is as near to a whole number of levels as float64 folding leaves it may be snapped.
SNAPPED = 2.0**-40


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value, a bound on float32's distance from it, and the size of the terms that make it."""

    value: F64
    error: F64
    size: F64

    @classmethod
    def of(cls, value: F64, error: F64 | float = 0.0, size: F64 | None = None) -> Bounded:
        """Return a value whose terms are of its own size, or of the size given."""
        value = np.asarray(value, np.float64)
        return cls(
            value,
            np.broadcast_to(error, value.shape),
            np.abs(value) if size is None else np.broadcast_to(size, value.shape),
        )

    def affine(self, scale: F64, shift: F64, roundings: int = ROUNDINGS) -> Bounded:
        """Return scale · x + shift."""
        size = np.abs(scale) * self.size + np.abs(shift)
        error = np.abs(scale) * self.error + roundings * (UNIT * size + SUBNORMAL)
        return Bounded(scale * self.value + shift, _if_finite(error, size), size)

    def clip(self, lo: F64, hi: F64) -> Bounded:
        """Return min(max(x, lo), hi): beyond a bound for certain, only the bound is rounded."""
        value = np.clip(self.value, lo, hi)
        above, below = self.value - self.error > hi, self.value + self.error < lo
        bound = np.where(above, np.abs(hi), np.where(below, np.abs(lo), self.size))
        # A bound is folded with the scales and shifts around it, too.
        lengths = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (lo, hi)]
        near = np.maximum(*lengths)
        rounded = ROUNDINGS * UNIT * np.minimum(near, bound)
        error = np.where(above | below, 0.0, self.error) + rounded
        return Bounded(value, error, np.where(above | below, bound, self.size))

    def round(self, later: F64 | float = 0.0) -> Bounded:
        """Return the nearest whole number; shifts of size `later` may move before it.

        Where it was whole before, the round may be left out, and what follows be folded with the
        terms that made it: their size remains.
        """
        moved = np.where(np.asarray(later) > 0, ROUNDINGS * UNIT * (self.size + later), 0.0)
        room = self.error + moved + SNAPPED
        value = np.rint(self.value)
        lo, hi = np.rint(self.value - room), np.rint(self.value + room)
        size = np.where(value == self.value, np.maximum(self.size, np.abs(value)), np.abs(value))
        return Bounded.of(value, np.maximum(hi - value, value - lo), size)

    def slope_below(self, slope: F64) -> Bounded:
        """Return x where x >= 0, slope · x elsewhere."""
        steep = np.maximum(1.0, np.abs(slope))
        value = np.where(self.value >= 0, self.value, slope * self.value)
        above, below = self.value - self.error > 0, self.value + self.error < 0
        factor = np.where(above, 1.0, np.where(below, np.abs(slope), steep))
        size = factor * self.size
        error = factor * self.error + np.where(above, 0.0, ROUNDINGS * UNIT * size)
        return Bounded(value, error, size)

    def plus(self, other: F64, size: F64) -> Bounded:
        """Return x + other, where other is made of terms of that size."""
        size = self.size + size
        error = self.error + ROUNDINGS * (UNIT * size + SUBNORMAL)
        return Bounded(self.value + other, _if_finite(error, size), size)

    def times(self, other: F64) -> Bounded:
        """Return x · other, for an operand that comes with the call."""
        return self.affine(other, np.zeros(()))

    def greatest(self, other: F64) -> Bounded:
        """Return max(x, other)."""
        return self.clip(other, np.full_like(other, np.inf))

    def least(self, other: F64) -> Bounded:
        """Return min(x, other)."""
        return self.clip(np.full_like(other, -np.inf), other)

    def eltwise(self, alg: str, alpha: float, beta: float) -> Bounded:
        """Return alg(x), with the kernel's own error."""
        found = oracle_eltwise.apply(alg, Tracked(self.value, self.error), alpha, beta)
        size = np.abs(found.value)
        # One more rounding of what went in: a scale may have been carried over.
        return Bounded(found.value, found.error + ROUNDINGS * UNIT * size, size)

    def undecided(self, other: F64) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Tell where float32 may see x on the other side of `other`; NaN may be on either."""
        room = self.error + ROUNDINGS * UNIT * (self.size + np.abs(other))
        apart = np.abs(self.value - other)
        return np.asarray(np.isnan(apart) | (apart <= room))


def _if_finite(error: F64, size: F64) -> F64:
    """Know nothing where float32 itself leaves its range on the way."""
    return np.where(size > FLOAT32_MAX / 4, np.inf, error)
