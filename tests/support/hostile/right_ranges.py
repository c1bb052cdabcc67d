"""Right calls of what finds ranges and makes codes of them."""

from __future__ import annotations

import numpy as np

import pyonednn_q as pq
from pyonednn_q.quantize import thresholds
from support.hostile.right_values import FLOATS, U8, Calls

WEI = np.linspace(-1.0, 1.0, 24).reshape(4, 6)
CHANNELS = np.linspace(0.5, 1.0, 4)


def weight_calls() -> Calls:
    quantize = pq.quantize
    codes = quantize.integer_weights(WEI)
    found = {"x": quantize.quality(WEI, codes.dequantize())}
    return {
        "integer_weights": (
            quantize.integer_weights,
            {
                "wei": WEI,
                "bits": 4,
                "granularity": "per_group",
                "group": 3,
                "axis": 0,
                "narrow": True,
                "half_range": False,
                "method": "mse",
                "rounding": "away",
                "least_scale": 1e-5,
            },
        ),
        "bias_codes": (
            quantize.bias_codes,
            {"bias": CHANNELS, "src_q": U8, "wei": codes, "compensate": True},
        ),
        "pack4": (quantize.pack4, {"codes": [1, -2, 7]}),
        "unpack4": (
            quantize.unpack4,
            {"packed": np.ones(2, np.uint8), "shape": (3,), "signed": True},
        ),
        "corrected_bias": (
            quantize.corrected_bias,
            {"bias": CHANNELS, "wei": WEI, "quantized": WEI * 0.9, "src_mean": np.ones(6)},
        ),
        "equalized": (
            quantize.equalized,
            {"first": WEI, "bias": CHANNELS, "second": np.ones((2, 4))},
        ),
        "smoothed": (quantize.smoothed, {"src_max": np.ones(6), "wei": WEI, "alpha": 0.5}),
        "searched_rounding": (
            quantize.searched_rounding,
            {
                "wei": WEI,
                "scale": 0.1,
                "src": np.ones((3, 6)),
                "qmin": -7,
                "qmax": 7,
                "sweeps": 2,
            },
        ),
        "channel_moments": (
            quantize.channel_moments,
            {"batches": [FLOATS, FLOATS], "axis": -1, "samples": 2},
        ),
        "folded_batch_norm": (
            quantize.folded_batch_norm,
            {
                "wei": WEI,
                "bias": CHANNELS,
                "mean": CHANNELS,
                "variance": CHANNELS,
                "gamma": CHANNELS,
                "beta": CHANNELS,
                "epsilon": 1e-5,
            },
        ),
        "quality": (quantize.quality, {"x": FLOATS, "y": FLOATS, "q": U8}),
        "quality_table": (quantize.quality_table, {"layers": found}),
    }


def group_calls() -> Calls:
    """Return right calls of what makes and reads weights in groups."""
    quantize = pq.quantize
    words, zeros = np.full((1, 8), 0x76543210), np.full((1, 1), 0x77777777)
    scale, index = np.ones((1, 8), np.float32), np.zeros(8, np.int32)
    points = np.zeros((1, 1), np.int8)
    return {
        "group_codes": (
            quantize.group_codes,
            {
                "wei": WEI,
                "groups": 3,
                "bits": 4,
                "axis": 0,
                "symmetric": False,
                "method": "gptq",
                "samples": WEI,
            },
        ),
        "activation_divisor": (
            quantize.activation_divisor,
            {"wei": WEI, "groups": 3, "bits": 4, "symmetric": True, "products": np.eye(6)},
        ),
        "to_matmul_nbits": (
            quantize.to_matmul_nbits,
            {
                "codes": np.ones((4, 2), np.int8),
                "wei_q": pq.QParams(np.ones((2, 2)), 0, "s4", axis=0, block=(2,)),
            },
        ),
        "from_awq": (
            quantize.from_awq,
            {"qweight": words[:, :1], "qzeros": zeros, "scales": scale},
        ),
        "from_gptq": (
            quantize.from_gptq,
            {
                "qweight": words,
                "qzeros": zeros,
                "scales": scale,
                "g_idx": index,
                "bits": 4,
                "v2": True,
                "sort_rows": True,
            },
        ),
        "from_matmul_nbits": (
            quantize.from_matmul_nbits,
            {
                "b": np.zeros((1, 1, 8), np.uint8),
                "scales": np.ones(1),
                "zero_points": np.zeros(1, np.uint8),
                "k": 16,
                "n": 1,
                "bits": 4,
                "block_size": 16,
            },
        ),
        "from_compressed_tensors": (
            quantize.from_compressed_tensors,
            {
                "weight_packed": words[:, :1],
                "weight_scale": np.ones((1, 1)),
                "weight_zero_point": points,
                "weight_g_idx": index,
                "weight_shape": (1, 8),
                "bits": 4,
                "sort_rows": True,
            },
        ),
    }


