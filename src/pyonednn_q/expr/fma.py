"""fma32: the float32 fused multiply-add, one rounding, on any machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def fma32(a: NDArray[Any], x: NDArray[Any], c: NDArray[Any]) -> NDArray[np.float32]:
    """Round a*x + c once to float32.

    The product of two float32 values is exact in float64. Adding c rounds to 53 bits and the cast
    would round again, so the sum is first rounded to odd: where it was inexact, its last bit is
    set. Then the cast cannot meet a false tie (Boldo and Melquiond, 2008).
    """
    product = np.asarray(a, np.float64) * x.astype(np.float64)
    addend = np.asarray(c, np.float64)
    total: NDArray[Any] = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0.0) & even
    odd = np.where(inexact, np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)
