"""group_codes: weights as integers of 4 or 8 bits, with a scale for each group of neighbours.

    symmetric     scale = max(hi / qmax, lo / qmin)       zero_point = 0
    otherwise     scale = (hi − lo) / (2^bits − 1)        zero_point = clamp(rne(−lo / scale))
    code = clamp(rne(wei / scale) + zero_point)

lo and hi are the ends of a group, 0 among them. Scales are rounded to float32 before codes are
made, as kernels have them. A group of zeros has the scale 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, numbers, whole
from pyonednn_q.dtypes import F32_LEAST
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["group_codes"]

Array = np.ndarray[Any, Any]

_MATRIX = 2
_SIGNED = {4: "s4", 8: "s8"}
_UNSIGNED = {4: "u4", 8: "u8"}


def group_codes(
    wei: ArrayLike, groups: int, bits: int = 4, *, axis: int = 0, symmetric: bool = True
) -> tuple[Array, QParams]:
    """Return weights as codes, and what each group of them is worth: rounded to nearest.

    Parameters
    ----------
    wei : (OC, IC) or (IC, OC) array_like
        Real weights, finite.
    groups : int
        Size of a group: how many neighbouring weights of an output channel share a scale. It
        divides their number.
    bits : {4, 8}
        Width of the codes.
    axis : int
        Axis of the output channels: 0 of an inner product, -1 of a matmul.
    symmetric : bool
        Whether zero points are 0, and codes signed; else they are unsigned.

    Returns
    -------
    (ndarray of int8 or uint8, QParams)
        Codes in the shape of the weights, those of 4 bits in a byte each; and `QParams` of s4, s8,
        u4 or u8, with a block along the other axis.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> codes, wei_q = group_codes([[0.7, -0.1, 2.0, -4.0]], 2)
    >>> codes.tolist(), wei_q.scale.round(3).tolist(), wei_q.dtype
    ([[7, -1, 4, -8]], [[0.1, 0.5]], 's4')
    """
    values = numbers("wei", wei).astype(np.float64)
    if values.ndim != _MATRIX or not values.size:
        raise ShapeError("wei", f"shape {values.shape}", "a matrix, with weights in groups")
    if not np.isfinite(values).all():
        raise ArgumentError("wei", "values that are not finite", "finite numbers")
    flag("symmetric", symmetric)
    size, width = whole("groups", groups, lo=1), whole("bits", bits)
    names = _SIGNED if symmetric else _UNSIGNED
    if width not in names:
        raise ArgumentError("bits", str(width), "4 or 8")
    channels = whole("axis", axis, lo=-2, hi=1) % _MATRIX
    rows = values if channels == 0 else values.T
    if rows.shape[1] % size:
        raise ShapeError("groups", str(size), f"a divisor of {rows.shape[1]} input channels")
    dtype = names[width]
    parts = rows.reshape(len(rows), -1, size)
    scale, point = _scales(parts, dtype, symmetric=symmetric)
    limits = dtypes.qmin(dtype), dtypes.qmax(dtype)
    codes = np.clip(np.rint(parts / scale[..., None]) + point[..., None], *limits)
    holder = np.int8 if symmetric else np.uint8
    whole_codes = codes.astype(holder).reshape(rows.shape)
    if channels == 0:
        return whole_codes, QParams(scale, point, dtype, axis=1, block=(size,))
    turned = QParams(scale.T, point.T, dtype, axis=0, block=(size,))
    return np.ascontiguousarray(whole_codes.T), turned


def _scales(parts: Array, dtype: str, *, symmetric: bool) -> tuple[Array, Array]:
    """Return scales and zero points of groups (OC, groups, size)."""
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    lo, hi = np.minimum(parts.min(axis=2), 0.0), np.maximum(parts.max(axis=2), 0.0)
    span = np.maximum(hi / qmax, lo / qmin) if symmetric else (hi - lo) / qmax
    with np.errstate(over="ignore"):
        scale = np.where(span > 0.0, span, 1.0).astype(np.float32)
    if not np.isfinite(scale).all():
        raise ArgumentError("wei", f"a range of {span.max()}", "weights that float32 can span")
    scale = np.maximum(scale, np.float32(F32_LEAST)).astype(np.float64)
    if symmetric:
        return scale, np.zeros(scale.shape, np.int64)
    return scale, np.clip(np.rint(-lo / scale), qmin, qmax).astype(np.int64)
