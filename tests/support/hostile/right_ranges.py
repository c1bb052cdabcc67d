"""Right calls of what finds ranges and makes codes of them."""

from __future__ import annotations

import numpy as np

import pyonednn_q as pq
from pyonednn_q.quantize import thresholds
from support.hostile.right_values import FLOATS, Calls


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
        "merged": (quantize.merged, {"first": {"x": state}, "second": {"x": state}}),
    }
