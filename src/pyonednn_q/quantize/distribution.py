"""Estimators that need all values: kept as numbers of so many significant bits, and counted.

Rounding a value to `precision` significant bits looks at that value alone, and counts are added:
so the state after batches in any order, merged in any way, is that of one pass over all data, bit
for bit. What is left out is at most 2^-precision of each value, and so of each quantile;
precision=53 keeps float64, 24 float32, whole, and is exact.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyonednn_q.argument import items, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.estimator import Estimator
from pyonednn_q.quantize.histogram_search import searched_range
from pyonednn_q.quantize.thresholds import (
    BINS,
    GRID,
    kl_threshold,
    mse_threshold,
    octav_threshold,
    percentile_threshold,
    quantile,
)
from pyonednn_q.shown import shown

__all__ = ["DISTRIBUTIONS", "Distribution"]

DISTRIBUTIONS = {
    "percentile": "two quantiles of all values; symmetric: the upper one of |x|",
    "three_sigma": "median - 3 s to median + 3 s, s = 1.4826230 * median |x - median|; values "
    "that are 0 within float32's epsilon are left out of the first median",
    "histogram": "2048 bins whose ends move inward while the estimated squared error falls",
    "kl": "the end of |x| with the least KL divergence of codes",
    "mse": "the share of both ends, k/100, whose codes have the least squared error",
    "octav": "the end of |x| with the least expected squared error",
    "search": "of the ends of all values and of the kinds above those whose codes have the least "
    "squared error",
}
_SIGMA = 3 * 1.4826230
_EPSILON = float(np.finfo(np.float32).eps)
_MANTISSA = 52  # stored bits of float64


class Distribution(Estimator):
    """All values, each rounded to some significant bits, and how often it came.

    Parameters
    ----------
    kind : str
        One of `DISTRIBUTIONS`. "kl" and "octav" find magnitudes: their ranges end there, or at the
        least and the greatest value where those lie nearer to 0.
    axis, symmetric, by_batch
        Options of `Estimator`; all values count alike, whatever a sample is.
    percent : (float, float)
        The two percentiles of "percentile", from 0 to 100.
    bits : int
        Width of the codes that errors are counted for, 2 to 16.
    precision : int
        Significant bits of a value that are kept, 4 to 53.

    Attributes
    ----------
    counted : list of (values, counts)
        Distinct values of each channel, ascending, and how often each came.
    """

    def __init__(
        self,
        kind: str,
        *,
        axis: int | None = None,
        symmetric: bool = False,
        by_batch: bool = False,
        percent: tuple[float, float] = (0.01, 99.99),
        bits: int = 8,
        precision: int = 12,
    ) -> None:
        super().__init__(kind, axis=axis, symmetric=symmetric, by_batch=by_batch)
        self.percent = percent
        self.bits = whole("bits", bits, lo=2, hi=16)
        self.precision = whole("precision", precision, lo=4, hi=_MANTISSA + 1)
        self.counted: list[tuple[Array, Array]] = []  # of each channel: values, counts

    def parameters(self) -> tuple[Any, ...]:
        """Return kind, axis, symmetric, by_batch, percent, bits and precision."""
        shared = self.kind, self.axis, self.symmetric, self.by_batch
        return *shared, self.percent, self.bits, self.precision

    def _take(self, values: Array, least: Array, greatest: Array) -> None:
        del least, greatest
        rows = self._rows(values)
        kept = _rounded(rows.reshape(-1, rows.shape[-1]), self.precision)
        new = [np.unique(column, return_counts=True) for column in kept.T]
        self.counted = _added(self.counted, new)

    def _join(self, other: Distribution) -> None:
        self.counted = _added(self.counted, other.counted)

    def _ends(self) -> tuple[Array, Array]:
        find = self._best if self.kind == "search" else partial(self._end_of, self.kind)
        ends = [find(values, counts) for values, counts in self.counted]
        lo, hi = np.array(ends).T
        return lo, hi

    def _best(self, values: Array, counts: Array) -> tuple[float, float]:
        """Return the ends of one channel that lose the least: of the first, where several do."""
        whole_range = float(values[0]), float(values[-1])
        if self.symmetric:
            whole_range = 0.0, max(-whole_range[0], whole_range[1])
        kinds = [kind for kind in DISTRIBUTIONS if kind != "search"]
        ends = [whole_range, *(self._end_of(kind, values, counts) for kind in kinds)]
        return ends[int(np.argmin([self._error(values, counts, *each) for each in ends]))]

    def _error(self, values: Array, counts: Array, lo: float, hi: float) -> float:
        """Return the squared error of codes between two ends, or up to a magnitude."""
        if self.symmetric:
            most = 2 ** (self.bits - 1) - 1 if self.signed else 2**self.bits - 1
            least, scale, point = -most if self.signed else 0, hi / most, 0.0
        else:
            lo, hi = min(lo, 0.0), max(hi, 0.0)
            least, most = 0, 2**self.bits - 1
            scale = (hi - lo) / most
            point = np.rint(-lo / scale) if scale else 0.0
        return _squared_error(values, counts, scale, point, (least, most))

    def _end_of(self, kind: str, values: Array, counts: Array) -> tuple[float, float]:
        """Return (lo, hi) of one channel by a kind; (any, t) of a symmetric one."""
        find = self._magnitude if self.symmetric else self._range
        return find(kind, values, counts)

    def _magnitude(self, kind: str, values: Array, counts: Array) -> tuple[float, float]:
        """Return (any, t) of one channel."""
        signed = self.signed
        if kind == "percentile":
            return 0.0, percentile_threshold(values, self.percent[1], counts=counts)
        if kind == "mse":
            return 0.0, mse_threshold(values, self.bits, signed=signed, counts=counts)
        if kind in {"kl", "octav"}:
            return 0.0, self._cut(kind, values, counts)
        if kind == "histogram":
            sizes, index = np.unique(np.abs(values), return_inverse=True)
            lo, hi = self._searched(sizes, np.bincount(index, counts), -float(sizes[-1]))
            return 0.0, max(-lo, hi)
        lo, hi = self._range(kind, values, counts)
        return 0.0, max(-lo, hi)

    def _cut(self, kind: str, values: Array, counts: Array) -> float:
        if kind == "octav":
            return octav_threshold(values, self.bits, signed=self.signed, counts=counts)
        levels = 2 ** (self.bits - 1) if self.signed else 2**self.bits
        return kl_threshold(values, bins=max(BINS, 16 * levels), levels=levels, counts=counts)

    def _range(self, kind: str, values: Array, counts: Array) -> tuple[float, float]:
        """Return (lo, hi) of one channel."""
        least, greatest = float(values[0]), float(values[-1])
        if kind == "percentile":
            low, high = (quantile(values, share / 100.0, counts) for share in self.percent)
            return low, high
        if kind == "three_sigma":
            return _three_sigma(values, counts)
        if kind == "histogram":
            return self._searched(values, counts, least)
        if kind == "mse":
            return self._least_error(values, counts)
        cut = self._cut(kind, values, counts)
        return max(least, -cut), min(greatest, cut)

    def _searched(self, values: Array, counts: Array, least: float) -> tuple[float, float]:
        ends = least, float(values[-1])
        if ends[0] == ends[1]:
            return ends
        if least < values[0]:  # of magnitudes, whose histogram is even
            values, counts = np.concatenate([-values, values]), np.concatenate([counts, counts])
        heights, _ = np.histogram(values, BINS, ends, weights=counts)
        return searched_range(heights, *ends, steps=2**self.bits)

    def _least_error(self, values: Array, counts: Array) -> tuple[float, float]:
        low, high = min(float(values[0]), 0.0), max(float(values[-1]), 0.0)
        if low == high:
            return low, high
        steps = float(2**self.bits - 1)
        errors = []
        for part in range(1, GRID + 1):
            scale = (high - low) * part / GRID / steps
            point = np.rint(-low * part / GRID / scale)
            errors.append(_squared_error(values, counts, scale, point, (0.0, steps)))
        share = (int(np.argmin(errors)) + 1) / GRID
        return low * share, high * share


def checked_percent(percent: object) -> tuple[float, float]:
    """Return two percentiles.

    Raises
    ------
    ArgumentError
        Anything but two numbers from 0 to 100, the first below the second.
    """
    wanted = "two numbers from 0 to 100, the first below the second"
    ends = items("percent", percent, object)
    if len(ends) != 2:
        raise ArgumentError("percent", shown(percent), wanted)
    low, high = (real("percent", end) for end in ends)
    if not 0.0 <= low < high <= 100.0:
        raise ArgumentError("percent", shown(percent), wanted)
    return low, high


def _squared_error(
    values: Array, counts: Array, scale: float, point: float, ends: tuple[float, float]
) -> float:
    """Return the sum of squares of what codes leave of values, of a scale 0 all."""
    if not scale:
        return float((counts * np.square(values)).sum())
    codes = np.clip(np.rint(values / scale) + point, *ends)
    return float((counts * np.square(values - (codes - point) * scale)).sum())


def _rounded(values: Array, precision: int) -> Array:
    """Return values rounded to `precision` significant bits; ties away from 0."""
    dropped = _MANTISSA + 1 - precision
    if not dropped:
        return values + 0.0
    pattern = np.ascontiguousarray(values).view(np.int64)
    half = np.int64(1) << np.int64(dropped - 1)
    kept: Array = ((pattern + half) & ~((half << np.int64(1)) - np.int64(1))).view(np.float64)
    finite = np.where(np.isfinite(kept), kept, values)  # the last bits below float64's greatest
    return finite + 0.0  # -0 is 0


def _added(
    first: list[tuple[Array, Array]], second: list[tuple[Array, Array]]
) -> list[tuple[Array, Array]]:
    if not first or not second:
        return list(first or second)
    sums = []
    for (values, counts), (others, more) in zip(first, second, strict=True):
        both, index = np.unique(np.concatenate([values, others]), return_inverse=True)
        total = np.zeros(both.size, np.int64)
        np.add.at(total, index, np.concatenate([counts, more]))
        sums.append((both, total))
    return sums


def _three_sigma(values: Array, counts: Array) -> tuple[float, float]:
    told = np.abs(values) >= _EPSILON
    if not told.any():
        return 0.0, 0.0
    median = quantile(values[told], 0.5, counts[told])
    spread = _SIGMA * quantile(np.abs(values - median), 0.5, counts)
    return median - spread, median + spread
