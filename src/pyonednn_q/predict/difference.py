"""Differences of two integer results of one computation, and whether ties explain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import check_fields, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import along
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, repr=False)
class DifferenceReport(Told):
    """Places and sizes of the differences of `a` from `b`.

    Attributes
    ----------
    compared, count : int
        Number of values compared, and of those that differ.
    positions : tuple of tuple of int
        Indices of the first values that differ, in C order.
    largest : int
        The greatest ``|a − b|``; 0 when nothing differs.
    mean : float
        Mean of a − b over all values.
    at_ties : int or None
        Number of differences at exact ties; None without `ties`.
    """

    compared: int
    count: int
    positions: tuple[tuple[int, ...], ...]
    largest: int
    mean: float
    at_ties: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def rate(self) -> float:
        """Share of values that differ; 0 if there are no values."""
        return self.count / self.compared if self.compared else 0.0

    @property
    def all_at_ties(self) -> bool | None:
        """Whether all differences are at ties; None without `ties`."""
        return None if self.at_ties is None else self.at_ties == self.count

    def text(self) -> str:
        """Return the report in one line."""
        if not self.count:
            return f"{self.compared} compared, all equal"
        parts = [
            f"{self.count} of {self.compared} differ ({1e6 * self.rate:.1f} ppm)",
            f"by up to {self.largest}",
            f"mean {self.mean:+.6f}",
            *(f"first at {position}" for position in self.positions[:1]),
        ]
        if self.at_ties is not None:
            parts.append("all at ties" if self.all_at_ties else f"{self.at_ties} at ties")
        return ", ".join(parts)


def difference_report(
    a: ArrayLike, b: ArrayLike, *, ties: ArrayLike | None = None, positions: int = 8
) -> DifferenceReport:
    """Return a report of the differences of two integer arrays.

    Parameters
    ----------
    a, b : array_like of int
        Integers of one shape, of any integer type but uint64.
    ties : array_like of bool, optional
        Mask of the same shape: whether the exact value is half way between two integers
        (`tie_mask`).
    positions : int
        Number of indices of differing values to return.

    Raises
    ------
    DTypeError, ShapeError
        Naming the argument.
    """
    first, second = _integers("a", a), _integers("b", b)
    if first.shape != second.shape:
        raise ShapeError("b", f"shape {second.shape}", f"shape {first.shape}, that of a")
    listed = whole("positions", positions, lo=0)
    gap = first - second
    where = np.argwhere(gap != 0)
    at_ties = None
    if ties is not None:
        mask = numbers("ties", ties, "biuf")
        if mask.dtype != np.bool_ or mask.shape != first.shape:
            got = f"{mask.dtype} of shape {mask.shape}"
            raise ShapeError("ties", got, f"booleans of shape {first.shape}")
        at_ties = int(np.count_nonzero(mask & (gap != 0)))
    return DifferenceReport(
        compared=gap.size,
        count=len(where),
        positions=tuple(tuple(map(int, index)) for index in where[:listed]),
        largest=int(np.abs(gap).max(initial=0)),
        mean=float(gap.mean()) if gap.size else 0.0,
        at_ties=at_ties,
    )


def tie_mask(
    acc: Array, *, src_scale: ArrayLike, wei_scale: ArrayLike, dst_scale: ArrayLike, axis: int = 1
) -> Array:
    """Return a mask of the accumulators whose exact value is half way between two integers.

    Decided in whole numbers: 2 · acc · src_scale · wei_scale / dst_scale is an odd integer.

    Parameters
    ----------
    acc : ndarray of integers
        Accumulators, of any shape.
    src_scale, wei_scale, dst_scale : array_like
        Scales, rounded to float32: one value, or (C,), one for each channel.
    axis : int
        Dimension of the channels, if a scale has several.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    """
    sums = numbers("acc", acc, "iu")
    scales = {"src_scale": src_scale, "wei_scale": wei_scale, "dst_scale": dst_scale}
    src, wei, dst = (_single(name, scale) for name, scale in scales.items())
    channels = {scale.shape for scale in (src, wei, dst) if scale.ndim}
    axis = whole("axis", axis)
    fits = not channels or (-sums.ndim <= axis < sums.ndim and {(sums.shape[axis],)} == channels)
    if not fits:
        got = f"{shown(sorted(channels))} for sums of {shown(sums.shape)}"
        raise ShapeError("src_scale", got, f"one value, or one for each channel on axis {axis}")
    numerator, denominator = _fraction(src, wei, dst)
    if numerator.ndim:
        numerator, denominator = (along(v, axis, sums.ndim) for v in (numerator, denominator))
    twice = sums.astype(object) * numerator * 2
    return np.asarray((twice % denominator == 0) & (twice // denominator % 2 == 1), np.bool_)


def _single(name: str, scale: ArrayLike) -> Array:
    with np.errstate(over="ignore"):
        values = numbers(name, scale).astype(np.float32)
    if values.ndim > 1 or not (np.isfinite(values) & (values > 0)).all():
        raise ArgumentError(name, shown(scale), "one value or one per channel, above 0 in float32")
    return values.astype(np.float64)


def _fraction(src: Array, wei: Array, dst: Array) -> tuple[Array, Array]:
    """Return src · wei / dst as a numerator and a denominator, in Python's integers."""

    def ratio(a: float, b: float, c: float) -> tuple[int, int]:
        (up_a, down_a), (up_b, down_b) = a.as_integer_ratio(), b.as_integer_ratio()
        up_c, down_c = c.as_integer_ratio()
        return up_a * up_b * down_c, down_a * down_b * up_c

    parts = np.frompyfunc(ratio, 3, 2)(src, wei, dst)
    return np.asarray(parts[0], object), np.asarray(parts[1], object)


def _integers(name: str, values: ArrayLike) -> Array:
    array = numbers(name, values)
    if array.dtype.kind not in "iu" or array.dtype == np.uint64:
        raise DTypeError(name, str(array.dtype), "integers")
    return array.astype(np.int64)