def width_calls() -> Calls:
    quantize = pq.quantize
    choices = {"a": (4, 8), "b": (4, 8)}
    weights = {"a": 10, "b": 20}
    costs = {"a": {8: 80.0, 4: 40.0}, "b": {8: 160.0, 4: 80.0}}
    search = {"choices": choices, "weights": weights, "ratio": 0.2}
    return {
        "perturbation": (quantize.perturbation, {"wei": WEI, "bits": 4, "axis": 0}),
        "sensitivity": (
            quantize.sensitivity,
            {"wei": WEI, "bits": 4, "trace": 2.0, "axis": 0},
        ),
        "hutchinson_trace": (
            quantize.hutchinson_trace,
            {
                "hvp": lambda v: 2.0 * v,
                "shape": (3,),
                "probes": 5,
                "tolerance": 0.1,
                "seed": 0,
            },
        ),
        "source_bits": (
            quantize.source_bits,
            {"wei_bits": 4, "allowed": (4, 8), "widths": "liberal", "group": (4, 8)},
        ),
        "bit_complexities": (
            quantize.bit_complexities,
            {"flops": {"a": 10.0}, "choices": {"a": {8: 8, 4: 8}}},
        ),
        "ratio_limit": (
            quantize.ratio_limit,
            {"flops": {"a": 10.0, "b": 20.0}, "costs": costs, "ratio": 1.5},
        ),
        "assign_bits": (
            quantize.assign_bits,
            {
                "sensitivities": {"a": {8: 0.1, 4: 2.0}, "b": {8: 0.1, 4: 1.0}},
                "costs": costs,
                "limit": 200.0,
                "order": ("b", "a"),
                "by_hand": {"a": 8},
                "same": [],
            },
        ),
        "reward": (quantize.reward, {"score": 71.3, "baseline": 75.0}),
        "size_ratio": (quantize.size_ratio, {"bits": {"a": 8, "b": 4}, "weights": weights}),
        "constrained_bits": (quantize.constrained_bits, {"bits": {"a": 8, "b": 8}, **search}),
        "search_bits": (
            quantize.search_bits,
            {
                "evaluate": lambda bits: bits["a"],
                **search,
                "propose": "anneal",
                "trials": 3,
                "warmup": 1,
                "same": [],
                "baseline": 1.0,
                "temperature": 0.1,
                "seed": 0,
                "log": lambda trial: None,  # noqa: ARG005
            },
        ),
    }


def placed_calls() -> Calls:
    quantize = pq.quantize
    graph = [
        quantize.GraphOperator("concat", ("x", "y"), "z"),
        quantize.GraphOperator("conv", ("z",), "w"),
    ]
    spec = quantize.QuantizerSpec("u8", symmetric=False, note="fast")
    return {
        "QuantizerSpec": (
            quantize.QuantizerSpec,
            {"dtype": "u8", "symmetric": False, "note": "fast"},
        ),
        "QuantizationTarget": (
            quantize.QuantizationTarget,
            {
                "quantized": (("conv", (spec,)),),
                "weights": (("conv", spec),),
                "agnostic": ("concat",),
                "linked": ("concat",),
                "fused": ("relu",),
            },
        ),
        "onednn_target": (quantize.onednn_target, {"isa": "AVX2"}),
        "read_config": (
            quantize.read_config,
            {
                "config": {
                    "algorithm": "quantization",
                    "weights": {"bits": 8, "mode": "symmetric"},
                    "initializer": {"range": {"type": "percentile"}},
                    "ignored_scopes": ["{re}head"],
                }
            },
        ),
        "scoped": (quantize.scoped, {"name": "a/b", "scopes": ["{re}a/"]}),
        "place_quantizers": (
            quantize.place_quantizers,
            {
                "graph": graph,
                "target": quantize.onednn_target("AVX2"),
                "ignored": ["v"],
                "linked": [("x", "y")],
                "quantize_inputs": True,
                "quantize_outputs": False,
            },
        ),
    }


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
                "by_batch": False,
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
                "version": 3,
            },
        ),
        "level_range": (
            quantize.level_range,
            {"bits": 4, "signed": True, "narrow": True, "symmetric": True},
        ),
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
