"""Thresholds: where to cut a tensor off, from samples of its magnitudes |x|.

    max         max |x|
    percentile  the |x| that a share of all stays below, by linear interpolation
    kl          the end t of a histogram of |x| that minimises KL(P ‖ Q): P has the bins up to t and
                all beyond in its last, Q the same in as many steps as codes have
    octav       the fixed point t = E[|x|; |x| > t] / (c · P(0 < |x| ≤ t) + P(|x| > t)), which
                minimises the squared error, c · t² of each value inside and (|x| − t)² of each cut
                off, as long as none passes t; c = 4^−bits / 3 signed, 4^−bits / 12 unsigned

Sources: KL as in TensorRT's calibration (Migacz 2017); OCTAV of Sakr et al., ICML 2022. TPU-MLIR's
calibration offers these four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q.argument import flag, numbers, one_of, real, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["Method", "kl_threshold", "octav_threshold", "percentile_threshold", "threshold"]

Method: TypeAlias = Literal["max", "percentile", "kl", "octav"]

_BINS = 2048
_MOST_BINS = 1 << 16  # the time grows with their square
_MOST_ITERATIONS = 100


def threshold(values: ArrayLike, method: Method = "max") -> float:
    """Return the magnitude at which to cut values off, for codes of s8.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    method : {"max", "percentile", "kl", "octav"}
        "max": the greatest magnitude. "percentile": the 99.99th percentile of the magnitudes. "kl":
        the least Kullback-Leibler divergence. "octav": the least squared error. The functions of
        those names take parameters.

    Returns
    -------
    float
        In the units of `values`: above 0 and at most the greatest magnitude; 1 where all values are
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
        return percentile_threshold(values)
    if method == "kl":
        return kl_threshold(values)
    if method == "octav":
        return octav_threshold(values)
    return _largest(_magnitudes(values))


def percentile_threshold(values: ArrayLike, percent: float = 99.99) -> float:
    """Return the magnitude that a share of all values stays below.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    percent : float
        How many of 100 magnitudes lie at or below the result: above 0 and at most 100, which gives
        the greatest magnitude.

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
    sizes = _magnitudes(values)
    return float(np.percentile(sizes, percent)) or _largest(sizes)


def kl_threshold(values: ArrayLike, *, bins: int = _BINS, levels: int = 128) -> float:
    """Return the end of a histogram whose codes keep most of what its bins tell.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite. Those of 0 are left out: no threshold
        changes them.
    bins : int
        Number of equal bins between 0 and the greatest magnitude: at least `levels`, at most
        65536.
    levels : int
        Number of codes on one side of 0: 128 for s8, 256 for u8. Thresholds are tried at the ends
        of the bins, from this bin on.

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
    sizes = _magnitudes(values)
    largest = _largest(sizes)
    if not sizes.any():
        return largest
    counts, _ = np.histogram(sizes[sizes > 0.0], bins, (0.0, largest))
    beyond = np.append(np.cumsum(counts[::-1])[::-1], 0)
    ends = range(levels, bins + 1)
    divergences = [_divergence(counts[:end], int(beyond[end]), levels) for end in ends]
    return largest * ends[int(np.argmin(divergences))] / bins


def octav_threshold(values: ArrayLike, bits: int = 8, *, signed: bool = True) -> float:
    """Return the magnitude that costs the least squared error, rounding and cutting off together.

    Parameters
    ----------
    values : array_like
        Real samples of a tensor, of any shape; finite.
    bits : int
        Width of the codes in bits, 1 to 16.
    signed : bool
        Whether codes reach as far below 0 as above; if not, they begin at 0.

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
    sizes = np.sort(_magnitudes(values))
    sizes = sizes[sizes > 0.0]
    if not sizes.size:
        return 1.0
    # Of the values above the i-th: how many, and their sum.
    sums = np.append(np.cumsum(sizes[::-1])[::-1], 0.0)
    inside = 4.0**-bits / (3.0 if signed else 12.0)
    end = float(sizes.mean())
    for _ in range(_MOST_ITERATIONS):
        at = int(np.searchsorted(sizes, end, "right"))
        above = sizes.size - at
        if not above:  # Nothing is cut off: the greatest magnitude is the end.
            return float(sizes[-1])
        following = float(sums[at]) / (inside * at + above)
        if following == end:
            break
        end = following
    return min(end, float(sizes[-1]))


def _magnitudes(values: ArrayLike) -> NDArray[np.float64]:
    sizes = np.abs(numbers("values", values).astype(np.float64)).ravel()
    if not sizes.size or not np.isfinite(sizes).all():
        got = "no values" if not sizes.size else "values that are not finite"
        raise ArgumentError("values", got, "at least one, and finite numbers")
    return sizes


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
