"""Weights of 2, 4 or 8 bits in blocks, as Microsoft's MatMulNBits has them, as float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.quantize.packed_blocks import block_parts
from pyonednn_q.quantize.packed_codes import BITS

_PLACES = {"B": 1, "scales": 2, "zero_points": 3, "g_idx": 4}


def block_weights(node: GraphNode, constants: Mapping[str, Array]) -> Array | None:
    """Return the real weights of a MatMulNBits: (K, N) of float32.

    w[k, n] = (code[n, k] - zero_point[n, k // block_size]) * scale[n, k // block_size]

    Parameters
    ----------
    node : GraphNode
        A MatMulNBits.
    constants : mapping of str to ndarray
        Constants of the graph.

    Returns
    -------
    ndarray or None
        Real weights; None where they are computed, in another order, or of bits or dims that it
        cannot have.
    """
    attributes = node.attributes
    inner, columns, block = (attributes.get(name, 0) for name in ("K", "N", "block_size"))
    bits = attributes.get("bits", 4)
    codes, scales = (constants.get(node.input(_PLACES[name])) for name in ("B", "scales"))
    points = node.input(_PLACES["zero_points"])
    point = constants.get(points)
    is_known = codes is not None and scales is not None and not (points and point is None)
    if not is_known or node.input(_PLACES["g_idx"]) or bits not in BITS or min(inner, block) < 1:
        return None
    assert codes is not None
    assert scales is not None
    if codes.dtype != np.uint8 or scales.dtype != np.float32:
        return None
    if point is not None and point.dtype not in {np.dtype(np.uint8), np.dtype(np.float32)}:
        return None
    try:
        values, scale, zero = block_parts(codes, scales, point, inner, columns, bits, block)
    except ArgumentError:
        return None
    real = (values.astype(np.float32) - zero[..., None].astype(np.float32)) * scale[..., None]
    return np.ascontiguousarray(real.reshape(columns, -1)[:, :inner].T)
