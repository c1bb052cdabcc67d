"""Right calls of what finds ranges and makes codes of them."""

from __future__ import annotations

import numpy as np

import pyonednn_q as pq
from pyonednn_q.quantize import thresholds
from support.hostile.right_values import FLOATS, U8, Calls


def range_calls() -> Calls:
    quantize = pq.quantize
    counts = np.ones(FLOATS.shape, np.int64)
    state = quantize.estimator("mean_min_max")
    state.update(FLOATS)
    return {
        "mse_threshold": (
            quantize.mse_threshold,
            {"values": FLOATS, "bits": 8, "signed": True, "counts": counts},
        ),
        "quantile": (thresholds.quantile, {"values": FLOATS, "share": 0.5, "counts": counts}),
        "estimator": (
            quantize.estimator,
            {
                "kind": "percentile",
                "axis": None,
                "symmetric": True,
                "percent": (1.0, 99.0),
                "rate": 0.1,
                "outliers": 0.01,
                "bits": 8,
                "precision": 12,
            },
        ),
        "collect": (
            quantize.collect,
            {
                "run": lambda batch: {"x": batch},
                "batches": [FLOATS],
                "estimators": quantize.estimator,
                "limit": 1,
                "progress": False,
            },
        ),
        "fq_from_range": (
            quantize.fq_from_range,
            {
                "lo": [-1.0, -2.0],
                "hi": [1.0, 2.0],
                "bits": 8,
                "symmetric": True,
                "signed": True,
                "narrow": False,
                "half_range": True,
                "strict_zero": False,
                "unify_zero": False,
                "floor": 0.1,
            },
        ),
        "level_range": (quantize.level_range, {"bits": 4, "signed": True, "narrow": True}),
        "tune_range": (
            quantize.tune_range,
            {"lo": [-1.0], "hi": [2.0], "bits": 8, "strict": True, "unify": False},
        ),
        "qparams_by": (
            quantize.qparams_by,
            {
                "convention": "torch",
                "lo": [-1.0],
                "hi": [2.0],
                "dtype": "u8",
                "symmetric": False,
                "axis": 0,
            },
        ),
        "quantization_factor": (
            quantize.quantization_factor,
            {"values": [1.0, 2.0], "kind": "weights"},
        ),
        "codes_by_factors": (
            quantize.codes_by_factors,
            {"src": [1.0, 2.0], "wei": [1.0, -2.0], "bias": [0.5]},
        ),
        "to_onnx": (quantize.to_onnx, {"qparams": U8}),
        "to_torch": (quantize.to_torch, {"qparams": U8}),
        "from_onnx": (
            quantize.from_onnx,
            {"y_scale": np.ones(2, np.float32), "y_zero_point": np.ones(2, np.int8), "axis": 1},
        ),
        "merged": (quantize.merged, {"first": {"x": state}, "second": {"x": state}}),
    }
