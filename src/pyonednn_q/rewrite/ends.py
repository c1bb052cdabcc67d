"""Acc and Dst: the two ends of a chain; and which constants float32 can hold between them.

They stand in the rewriter's sequence like steps, so that a rule can move constants into them: the
left end absorbs affine steps (weight scale and bias), the right end saturates and rounds.

Post-ops and scales are float32. A fold whose result leaves float32's normal range would be exact on
paper and wrong in a kernel, so rules refuse it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.interval import ANYTHING, Interval, affine
from pyonednn_q.expr.steps import Affine, Step
from pyonednn_q.expr.vec import Float64, Vec

_ONE, _ZERO = Vec(1.0), Vec(0.0)


class Takes(Enum):
    """Constants that an end of a chain can absorb."""

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
        Bounds of acc, before scale and shift; whole numbers for an integer primitive.
    scale, shift : Vec
        Factor and addend that the primitive applies: source scale times weight scale, and the bias.
    takes_scale, takes_shift : Takes
        Whether it can apply more. A bias that is known only when the chain runs takes neither.
    because : str
        Reason why it takes nothing, for refusals ("the bias is a run-time argument").
    """

    interval: Interval = ANYTHING
    scale: Vec = _ONE
    shift: Vec = _ZERO
    takes_scale: Takes = Takes.NOTHING
    takes_shift: Takes = Takes.NOTHING
    because: str = ""

    @property
    def channels(self) -> int | None:
        """Number of channels of its constants, or ``None`` if all are per tensor."""
        return self.scale.channels or self.shift.channels or self.interval.lo.channels

    @property
    def leaving(self) -> Interval:
        """Bounds of x0."""
        return affine(self.scale, self.shift, self.interval)

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


FLT_MAX = float(np.finfo(np.float32).max)
FLT_MIN = float(np.finfo(np.float32).smallest_normal)

# What folding in float64 may leave behind. 2**-40 of a quantization step is 65 536 times finer than
# float32 resolves beside a level of 1, and 4 096 times coarser than float64 at 1: enough for folds
# of a dozen steps, too little for anything a user meant.
NOISE = 2.0**-40


def not_storable(name: str, vec: Vec) -> str | None:
    """Say why float32 cannot hold a constant, or ``None``: too large, or tiny and not zero."""
    least, greatest = vec.least, vec.greatest
    if least >= FLT_MIN and greatest <= FLT_MAX:
        return None
    if greatest > FLT_MAX or least < -FLT_MAX:
        return f"{name} {vec.first(_too_large)} would be beyond float32"
    if vec.array is None:
        if least == 0.0 or least <= -FLT_MIN:
            return None
    elif not _too_small(vec.array).any():
        return None
    return f"{name} {vec.first(_too_small)} would be below float32's normal range"


def overflows(bound: Vec, moved: Vec) -> bool:
    """Tell whether a bound that closed its side has moved beyond float32, where it closes none."""
    if moved.least >= -FLT_MAX and moved.greatest <= FLT_MAX:
        return False
    if bound.array is None and moved.array is None:
        return bound.is_finite
    return bool((np.isfinite(bound.values()) & _too_large(moved.values())).any())


def vanishes(product: Vec, left: Vec, right: Vec) -> bool:
    """Tell whether a product became zero in float64 although neither factor is."""
    if not product.least <= 0.0 <= product.greatest:
        return False
    zero = (left.values() == 0.0) | (right.values() == 0.0)
    return bool(((product.values() == 0.0) & ~zero).any())


def is_noise(vec: Vec, target: Vec) -> bool:
    """Tell whether two constants differ by nothing but the rounding of float64 folds."""
    return abs(vec - target).greatest <= NOISE


def _too_large(values: Float64) -> NDArray[np.bool_]:
    return np.asarray(np.abs(values) > FLT_MAX)


def _too_small(values: Float64) -> NDArray[np.bool_]:
    return np.asarray((np.abs(values) < FLT_MIN) & (values != 0.0))
