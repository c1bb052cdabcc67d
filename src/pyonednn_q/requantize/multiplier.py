"""Real multipliers M = src_scale · wei_scale / dst_scale, and the integers that stand for them.

Each function names one step of one framework; no step rounds where the original does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.requantize.rounding import round_real, shift_round
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_PRECISIONS = ("double", "single_product", "single", "single_reciprocal")
STEPS = ("two_step", "two_step_up", "one_step")
RULES = ("search", "positive", "q31", "literal", "truncate")
_LIMITS = {8: 127, 32: 2**31 - 1}


def real_multiplier(
    src_scale: ArrayLike, wei_scale: ArrayLike, dst_scale: ArrayLike, precision: str = "double"
) -> Array:
    """Return M as float64, rounded as `precision` says.

    Parameters
    ----------
    src_scale, wei_scale, dst_scale : array_like of float
        Scales, finite and above 0, that broadcast against each other; for the single precisions
        they are rounded to float32 first.
    precision : {"double", "single_product", "single", "single_reciprocal"}
        ``double``: two operations in float64. ``single_product``: the product in float32, the
        division in float64. ``single``: both in float32. ``single_reciprocal``: that of dst_scale
        in float32, times the product.

    Raises
    ------
    ArgumentError
        A scale that is not finite and positive, or an M that is not finite.
    """
    one_of("precision", precision, _PRECISIONS)
    scales = [_scale(n, s) for n, s in zip(_SCALES, (src_scale, wei_scale, dst_scale), strict=True)]
    src, wei, dst = scales
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return _finite("multiplier", _quotient(src, wei, dst, precision))


def _quotient(src: Array, wei: Array, dst: Array, precision: str) -> Array:
    if precision == "double":
        return np.asarray(src * wei / dst)
    product = src.astype(np.float32) * wei.astype(np.float32)
    if precision == "single_product":
        return np.asarray(product.astype(np.float64) / dst.astype(np.float32).astype(np.float64))
    if precision == "single_reciprocal":
        return np.asarray(product * (np.float32(1) / dst.astype(np.float32))).astype(np.float64)
    return np.asarray(product / dst.astype(np.float32)).astype(np.float64)


def quantize_multiplier(multiplier: ArrayLike) -> tuple[Array, Array]:
    """Return integers q and e with multiplier ≈ q · 2^(e − 31), 2^30 <= |q| < 2^31.

    TFLite's and gemmlowp's. From frexp, so e > 0 shifts left; q rounds half away from zero, and a q
    of 2^31 becomes 2^30 with e + 1; below 2^-32 the multiplier counts as 0.

    Returns
    -------
    tuple of ndarray
        q as int64 (it fits in 32 bits), e as int32.

    Raises
    ------
    ArgumentError
        A multiplier is not finite.
    """
    m = _finite("multiplier", multiplier)
    fraction, exponent = np.frexp(m)
    q = round_real(np.ldexp(fraction, 31), "half_away_from_zero").astype(np.int64)
    carried = q == 2**31
    q, exponent = np.where(carried, 2**30, q), exponent + carried
    tiny = exponent < -31
    return np.where(tiny, 0, q), np.where(tiny, 0, exponent).astype(np.int32)


def multiply_by_quantized_multiplier(
    x: ArrayLike, q: ArrayLike, exponent: ArrayLike, steps: str = "two_step"
) -> Array:
    """Return x · q · 2^(exponent − 31) in integers, rounded once or twice.

    Parameters
    ----------
    x, q, exponent : array_like of int
        Numbers that broadcast against each other; x and q fit in 32 bits.
    steps : {"two_step", "two_step_up", "one_step"}
        Two roundings: the doubling high product half up, then the division by 2^-exponent half away
        from zero, or half up. One: half up, of the 64-bit product.

    Returns
    -------
    ndarray of int64

    Raises
    ------
    ArgumentError
        x · 2^exponent leaves 32 bits, where the originals overflow.
    """
    one_of("steps", steps, STEPS)
    wide, factor, e = (np.asarray(v).astype(np.int64) for v in (x, q, exponent))
    if steps == "one_step":
        return shift_round(wide * factor, 31 - e, "half_up")
    shifted = wide << np.maximum(e, 0)
    if (np.abs(shifted + 0.5) > 2**31).any():
        raise ArgumentError("x", "a value that its left shift carries out of 32 bits", "smaller")
    high = high_product(shifted, factor)
    second = "half_away_from_zero" if steps == "two_step" else "half_up"
    return shift_round(high, np.maximum(-e, 0), second)


def high_product(a: ArrayLike, b: ArrayLike) -> Array:
    """Return a · b / 2^31, ties up, for 32-bit integers; −2^31 times itself saturates.

    gemmlowp's saturating rounding doubling high multiplication: its sign-dependent nudge and
    truncating division round as this does.
    """
    high = shift_round(np.asarray(a, np.int64) * np.asarray(b, np.int64), 31, "half_up")
    return np.minimum(high, 2**31 - 1)


def scale_to_mult_shift(
    multiplier: ArrayLike, bits: int = 32, rule: str = "search"
) -> tuple[Array, Array]:
    """Return integers k and r with multiplier ≈ k / 2^r, as TPU-MLIR chooses them.

    Parameters
    ----------
    multiplier : array_like of float
        Real multipliers, of any shape; finite.
    bits : {8, 32}
        Width of k in bits.
    rule : str
        ``search``: the multiplier in float32; the first r from −32 to 30 whose k, rounded half away
        from zero, has the least float32 error, |k| below 127 or 2^31 − 1. ``positive``: the same
        from r = 0. ``q31``: TFLite's, with r = 31 − e. ``literal``: the documentation's M_0 and n,
        which is the same k and r with another rounding afterwards. ``truncate``: the largest r with
        |k| <= 127 (CV18xx's multipliers of eltwise and pooling), k rounded towards zero.

    Returns
    -------
    tuple of ndarray
        k as int64, r as int32.

    Raises
    ------
    ArgumentError
        A multiplier that is not finite, or one to be searched for of 2^63 or more.
    """
    one_of("rule", rule, RULES)
    if bits not in _LIMITS:
        raise ArgumentError("bits", shown(bits), "8 or 32")
    m = _finite("multiplier", multiplier)
    if rule in {"q31", "literal"}:
        if bits != 32:
            raise ArgumentError("bits", str(bits), f"32: rule {rule!r} has no other")
        q, exponent = quantize_multiplier(m)
        return q, (31 - exponent).astype(np.int32)
    if rule == "truncate":
        return _truncated(m, _LIMITS[bits])
    return _searched(m, _LIMITS[bits], first=-32 if rule == "search" else 0)


def ev_multiplier(multiplier: ArrayLike) -> tuple[Array, Array]:
    """Return integers k and r with multiplier ≈ k / 2^r, k odd and below 2^15, 1 <= r <= 63.

    Synopsys' EV hardware. The bound below which k is taken lies a little under 2^-1, so that k
    never rounds to 2^15; trailing zeros of k are dropped while r stays at least 1.
    """
    m = _finite("multiplier", multiplier)
    if (m < 0).any():
        raise ArgumentError("multiplier", str(m.min()), "positive numbers")
    high = 0.5 * (65536 - 0.51) / 65536
    _, exponent = np.frexp(m)
    r = 15 - exponent  # m · 2^r lies in [2^14, 2^15)
    r = np.where(np.ldexp(m, r - 16) >= high, r - 1, r)
    r = np.minimum(r, 63)
    if (r < 1).any():
        raise ArgumentError("multiplier", str(m.max()), "one below 2^14: the shift is at least 1")
    k = round_real(np.ldexp(m, r), "half_away_from_zero").astype(np.int64)
    for _ in range(15):
        even = (k % 2 == 0) & (r > 1) & (k > 0)
        k, r = np.where(even, k // 2, k), np.where(even, r - 1, r)
    return k, r.astype(np.int32)


_SCALES = ("src_scale", "wei_scale", "dst_scale")


def _searched(m: Array, limit: int, first: int) -> tuple[Array, Array]:
    with np.errstate(over="ignore"):
        single = m.astype(np.float32)
    if (np.abs(single) >= 2.0**63).any():
        raise ArgumentError("multiplier", str(np.abs(m).max()), "one below 2^63 in float32")
    best_error = np.full(m.shape, np.finfo(np.float32).max, np.float32)
    best_shift = np.zeros(m.shape, np.int32)
    for r in range(first, 31):
        k = round_real(np.ldexp(single.astype(np.float64), r), "half_away_from_zero")
        error = np.abs(np.ldexp(k, -r) - single).astype(np.float32)
        better = (error < best_error) & (np.abs(k) < limit)
        best_error = np.where(better, error, best_error)
        best_shift = np.where(better, r, best_shift)
    k = round_real(np.ldexp(single.astype(np.float64), best_shift), "half_away_from_zero")
    return k.astype(np.int64), best_shift


def _truncated(m: Array, limit: int) -> tuple[Array, Array]:
    settled = m > limit
    k, r = np.where(settled, float(limit), 0.0), np.zeros(m.shape, np.int32)
    for shift in range(63):
        reached = ~settled & (np.ldexp(m, shift + 1) >= limit)
        k = np.where(reached, np.trunc(np.ldexp(m, shift)), k)
        r = np.where(reached, shift, r).astype(np.int32)
        settled = settled | reached
    return k.astype(np.int64), r


def _scale(name: str, value: ArrayLike) -> Array:
    scale = _finite(name, value)
    if (scale <= 0).any():
        raise ArgumentError(name, str(scale.min()), "positive numbers")
    return scale


def _finite(name: str, value: ArrayLike) -> Array:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise ArgumentError(name, str(array.dtype), "numbers")
    numbers = array.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ArgumentError(name, "a value that is not finite", "finite numbers")
    return numbers
