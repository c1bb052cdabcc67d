"""ops: the calls a user makes, on what the rooms below prepare."""

from __future__ import annotations

from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.ops.functional import (
    operator_cache_clear,
    operator_cache_info,
    operator_cache_limit,
)
from pyonednn_q.ops.planned import Planned, prepare_plan
from pyonednn_q.ops.predicted import model_of
from pyonednn_q.ops.prepared_layer import PreparedLayer, prepare_layer
from pyonednn_q.ops.shapes import clear_shapes, limit_shapes, shape_statistics
from pyonednn_q.ops.tunings import clear_tuning, load_tuning, save_tuning

__all__ = [
    "Conv",
    "Deconv",
    "InnerProduct",
    "MatMul",
    "Planned",
    "PreparedLayer",
    "clear_shapes",
    "clear_tuning",
    "limit_shapes",
    "load_tuning",
    "model_of",
    "operator_cache_clear",
    "operator_cache_info",
    "operator_cache_limit",
    "prepare_layer",
    "prepare_plan",
    "save_tuning",
    "shape_statistics",
]
