"""The L2 search over a histogram: both ends move inward while the estimated squared error falls.

    bins of equal width over [lo, hi]; a start bin and an end bin, at first the outermost
    each round, the end whose next quantile (1e-5 of all values further) skips more bins moves there
    error       of the range's 2^bits equal steps, values spread evenly within each bin:
                Σ density · ∫ x² over the parts of the bin between centres of steps
    end         as soon as a move makes the error grow

Source: Caffe2's NormMinimization, as torch.ao's HistogramObserver and NNCF's histogram have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.dtypes import Array

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["searched_range"]

_STEP = 1e-5


def searched_range(
    heights: NDArray[Any], lo: float, hi: float, steps: int = 256
) -> tuple[float, float]:
    """Return the range that the search ends at.

    Parameters
    ----------
    heights : (bins,) ndarray
        Number of values in each of the equal bins of [lo, hi].
    lo, hi : float
        Ends of the histogram, lo <= hi.
    steps : int
        Number of codes, 2 ** bits.

    Examples
    --------
    >>> heights = np.zeros(2048)
    >>> heights[1000:1048], heights[-1] = 1000.0, 1.0
    >>> searched_range(heights, -1.0, 1.0)
    (-0.0234375, 0.9990234375)
    """
    bins = heights.size
    width = (hi - lo) / bins
    if width == 0.0:
        return lo, hi
    sums = np.cumsum(heights.astype(np.float64))
    total = float(sums[-1])
    start, end = 0, bins - 1
    left, right, least = 0.0, 1.0, np.inf
    while left < right:
        next_left, next_right = left + _STEP, right - _STEP
        to = min(max(start, int(np.searchsorted(sums, next_left * total, "left"))), end)
        # The last bin at or before `end` whose sum does not pass the quantile.
        back = max(min(end, int(np.searchsorted(sums, next_right * total, "right")) - 1), start)
        moved = start, end
        if to - start > end - back:
            moved, left = (to, end), next_left
        else:
            moved, right = (start, back), next_right
        if moved == (start, end):
            continue
        error = _error(heights, width, *moved, steps)
        if error > least:
            break
        least, (start, end) = error, moved
    return lo + width * start, lo + width * (end + 1)


def _error(heights: Array, width: float, start: int, end: int, steps: int) -> float:
    step = width * (end - start + 1) / steps
    begins = (np.arange(heights.size) - start) * width
    ends = begins + width
    first = np.clip(np.floor_divide(begins, step), 0, steps - 1)
    last = np.clip(np.floor_divide(ends, step), 0, steps - 1)
    density = heights / width
    half = step / 2
    error = density * (half**3 - (begins - (first + 0.5) * step) ** 3) / 3
    error += (last - first - 1) * density * (half**3 + half**3) / 3
    error += density * ((ends - (last * step + half)) ** 3 + half**3) / 3
    return float(error.sum())
