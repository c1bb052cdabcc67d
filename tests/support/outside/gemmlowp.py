"""Our answers to gemmlowp's GEMM vectors: one call each.

(Σ (a + a_offset)(b + b_offset) + c_offset) · c_mult_int / 2^c_shift, rounded half up and clamped to
u8: products with zero points, an s32 bias, and a multiplier that one shift follows, as TOSA's
SINGLE_ROUND and TFLite's one step have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import pyonednn_q as pq

if TYPE_CHECKING:
    from support.outside.vectors import Case

Array = np.ndarray[Any, Any]

DIALECTS = ("tosa_single_round", "tflite_1step")


def answer(case: Case, dialect: Any = DIALECTS[0]) -> tuple[Array, Array]:
    """Return what the product makes of a case, and what gemmlowp does, as (n, m)."""
    tensors = case.tensors
    channels = len(tensors["a_data"])
    scales = np.ldexp(tensors["c_mult_int"].astype(float), -case.attributes["c_shift"])
    bias = np.ascontiguousarray(np.broadcast_to(tensors["c_offset"], channels))
    call = pq.MatMul(
        np.ascontiguousarray(tensors["a_data"].T),
        bias,
        src_q=pq.QParams(1.0, -int(tensors["b_offset"][0]), "u8"),
        wei_q=_params(scales, -tensors["a_offset"], channels),
        dst_q=pq.QParams(1.0, 0, "u8"),
        requantize=dialect,
    )
    return call(tensors["b_data"]), tensors["expected_c_data"]


def _params(scales: Array, zero_points: Array, channels: int) -> pq.QParams:
    if len(scales) == len(zero_points) == 1:
        return pq.QParams(float(scales[0]), int(zero_points[0]), "u8")
    each = np.broadcast_to(scales, channels), np.broadcast_to(zero_points, channels)
    return pq.QParams(*each, "u8", axis=1)
