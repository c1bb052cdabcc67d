"""Estimators of each sample's extremes, aggregated over samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyonednn_q.argument import real
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.quantize.estimator import Estimator
from pyonednn_q.shown import shown

__all__ = ["AGGREGATES", "SampleExtremes"]

AGGREGATES = {
    "min_max": "the least and the greatest value of all",
    "mean_min_max": "the means over samples of each sample's least and greatest value",
    "mixed_min_max": "per channel: min_max; per tensor: mean_min_max, but symmetric ones hold the "
    "least value of all",
    "moving_average": "r = r + rate * (x - r) from sample to sample, from the first one's extremes",
    "median_min_max": "the medians over samples",
    "mean_no_outliers": "the means over the samples within two quantiles of all samples",
    "median_no_outliers": "the medians over those",
    "mean_percentile": "the means over samples of each sample's percentiles",
}


class SampleExtremes(Estimator):
    """Extremes of each sample, in the order in which samples came.

    Means are rounded once (`math.fsum`), so an order of merging cannot be told from a range; a
    moving average has an order, and `merge` puts the other's samples behind these.

    Parameters
    ----------
    kind : str
        One of `AGGREGATES`.
    axis, symmetric, by_batch
        Options of `Estimator`.
    rate : float
        Rate of a moving average: above 0, at most 1.
    percent : (float, float)
        The percentiles of a sample, of "mean_percentile".
    outliers : float
        The share of samples at each end that the kinds without outliers leave out: from 0 to
        below 0.5.

    Attributes
    ----------
    samples : list of (2, N, C) ndarray of float64
        Least and greatest values (or percentiles) of the samples, by channel, for each batch.
    """

    def __init__(
        self,
        kind: str,
        *,
        axis: int | None = None,
        symmetric: bool = False,
        by_batch: bool = False,
        rate: float = 0.01,
        percent: tuple[float, float] = (0.1, 99.9),
        outliers: float = 0.01,
    ) -> None:
        super().__init__(kind, axis=axis, symmetric=symmetric, by_batch=by_batch)
        self.rate = real("rate", rate)
        if not 0.0 < self.rate <= 1.0:
            raise ArgumentError("rate", shown(rate), "a number above 0 and at most 1")
        self.outliers = real("outliers", outliers)
        if not 0.0 <= self.outliers < 0.5:
            raise ArgumentError("outliers", shown(outliers), "a number from 0 to below 0.5")
        self.percent = percent
        self.samples: list[Array] = []  # each (2, samples, channels): least, greatest

    def parameters(self) -> tuple[Any, ...]:
        """Return kind, axis, symmetric, by_batch, rate, percent and outliers."""
        shared = self.kind, self.axis, self.symmetric, self.by_batch
        return *shared, self.rate, self.percent, self.outliers

    @property
    def signed(self) -> bool:
        """Whether the least values, as aggregated, lie below 0 in any channel."""
        return self.extremes is not None and bool((self._ends()[0] < 0.0).any())

    def _take(self, values: Array, least: Array, greatest: Array) -> None:
        if self.kind == "min_max":
            return
        high = np.maximum(-least, greatest) if self.symmetric else greatest
        if self.kind == "mean_percentile":
            rows = self._rows(values)
            if not self.symmetric:
                self.samples.append(np.percentile(rows, self.percent, axis=1))
                return
            high = np.percentile(np.abs(rows), self.percent[1], axis=1)
        self.samples.append(np.stack([least, high]))

    def _join(self, other: SampleExtremes) -> None:
        self.samples += other.samples

    def _ends(self) -> tuple[Array, Array]:
        extremes = self.extremes
        assert extremes is not None
        if self.kind == "min_max" or (self.kind == "mixed_min_max" and self.axis is not None):
            low, high = extremes
            return low, np.maximum(-low, high) if self.symmetric else high
        low, high = np.concatenate(self.samples, axis=1)
        if self.kind == "mixed_min_max" and self.symmetric:
            return extremes[0], np.maximum(_mean(high), -extremes[0])
        if self.kind == "moving_average":
            return self._moved(low), self._moved(high)
        if self.kind.endswith("no_outliers"):
            average = np.median if self.kind.startswith("median") else _mean
            return self._inner(low, average), self._inner(high, average)
        if self.kind == "median_min_max":
            return np.median(low, axis=0), np.median(high, axis=0)
        return _mean(low), _mean(high)

    def _moved(self, samples: Array) -> Array:
        moved: Array = samples[0].copy()
        for sample in samples[1:]:
            moved += self.rate * (sample - moved)
        return moved

    def _inner(self, samples: Array, average: Any) -> Array:  # noqa: ANN401
        ends = np.quantile(samples, [self.outliers, 1.0 - self.outliers], axis=0)
        inside = (ends[0] <= samples) & (samples <= ends[1])
        columns = [average(column[kept, None], axis=0) for column, kept in zip(
            samples.T, inside.T, strict=True)]  # fmt: skip
        return np.concatenate(columns)


def _mean(samples: Array, axis: int = 0) -> Array:
    del axis
    return np.array([math.fsum(column) / len(column) for column in samples.T.tolist()])
