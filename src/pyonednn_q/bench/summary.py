"""Statistics of samples: median, quartiles, bootstrap intervals, ratios with a verdict.

A sample is the mean of a few calls in a row. Samples of one round were taken one right after the
other, so ratios within a run resample rounds; ratios of two runs resample each on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q.errors import ArgumentError

__all__ = [
    "Ratio",
    "Summary",
    "paired_ratio",
    "sqnr_db",
    "summarise",
    "total_ratio",
    "unpaired_ratio",
]

CONFIDENCE = 0.95
LEAST = 6  # with fewer samples even their whole range covers the median less than 19 times of 20
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Summary:
    """Median and quartiles, and an interval that holds the true median 19 times of 20."""

    count: int
    median: float
    q1: float
    q3: float
    lo: float
    hi: float

    @property
    def spread(self) -> float:
        """Distance of the quartiles, in parts of the median."""
        return (self.q3 - self.q1) / self.median


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two medians, with its interval.

    Examples
    --------
    >>> Ratio(1.02, 0.97, 1.08).is_significant, str(Ratio(2.0, 1.9, 2.1))
    (False, '2.00x')
    """

    value: float
    lo: float
    hi: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval leaves out 1."""
        return not self.lo <= 1.0 <= self.hi

    def __str__(self) -> str:
        return f"{self.value:.2f}x" if self.is_significant else "not significant"


def summarise(samples: ArrayLike) -> Summary:
    """Summarise samples; below `LEAST` of them the interval is their whole range and more.

    Raises
    ------
    ArgumentError
        No samples.
    """
    values = _checked("samples", samples)
    q1, median, q3 = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    if len(values) < LEAST:
        return Summary(len(values), median, q1, q3, 0.0, float("inf"))
    lo, hi = _interval(np.median(values[_draws(len(values), 1)], axis=1), CONFIDENCE)
    return Summary(len(values), median, q1, q3, lo, hi)


def paired_ratio(above: ArrayLike, below: ArrayLike) -> Ratio:
    """Return median(above) / median(below), for samples taken in the same rounds.

    Raises
    ------
    ArgumentError
        No samples, or another number of them.
    """
    top, bottom = _checked("above", above), _checked("below", below)
    if len(top) != len(bottom):
        raise ArgumentError("below", f"{len(bottom)} samples", f"{len(top)}, one for each above")
    rounds = _draws(len(top), 2)
    return _ratio(top, bottom, rounds, rounds, CONFIDENCE)


def unpaired_ratio(above: ArrayLike, below: ArrayLike, confidence: float = CONFIDENCE) -> Ratio:
    """Return median(above) / median(below), for samples of two runs.

    Raises
    ------
    ArgumentError
        No samples.
    """
    top, bottom = _checked("above", above), _checked("below", below)
    return _ratio(top, bottom, _draws(len(top), 3), _draws(len(bottom), 4), confidence)


def total_ratio(
    above: Sequence[tuple[int, ArrayLike]], below: Sequence[tuple[int, ArrayLike]]
) -> Ratio:
    """Return the ratio of two sums of medians, for samples taken in the same rounds line by line.

    Parameters
    ----------
    above, below : sequence of (int, array_like)
        Lines: how often each counts, and its samples; both have the same lines.

    Raises
    ------
    ArgumentError
        No lines, no samples, or another number of them.
    """
    if len(above) != len(below) or not above:
        raise ArgumentError("below", f"{len(below)} lines", f"{len(above)}, at least one")
    value, counts = np.zeros(2), []
    draws = np.zeros((2, _DRAWS))
    for seed, ((times, tops), (_, bottoms)) in enumerate(zip(above, below, strict=True)):
        top, bottom = _checked("above", tops), _checked("below", bottoms)
        if len(top) != len(bottom):
            raise ArgumentError("below", f"{len(bottom)} samples", f"{len(top)}, one for each")
        rounds = _draws(len(top), 5 + seed)
        for index, samples in enumerate((top, bottom)):
            value[index] += times * np.median(samples)
            draws[index] += times * np.median(samples[rounds], axis=1)
        counts.append(len(top))
    if min(counts) < LEAST:
        return Ratio(float(value[0] / value[1]), 0.0, float("inf"))
    return Ratio(float(value[0] / value[1]), *_interval(draws[0] / draws[1], CONFIDENCE))


def sqnr_db(exact: NDArray[Any], approximate: NDArray[Any]) -> float:
    """Return the signal-to-quantization-noise ratio in decibels.

    Parameters
    ----------
    exact, approximate : arrays of one shape
        Exact values, and the real values of the approximation.

    Returns
    -------
    float
        10 log10(signal power / noise power); infinite when nothing differs.
    """
    signal = float(np.square(exact, dtype=np.float64).sum())
    noise = float(np.square(exact.astype(np.float64) - approximate).sum())
    return 10 * float(np.log10(signal / noise)) if noise else float("inf")


def _checked(name: str, samples: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(samples, np.float64)
    if values.ndim != 1 or not values.size or not (values > 0).all():
        raise ArgumentError(name, f"samples {values}", "times above 0, at least one")
    return values


def _draws(count: int, seed: int) -> NDArray[np.int64]:
    # Always the same draws: the same samples give the same verdict.
    return np.random.default_rng(seed).integers(0, count, (_DRAWS, count))


def _ratio(
    above: NDArray[np.float64],
    below: NDArray[np.float64],
    draws_above: NDArray[np.int64],
    draws_below: NDArray[np.int64],
    confidence: float,
) -> Ratio:
    value = float(np.median(above) / np.median(below))
    if min(len(above), len(below)) < LEAST:
        return Ratio(value, 0.0, float("inf"))
    tops = np.median(above[draws_above], axis=1)
    return Ratio(value, *_interval(tops / np.median(below[draws_below], axis=1), confidence))


def _interval(values: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    outside = (1.0 - confidence) / 2
    lo, hi = np.quantile(values, (outside, 1.0 - outside))
    return float(lo), float(hi)
