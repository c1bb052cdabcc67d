"""Right calls of public functions: names, callables, arguments."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import pyonednn_q as pq
from pyonednn_q import emulate as quantized
from pyonednn_q import requantize as dialects
from pyonednn_q.acc import emulation, repair
from pyonednn_q.acc import verdict as saturation_room
from pyonednn_q.bench import benchdnn, comparison, report, shape, suite
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.explain import description, description_text, presets
from pyonednn_q.explain.plan_report import Report
from pyonednn_q.expr import evaluate, fq_forms, fq_orders, fq_qparams
from pyonednn_q.native import passes as native_requantize
from pyonednn_q.native import runtime
from pyonednn_q.predict import difference, kernel_model, plan_model
from pyonednn_q.primitive import isa
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.quantize import alignment, ranges, thresholds, tpu_mlir, weight_rows
from support import bench_runs
from support.hostile.right_values import (
    CHAIN,
    COLUMNS,
    CONV,
    FLOATS,
    FQ,
    PRODUCT,
    RNG,
    SRC,
    U8,
    WEI,
    Calls,
)


def algebra_calls() -> Calls:
    ends = {"input_low": 0.0, "input_high": 2.0, "output_low": 0.0, "output_high": 1.0}
    graph = [alignment.GraphOperator("relu", ("x",), "y")]
    on_chain = {"chain": CHAIN, "x": FLOATS[:, :1].repeat(4, 1), "axis": 1, "operands": {}}
    sides = {"values": FLOATS}
    return {
        "evaluate": (evaluate.evaluate, on_chain),
        "evaluate_f32": (evaluate.evaluate_f32, on_chain),
        "qparams_from_range": (
            pq.quantize.qparams_from_range,
            {"lo": -1.0, "hi": 2.0, "dtype": "s8", "symmetric": False},
        ),
        "scales_and_points": (
            ranges.scales_and_points,
            {"lo": [-1.0], "hi": [2.0], "dtype": "u8", "symmetric": False},
        ),
        "threshold": (thresholds.threshold, {**sides, "method": "kl"}),
        "kl_threshold": (thresholds.kl_threshold, {**sides, "bins": 256, "levels": 128}),
        "percentile_threshold": (thresholds.percentile_threshold, {**sides, "percent": 99.0}),
        "octav_threshold": (thresholds.octav_threshold, {**sides, "bits": 8, "signed": True}),
        "affine_qparams": (tpu_mlir.affine_qparams, {"lo": -1.0, "hi": 2.0}),
        "symmetric_qparams": (tpu_mlir.symmetric_qparams, {"threshold": 2.5, "steps": 127}),
        "alignment.GraphOperator": (
            alignment.GraphOperator,
            {"kind": "conv", "sources": ("x",), "result": "y"},
        ),
        "align_thresholds": (
            alignment.align_thresholds,
            {"graph": graph, "thresholds": {"x": 1.0, "y": (0.0, 2.0)}},
        ),
        "weight_codes": (
            weight_rows.weight_codes,
            {"rows": np.ones((2, 3)), "fq": weight_rows.max_abs_range(np.ones((2, 3)))},
        ),
        "max_abs_range": (weight_rows.max_abs_range, {"rows": np.ones((2, 3)), "levels": 255}),
        "fake_quantize": (
            fq_orders.fake_quantize,
            {"x": FLOATS, **ends, "levels": 256, "order": "core"},
        ),
        "qparams_from_fq": (
            fq_qparams.qparams_from_fq,
            {"fq": FQ, "dtype": "u8", "side": "input", "axis": 1},
        ),
        "fq_from_qparams": (
            fq_qparams.fq_from_qparams,
            {"qparams": U8, "levels": 256, "dequantize": True},
        ),
        "quantize_chain": (fq_qparams.quantize_chain, {"qparams": U8}),
        "dequantize_chain": (fq_qparams.dequantize_chain, {"qparams": U8}),
        "codes": (fq_forms.codes, {"fq": FQ, "signed": True}),
        "fq_params": (fq_forms.fq_params, {"fq": FQ, "signed": False, "tolerance": 1e-4}),
        "pure_scale": (fq_forms.pure_scale, {"fq": FQ, "tolerance": 1e-3}),
        "scale_alone": (fq_forms.scale_alone, {"fq": FQ, "dtype": "u8", "tolerance": 1e-4}),
        "classify": (isa.classify, {"impl_name": "brg_conv:avx2", "kind": "reorder"}),
        "InstructionSet": (InstructionSet, {"level": "AVX2", "vex_vnni": True, "vbmi": None}),
        "InstructionSet.of": (InstructionSet.of, {"isa": "AVX512_CORE_BF16+AVX_VNNI"}),
    }


def predicted_calls() -> Calls:
    sums = RNG.integers(-1000, 1000, (1, 4, 2, 2)).astype(np.int32)
    scales = {"src_scale": 0.5, "wei_scale": 0.25, "dst_scale": 2.0}
    to_u8: dict[str, Any] = {**scales, "dst_zero_point": 3, "dst_dtype": "u8"}
    counts = np.zeros(4, np.int32)
    verdict = saturation_room.saturation(
        pq.primitive.MatMulProblem.of((1, 8), (8, 4)), COLUMNS * 2, "AVX2"
    )
    plan = pq.compose_chain(pq.Chain(), pq.primitive.PrimitiveFacts.of(PRODUCT))
    of_kernel: dict[str, Any] = {"impl": "brg_matmul:avx512_core_vnni", "isa": "AVX512_CORE_VNNI"}
    of_kernel |= {"version": (3, 13, 2)}
    asked = {"problem": CONV, "wei": WEI, "isa": "AVX2", "impl": None}
    to_q: dict[str, Any] = {"wei_q": pq.QParams(0.25, 0, "s8"), "dst_q": pq.QParams(2.0, 3, "u8")}
    product = pq.MatMul(COLUMNS, src_q=pq.QParams(0.5, 1, "u8"), **to_q)
    rows = np.arange(16, dtype=np.uint8).reshape(2, 8)
    return {
        "explain_difference": (
            pq.explain_difference,
            {"operator": product, "src": rows, "theirs": product(rows), "residual": None},
        ),
        "saturation": (
            saturation_room.saturation,
            {**asked, "src_range": (0, 255), "src_zero_point": True},
        ),
        "counts": (saturation_room.counts, {"problem": CONV, "src": SRC, **asked}),
        "witness": (
            saturation_room.witness,
            {"verdict": verdict, "wei": COLUMNS * 2, "channel": 0},
        ),
        "as_if": (
            emulation.as_if,
            {
                "problem": CONV,
                "src": SRC,
                "wei": WEI,
                "isa": "AVX2",
                "src_zero_point": 3,
                "impl": "gemm_s8u8s32:jit",
                "requantizer": None,
            },
        ),
        "exact": (emulation.exact, {"problem": CONV, "src": SRC, "wei": WEI, "src_zero_point": 3}),
        "repair": (
            repair.repair,
            {**asked, "how": "fit", "where": "needed", "src_range": None, "unrounded": WEI * 1.0},
        ),
        "repair_source": (repair.repair_source, {"src": SRC}),
        "half_range": (
            repair.half_range,
            {"layers": [WEI * 0.1, COLUMNS * 0.1], "option": "enable", "narrow": True},
        ),
        "dialect": (dialects.dialect, {"name": "tflite_2step"}),
        "requantize": (
            dialects.requantize,
            {"acc": sums, "name": "tflite_2step", **to_u8, "bias": counts, "axis": 1},
        ),
        "requantizer": (
            dialects.requantizer,
            {"name": "f32", **to_u8, "bias": counts, "lo": 0, "hi": 200, "axis": 1},
        ),
        "native.requantize": (
            native_requantize.requantize,
            {"acc": sums, "requantizer": dialects.requantizer("f32", **to_u8), "out": None},
        ),
        "difference_report": (
            difference.difference_report,
            {"a": SRC, "b": SRC + 1, "ties": SRC > 3, "positions": 4},
        ),
        "tie_mask": (difference.tie_mask, {"acc": sums, **scales, "axis": 1}),
        "kernel_model": (
            kernel_model,
            {"problem": PRODUCT, "attr": pq.primitive.Attr(), **of_kernel},
        ),
        "matmul_nbits": (
            pq.predict.matmul_nbits,
            {
                "src": np.ones((2, 32), np.float32),
                "wei": np.ones((32, 3), np.int8),
                "wei_q": pq.QParams(np.ones((2, 3)), 0, "s4", axis=0, block=(16,)),
                "bias": np.ones(3, np.float32),
                "accuracy_level": 4,
            },
        ),
        "grouped_kernel": (
            pq.predict.grouped_kernel,
            {
                "problem": pq.primitive.MatMulProblem.of((2, 64), (64, 3), src="s8", dst="f32"),
                "attr": pq.primitive.Attr(wei_scale=pq.primitive.Scale(3, groups=(32, 1))),
                "impl": "brg_matmul:avx512_core_vnni",
                "version": (3, 13, 2),
            },
        ),
        "plan_model": (plan_model, {"plan": plan, "problem": PRODUCT, **of_kernel}),
    }


def readers_calls() -> Calls:
    run = bench_runs.run(bench_runs.row("a", "f32", 5.0), bench_runs.row("a", "u8s8u8", 2.0))
    preset = presets.get(presets.names()[0])
    toml = description_text.dumps(preset)
    tables = json.loads(json.dumps(preset))
    conv = "conv 1x3x6x6 4x3x3x3 stride=1 padding=1 dilation=1"
    lined = 'title="t"\nsource="s"\nlines=[{name="a", problem="conv 1x3x6x6 4x3x3x3", times=2}]'
    return {
        "explain.read": (description.read, {"value": tables}),
        "explain.parse": (description_text.parse, {"text": toml, "name": "file"}),
        "explain.dumps": (description_text.dumps, {"tables": tables}),
        "explain.get": (presets.get, {"name": presets.names()[0]}),
        "explain.Report.of": (
            Report.of,
            {"description": description.read(tables), "strict": False},
        ),
        "suite.find": (suite.find, {"word": "resnet50"}),
        "suite.parse": (suite.parse, {"name": "mine", "text": lined}),
        "Shape.parse": (shape.Shape.parse, {"text": conv}),
        "benchdnn.parse": (benchdnn.parse, {"kind": "conv", "text": "mb1ic64ih56oc64kh3ph1"}),
        "Run.from_json": (Run.from_json, {"text": run.to_json()}),
        "compare": (
            comparison.compare,
            {"before": run, "after": run, "threshold": 0.05, "confidence": 0.99},
        ),
        "report.text": (report.text, {"run": run, "width": 80, "repro": True}),
        "report.markdown": (report.markdown, {"run": run, "repro": False}),
        "load_tuning": (pq.ops.load_tuning, {"path": "tunings.json"}),
        "save_tuning": (pq.ops.save_tuning, {"path": "tunings.json"}),
        "clear_tuning": (pq.ops.clear_tuning, {}),
    }


def quantized_calls() -> Calls:
    q = {"src_q": U8, "dst_q": pq.QParams(1.0, 4, "u8"), "dialect": "tflite"}
    return {
        "add": (
            quantized.add,
            {"a": SRC, "b": SRC, "a_q": U8, "b_q": U8, "dst_q": U8, "dialect": "tflite"},
        ),
        "arg_max": (quantized.arg_max, {"src": SRC, "axis": 1}),
        "average_pool": (
            quantized.average_pool,
            {
                "src": SRC,
                "kernel": 2,
                "stride": 2,
                "padding": 0,
                "count_padding": False,
                "src_q": U8,
                "dst_q": U8,
                "dialect": "tflite",
            },
        ),
        "mean": (
            quantized.mean,
            {"src": SRC, "axes": (1,), "src_q": U8, "dst_q": U8, "dialect": "tflite"},
        ),
        "bias_add": (
            quantized.bias_add,
            {"src": SRC, "bias": np.zeros(3, np.uint8), "src_q": U8, "bias_q": U8, "dst_q": U8},
        ),
        "concat": (
            quantized.concat,
            {"srcs": [SRC, SRC], "srcs_q": [U8, U8], "dst_q": U8, "axis": 1},
        ),
        "leaky_relu": (quantized.leaky_relu, {"src": SRC, "alpha": 0.1, **q}),
        "max_pool": (quantized.max_pool, {"src": SRC, "kernel": (2, 2), "stride": 2, "padding": 0}),
        "pad": (
            quantized.pad,
            {
                "src": SRC,
                "padding": [(0, 0), (0, 0), (1, 1), (1, 1)],
                "src_q": U8,
                "value": 0.0,
                "mode": "constant",
            },
        ),
        "power": (quantized.power, {"src": SRC, "exponent": 2.0, "scale": 1.0, "shift": 0.5, **q}),
        "prelu": (quantized.prelu, {"src": SRC, "slope": np.ones(3, np.uint8), "slope_q": U8, **q}),
        "relu": (quantized.relu, {"src": SRC, **q}),
        "quantized.requantize": (quantized.requantize, {"src": SRC, **q}),
        "resize_bilinear": (
            quantized.resize_bilinear,
            {"src": SRC, "size": (12, 12), "half_pixel": False, "src_q": U8, "dst_q": U8},
        ),
        "sigmoid": (
            quantized.sigmoid,
            {"src": SRC, "src_q": U8, "dst_q": pq.QParams(1 / 256, 0, "u8")},
        ),
        "softmax": (
            quantized.softmax,
            {
                "src": SRC,
                "axis": 1,
                "beta": 1.0,
                "src_q": U8,
                "dst_q": pq.QParams(1 / 256, 0, "u8"),
            },
        ),
    }


def process_calls() -> Calls:
    return {
        "set_num_threads": (pq.native.set_num_threads, {"n": 1}),
        "get_num_threads": (pq.native.get_num_threads, {}),
        "threads": (_entered, {"n": 1}),
        "limit_isa": (runtime.limit_isa, {"name": "AVX512_CORE"}),
        "limit_buffers": (pq.native.limit_buffers, {"nbytes": 2**28}),
        "buffer_statistics": (pq.native.buffer_statistics, {}),
        "clear_buffers": (pq.native.clear_buffers, {}),
        "limit_shapes": (pq.ops.limit_shapes, {"count": 1024, "nbytes": 2**30}),
        "shape_statistics": (pq.ops.shape_statistics, {}),
        "clear_shapes": (pq.ops.clear_shapes, {}),
        "operator_cache_limit": (pq.ops.operator_cache_limit, {"size": 256}),
        "operator_cache_info": (pq.ops.operator_cache_info, {}),
        "operator_cache_clear": (pq.ops.operator_cache_clear, {}),
    }


def _entered(n: Any) -> None:
    with pq.threads(n):
        pass
