"""Acc and Dst: the two ends of a chain, with what a primitive does there anyway.

They stand in the rewriter's sequence like steps, so that a rule can move constants into them: the
left end absorbs affine steps (weight scale and bias), the right end saturates and rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.interval import ANYTHING, Interval, affine
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Vec

__all__ = ["Acc", "Dst", "Item", "Takes"]

_ONE, _ZERO = Vec(1.0), Vec(0.0)


class Takes(Enum):
    """What an end of a chain can absorb."""

    NOTHING = 0
    PER_TENSOR = 1
    PER_CHANNEL = 2

    def admits(self, vec: Vec) -> bool:
        """Whether a constant of this granularity fits."""
        return self is Takes.PER_CHANNEL or (self is Takes.PER_TENSOR and vec.array is None)


@dataclass(frozen=True, slots=True)
class Acc:
    """The left end: x0 = scale*acc + shift.

    Attributes
    ----------
    interval : Interval
        What is known of acc, before scale and shift; whole numbers for an integer primitive.
    scale, shift : Vec
        What the primitive applies: source scale times weight scale, and the bias.
    takes_scale, takes_shift : Takes
        Whether it can apply more. A bias that is known only when the chain runs takes neither.
    because : str
        Why it takes nothing, for refusals ("the bias is a run-time argument").
    """

    interval: Interval = ANYTHING
    scale: Vec = _ONE
    shift: Vec = _ZERO
    takes_scale: Takes = Takes.NOTHING
    takes_shift: Takes = Takes.NOTHING
    because: str = ""

    @property
    def channels(self) -> int | None:
        """How many channels its constants have, or ``None`` if all are per tensor."""
        return self.scale.channels or self.shift.channels or self.interval.lo.channels

    @property
    def leaving(self) -> Interval:
        """What is known of x0."""
        return affine(self.scale, self.shift, self.interval)

    def holding(self, scale: Vec, shift: Vec) -> Acc:
        """Return the same end with another scale and shift."""
        return Acc(self.interval, scale, shift, self.takes_scale, self.takes_shift, self.because)

    def __str__(self) -> str:
        return str(Affine(self.scale, self.shift)).replace("x", "acc")


@dataclass(frozen=True, slots=True)
class Dst:
    """The right end: dst = saturate(rne(x/scale + zero_point)) for integers, a cast for floats.

    Attributes
    ----------
    dtype : str or None
        Data type of dst; ``None`` where the result of the chain is not stored.
    scale, zero_point : float, int
        Real value of one step of dst, and its code for real 0, as the primitive's store applies
        them.
    takes_scale, takes_zero_point : Takes
        Whether it can apply more.
    """

    dtype: str | None = None
    scale: float = 1.0
    zero_point: int = 0
    takes_scale: Takes = Takes.NOTHING
    takes_zero_point: Takes = Takes.NOTHING

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", dtypes.checked(self.dtype))
        if not (math.isfinite(self.scale) and self.scale > 0.0):
            raise ArgumentError("scale", str(self.scale), "a finite number above 0")

    @property
    def is_integer(self) -> bool:
        """Whether the store rounds and saturates."""
        return self.dtype is not None and dtypes.is_integer(self.dtype)

    @property
    def is_plain(self) -> bool:
        """Whether the store applies neither scale nor zero point."""
        return self.scale == 1.0 and self.zero_point == 0

    def __str__(self) -> str:
        if self.dtype is None:
            return "end"
        inner = "x" if self.scale == 1.0 else f"x/{self.scale!r}"
        return f"{self.dtype}({inner}{f' {self.zero_point:+d}' if self.zero_point else ''})"


Item: TypeAlias = Step | Acc | Dst
