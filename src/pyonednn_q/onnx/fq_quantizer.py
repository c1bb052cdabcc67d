"""OpenVINO's FakeQuantize as ONNX's quantizers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_qparams import qparams_from_fq

__all__ = ["FqQuantizer", "fits", "fq_quantizer"]


def fits(quantizer: FqQuantizer, values: Array | None, lo: Array | None) -> bool:
    """Tell whether quantizers do the same to a tensor: a constant, or one that is computed.

    Parameters
    ----------
    quantizer : FqQuantizer
        Result of `fq_quantizer`.
    values : ndarray or None
        Values of a constant.
    lo : ndarray or None
        The input low.
    """
    axis = quantizer.axis
    if values is None:
        return axis is None and not quantizer.is_part
    if values.dtype != np.float32 or not np.isfinite(values).all():
        return False
    is_along = axis is not None and lo is not None and lo.ndim == values.ndim
    return axis is None or (is_along and values.shape[axis] == quantizer.scale.size)


class FqQuantizer(NamedTuple):
    """ONNX's quantizers for a FakeQuantize, and whether it uses only part of the codes."""

    scale: Array
    point: Array
    axis: int | None
    is_part: bool


def fq_quantizer(ranges: list[Array | None], levels: int) -> FqQuantizer | None:
    """Return the quantizers that compute a FakeQuantize; None if none do.

    Parameters
    ----------
    ranges : list of (ndarray or None)
        Input low and high, output low and high; None where they are computed.
    levels : int
        Attribute `levels`.
    """
    known = [each for each in ranges if each is not None and each.dtype == np.float32]
    if len(known) < 4 or not 3 <= levels <= 256:
        return None
    try:
        known = list(np.broadcast_arrays(*known))
    except ValueError:
        return None
    along = [axis for axis, length in enumerate(known[0].shape) if length > 1]
    if len(along) > 1 or not (
        np.array_equal(known[0], known[2]) and np.array_equal(known[1], known[3])
    ):
        return None
    lo, hi = (each.reshape(-1) if along else float(each.reshape(())) for each in known[:2])
    try:
        fq = FakeQuantize(lo, hi, lo, hi, levels=levels)
        is_signed = levels < 256 or bool(along)
        params = qparams_from_fq(fq, "s8" if is_signed else "u8", axis=0)
    except ArgumentError:
        return None
    if not params.is_exact():
        return None
    dtype = np.int8 if is_signed else np.uint8
    scale = np.asarray(params.qparams.scale, np.float32)
    point = np.asarray(params.qparams.zero_point).astype(dtype)
    if along and not scale.ndim:  # all channels agree
        scale, point = (np.full(known[0].size, each) for each in (scale, point))
    return FqQuantizer(scale, point, along[0] if along else None, levels < 256)
