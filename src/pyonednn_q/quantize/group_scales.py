"""Scales and zero points of groups: those of a range, and those that lose least.

    symmetric     scale = max(hi / qmax, lo / qmin)       zero_point = 0
    otherwise     scale = (hi − lo) / (2^bits − 1)        zero_point = clamp(rne(−lo / scale))
    loss          Σ moment · (wei − scale · (code − zero_point))²      of a group

lo and hi are the ends of a group, 0 among them. Scales are rounded to float32 before codes are
made, as kernels have them. A group of zeros has the scale 1. The search begins with those, shrinks
the ends, gives a symmetric group's far code to either sign, and fits scales to codes (least
squares, by turns); what loses less is kept, so that it never loses more.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_LEAST, Array
from pyonednn_q.errors import ArgumentError

__all__ = ["codes_of_parts", "range_scales", "searched_scales"]

_SHRINK = tuple(1.0 - at / 40.0 for at in range(1, 26))  # of both ends
_BESIDE = (1.0, 0.9, 0.8)  # of one end, where there are zero points
_FITS = 4
_ROWS = 64  # of weights at a time, which caches hold


def range_scales(parts: Array, dtype: str, *, symmetric: bool) -> tuple[Array, Array]:
    """Return the scales and zero points that span groups.

    Parameters
    ----------
    parts : (OC, groups, size) ndarray of float64
        Weights.
    dtype : {"s4", "s8", "u4", "u8"}
        Data type of the codes.
    symmetric : bool
        Whether zero points are 0.

    Returns
    -------
    scale : (OC, groups) ndarray of float64
        Values of float32.
    zero_point : (OC, groups) ndarray of int64

    Raises
    ------
    ArgumentError
        Weights that are too large for float32.
    """
    lo, hi = _ends(parts)
    return _of_ends(lo, hi, dtype, symmetric=symmetric)


def searched_scales(
    parts: Array, dtype: str, *, symmetric: bool, moments: Array | None = None
) -> tuple[Array, Array]:
    """Return scales and zero points that lose less than those of the ranges, where some do.

    Parameters
    ----------
    parts, dtype, symmetric
        Arguments of `range_scales`.
    moments : (groups, size) ndarray, optional
        Mean squares of what each weight is multiplied with. None: all alike.

    Returns
    -------
    scale : (OC, groups) ndarray of float64
        Values of float32; of symmetric codes also negative ones.
    zero_point : (OC, groups) ndarray of int64
    """
    weight = np.ones(parts.shape[1:]) if moments is None else moments
    searched = [
        _searched(parts[start : start + _ROWS], dtype, weight, symmetric=symmetric)
        for start in range(0, len(parts), _ROWS)
    ]
    scales, points = zip(*searched, strict=True)
    return np.concatenate(scales), np.concatenate(points)


def _searched(parts: Array, dtype: str, weight: Array, *, symmetric: bool) -> tuple[Array, Array]:
    best = _Best(parts, weight, dtype, *range_scales(parts, dtype, symmetric=symmetric))
    lo, hi = _ends(parts)
    for shrink in _SHRINK:
        if symmetric:
            best.take(*_of_ends(lo * shrink, hi * shrink, dtype, symmetric=True))
            scale, point = _of_ends(-hi * shrink, -lo * shrink, dtype, symmetric=True)
            best.take(-scale, point)
            continue
        for beside in _BESIDE:
            for of_lo, of_hi in ((shrink, shrink * beside), (shrink * beside, shrink)):
                best.take(*_of_ends(lo * of_lo, hi * of_hi, dtype, symmetric=False))
    for _ in range(_FITS):
        best.fit()
    return best.scale, best.point


def codes_of_parts(parts: Array, scale: Array, point: Array, dtype: str) -> Array:
    """Return the nearest codes of groups (OC, groups, size), as float64."""
    limits = dtypes.qmin(dtype), dtypes.qmax(dtype)
    rounded = np.rint(parts / scale[..., None]) + point[..., None]
    return np.asarray(np.clip(rounded, *limits))


class _Best:
    """Scales with the least error so far, group by group."""

    def __init__(self, parts: Array, weight: Array, dtype: str, scale: Array, point: Array) -> None:
        self.parts, self.weight, self.dtype = parts, weight, dtype
        self.scale, self.point = scale, point
        self.codes = codes_of_parts(parts, scale, point, dtype)
        self.loss = self._lost(self.codes, scale, point)

    def take(self, scale: Array, point: Array) -> None:
        """Keep other scales and zero points where they lose less."""
        codes = codes_of_parts(self.parts, scale, point, self.dtype)
        loss = self._lost(codes, scale, point)
        better = loss < self.loss
        self.loss = np.where(better, loss, self.loss)
        self.scale = np.where(better, scale, self.scale)
        self.point = np.where(better, point, self.point)
        self.codes = np.where(better[..., None], codes, self.codes)

    def fit(self) -> None:
        """Try the scale that suits the codes best: Σ moment · wei · code / Σ moment · code²."""
        steps = self.codes - self.point[..., None]
        weighted = self.weight * steps
        square = (weighted * steps).sum(axis=2)
        ratio = (weighted * self.parts).sum(axis=2) / np.where(square > 0.0, square, 1.0)
        fitted = np.where(square > 0.0, ratio, self.scale).astype(np.float32).astype(np.float64)
        is_usable = np.isfinite(fitted) & (np.abs(fitted) >= F32_LEAST)
        self.take(np.where(is_usable, fitted, self.scale), self.point)

    def _lost(self, codes: Array, scale: Array, point: Array) -> Array:
        apart = self.parts - scale[..., None] * (codes - point[..., None])
        return np.asarray((self.weight * np.square(apart)).sum(axis=2))


def _ends(parts: Array) -> tuple[Array, Array]:
    return np.minimum(parts.min(axis=2), 0.0), np.maximum(parts.max(axis=2), 0.0)


def _of_ends(lo: Array, hi: Array, dtype: str, *, symmetric: bool) -> tuple[Array, Array]:
    """Return scales and zero points that span ranges."""
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    span = np.maximum(hi / qmax, lo / qmin) if symmetric else (hi - lo) / qmax
    with np.errstate(over="ignore"):
        scale = np.where(span > 0.0, span, 1.0).astype(np.float32)
    if not np.isfinite(scale).all():
        raise ArgumentError("wei", f"a range of {span.max()}", "weights that float32 can span")
    scale = np.maximum(scale, np.float32(F32_LEAST)).astype(np.float64)
    if symmetric:
        return scale, np.zeros(scale.shape, np.int64)
    return scale, np.clip(np.rint(-lo / scale), qmin, qmax).astype(np.int64)
