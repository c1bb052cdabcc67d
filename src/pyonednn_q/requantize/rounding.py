"""Ten ways to round, of quotients by powers of two and of real numbers; exact, in integers.

The names are those of TPU-MLIR's enumeration. Its own shift implements seven of them: half to odd,
half towards zero and away from zero shift without rounding there. Here all ten do what they say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.requantize.value import ROUNDINGS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["ROUNDINGS", "round_real", "shift_round"]


def shift_round(values: ArrayLike, shift: ArrayLike, rounding: str) -> Array:
    """Return values / 2^shift, rounded; a negative shift multiplies.

    Parameters
    ----------
    values : array_like of int
        Integers of at most 64 bits, of any shape.
    shift : array_like of int
        Number of bits to divide by, which broadcasts against `values`; more than 63 counts as 63.
    rounding : str
        Rounding, one of `ROUNDINGS`.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    ArgumentError
        No such rounding, or a left shift that leaves 64 bits.
    DTypeError
        Not integers.
    """
    one_of("rounding", rounding, ROUNDINGS)
    v, shifts = _integers("values", values), _integers("shift", shift)
    by = np.clip(shifts, -64, 63)  # by 64 places to the left only 0 stays what it is
    left = np.maximum(-by, 0)
    if (((v << left) >> left) != v).any():
        raise ArgumentError("shift", str(shifts.min()), "one that keeps all values within 64 bits")
    v, by = np.broadcast_arrays(v << left, np.maximum(by, 0))
    # Sizes are unsigned: -2^63 has one. What is left over is in units of 2^-by, less than one.
    size, by = np.abs(v).astype(np.uint64), by.astype(np.uint64)
    whole = size >> by
    rest = size - (whole << by)
    half = np.where(by > 0, np.uint64(1) << (np.maximum(by, 1) - np.uint64(1)), np.uint64(0))
    above, tie = rest > half, (rest == half) & (by > 0)
    away = _goes_away(rounding, above, tie, rest != 0, whole % 2 == 1, v < 0)
    rounded = (whole + away).astype(np.int64)
    return np.asarray(np.where(v < 0, -rounded, rounded))


def round_real(values: ArrayLike, rounding: str) -> Array:
    """Return real numbers rounded to integers, in float64, without a wrong step at 0.49999.

    Parameters
    ----------
    values : array_like of float
        float32 or float64, of any shape; infinities stay infinite.
    rounding : str
        Rounding, one of `ROUNDINGS`.
    """
    one_of("rounding", rounding, ROUNDINGS)
    x = np.asarray(values, np.float64)
    size = np.abs(x)
    whole = np.floor(size)
    with np.errstate(invalid="ignore"):  # inf - inf: no part of an infinity is left over
        rest, odd = size - whole, whole % 2 == 1
    away = _goes_away(rounding, rest > 0.5, rest == 0.5, rest > 0, odd, x < 0)
    return np.asarray(np.copysign(whole + away, x))


def _goes_away(
    rounding: str, above: Array, tie: Array, inexact: Array, odd: Array, negative: Array
) -> Array:
    """Whether a size goes to the next integer: above its half, at it, or at all; then the sign."""
    rules = {
        "half_away_from_zero": above | tie,
        "half_up": above | (tie & ~negative),
        "half_down": above | (tie & negative),
        "half_to_even": above | (tie & odd),
        "half_to_odd": above | (tie & ~odd),
        "half_towards_zero": above,
        "towards_zero": np.zeros_like(inexact),
        "away_from_zero": inexact,
        "up": inexact & ~negative,
        "down": inexact & negative,
    }
    return rules[rounding]


def _integers(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise DTypeError(name, str(array.dtype), "integers of up to 64 bits, signed")
    return array.astype(np.int64)
