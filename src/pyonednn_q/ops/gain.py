"""Gain: what was chosen among several ways, and how sure it is that it is faster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.native.timing import Timed

_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Timing:
    """Time of a way, in microseconds a call, the median of its samples."""

    way: str
    us: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """Choice for a problem, by time.

    Attributes
    ----------
    way, usual : str
        Chosen way, and the way without tuning: a form and an implementation.
    gain : float
        Time of the usual way over that of the one taken, the median of pairs; 1 where it stayed.
    timings : tuple of Timing
        Timings of all ways that were tried; empty where the choice was loaded.
    """

    way: str
    usual: str
    gain: float
    timings: tuple[Timing, ...] = ()

    @property
    def verdict(self) -> str:
        """Chosen way and the usual one, in a line without times."""
        if self.way == self.usual:
            return f"{self.way} stays: nothing was surely faster"
        return f"{self.way} in place of {self.usual}, {self.gain:.2f} times as fast"

    def __str__(self) -> str:
        tried = ", ".join(f"{t.way} {t.us:.1f} us" for t in self.timings)
        return f"{self.verdict} ({tried})" if tried else f"{self.verdict} (loaded)"


def ratios_of(before: Timed, after: Timed) -> list[float]:
    """Return the ratios of paired samples."""
    pairs = zip(before.samples_us, after.samples_us, strict=True)
    return [one / other for one, other in pairs]


def sure_gain(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the median of ratios, and its lower bound of 95 %.

    Examples
    --------
    >>> from pyonednn_q.native.timing import Timed
    >>> sure_gain(ratios_of(Timed(1, (2.0,) * 40), Timed(1, (1.0,) * 40)))
    (2.0, 2.0)
    """
    ordered = sorted(ratios)
    # Order statistics around the median, by the normal approximation of the binomial.
    rank = math.floor((len(ordered) - _NORMAL_95 * math.sqrt(len(ordered))) / 2)
    return median(ordered), ordered[max(rank, 0)]
