"""Limits: which constants float32 can hold, and how near is the same.

Post-ops and scales are float32. A fold whose result leaves float32's normal range would be exact on
paper and wrong in a kernel, so rules refuse it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyonednn_q.expr.vec import Float64, Vec

__all__ = ["FLT_MAX", "FLT_MIN", "NOISE", "is_noise", "not_storable", "overflows", "vanishes"]

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
