"""Integers times real multipliers, as each dialect's integer kernels do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.requantize.multiplier import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scale_to_mult_shift,
)
from pyonednn_q.requantize.rounding import shift_round

Array = np.ndarray[Any, Any]


def two_step(x: Array, multiplier: float, *, left_shift: int = 0) -> Array:
    """Return x · 2^left_shift · multiplier as TFLite does: 31 bits, two roundings."""
    q, exponent = quantize_multiplier(multiplier)
    return multiply_by_quantized_multiplier(x << left_shift, q, exponent)


def two_step_up(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as TFLite's optimised kernels do: the second rounding is half up."""
    return multiply_by_quantized_multiplier(x, *quantize_multiplier(multiplier), "two_step_up")


def eight_bits(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as XNNPACK does: in 256ths, half up."""
    k = int(np.rint(np.float32(256) * np.float32(multiplier)))
    return shift_round(x * k, 8, "half_up")


def searched(x: Array, multiplier: float) -> Array:
    """Return x · multiplier as TPU-MLIR does: 7 bits, a shift from 0 to 30, half up."""
    k, r = scale_to_mult_shift(multiplier, 8, "positive")
    return shift_round(x * k, r, "half_up")
