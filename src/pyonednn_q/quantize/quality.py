"""Errors of a quantized tensor: noise, direction, values cut off, and the spread of scales.

sqnr     10 · log10(Σ x² / Σ (x − y)²) in dB
cosine   Σ x·y / sqrt(Σ x² · Σ y²)
clipped  the share of values that lie beyond the ends of their codes by over half a step
spread   the largest scale of a channel over the smallest
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, named, numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams, along

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

__all__ = ["Quality", "quality", "quality_table"]


@dataclass(frozen=True, slots=True)
class Quality:
    """Distance of quantized values from real ones.

    Attributes
    ----------
    sqnr : float
        Signal over quantization noise, in dB; infinite without an error.
    cosine : float
        Cosine of both tensors, -1 to 1; 1 if all values of both are 0.
    clipped : float
        Share of values outside of the range of codes, 0 to 1; 0 without `QParams`.
    spread : float
        Largest scale divided by the smallest, at least 1.
    """

    sqnr: float
    cosine: float
    clipped: float
    spread: float


def quality(x: ArrayLike, y: ArrayLike | None = None, *, q: QParams | None = None) -> Quality:
    """Return the quality of quantized values.

    Parameters
    ----------
    x : array_like
        Real values, finite.
    y : array_like, optional
        Quantized values, in the same shape. Default: `x`, quantized and dequantized by `q`.
    q : QParams, optional
        Scale and zero point of the codes.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> found = quality([1.0, -2.0, 40.0], q=QParams(0.25, 0, "s8"))
    >>> round(found.sqnr, 2), round(found.clipped, 2)
    (13.73, 0.33)
    """
    real = numbers("x", x).astype(np.float64)
    if q is not None:
        instance("q", q, QParams)
    elif y is None:
        raise ArgumentError("y", "None", "values, or q to make them by")
    if not real.size or not np.isfinite(real).all():
        raise ArgumentError("x", "no values, or not finite", "at least one, and finite numbers")
    if q is not None and q.axis is not None:
        has_axis = -real.ndim <= q.axis < real.ndim
        size = q.block[0] if q.block else 1
        if not has_axis or real.shape[q.axis] != (q.channels or 0) * size:
            got = f"{q.channels} channels along axis {q.axis}"
            raise ShapeError("q", got, f"as many as x of shape {real.shape} has")
    if y is None:
        assert q is not None
        became = q.dequantize(q.quantize(real))
    else:
        became = numbers("y", y).astype(np.float64)
    if became.shape != real.shape:
        raise ShapeError("y", f"shape {became.shape}", f"{real.shape}")
    if not np.isfinite(became).all():
        raise ArgumentError("y", "values that are not finite", "finite numbers")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        power, lost = float(np.square(real).sum()), float(np.square(real - became).sum())
        sqnr = float("inf") if lost == 0.0 else float(10.0 * np.log10(power / lost))
        lengths = np.sqrt(power) * np.sqrt(float(np.square(became).sum()))
        cosine = float((real * became).sum() / lengths) if lengths else float(lost == 0.0)
    return Quality(sqnr, cosine, *_cut_and_spread(real, q))


def quality_table(layers: Mapping[str, Quality]) -> str:
    """Return the qualities of several tensors as a text table, in their order.

    Parameters
    ----------
    layers : mapping of str to Quality
        Results of `quality`, by name.

    Raises
    ------
    ArgumentError
        `layers` is no such mapping.

    Examples
    --------
    >>> print(quality_table({"conv1": Quality(31.25, 0.9996, 0.001, 4.0)}))
    tensor    SQNR dB    cosine  clipped  spread
    conv1       31.25  0.999600   0.100%    4.00
    """
    rows = named("layers", layers, Quality)
    width = max([6, *map(len, rows)])
    lines = [f"{'tensor':{width}}    SQNR dB    cosine  clipped  spread"]
    lines += [
        f"{name:{width}} {row.sqnr:10.2f}  {row.cosine:8.6f} {row.clipped:8.3%} {row.spread:7.2f}"
        for name, row in rows.items()
    ]
    return "\n".join(lines)


def _cut_and_spread(real: Array, q: QParams | None) -> tuple[float, float]:
    if q is None:
        return 0.0, 1.0
    scale, point = np.asarray(q.scale), np.asarray(q.zero_point)
    spread = float(np.abs(scale).max() / np.abs(scale).min())
    if q.block and q.axis is not None:
        scale, point = (np.repeat(each, q.block[0], q.axis) for each in (scale, point))
    elif q.axis is not None:
        scale, point = (along(each, q.axis, real.ndim) for each in (scale, point))
    with np.errstate(over="ignore"):
        steps = real / scale + point
    beyond = (steps > dtypes.qmax(q.dtype) + 0.5) | (steps < dtypes.qmin(q.dtype) - 0.5)
    return float(beyond.mean()), spread
