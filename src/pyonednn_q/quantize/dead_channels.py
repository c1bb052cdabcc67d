"""Channels whose weights are all but 0: codes of 0, with a scale that float32 can hold.

Training drives weights of a channel to 1e-38 and below, and a scale that spreads them over 8 bits
is no normal number of float32: no kernel has it. Such a channel adds less to a result than any
float32 beside it can tell. So its codes are those of 0, and its scale, which then says nothing, is
the largest of the others.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.qparams import QParams

__all__ = ["without_dead_channels"]

# Of both scales: float32's least normal number, and 2^14 for what chains multiply them by. What
# 2^15 products of 8 bits by such scales add stays below 2^-80.
_LEAST = 2.0**-112


def without_dead_channels(
    codes: Array, q: QParams, axis: int, src_scale: float = 1.0
) -> tuple[Array, QParams]:
    """Return weights of which dead channels are 0; as they are where none is.

    Parameters
    ----------
    codes : ndarray of int8 or uint8
        Codes of weights.
    q : QParams
        Scales and zero points, per tensor or along `axis`.
    axis : int
        Dimension of the output channels.
    src_scale : float
        Scale of the source, by which a kernel multiplies the scales.
    """
    scale = np.atleast_1d(np.asarray(q.scale, np.float64))
    is_dead = scale * min(src_scale, 1.0) < _LEAST
    if not is_dead.any():
        return codes, q
    point = np.broadcast_to(np.atleast_1d(np.asarray(q.zero_point, np.int64)), scale.shape)
    alive = scale[~is_dead]
    fresh = np.where(is_dead, alive.max() if alive.size else 1.0, scale)
    if q.axis is None:
        zeros = np.full_like(codes, point[0])
        return zeros, QParams(float(fresh[0]), int(point[0]), q.dtype)
    moved = np.moveaxis(codes, axis, 0).copy()
    moved[is_dead] = point[is_dead].reshape(-1, *(1,) * (codes.ndim - 1)).astype(codes.dtype)
    return np.moveaxis(moved, 0, axis), QParams(fresh, q.zero_point, q.dtype, axis=q.axis)
