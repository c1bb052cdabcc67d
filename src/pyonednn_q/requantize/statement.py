"""Statement of each kind of requantizer in NumPy: the proof of the C++ loops.

Slow and plain on purpose. Integers are 64 bits wide where they must be, floats are rounded by
assignment to their dtype and nothing else, and the exact kind works in Python's integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.requantize.multiplier import high_product
from pyonednn_q.requantize.rounding import round_real, shift_round

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.requantize.value import Requantizer


def apply(acc: Array, requantizer: Requantizer) -> Array:
    """Return integers of the requantizer's dtype for s32 accumulators.

    Raises
    ------
    ArgumentError
        An accumulator leaves 32 bits on the way, where the original overflows.
    DTypeError, ShapeError
        The accumulators do not fit.
    """
    acc = numbers("acc", acc)
    if acc.dtype != np.int32:
        raise DTypeError("acc", str(acc.dtype), "int32")
    requantizer.check(acc.shape)
    rule = requantizer.kind
    if rule.startswith("onednn"):
        whole = _onednn(acc, requantizer, divide=rule == "onednn_divide")
    else:
        rounded = _RULES[rule](_with_bias(acc, requantizer), requantizer)
        whole = rounded + requantizer.along("zero_point", acc.shape)
    bounded = np.clip(whole, requantizer.lo, requantizer.hi)
    return np.asarray(bounded).astype(dtypes.numpy_dtype(requantizer.dtype))


def _with_bias(acc: Array, requantizer: Requantizer) -> Array:
    return _in_32_bits(acc + requantizer.along("bias", acc.shape).astype(np.int64))


def _two_step(x: Array, requantizer: Requantizer) -> Array:
    shift = requantizer.along("shift", x.shape).astype(np.int64)
    wide = _in_32_bits(x << np.maximum(shift, 0))
    high = high_product(wide, requantizer.along("multiplier", x.shape))
    return shift_round(high, np.maximum(-shift, 0), requantizer.rounding)


def _shift(x: Array, requantizer: Requantizer) -> Array:
    product = x * requantizer.along("multiplier", x.shape).astype(np.int64)
    return shift_round(product, -requantizer.along("shift", x.shape), requantizer.rounding)


def _float(x: Array, requantizer: Requantizer) -> Array:
    factor = requantizer.along("multiplier", x.shape)
    return round_real(x.astype(factor.dtype) * factor, requantizer.rounding)


def _double(x: Array, requantizer: Requantizer) -> Array:
    """Multiply in float64 what is stored in float32, before and after."""
    factor = requantizer.along("multiplier", x.shape)
    return _in_float32(round_real(_in_float32(x) * factor, requantizer.rounding))


def _two_round(x: Array, requantizer: Requantizer) -> Array:
    factor = requantizer.along("multiplier", x.shape)
    product = (_in_float32(x) * factor).astype(factor.dtype)
    first = _in_float32(round_real(product, requantizer.rounding))
    return round_real(np.ldexp(first, requantizer.along("shift", x.shape)), requantizer.rounding)


def _in_float32(x: Array) -> Array:
    """Return numbers as float32 holds them, in float64: products of two of those are exact."""
    return x.astype(np.float32).astype(np.float64)


def _onednn(acc: Array, requantizer: Requantizer, *, divide: bool) -> Array:
    shape = acc.shape
    v: Array = acc.astype(np.float32) * requantizer.along("multiplier", shape)
    v = v * requantizer.along("then", shape) + requantizer.along("bias", shape)
    last = requantizer.along("last", shape)
    v = v / last if divide else v * last
    v = v + requantizer.along("zero_point", shape).astype(np.float32)
    bounded = np.clip(v.astype(np.float64), requantizer.lo, requantizer.hi)
    return round_real(bounded, "half_to_even")


def _exact(x: Array, requantizer: Requantizer) -> Array:
    """Divide whole numbers, x · m · 2^s by last, and tell halves from the rest."""
    m, s, last = (requantizer.along(name, x.shape) for name in ("multiplier", "shift", "last"))
    above = x.astype(object) * m.astype(object) * _powers(np.maximum(s, 0)) * 2
    below = last.astype(np.int64).astype(object) * _powers(np.maximum(-s, 0))
    size = np.abs(above) + below  # twice the quotient plus one: half of it is the quotient rounded
    whole, rest = size // (2 * below), size % (2 * below)
    if requantizer.rounding == "half_to_even":
        whole = whole - ((rest == 0) & (whole % 2 == 1))
    signed = np.where(above < 0, -whole, whole)
    return np.asarray(np.clip(signed, -(2**40), 2**40), np.int64)


def _powers(exponents: Array) -> Array:
    return np.asarray(np.vectorize(lambda e: 1 << int(e), otypes=[object])(exponents))


def _in_32_bits(x: Array) -> Array:
    if ((x < -(2**31)) | (x > 2**31 - 1)).any():
        raise ArgumentError("acc", "a value that leaves 32 bits on the way", "smaller ones")
    return x


_RULES: dict[str, Callable[[Array, Requantizer], Array]] = {
    "two_step": _two_step,
    "shift": _shift,
    "float": _float,
    "double": _double,
    "two_round_single": _two_round,
    "two_round_double": _two_round,
    "exact": _exact,
}
