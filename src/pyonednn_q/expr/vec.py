"""Vec: a float64 constant, one value for the whole tensor or one value per channel.

A chain has one channel axis, so a Vec knows how many channels it has and not where they lie.
Values are compared and hashed; equal channels collapse to one value, so "per tensor" is a fact
about the numbers and never about how they were written.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import argument
from pyonednn_q.argument import numbers, real, whole
from pyonednn_q.errors import ArgumentError, ShapeError

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

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument, what came and what would do.

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
        if type(value) is float:
            _fill(self, value)
        elif isinstance(value, Vec):
            _set(self, "array", value.array)
            _set(self, "least", value.least)
            _set(self, "greatest", value.greatest)
        elif isinstance(value, bool) or not isinstance(value, (float, int)):
            raw = numbers("value", value)
            if raw.ndim > 1 or raw.size == 0:
                wanted = "one value, or one value per channel (1-D)"
                raise ShapeError("value", f"shape {raw.shape}", wanted)
            # A copy, always: the caller keeps the right to write into what it passed.
            _fill_channels(self, np.array(raw, dtype=np.float64).reshape(-1))
        else:
            _fill(self, real("value", value, infinite=True, wide=True))

    @property
    def is_per_tensor(self) -> bool:
        """Whether one value serves every channel."""
        return self.array is None

    @property
    def channels(self) -> int | None:
        """Number of channels, or ``None`` per tensor."""
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
        channels = whole("channels", channels, lo=0)
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
        argument.function("function", function)
        if self.array is None:
            return Vec(float(argument.applied("function", function, self.least)))
        return _channels(argument.applied("function", function, self.array))

    def rint(self) -> Vec:
        """Nearest whole numbers, ties to even; infinities stay."""
        if self.array is None:
            return Vec(nearest_whole(self.least))
        return _channels(
            np.rint(self.array), nearest_whole(self.least), nearest_whole(self.greatest)
        )

    def narrow(self) -> Vec:
        """Round every channel to the nearest float32 value (beyond its range: infinite)."""
        if self.array is None:
            return Vec(nearest_float32(self.least))
        with np.errstate(over="ignore", under="ignore"):
            array = self.array.astype(np.float32).astype(np.float64)
        return _channels(array, nearest_float32(self.least), nearest_float32(self.greatest))

    def first(self, condition: Callable[[Any], Any]) -> str:
        """Name the first channel that meets a condition, for a reason that a reader can act on."""
        argument.function("condition", condition)
        if self.array is None:
            return number(self.least)
        index = int(np.argmax(argument.applied("condition", condition, self.array)))
        return f"{number(float(self.array[index]))} in channel {index}"

    def __add__(self, other: VecLike) -> Vec:
        right = constant("other", other)
        if self.array is not None and right.array is not None:
            return _channels(np.add(*_paired(self.array, right.array)))
        many, one = (right, self.least) if self.array is None else (self, right.least)
        if one == 0.0:
            return many
        if many.array is None:
            return Vec(many.least + one)
        return _channels(many.array + one, many.least + one, many.greatest + one)

    __radd__ = __add__

    def __sub__(self, other: VecLike) -> Vec:
        return self + -constant("other", other)

    def __mul__(self, other: VecLike) -> Vec:
        right = constant("other", other)
        if self.array is not None and right.array is not None:
            return _channels(np.multiply(*_paired(self.array, right.array)))
        many, one = (right, self.least) if self.array is None else (self, right.least)
        if one == 1.0:
            return many
        if many.array is None:
            return Vec(many.least * one)
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite says so
            product = many.array * one
        ends = (many.least * one, many.greatest * one) if abs(one) < _INF else ()
        return _channels(product, *(ends if one > 0.0 else reversed(ends)))

    __rmul__ = __mul__

    def __truediv__(self, other: VecLike) -> Vec:
        divisor = constant("divisor", other)
        if divisor.least <= 0.0 <= divisor.greatest and bool((divisor.values() == 0.0).any()):
            raise ArgumentError("divisor", str(divisor), "no zero in any channel")
        by = divisor.least
        if divisor.array is not None:
            if self.array is None:
                return _channels(self.least / divisor.array)
            return _channels(np.divide(*_paired(self.array, divisor.array)))
        if self.array is None:
            return Vec(self.least / by)
        ends = (self.least / by, self.greatest / by)
        return _channels(self.array / by, *(ends if by > 0.0 else reversed(ends)))

    def __neg__(self) -> Vec:
        if self.array is None:
            return Vec(-self.least)
        return _channels(-self.array, -self.greatest, -self.least)

    def __abs__(self) -> Vec:
        if self.least >= 0.0:
            return self
        return -self if self.greatest <= 0.0 else self.map(np.abs)

    def maximum(self, other: VecLike) -> Vec:
        """Return the larger value of each channel."""
        right = constant("other", other)
        if self.array is not None and right.array is not None:
            return _channels(np.maximum(*_paired(self.array, right.array)))
        if self.least >= right.greatest:
            return self
        if self.greatest <= right.least:
            return right
        ends = max(self.least, right.least), max(self.greatest, right.greatest)
        return _channels(np.maximum(_row(self), _row(right)), *ends)

    def minimum(self, other: VecLike) -> Vec:
        """Return the smaller value of each channel."""
        right = constant("other", other)
        if self.array is not None and right.array is not None:
            return _channels(np.minimum(*_paired(self.array, right.array)))
        if self.greatest <= right.least:
            return self
        if self.least >= right.greatest:
            return right
        ends = min(self.least, right.least), min(self.greatest, right.greatest)
        return _channels(np.minimum(_row(self), _row(right)), *ends)

    def scaled(self, scale: Vec) -> Vec:
        """Scale the bound of a range: 0*x is 0 for every x, so 0 times an open bound is 0."""
        scale = constant("scale", scale)
        if scale.least > 0.0 and (self.greatest == -_INF or self.least == _INF):
            return self
        if self.is_finite or not scale.least <= 0.0 <= scale.greatest:
            return self * scale
        ends, factor = self.values(), scale.values()
        if self.array is not None and scale.array is not None:
            ends, factor = _paired(ends, factor)
        with np.errstate(invalid="ignore"):
            return _channels(np.where(factor == 0.0, 0.0, ends * factor))

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


def constant(name: str, value: VecLike) -> Vec:
    """Return a Vec of what an argument is, and refuse by the argument's name.

    Raises
    ------
    ArgumentError, ShapeError
        The value is no constant.
    """
    if type(value) is Vec:
        return value
    try:
        return Vec(value)
    except ArgumentError as error:
        raise type(error)(name, error.got, error.wanted) from None


def number(value: float) -> str:
    """Print a float as short as it round-trips, without a trailing ``.0``."""
    text = repr(value + 0.0)
    return text.removesuffix(".0")


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


def _channels(array: Float64, least: float = math.nan, greatest: float = math.nan) -> Vec:
    """Make a Vec, perhaps with ends that went through a monotone function as the others did."""
    vec = Vec.__new__(Vec)
    if not least < greatest:
        _fill_channels(vec, array)  # the ends are not known, or all channels are equal
        return vec
    array.flags.writeable = False
    _set(vec, "array", array)
    _set(vec, "least", least)
    _set(vec, "greatest", greatest)
    return vec


def _row(vec: Vec) -> Float64 | float:
    return vec.least if vec.array is None else vec.array


def _paired(left: Float64, right: Float64) -> tuple[Float64, Float64]:
    if len(left) != len(right):
        raise ShapeError("channels", str(len(right)), f"{len(left)} as the other operand has")
    return left, right


def nearest_whole(value: float) -> float:
    """Round to the nearest whole number, ties to even; infinities stay."""
    return float(round(value)) if math.isfinite(value) else value


def nearest_float32(value: float) -> float:
    """Round to the nearest float32 value; beyond its range that is infinite."""
    # struct rounds to nearest as a C cast does, several times faster than a NumPy scalar.
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
