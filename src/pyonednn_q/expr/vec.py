"""Vec: a float64 constant, one value for the whole tensor or one value per channel.

A chain has one channel axis, so a Vec knows how many channels it has and not where they lie.
Values are compared and hashed; equal channels collapse to one value, so "per tensor" is a fact
about the numbers and never about how they were written.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pyonednn_q.errors import ArgumentError, ShapeError

__all__ = ["Float64", "Vec", "VecLike"]

Float64: TypeAlias = NDArray[np.float64]
VecLike: TypeAlias = "Vec | float | Sequence[float] | NDArray[Any]"

_INF = math.inf
_set = object.__setattr__


class Vec:
    """A float64 constant, per tensor or along the channel axis.

    Parameters
    ----------
    value : float, sequence of float, 1-D ndarray or Vec
        One value, or one value per channel. Infinities are kept (a clip may be open), NaN is not.

    Attributes
    ----------
    array : ndarray or None
        The channels (read-only), or ``None`` when one value serves the whole tensor.
    least, greatest : float
        The smallest and the largest channel. Per tensor, both are the value.

    Examples
    --------
    >>> Vec([2.0, 2.0]) == Vec(2.0)
    True
    >>> Vec([1.0, 2.0]) * 3.0
    Vec([3, 6])
    """

    __slots__ = ("array", "greatest", "least")

    array: Float64 | None
    least: float
    greatest: float

    def __init__(self, value: VecLike) -> None:
        if isinstance(value, Vec):
            _set(self, "array", value.array)
            _set(self, "least", value.least)
            _set(self, "greatest", value.greatest)
        elif isinstance(value, bool) or not isinstance(value, (float, int)):
            _fill_channels(self, _as_channels(value))
        else:
            _fill(self, _as_float(value))

    @property
    def is_per_tensor(self) -> bool:
        """Whether one value serves every channel."""
        return self.array is None

    @property
    def channels(self) -> int | None:
        """How many channels, or ``None`` per tensor."""
        return None if self.array is None else len(self.array)

    @property
    def is_finite(self) -> bool:
        """Whether no channel is infinite."""
        return self.least > -_INF and self.greatest < _INF

    @property
    def is_integer(self) -> bool:
        """Whether every channel is a whole number."""
        if self.array is None:
            return self.least.is_integer()
        return self.is_finite and bool((np.rint(self.array) == self.array).all())

    @property
    def is_even(self) -> bool:
        """Whether every channel is an even whole number."""
        if self.array is None:
            return self.least % 2.0 == 0.0
        return self.is_finite and bool((self.array % 2.0 == 0.0).all())

    def is_all(self, value: float) -> bool:
        """Whether every channel is this value."""
        return self.array is None and self.least == value

    def spread(self, channels: int) -> Float64:
        """All channels as an array of this length."""
        if self.array is None:
            return np.full(channels, self.least)
        if len(self.array) != channels:
            raise ShapeError("channels", str(channels), f"{len(self.array)} as the constant has")
        return self.array

    def values(self) -> Float64:
        """Return an array of length 1 per tensor, else all channels."""
        return np.array([self.least]) if self.array is None else self.array

    def map(self, function: Callable[[Any], Any]) -> Vec:
        """Apply a NumPy function to every channel."""
        if self.array is None:
            return _scalar(float(function(self.least)))
        return _channels(function(self.array))

    def rint(self) -> Vec:
        """Nearest whole numbers, ties to even; infinities stay."""
        if self.array is None:
            value = self.least
            return _scalar(float(round(value)) if math.isfinite(value) else value)
        return _channels(np.rint(self.array))

    def narrow(self) -> Vec:
        """Round every channel to the nearest float32 value (beyond its range: infinite)."""
        if self.array is None:
            return _scalar(_narrow(self.least))
        with np.errstate(over="ignore", under="ignore"):
            return _channels(self.array.astype(np.float32).astype(np.float64))

    def first(self, condition: Callable[[Any], Any]) -> str:
        """Name the first channel that meets a condition, for a reason that a reader can act on."""
        if self.array is None:
            return number(self.least)
        index = int(np.argmax(condition(self.array)))
        return f"{number(float(self.array[index]))} in channel {index}"

    def __add__(self, other: VecLike) -> Vec:
        if type(other) is Vec and self.array is None and other.array is None:
            return _scalar(self.least + other.least)
        return _binary(operator.add, self, other)

    __radd__ = __add__

    def __mul__(self, other: VecLike) -> Vec:
        if type(other) is Vec and self.array is None and other.array is None:
            return _scalar(self.least * other.least)
        return _binary(operator.mul, self, other)

    __rmul__ = __mul__

    def __sub__(self, other: VecLike) -> Vec:
        if type(other) is Vec and self.array is None and other.array is None:
            return _scalar(self.least - other.least)
        return _binary(operator.sub, self, other)

    def __truediv__(self, other: VecLike) -> Vec:
        divisor = other if type(other) is Vec else Vec(other)
        if divisor.least <= 0.0 <= divisor.greatest and bool((divisor.values() == 0.0).any()):
            raise ArgumentError("divisor", str(divisor), "no zero in any channel")
        return _binary(operator.truediv, self, divisor)

    def __neg__(self) -> Vec:
        if self.array is None:
            return _scalar(-self.least)
        return _channels(-self.array)

    def __abs__(self) -> Vec:
        if self.least >= 0.0:
            return self
        return -self if self.greatest <= 0.0 else self.map(np.abs)

    def maximum(self, other: VecLike) -> Vec:
        """Return the larger value of each channel."""
        return _binary(_larger, self, other)

    def minimum(self, other: VecLike) -> Vec:
        """Return the smaller value of each channel."""
        return _binary(_smaller, self, other)

    def scaled(self, scale: Vec) -> Vec:
        """Scale the bound of a range: 0*x is 0 for every x, so 0 times an open bound is 0."""
        if self.is_finite or not scale.least <= 0.0 <= scale.greatest:
            return self * scale
        factor = scale.values()
        with np.errstate(invalid="ignore"):
            return _channels(np.where(factor == 0.0, 0.0, self.values() * factor))

    def clamp(self, lo: Vec, hi: Vec) -> Vec:
        """min(max(self, lo), hi) in every channel."""
        return self.maximum(lo).minimum(hi)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Vec:
            return NotImplemented
        if self is other:
            return True
        if self.least != other.least or self.greatest != other.greatest:
            return False
        if self.array is None or other.array is None:
            return self.array is other.array
        return self.array is other.array or np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        # Equal values give equal sums, -0.0 or 0.0 alike, so the sum may stand for the bytes.
        total = self.least if self.array is None else float(self.array.sum())
        return hash((self.channels, self.least, self.greatest, total))

    def __setattr__(self, name: str, value: object) -> None:
        msg = f"Vec is frozen: {name} cannot be set"
        raise AttributeError(msg)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[type[Vec], tuple[Float64 | float]]:
        return (Vec, (self.least if self.array is None else self.array,))

    def __copy__(self) -> Vec:
        return self

    def __deepcopy__(self, memo: object) -> Vec:
        return self

    def __repr__(self) -> str:
        return f"Vec({self})"

    def __str__(self) -> str:
        if self.array is None:
            return number(self.least)
        if len(self.array) <= 4:
            return "[" + ", ".join(number(float(v)) for v in self.array) + "]"
        first, second, last = (number(float(self.array[i])) for i in (0, 1, -1))
        return f"[{first}, {second}, ..., {last}; {len(self.array)} channels]"


def number(value: float) -> str:
    """Print a float as short as it round-trips, without a trailing ``.0``."""
    text = repr(value + 0.0)
    return text.removesuffix(".0")


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ArgumentError(
            "value", f"an integer of {len(str(value))} digits", "a float64"
        ) from None


def _as_channels(value: bool | Sequence[float] | NDArray[Any]) -> Float64:
    try:
        raw = np.asarray(value)
    except ValueError as problem:
        raise ArgumentError("value", type(value).__name__, "numbers in one row") from problem
    if raw.dtype.kind not in "fiu":
        raise ArgumentError("value", f"{type(value).__name__} of {raw.dtype}", "real numbers")
    if raw.ndim > 1 or raw.size == 0:
        raise ShapeError("value", f"shape {raw.shape}", "one value, or one value per channel (1-D)")
    # A copy, always: the caller keeps the right to write into what it passed.
    return np.array(raw, dtype=np.float64).reshape(-1)


def _fill(vec: Vec, value: float) -> None:
    if value != value:  # noqa: PLR0124 - the cheapest NaN test
        raise ArgumentError("value", "NaN", "a number")
    _set(vec, "array", None)
    _set(vec, "least", value)
    _set(vec, "greatest", value)


def _fill_channels(vec: Vec, array: Float64) -> None:
    # Two reductions tell everything a constructor must know: NaN, equal channels, finiteness.
    least, greatest = float(np.minimum.reduce(array)), float(np.maximum.reduce(array))
    if least == greatest:
        _fill(vec, least)
        return
    if least != least:  # noqa: PLR0124 - a NaN anywhere makes the reduction NaN
        index = int(np.argmax(np.isnan(array)))
        raise ArgumentError("value", f"NaN in channel {index}", "numbers")
    array.flags.writeable = False
    _set(vec, "array", array)
    _set(vec, "least", least)
    _set(vec, "greatest", greatest)


def _scalar(value: float) -> Vec:
    vec = Vec.__new__(Vec)
    _fill(vec, value)
    return vec


def _channels(array: Float64) -> Vec:
    vec = Vec.__new__(Vec)
    _fill_channels(vec, array)
    return vec


def _binary(function: Callable[[Any, Any], Any], left: Vec, right: VecLike) -> Vec:
    other = right if type(right) is Vec else Vec(right)
    a, b = left.array, other.array
    if a is None and b is None:
        return _scalar(function(left.least, other.least))
    if a is not None and b is not None and len(a) != len(b):
        raise ShapeError("channels", str(len(b)), f"{len(a)} as the other operand has")
    return _channels(function(left.least if a is None else a, other.least if b is None else b))


def _larger(a: Float64 | float, b: Float64 | float) -> Float64 | float:
    return max(a, b) if isinstance(a, float) and isinstance(b, float) else np.maximum(a, b)


def _smaller(a: Float64 | float, b: Float64 | float) -> Float64 | float:
    return min(a, b) if isinstance(a, float) and isinstance(b, float) else np.minimum(a, b)


def _narrow(value: float) -> float:
    # struct rounds to nearest as a C cast does, several times faster than a NumPy scalar.
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
