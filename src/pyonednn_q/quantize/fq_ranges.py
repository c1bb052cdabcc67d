"""From measured ranges to FakeQuantize, as the training tool (NNCF) has it, in float32.

    symmetric    high = max(hi, 0.01 · the largest channel's, 8e-5), hi the largest |x|
                 low  = −high · levels/(levels − 2); narrow: −high; 0 where no value is below 0
    asymmetric   lo, hi are moved out by 8e-4 where hi − lo <= 8e-4, hold 0, and are tuned
    tuned        n = 2^bits − 1, point = rne(−lo · n / (hi − lo)); one end moves outward, so that 0
                 is a level: hi' = (point − n)/point · lo or lo' = point/(point − n) · hi, whichever
                 widens the range more (the other end would then have to move inward)
    half range   a range of 2^(bits−1) levels, both ends times (levels − 1)/(2^(bits−1) − 1)

What its version 2 did, of which configurations speak (`version=2`), for codes from a to b:

    symmetric    high = max(hi, −lo, 0.1), low = high · a/b; both signs where a low end is below 0,
                 or as `signed` says
    asymmetric   a range below 0.01 of the largest channel's becomes that, around its middle; tuned
    half range   of the codes of bits − 1: 2 a to 2 b + 1, and so is the range: 0 stays at a level
                 where symmetric. The asymmetric one is tuned for 2^(bits−1) levels, as there

Sources: nncf/quantization/fake_quantize.py of NNCF 3.4, nncf/torch/quantization/layers.py of 2.18,
compared with them for equality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import broadcast, flag, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["fq_from_range", "level_range", "tune_range"]

_LEAST = 8e-5
_NARROWEST = np.float32(8e-4)
_OF_LARGEST = 0.01
_LEAST_2 = np.float32(0.1)


def level_range(
    bits: int = 8, *, signed: bool = True, narrow: bool = False, symmetric: bool = True
) -> tuple[int, int]:
    """Return the lowest and the highest code, (level_low, level_high).

    Parameters
    ----------
    bits : int
        Width of the codes in bits, 2 to 16.
    signed : bool
        Whether codes are on both sides of 0; else from 0 on.
    narrow : bool
        Whether there are 255 levels instead of 256: without the lowest code, so that the negative
        of each code exists; without the highest code if symmetric codes begin at 0.
    symmetric : bool
        Whether the range is symmetric; if not, codes begin at 0, whatever `signed` is.

    Raises
    ------
    ArgumentError
        Another width.

    Examples
    --------
    >>> level_range(8, narrow=True), level_range(4), level_range(8, signed=False)
    ((-127, 127), (-8, 7), (0, 255))
    >>> level_range(8, signed=False, narrow=True)
    (0, 254)
    """
    bits = whole("bits", bits, lo=2, hi=16)
    for name, value in {"signed": signed, "narrow": narrow, "symmetric": symmetric}.items():
        flag(name, value)
    if not symmetric:
        return int(narrow), 2**bits - 1
    if not signed:
        return 0, 2**bits - 1 - int(narrow)
    half: int = 2 ** (bits - 1)
    return int(narrow) - half, half - 1


def fq_from_range(
    lo: ArrayLike,
    hi: ArrayLike,
    bits: int = 8,
    *,
    symmetric: bool = True,
    signed: bool | None = None,
    narrow: bool = False,
    half_range: bool = False,
    strict_zero: bool = False,
    unify_zero: bool = False,
    version: int = 3,
) -> FakeQuantize:
    """Return the FakeQuantize of a measured range, for the tensor or for each channel.

    Parameters
    ----------
    lo, hi : float or array_like
        Ends of the range in real units, as `Estimator.range` returns them: one value, (C,), or in
        the tensor's rank. Symmetric: `hi` is the largest magnitude, and `lo` is below 0 if values
        were.
    bits : int
        Width of the codes in bits, 2 to 16.
    symmetric : bool
        Whether 0 is in the middle (or at the low end, without values below 0); else there is a zero
        point.
    signed : bool, optional
        Whether symmetric ranges have both signs. True: always. None or False: by `lo`; with version
        2, False means ranges from 0 on.
    narrow : bool
        Whether there is one level less, at the low end (at the high end if the low end is 0). With
        version 2, for symmetric ranges only.
    half_range : bool
        Whether to stretch a range of half as many levels, so that codes are in [-64, 63] (narrow:
        [-64, 64]) and products with u8 codes cannot saturate on CPUs without VNNI. Symmetric
        ranges only, except with version 2.
    strict_zero : bool
        Whether 0 is always a level of asymmetric ranges: a side that rounds to no level at all
        becomes 0. The training tool keeps the side; an exported operator then shifts all values.
    unify_zero : bool
        Whether asymmetric ranges all have the channels' mean zero point.
    version : {3, 2}
        Version of NNCF. Version 2 has neither `strict_zero` nor `unify_zero`. Its half range needs
        values that were clipped to the range of `bits` - 1 before.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> print(fq_from_range(-1.0, 1.0, narrow=True))
    fake_quantize(x, [-1, 1] -> [-1, 1], 255 levels)
    >>> wide = fq_from_range(-1.0, 1.0, half_range=True)
    >>> round(wide.zero_in.least, 3), wide.levels
    (128.504, 256)
    >>> round(fq_from_range(-1.0, 1.0, half_range=True, version=2).zero_in.least, 3)
    128.0
    """
    flags = {"symmetric": symmetric, "narrow": narrow, "half_range": half_range}
    for name, value in {**flags, "strict_zero": strict_zero, "unify_zero": unify_zero}.items():
        flag(name, value)
    least, greatest = _ends(lo, hi)
    bits = whole("bits", bits, lo=2, hi=16)
    if signed is not None:
        flag("signed", signed)
    if half_range and bits < 3:
        raise ArgumentError("half_range", f"{bits} bits", "at least 3")
    if whole("version", version, lo=2, hi=3) == 2:
        if strict_zero or unify_zero:
            raise ArgumentError("version", "2", "3, which has strict_zero and unify_zero")
        if not symmetric:
            return _asymmetric_2(least, greatest, bits, half=half_range)
        return _symmetric_2(least, greatest, bits, signed, narrow=narrow, half=half_range)
    first, last = level_range(bits, narrow=narrow)
    levels = last - first + 1
    if not symmetric:
        if half_range:
            raise ArgumentError("half_range", "True", "symmetric=True, where it is defined")
        least, greatest = _asymmetric(least, greatest)
        low, high = _tuned(least, greatest, bits, strict=strict_zero, unify=unify_zero)
        return FakeQuantize(low, high, low, high, levels)
    count = 2 ** (bits - 1) if half_range else levels
    high = _floored(greatest)
    low = np.zeros_like(high)
    if signed or (least < 0.0).any():
        low = -high if narrow else -high * np.float32(count / (count - 2))
    if half_range:
        stretch = np.float32((levels - 1) / (count - 1))
        low, high = low * stretch, high * stretch
    return FakeQuantize(low, high, low, high, levels)


def tune_range(
    lo: ArrayLike, hi: ArrayLike, bits: int = 8, *, strict: bool = False, unify: bool = False
) -> tuple[Array, Array]:
    """Return a range moved outward so that 0 is one of its levels.

    Parameters
    ----------
    lo, hi : float or array_like
        Ends in real units, lo <= 0 <= hi, lo < hi.
    bits : int
        Width of the codes in bits, 2 to 16.
    strict : bool
        Whether a side that rounds to no level becomes 0.
    unify : bool
        Whether all channels get one zero point, the rounded mean of theirs.

    Returns
    -------
    lo, hi : ndarray of float32

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> lo, hi = tune_range(-1.0, 2.0)
    >>> float(lo), float(hi), float(-lo / (hi - lo) * 255)
    (-1.0, 2.0, 85.0)
    """
    flag("strict", strict)
    flag("unify", unify)
    least, greatest = _ends(lo, hi)
    if (least > 0.0).any() or (greatest < 0.0).any() or (least == greatest).any():
        got = f"a range from {least.max()} to {greatest.min()}"
        raise ArgumentError("lo", got, "lo <= 0 <= hi, lo < hi")
    return _tuned(least, greatest, whole("bits", bits, lo=2, hi=16), strict=strict, unify=unify)


def _ends(lo: ArrayLike, hi: ArrayLike) -> tuple[Array, Array]:
    with np.errstate(over="ignore"):
        least, greatest = (
            numbers(name, end).astype(np.float32) for name, end in (("lo", lo), ("hi", hi))
        )
    shape = greatest.shape if greatest.ndim >= least.ndim else least.shape
    if 0 in shape:
        raise ShapeError("lo", f"shape {shape}", "at least one range")
    least, greatest = broadcast("lo", least, shape), broadcast("hi", greatest, shape)
    if not (np.isfinite(least).all() and np.isfinite(greatest).all()):
        raise ArgumentError("lo", "ends that are not finite", "finite ranges in float32")
    if (least > greatest).any():
        raise ArgumentError("lo", f"{least.max()} and hi {greatest.min()}", "lo <= hi")
    return least, greatest


def _symmetric_2(
    lo: Array, hi: Array, bits: int, signed: bool | None, *, narrow: bool, half: bool
) -> FakeQuantize:
    both = bool((lo < 0.0).any()) if signed is None else signed
    first, last = level_range(bits - half, signed=both, narrow=narrow)
    high = np.maximum(np.maximum(np.abs(lo), np.abs(hi)), _LEAST_2)
    if half:
        high = high * np.float32((2 * last + 1) / last)
        first, last = 2 * first, 2 * last + 1
    low = high * np.float32(first) / np.float32(last)
    return FakeQuantize(low, high, low, high, last - first + 1)


def _asymmetric_2(lo: Array, hi: Array, bits: int, *, half: bool) -> FakeQuantize:
    width = hi - lo
    largest = width.max()
    out = (np.clip(width, np.float32(_OF_LARGEST) * largest, largest) - width) * np.float32(0.5)
    last = 2 ** (bits - half) - 1
    stretch = np.float32((2 * last + 1) / last) if half else np.float32(1.0)
    least = lo - out
    greatest = stretch * (width + np.float32(2.0) * out) + least
    held = np.minimum(least, np.float32(0.0)), np.maximum(greatest, np.float32(0.0))
    low, high = _tuned(*held, bits - half, strict=False, unify=False)
    high = low + (high - low)  # as there, which keeps low and width
    return FakeQuantize(low, high, low, high, 2**bits)


def _floored(high: Array) -> Array:
    if (high < 0.0).any():
        raise ArgumentError("hi", f"{high.min()}", "magnitudes, where symmetric")
    least_of_all = np.maximum(high.max() * np.float32(_OF_LARGEST), np.float32(_LEAST))
    return np.asarray(np.maximum(least_of_all, high))


def _asymmetric(lo: Array, hi: Array) -> tuple[Array, Array]:
    # Above 8e-4 the tool's correction is (max(1e-8 r, r) - r)/2, which is nothing.
    out = np.where(hi - lo > _NARROWEST, np.float32(0.0), _NARROWEST)
    return np.minimum(lo - out, np.float32(0.0)), np.maximum(hi + out, np.float32(0.0))


def _tuned(lo: Array, hi: Array, bits: int, *, strict: bool, unify: bool) -> tuple[Array, Array]:
    n = np.float32(2**bits - 1)
    point = np.rint(-lo * (n / (hi - lo)))
    if unify:
        point = np.full_like(lo, np.rint((-lo / ((hi - lo) / n)).mean()))
    with np.errstate(divide="ignore", invalid="ignore"):
        to_low = np.where(point < n, point / (point - n) * hi, lo)
        to_high = np.where(point > 0.0, (point - n) / point * lo, hi)
    by_low = hi - to_low > to_high - lo
    low, high = np.where(by_low, to_low, lo), np.where(by_low, hi, to_high)
    if strict:
        low = np.where(point == 0.0, np.float32(0.0), low)
        high = np.where(point == n, np.float32(0.0), high)
    return low.astype(np.float32), high.astype(np.float32)
