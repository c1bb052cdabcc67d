"""quantize: from ranges to scales, zero points and integer weights."""

from __future__ import annotations

from pyonednn_q.quantize.alignment import GraphOperator, Range, align_thresholds
from pyonednn_q.quantize.ranges import Dynamic, qparams_from_range
from pyonednn_q.quantize.thresholds import (
    kl_threshold,
    octav_threshold,
    percentile_threshold,
    threshold,
)
from pyonednn_q.quantize.tpu_mlir import affine_qparams, symmetric_qparams
from pyonednn_q.quantize.weights import WeightCodes, max_abs_range, weight_codes

__all__ = [
    "Dynamic",
    "GraphOperator",
    "Range",
    "WeightCodes",
    "affine_qparams",
    "align_thresholds",
    "kl_threshold",
    "max_abs_range",
    "octav_threshold",
    "percentile_threshold",
    "qparams_from_range",
    "symmetric_qparams",
    "threshold",
    "weight_codes",
]
