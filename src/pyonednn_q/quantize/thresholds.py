"""Thresholds: where to cut a tensor off, from samples of its magnitudes |x|.

    max         max |x|
    mse         the t of k/100 · max |x|, k = 1..100, with the least squared error of codes of a
                step t / qmax, qmax = 2^(bits−1) − 1 signed, 2^bits − 1 unsigned
    percentile  the |x| that a share of all stays below, by linear interpolation
    kl          the end t of a histogram of |x| that minimises KL(P ‖ Q): P has the bins up to t and
                all beyond in its last, Q the same in as many steps as codes have
    octav       the fixed point t = E[|x|; |x| > t] / (c · P(0 < |x| ≤ t) + P(|x| > t)), which
                minimises the squared error, c · t² of each value inside and (|x| − t)² of each cut
                off, as long as none passes t; c = 4^−bits / 3 signed, 4^−bits / 12 unsigned

Sources: KL as in TensorRT's calibration (Migacz 2017); OCTAV of Sakr et al., ICML 2022. TPU-MLIR's
calibration offers these but for mse. Samples may come with counts: how often each occurs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q.argument import flag, numbers, one_of, real, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Method",
    "kl_threshold",
    "mse_threshold",
    "octav_threshold",
    "percentile_threshold",
    "quantile",
    "threshold",
]

Method: TypeAlias = Literal["max", "percentile", "kl", "mse", "octav"]

BINS = 2048
_MOST_BINS = 1 << 16  # the time grows with their square
_MOST_ITERATIONS = 100
GRID = 100


def threshold(
    values: ArrayLike, method: Method = "max", *, counts: ArrayLike | None = None
) -> float:
    """Return the magnitude at which to cut values off, for codes of s8.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    method : {"max", "percentile", "kl", "mse", "octav"}
        "max": the greatest magnitude. "percentile": the 99.99th percentile of the magnitudes. "kl":
        the least Kullback-Leibler divergence. "mse": the least squared error on a grid. "octav":
        the least expected squared error. The functions of those names take parameters.
    counts : array_like of int, optional
        Number of occurrences of each value, in the shape of `values`; 1 by default.

    Returns
    -------
    float
        Magnitude in the units of `values`: above 0 and at most the greatest; 1 where all values are
        0.

    Raises
    ------
    ArgumentError
        An unknown method; no values, or some that are not finite.

    Examples
    --------
    >>> threshold([0.5, -2.0, 1.0])
    2.0
    """
    one_of("method", method, get_args(Method))
    if method == "percentile":
        return percentile_threshold(values, counts=counts)
    if method == "kl":
        return kl_threshold(values, counts=counts)
    if method == "mse":
        return mse_threshold(values, counts=counts)
    if method == "octav":
        return octav_threshold(values, counts=counts)
    return _largest(_magnitudes(values, counts)[0])


def percentile_threshold(
    values: ArrayLike, percent: float = 99.99, *, counts: ArrayLike | None = None
) -> float:
    """Return the percentile of the magnitudes.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    percent : float
        Percentage of magnitudes at or below the result, above 0; 100 gives the greatest magnitude.
    counts : array_like of int, optional
        Number of occurrences of each value.

    Raises
    ------
    ArgumentError
        Naming the argument.

    Examples
    --------
    >>> percentile_threshold(np.arange(-100, 101), 50)
    50.0
    """
    percent = real("percent", percent)
    if not 0.0 < percent <= 100.0:
        raise ArgumentError("percent", shown(percent), "a number above 0 and at most 100")
    sizes, often = _magnitudes(values, counts)
    return quantile(sizes, percent / 100.0, often) or _largest(sizes)


def quantile(values: ArrayLike, share: float, counts: ArrayLike | None = None) -> float:
    """Return the value below which a share of all values lies, interpolated as in NumPy.

    Parameters
    ----------
    values : array_like
        Real numbers of any shape, finite.
    share : float
        Share of the values, from 0, the least value, to 1, the greatest.
    counts : array_like of int, optional
        Number of occurrences of each value.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> quantile([1.0, 5.0], 0.5, counts=[3, 1]), quantile([1.0, 1.0, 1.0, 5.0], 0.5)
    (1.0, 1.0)
    """
    share = real("share", share)
    if not 0.0 <= share <= 1.0:
        raise ArgumentError("share", shown(share), "a number from 0 to 1")
    numbers_, often = _counted(values, counts)
    if counts is None:
        return float(np.quantile(numbers_, share))
    order = np.argsort(numbers_, kind="stable")
    ends = np.cumsum(often[order])
    at = (float(ends[-1]) - 1.0) * share
    below, above = np.floor(at), np.ceil(at)
    places = np.searchsorted(ends, [below, above], "right")
    first, second = numbers_[order][places]
    part = at - below
    # As NumPy interpolates: from the nearer end.
    if part >= 0.5:
        return float(second - (second - first) * (1.0 - part))
    return float(first + (second - first) * part)


def mse_threshold(
    values: ArrayLike, bits: int = 8, *, signed: bool = True, counts: ArrayLike | None = None
) -> float:
    """Return the share of the greatest magnitude whose codes have the least squared error.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    bits : int
        Width of the codes in bits, 2 to 16.
    signed : bool
        Whether codes reach as far below 0 as above; if not, they begin at 0.
    counts : array_like of int, optional
        Number of occurrences of each value.

    Raises
    ------
    ArgumentError
        Naming the argument.

    Examples
    --------
    >>> mse_threshold([1.0, -2.0, 3.0], bits=3)
    3.0
    """
    bits = whole("bits", bits, lo=2, hi=16)
    flag("signed", signed)
    sizes, often = _magnitudes(values, counts)
    largest = _largest(sizes)
    qmax = float(2 ** (bits - 1) - 1 if signed else 2**bits - 1)
    errors = []
    sizes = sizes / largest  # squares of what is far from 1 leave float64
    for part in range(1, GRID + 1):
        step = part / GRID / qmax
        codes = np.minimum(np.rint(sizes / step), qmax)
        errors.append(float((often * np.square(sizes - codes * step)).sum()))
    return largest * (int(np.argmin(errors)) + 1) / GRID


def kl_threshold(
    values: ArrayLike, *, bins: int = BINS, levels: int = 128, counts: ArrayLike | None = None
) -> float:
    """Return the threshold with the least KL divergence between a histogram and its codes.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite. Zeros are left out, because no threshold
        changes them.
    bins : int
        Number of equal bins between 0 and the greatest magnitude: at least `levels`, at most
        65536.
    levels : int
        Number of codes on one side of 0: 128 for s8, 256 for u8. Thresholds are tried at the ends
        of the bins, from this bin on.
    counts : array_like of int, optional
        Number of occurrences of each value.

    Raises
    ------
    ArgumentError
        Naming the argument.

    Notes
    -----
    Q shares out the values of a step evenly over those of its bins that are not empty. Where only
    cut-off values lie, in an empty last bin, it counts one. Of equal ends the first is taken.
    """
    bins = whole("bins", bins, lo=2, hi=_MOST_BINS)
    levels = whole("levels", levels, lo=2, hi=bins)
    sizes, often = _magnitudes(values, counts)
    largest = _largest(sizes)
    if not sizes.any():
        return largest
    filled = sizes > 0.0
    counted, _ = np.histogram(sizes[filled], bins, (0.0, largest), weights=often[filled])
    heights = counted.astype(np.int64)
    beyond = np.append(np.cumsum(heights[::-1])[::-1], 0)
    ends = range(levels, bins + 1)
    divergences = [_divergence(heights[:end], int(beyond[end]), levels) for end in ends]
    return largest * ends[int(np.argmin(divergences))] / bins


def octav_threshold(
    values: ArrayLike, bits: int = 8, *, signed: bool = True, counts: ArrayLike | None = None
) -> float:
    """Return the magnitude that costs the least squared error, rounding and cutting off together.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    bits : int
        Width of the codes in bits, 1 to 16.
    signed : bool
        Whether codes reach as far below 0 as above; if not, they begin at 0.
    counts : array_like of int, optional
        Number of occurrences of each value.

    Raises
    ------
    ArgumentError
        Naming the argument.

    Notes
    -----
    Newton's iteration from the mean magnitude, until it moves no more.
    """
    bits = whole("bits", bits, lo=1, hi=16)
    flag("signed", signed)
    sizes, often = _magnitudes(values, counts)
    order = np.argsort(sizes, kind="stable")
    sizes, often = sizes[order], often[order]
    sizes, often = sizes[sizes > 0.0], often[sizes > 0.0]
    if not sizes.size:
        return 1.0
    power = int(np.frexp(sizes[-1])[1])
    sizes = np.ldexp(sizes, -power)  # exact, and sums of the largest floats are finite
    # Of the values above the i-th: how many, and their sum.
    sums = np.append(np.cumsum((sizes * often)[::-1])[::-1], 0.0)
    numbers_above = np.append(np.cumsum(often[::-1])[::-1], 0)
    total = int(numbers_above[0])
    inside = 4.0**-bits / (3.0 if signed else 12.0)
    end = float((sizes * often).sum() / total)
    for _ in range(_MOST_ITERATIONS):
        at = int(np.searchsorted(sizes, end, "right"))
        above = int(numbers_above[at])
        if not above:  # Nothing is cut off: the greatest magnitude is the end.
            return math.ldexp(float(sizes[-1]), power)
        following = float(sums[at]) / (inside * (total - above) + above)
        if following == end:
            break
        end = following
    return math.ldexp(min(end, float(sizes[-1])), power)


def _magnitudes(
    values: ArrayLike, counts: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    reals, often = _counted(values, counts)
    return np.abs(reals), often


def _counted(
    values: ArrayLike, counts: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    reals = numbers("values", values).astype(np.float64).ravel()
    if not reals.size or not np.isfinite(reals).all():
        got = "no values" if not reals.size else "values that are not finite"
        raise ArgumentError("values", got, "at least one, and finite numbers")
    if counts is None:
        return reals, np.ones(reals.size, np.int64)
    often = numbers("counts", counts, "iu").ravel()
    if often.size != reals.size:
        raise ShapeError("counts", f"{often.size} of {reals.size} values", "one of each value")
    if (often < 1).any() or often.astype(np.float64).sum() >= 2.0**53:
        raise ArgumentError(
            "counts", "counts below 1, or too many", "at least 1, below 2^53 in all"
        )
    return reals, often.astype(np.int64)


def _largest(sizes: NDArray[np.float64]) -> float:
    return float(sizes.max()) or 1.0


def _divergence(counts: NDArray[Any], beyond: int, levels: int) -> float:
    """Return KL(P ‖ Q), where the last bin of P has all that lies beyond."""
    bins = counts.size
    step = np.arange(bins) * levels // bins
    filled = counts > 0
    sums = np.bincount(step, counts, levels)
    places = np.bincount(step, filled, levels)
    shared = np.where(filled, sums[step] / np.maximum(places[step], 1.0), 0.0)
    p = counts.astype(np.float64)
    p[-1] += beyond
    q = np.where((p > 0.0) & ~filled, 1.0, shared)
    filled_p = p > 0.0
    p, q = p[filled_p] / p.sum(), q[filled_p] / q.sum()
    return float(np.sum(p * np.log(p / q)))
