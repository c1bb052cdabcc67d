"""quantize: from FP32 weights and sample data to ranges, scales, zero points and integers.

`estimator` and `collect` learn what tensors hold, `threshold` cuts one array off. Ranges become
codes by `affine_qparams`, `symmetric_qparams` and the conventions of `qparams_by`; weights by
`integer_weights`, in groups by `group_codes`; `from_gptq` and its like read those that others have
packed. `align_thresholds` is for operators of one scale, `assign_bits` for layers of
several widths, and `read_config` reads the settings of named layers.
"""

from __future__ import annotations

from pyonednn_q.quantize.activation_divisors import activation_divisor
from pyonednn_q.quantize.alignment import GraphOperator, Range, align_thresholds
from pyonednn_q.quantize.bit_search import (
    BitSearch,
    constrained_bits,
    reward,
    search_bits,
    size_ratio,
)
from pyonednn_q.quantize.calibrate import ESTIMATORS, collect, estimator, merged
from pyonednn_q.quantize.config import (
    LayerSettings,
    PrecisionSettings,
    QuantizationConfig,
)
from pyonednn_q.quantize.config_reader import read_config
from pyonednn_q.quantize.conventions import codes_by_factors, qparams_by, quantization_factor
from pyonednn_q.quantize.corrections import (
    channel_moments,
    corrected_bias,
    equalized,
    folded_batch_norm,
    smoothed,
)
from pyonednn_q.quantize.estimator import Estimator
from pyonednn_q.quantize.exchange import from_onnx, from_torch, to_onnx, to_torch
from pyonednn_q.quantize.fq_ranges import fq_from_range, level_range, tune_range
from pyonednn_q.quantize.group_codes import group_codes
from pyonednn_q.quantize.integer_weights import (
    IntegerWeights,
    bias_codes,
    integer_weights,
    pack4,
    unpack4,
)
from pyonednn_q.quantize.mixed_precision import (
    BitAssignment,
    assign_bits,
    bit_complexities,
    ratio_limit,
    source_bits,
)
from pyonednn_q.quantize.packed_blocks import from_matmul_nbits, to_matmul_nbits
from pyonednn_q.quantize.packed_layouts import (
    from_awq,
    from_compressed_tensors,
    from_gptq,
)
from pyonednn_q.quantize.placement import (
    Placement,
    QuantizationTarget,
    QuantizerSpec,
    onednn_target,
    scoped,
)
from pyonednn_q.quantize.propagation import place_quantizers
from pyonednn_q.quantize.proposals import SearchTrial
from pyonednn_q.quantize.quality import Quality, quality, quality_table
from pyonednn_q.quantize.ranges import Dynamic, qparams_from_range
from pyonednn_q.quantize.rounding_search import searched_rounding
from pyonednn_q.quantize.sensitivity import hutchinson_trace, perturbation, sensitivity
from pyonednn_q.quantize.tensor_settings import TensorSettings
from pyonednn_q.quantize.thresholds import (
    kl_threshold,
    mse_threshold,
    octav_threshold,
    percentile_threshold,
    threshold,
)
from pyonednn_q.quantize.tpu_mlir import affine_qparams, symmetric_qparams
from pyonednn_q.quantize.weight_rows import WeightCodes, max_abs_range, weight_codes

__all__ = [
    "ESTIMATORS",
    "BitAssignment",
    "BitSearch",
    "Dynamic",
    "Estimator",
    "GraphOperator",
    "IntegerWeights",
    "LayerSettings",
    "Placement",
    "PrecisionSettings",
    "Quality",
    "QuantizationConfig",
    "QuantizationTarget",
    "QuantizerSpec",
    "Range",
    "SearchTrial",
    "TensorSettings",
    "WeightCodes",
    "activation_divisor",
    "affine_qparams",
    "align_thresholds",
    "assign_bits",
    "bias_codes",
    "bit_complexities",
    "channel_moments",
    "codes_by_factors",
    "collect",
    "constrained_bits",
    "corrected_bias",
    "equalized",
    "estimator",
    "folded_batch_norm",
    "fq_from_range",
    "from_awq",
    "from_compressed_tensors",
    "from_gptq",
    "from_matmul_nbits",
    "from_onnx",
    "from_torch",
    "group_codes",
    "hutchinson_trace",
    "integer_weights",
    "kl_threshold",
    "level_range",
    "max_abs_range",
    "merged",
    "mse_threshold",
    "octav_threshold",
    "onednn_target",
    "pack4",
    "percentile_threshold",
    "perturbation",
    "place_quantizers",
    "qparams_by",
    "qparams_from_range",
    "quality",
    "quality_table",
    "quantization_factor",
    "ratio_limit",
    "read_config",
    "reward",
    "scoped",
    "search_bits",
    "searched_rounding",
    "sensitivity",
    "size_ratio",
    "smoothed",
    "source_bits",
    "symmetric_qparams",
    "threshold",
    "to_matmul_nbits",
    "to_onnx",
    "to_torch",
    "tune_range",
    "unpack4",
    "weight_codes",
]
