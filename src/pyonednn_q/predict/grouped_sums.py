"""grouped_sums: what the kernel of weights in groups computes, bit for bit, in NumPy.

    acc  = Σ (src − src_zp) · (wei − wei_zp)          of one group, exact, within 32 bits
    x    = 0;  x = x + f32(acc) · wei_scale           group after group: each operation in float32
    dst  = x · src_scale + bias

where rows have a scale for each group, that is the second factor of a term instead:
f32(acc) · wei_scale · src_scale. The exact sum becomes a float32 to nearest, ties to even.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import instance, numbers
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def grouped_sums(
    src: ArrayLike,
    src_scale: ArrayLike,
    src_zero_point: ArrayLike,
    wei: ArrayLike,
    wei_q: QParams,
    bias: ArrayLike | None = None,
) -> NDArray[np.float32]:
    """Return products of rows of codes with weights in groups, as the kernel rounds them.

    Parameters
    ----------
    src : (M, K) array_like of int
        Codes of the source.
    src_scale, src_zero_point : (M, 1) or (M, K / group) array_like
        Scales, float32, and zero points, ints, of the source's codes.
    wei : (K, N) array_like of int
        Codes of the weights.
    wei_q : QParams
        Scales and zero points (K / group, N) of groups along axis 0.
    bias : (N,) array_like of float32, optional
        Real values.

    Returns
    -------
    (M, N) ndarray of float32

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> wei_q = QParams([[0.5], [0.25]], 0, "s4", axis=0, block=(2,))
    >>> wei = np.array([[1], [2], [3], [-4]], np.int8)
    >>> grouped_sums([[10, 20, 30, 40]], [[0.1]], [[0]], wei, wei_q)
    array([[0.75]], dtype=float32)
    """
    instance("wei_q", wei_q, QParams)
    codes, weights = numbers("src", src, "iu"), numbers("wei", wei, "iu")
    if codes.ndim != 2 or weights.ndim != 2 or codes.shape[1] != len(weights):
        raise ShapeError("src", f"{codes.shape} with wei {weights.shape}", "(M, K) with (K, N)")
    if not wei_q.block or wei_q.axis not in {0, -2}:
        raise ArgumentError("wei_q", str(wei_q.axis), "groups along axis 0")
    size = wei_q.block[0]
    scale, point = np.asarray(wei_q.scale).astype(np.float32), np.asarray(wei_q.zero_point)
    if scale.shape != (len(weights) // size, weights.shape[1]) or len(weights) % size:
        raise ShapeError("wei_q", f"scales {scale.shape}", f"those of groups in {weights.shape}")
    own = numbers("src_scale", src_scale).astype(np.float32)
    own_point = numbers("src_zero_point", src_zero_point, "iu").astype(np.int64)
    by_group = own.shape[1:] != (1,)
    wanted = (len(codes), len(scale)) if by_group else (len(codes), 1)
    for name, values in (("src_scale", own), ("src_zero_point", own_point)):
        if values.shape != wanted:
            raise ShapeError(name, str(values.shape), str(wanted))
    total = np.zeros((len(codes), weights.shape[1]), np.float32)
    for at in range(len(scale)):
        part = slice(at * size, (at + 1) * size)
        of_group = at if by_group else 0
        left = codes[:, part].astype(np.int64) - own_point[:, of_group : of_group + 1]
        # Whole numbers far below 2^53: float64 sums them exactly, whatever the order.
        acc = left.astype(np.float64) @ (weights[part].astype(np.float64) - point[at])
        term = acc.astype(np.float32) * scale[at]
        if by_group:
            term = term * own[:, at : at + 1]
        total = total + term
    if not by_group:
        total = total * own
    return total if bias is None else total + numbers("bias", bias).astype(np.float32)
