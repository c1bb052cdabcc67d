"""Requantizers as values: how s32 accumulators become 8-bit integers outside oneDNN.

Per channel c, with x = acc + bias[c] in 32 bits, y = saturate(f(x) + zero_point[c]) where f is

    two_step          (x·2^max(s,0) · m / 2^31, rounded half up) / 2^max(-s,0), rounded
    shift             x · m · 2^s, rounded
    float             f32(x) · m, rounded
    double            f32(f32(x) · m in f64, rounded)
    two_round_single  f32(f32(x) · m in f32, rounded) · 2^s, rounded
    two_round_double  f32(f32(x) · m in f64, rounded) · 2^s, rounded
    exact             x · m · 2^s / last, rounded, without any other rounding

and for oneDNN's own order, where bias and zero point are added in f32 before the only rounding

    onednn            (f32(acc) · m · then + bias) · last + zero_point
    onednn_divide     (f32(acc) · m · then + bias) / last + zero_point

m, s, then and last stand for the parameters below; `rounding` says how "rounded" is meant. Which
framework uses which constants is said in `requantize`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import integers, numbers, one_of, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import along

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ROUNDINGS = (
    "half_away_from_zero",
    "half_up",
    "half_down",
    "half_to_even",
    "half_to_odd",
    "half_towards_zero",
    "towards_zero",
    "away_from_zero",
    "up",
    "down",
)


class ArithmeticKind(NamedTuple):
    """Constants that a kind of arithmetic takes."""

    multiplier: str  # dtype of m
    roundings: tuple[str, ...]
    shift: tuple[int, int] = (0, 0)
    bias: str = "int32"
    limit: float = np.inf  # of |m|


EVEN, AWAY = "half_to_even", "half_away_from_zero"
KINDS = {
    "two_step": ArithmeticKind("int32", ROUNDINGS, (-31, 31)),
    "shift": ArithmeticKind("int32", ROUNDINGS, (-62, 31)),
    "float": ArithmeticKind("float32", (EVEN,)),
    "double": ArithmeticKind("float64", (EVEN,)),
    "two_round_single": ArithmeticKind("float32", (AWAY,), (-62, 0), limit=1.0),
    "two_round_double": ArithmeticKind("float64", (AWAY,), (-62, 0), limit=1.0),
    "onednn": ArithmeticKind("float32", (EVEN,), bias="float32"),
    "onednn_divide": ArithmeticKind("float32", (EVEN,), bias="float32"),
    "exact": ArithmeticKind("int64", (EVEN, AWAY), (-300, 300), limit=2.0**48),
}
DTYPES = ("u8", "s8", "s32")
_VECTORS = ("multiplier", "shift", "then", "last", "bias", "zero_point")
I32_LO, I32_HI = -(2**31), 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Requantizer:
    """The arithmetic that makes integers of `dtype` from s32 accumulators.

    A value: compared by content, hashable, its arrays are copies that cannot be written.

    Parameters
    ----------
    kind : str
        One of `KINDS`: see the head of this module.
    multiplier : array_like
        The factor m of the kind: one value, or of shape (C,), one per channel.
    shift : array_like of int
        The exponent s of a power of two, one value or of shape (C,); positive shifts left.
    then, last : array_like of float
        The second and the third factor, one value or of shape (C,), for kinds whose formula has
        them.
    bias : array_like, optional
        One value, or of shape (C,). Integers are added to the accumulators; real numbers are for
        ``onednn`` and ``onednn_divide``, which add them after the scales.
    zero_point : array_like of int
        The code of the destination that stands for real 0: one value, or of shape (C,).
    dtype : str
        Data type of the result: "u8", "s8" or "s32".
    lo, hi : int, optional
        Least and greatest code of the result, where they are narrower than those of `dtype`: a
        fused activation, or 12 bits kept in s32.
    rounding : str
        One of `ROUNDINGS` that the kind knows.
    axis : int, optional
        The dimension of the accumulators that channels run along; None: one value for all.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the parameter.
    """

    kind: str
    multiplier: Array
    shift: Array
    then: Array
    last: Array
    bias: Array | None
    zero_point: Array
    dtype: str
    lo: int
    hi: int
    rounding: str
    axis: int | None
    _key: tuple[Any, ...] = field(repr=False)  # made once: every call looks its loops up by value

    # Written by hand: it takes more types than the fields have.
    def __init__(
        self,
        kind: str,
        multiplier: ArrayLike,
        shift: ArrayLike = 0,
        *,
        then: ArrayLike = 1.0,
        last: ArrayLike = 1.0,
        bias: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
        dtype: str = "s8",
        lo: int | None = None,
        hi: int | None = None,
        rounding: str = "half_to_even",
        axis: int | None = None,
    ) -> None:
        one_of("kind", kind, tuple(KINDS))
        wanted = KINDS[kind]
        one_of("rounding", rounding, wanted.roundings)
        dtype = dtypes.checked(dtype, "dtype", DTYPES)
        lo_of, hi_of = dtypes.qmin(dtype), dtypes.qmax(dtype)
        lo = whole("lo", lo_of if lo is None else lo, lo_of, hi_of)
        hi = whole("hi", hi_of if hi is None else hi, lo, hi_of)
        vectors: dict[str, Array | None] = {
            "multiplier": _vector(
                "multiplier", multiplier, wanted.multiplier, -wanted.limit, wanted.limit
            ),
            "shift": _vector("shift", shift, "int32", *wanted.shift),
            "then": _vector("then", then, "float32"),
            "last": _vector("last", last, "float32"),
            "bias": None if bias is None else _vector("bias", bias, wanted.bias),
            # Bounds less the zero point must fit in 32 bits too.
            "zero_point": _vector(
                "zero_point", zero_point, "int32", max(lo_of, hi - I32_HI), min(hi_of, lo - I32_LO)
            ),
        }
        if kind == "shift":
            _check_product(vectors)
        axis = None if axis is None else whole("axis", axis)
        channels = _channels(vectors, axis)
        for name, vector in vectors.items():
            object.__setattr__(self, name, None if vector is None else _frozen(vector, channels))
        plain = (("kind", kind), ("dtype", dtype), ("lo", lo), ("hi", hi))
        for name, value in (*plain, ("rounding", rounding), ("axis", axis)):
            object.__setattr__(self, name, value)
        arrays = (getattr(self, name) for name in _VECTORS)
        key = (kind, dtype, lo, hi, rounding, axis)
        values = (None if array is None else array.tobytes() for array in arrays)
        object.__setattr__(self, "_key", (*key, *values))

    @property
    def channels(self) -> int:
        """Number of channels; 1 when one value serves all."""
        return len(self.multiplier)

    def along(self, name: str, shape: tuple[int, ...]) -> Array:
        """Return the constants `name`, shaped to broadcast over accumulators of `shape`."""
        one_of("name", name, _VECTORS)
        values: Array | None = getattr(self, name)
        if values is None:
            values = np.zeros(1, KINDS[self.kind].bias)
        if self.axis is None:
            return values.reshape(())
        self.check(shape)
        return along(values, self.axis, len(shape))

    def check(self, shape: tuple[int, ...]) -> None:
        """Refuse accumulators whose channels are not ours.

        Raises
        ------
        ShapeError
            `shape` has no such axis, or another number of channels along it.
        """
        shape = integers("shape", shape)
        if self.axis is None:
            return
        inside = -len(shape) <= self.axis < len(shape)
        if not inside or shape[self.axis] != self.channels:
            wanted = f"{self.channels} channels along axis {self.axis}"
            raise ShapeError(argument="acc", got=f"shape {shape}", wanted=wanted)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requantizer) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, or the copy's arrays could be written.
        vectors = {name: _given(getattr(self, name), self.axis) for name in _VECTORS}
        plain = {name: getattr(self, name) for name in ("dtype", "lo", "hi", "rounding", "axis")}
        return _remade, (self.kind, vectors | plain)


def _given(values: Array | None, axis: int | None) -> Array | None:
    """Return constants as the constructor takes them: one value for all is no vector."""
    return values if values is None or axis is not None else values[0]


def _remade(kind: str, arguments: dict[str, Any]) -> Requantizer:
    return Requantizer(kind, **arguments)


def _vector(
    name: str, value: ArrayLike, dtype: str, lo: float = -np.inf, hi: float = np.inf
) -> Array:
    """Return a value or a vector as `dtype`, in which it must be what it was."""
    array = numbers(name, value)
    wants_integers = np.dtype(dtype).kind == "i"
    if array.dtype.kind not in ("iu" if wants_integers else "iuf"):
        wanted = "integers" if wants_integers else "numbers"
        raise DTypeError(name, str(array.dtype), wanted)
    if array.ndim > 1 or array.size == 0:
        raise ShapeError(name, f"shape {array.shape}", "one value, or one per channel")
    outside = ~np.isfinite(array) | (array < lo) | (array > hi)
    if wants_integers:
        info = np.iinfo(dtype)
        outside |= (array < info.min) | (array > info.max)
    else:
        with np.errstate(over="ignore"):
            outside |= ~np.isfinite(array.astype(dtype))
    if outside.any():
        got = str(array[outside].flat[0]) if array.ndim else str(array)
        bounds = f" from {lo:.0f} to {hi:.0f}" if np.isfinite(lo) else f" that {dtype} holds"
        raise ArgumentError(name, got, "finite values" + bounds)
    return array.astype(dtype)


def _check_product(vectors: dict[str, Array | None]) -> None:
    """Refuse left shifts that carry a product of 32 by 32 bits out of 63."""
    multiplier, shift = vectors["multiplier"], vectors["shift"]
    assert multiplier is not None
    assert shift is not None
    left = np.maximum(shift, 0).astype(np.float64)
    if (np.abs(multiplier.astype(np.float64)) * 2.0**left > 2.0**31).any():
        raise ArgumentError("shift", f"{int(shift.max())}", "multiplier · 2^shift up to 2^31")


def _channels(vectors: dict[str, Array | None], axis: int | None) -> int:
    lengths = {name: v.size for name, v in vectors.items() if v is not None and v.ndim}
    if axis is None:
        if any(size != 1 for size in lengths.values()):
            name = next(name for name, size in lengths.items() if size != 1)
            raise ShapeError(name, f"{lengths[name]} values", "one value, or an axis")
        return 1
    if len(set(lengths.values())) != 1:
        got = ", ".join(f"{size} of {name}" for name, size in lengths.items()) or "one value"
        raise ShapeError(argument="multiplier", got=got, wanted="one value per channel")
    return next(iter(lengths.values()))


def _frozen(values: Array, channels: int) -> Array:
    copy: Array = np.broadcast_to(values, (channels,)).copy()
    copy.flags.writeable = False
    return copy
