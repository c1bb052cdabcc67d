"""Right constructors of public values, and what takes them: names, callables, arguments."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np

import pyonednn_q as pq
from pyonednn_q.native import runtime
from pyonednn_q.primitive import (
    Attr,
    BinaryPostOp,
    BinaryProblem,
    ConvProblem,
    DeconvProblem,
    DepthwisePostOp,
    EltwisePostOp,
    EltwiseProblem,
    InnerProductProblem,
    MatMulProblem,
    PoolingProblem,
    PReluPostOp,
    PReluProblem,
    PrimitiveFacts,
    ReorderProblem,
    ResamplingProblem,
    Scale,
    SoftmaxProblem,
    SumPostOp,
    SumProblem,
    TensorSpec,
    ZeroPoint,
)

Calls: TypeAlias = "dict[str, tuple[Any, dict[str, Any]]]"

U8, S8 = pq.QParams(0.5, 3, "u8"), pq.QParams(0.25, 0, "s8")
WEI_Q = pq.QParams([0.5, 0.25, 1.0, 2.0], 0, "s8", 0)
RNG, SPEC = np.random.default_rng(0), TensorSpec.dense((1, 3, 6, 6), "u8")
SRC = RNG.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
WEI = RNG.integers(-60, 60, (4, 3, 3, 3)).astype(np.int8)
ROWS = RNG.integers(0, 256, (5, 8)).astype(np.uint8)
COLUMNS = RNG.integers(-60, 60, (8, 4)).astype(np.int8)
FLOATS, BIAS = RNG.normal(size=(1, 3, 6, 6)).astype(np.float32), np.zeros(4, np.float32)
CONV, FQ = ConvProblem.of(SRC.shape, WEI.shape, padding=1), pq.FakeQuantize(0, 2.55, 0, 255)
PRODUCT = MatMulProblem.of(ROWS.shape, COLUMNS.shape, dst="f32")
CHAIN = pq.Chain(pq.Affine([0.5, 1, 2, 3], 0.25), pq.Eltwise("relu"), pq.Clip(0, 100))
CODES: dict[str, Any] = {"src_q": U8, "wei_q": S8}
SCALES: dict[str, Any] = {"src_scale": 0.5, "wei_scale": [0.5, 0.25, 1.0, 2.0], "dst_scale": 2.0}


def value_calls() -> Calls:
    """Constructors of values."""
    leaf = pq.Leaf("gate", "f32", "per_channel")
    return {
        "QParams": (
            pq.QParams,
            {"scale": [0.5, 1.0], "zero_point": [3, 4], "dtype": "u8", "axis": 1},
        ),
        "Dynamic": (pq.Dynamic, {"dtype": "u8", "extent": "per_row"}),
        "Vec": (pq.expr.Vec, {"value": [1.0, 2.0]}),
        "Affine": (pq.Affine, {"scale": [0.5, 2.0], "shift": 1.0}),
        "Binary": (pq.Binary, {"alg": "mul", "operand": leaf}),
        "Clip": (pq.Clip, {"lo": 0.0, "hi": [1.0, 6.0]}),
        "Eltwise": (pq.Eltwise, {"alg": "linear", "alpha": 2.0, "beta": 1.0}),
        "Leaf": (pq.Leaf, {"name": "gate", "dtype": "f32", "extent": "full"}),
        "PRelu": (pq.PRelu, {"slope": [0.1, 0.2]}),
        "Round": (pq.Round, {}),
        "Sum": (pq.Sum, {"scale": 0.5, "zero_point": 3, "dtype": "u8"}),
        "FakeQuantize": (
            pq.FakeQuantize,
            {
                "input_low": 0.0,
                "input_high": [1.0, 2.0],
                "output_low": 0.0,
                "output_high": 255.0,
                "levels": 256,
            },
        ),
        "FakeQuantize.symmetric": (
            pq.FakeQuantize.symmetric,
            {"high": 2.0, "levels": 255, "output_low": -1.0, "output_high": 1.0},
        ),
        "TensorSpec": (TensorSpec, {"dims": (2, 3), "dtype": "u8", "strides": (3, 1)}),
        "TensorSpec.dense": (TensorSpec.dense, {"dims": (2, 3), "dtype": "u8"}),
        "TensorSpec.channels_last": (TensorSpec.channels_last, {"dims": (2, 3, 4), "dtype": "u8"}),
        "TensorSpec.of": (TensorSpec.of, {"array": SRC, "argument": "src"}),
        "Scale": (Scale, {"mask": 1, "dtype": "f32", "groups": ()}),
        "ZeroPoint": (ZeroPoint, {"mask": 0, "dtype": "s32", "groups": (1, 4)}),
        "SumPostOp": (SumPostOp, {"scale": 0.5, "zero_point": 3, "dtype": "s8"}),
        "EltwisePostOp": (EltwisePostOp, {"alg": "clip", "alpha": 0.0, "beta": 6.0}),
        "BinaryPostOp": (BinaryPostOp, {"alg": "add", "src1": SPEC}),
        "PReluPostOp": (PReluPostOp, {"mask": 2}),
        "DepthwisePostOp": (
            DepthwisePostOp,
            {
                "wei_dtype": "s8",
                "bias_dtype": None,
                "dst_dtype": "u8",
                "kernel": 3,
                "stride": 1,
                "padding": 1,
            },
        ),
        "Attr": (
            Attr,
            {
                "src_scale": Scale(),
                "wei_scale": Scale(1),
                "dst_scale": Scale(),
                "src_zero_point": ZeroPoint(),
                "post_ops": (EltwisePostOp("relu"),),
                "fpmath": "strict",
                "fpmath_apply_to_int": False,
                "accumulation": "strict",
                "deterministic": True,
            },
        ),
    }


def problem_calls() -> Calls:
    types = {"src": "u8", "wei": "s8", "dst": "u8", "bias": "f32"}
    window = {"stride": (1, 1), "dilation": 1, "padding": ((1, 1), (0, 1))}
    image = TensorSpec.channels_last((1, 3, 6, 6), "u8")
    return {
        "ConvProblem.of": (
            ConvProblem.of,
            {
                "src_dims": (1, 3, 6, 6),
                "wei_dims": (4, 3, 3, 3),
                **types,
                **window,
                "layout": "dense",
            },
        ),
        "DeconvProblem.of": (
            DeconvProblem.of,
            {
                "src_dims": (1, 3, 6, 6),
                "wei_dims": (4, 3, 3, 3),
                **types,
                **window,
                "layout": "channels_last",
            },
        ),
        "InnerProductProblem.of": (InnerProductProblem.of, {"src_dims": (2, 8), "oc": 4, **types}),
        "MatMulProblem.of": (MatMulProblem.of, {"src_dims": (2, 8), "wei_dims": (8, 4), **types}),
        "ConvProblem": (ConvProblem, _fields(CONV)),
        "DeconvProblem": (DeconvProblem, _fields(DeconvProblem.of((1, 3, 6, 6), (4, 3, 2, 2)))),
        "InnerProductProblem": (InnerProductProblem, _fields(InnerProductProblem.of((2, 8), 4))),
        "MatMulProblem": (MatMulProblem, _fields(PRODUCT)),
        "EltwiseProblem": (
            EltwiseProblem,
            {"src": SPEC, "dst": SPEC, "alg": "clip", "alpha": 0.0, "beta": 6.0},
        ),
        "BinaryProblem": (BinaryProblem, {"src": SPEC, "src1": SPEC, "dst": SPEC, "alg": "add"}),
        "SumProblem": (SumProblem, {"srcs": (SPEC, SPEC), "scales": (1.0, 2.0), "dst": SPEC}),
        "SoftmaxProblem": (SoftmaxProblem, {"src": SPEC, "dst": SPEC, "axis": 1, "log": False}),
        "PReluProblem": (PReluProblem, {"src": SPEC, "wei": SPEC, "dst": SPEC}),
        "ReorderProblem": (ReorderProblem, {"src": SPEC, "dst": image}),
        "PoolingProblem": (
            PoolingProblem,
            {
                "src": image,
                "dst": TensorSpec.channels_last((1, 3, 3, 3), "u8"),
                "alg": "max",
                "kernel": (2, 2),
                "stride": (2, 2),
                "dilation": (1, 1),
                "padding_lo": (0, 0),
                "padding_hi": (0, 0),
            },
        ),
        "ResamplingProblem": (
            ResamplingProblem,
            {"src": image, "dst": TensorSpec.channels_last((1, 3, 12, 12), "u8"), "alg": "nearest"},
        ),
        "PrimitiveFacts.of": (
            PrimitiveFacts.of,
            {
                "problem": CONV,
                "wei": WEI,
                **SCALES,
                "src_zero_point": 3,
                "bias": [1.0, 2.0, 3.0, 4.0],
                "bias_in_acc": False,
                "dst_zero_point": 7,
                "src_later": "",
                "process": runtime.facts(),
            },
        ),
    }


def _others() -> dict[str, Any]:
    """Problems without weights."""
    floats = TensorSpec.dense((1, 3, 6, 6), "f32")
    image = TensorSpec.channels_last((1, 3, 6, 6), "f32")
    return {
        "eltwise": EltwiseProblem(floats, floats, "relu"),
        "binary": BinaryProblem(floats, floats, floats, "add"),
        "sum": SumProblem((floats, floats), (1.0, 2.0), floats),
        "softmax": SoftmaxProblem(floats, floats, 1),
        "reorder": ReorderProblem(SPEC, image),
        "resampling": ResamplingProblem(
            image, TensorSpec.channels_last((1, 3, 12, 12), "f32"), "nearest"
        ),
        "matmul": PRODUCT,
    }


def _fields(value: Any) -> dict[str, Any]:
    assert is_dataclass(value)
    return {each.name: getattr(value, each.name) for each in fields(value) if each.init}


def composed_calls() -> Calls:
    facts = PrimitiveFacts.of(CONV, wei=WEI, **SCALES)
    plan = pq.compose_chain(CHAIN, facts)
    reals = WEI * 0.01
    layer = pq.compose_layer(CONV, reals, BIAS, src_fq=FQ, wei_levels=129)
    conv = pq.Conv(WEI, BIAS, **CODES, padding=1)
    inspected = pq.inspect(conv, SRC.shape)
    values = {"wei_scale": [0.5, 1.0, 2.0, 3.0]}
    gate = pq.Binary("mul", pq.Leaf("gate", "f32", "per_channel"))
    gated = pq.Conv(WEI, **CODES, padding=1, dst_q=U8, post=pq.Chain(pq.Sum(), gate))
    gated_dst = np.zeros((1, 4, 6, 6), np.uint8)
    return {
        "PrimitiveFacts": (PrimitiveFacts, _fields(facts)),
        "compose_chain": (
            pq.compose_chain,
            {
                "chain": CHAIN,
                "facts": facts,
                "policy": "real",
                "scales": "folded",
                "exact_rounding": False,
                "strict": False,
            },
        ),
        "compose_layer": (
            pq.compose_layer,
            {
                "problem": CONV,
                "wei": reals,
                "bias": BIAS,
                "src_fq": FQ,
                "wei_fq": None,
                "wei_levels": 255,
                "chain": CHAIN,
                "dst_fq": FQ,
                "process": runtime.facts(),
                "policy": "real",
                "strict": False,
                "zero_point": "auto",
                "tolerance": 1e-4,
            },
        ),
        "Plan": (pq.compose.Plan, _fields(plan)),
        "Plan.from_json": (pq.compose.Plan.from_json, {"text": plan.to_json()}),
        "Layer": (pq.compose.Layer, _fields(layer)),
        "Inspection": (pq.inspection.Inspection, _fields(inspected)),
        "prepare": (
            pq.prepare,
            {
                "problem": CONV,
                "attr": Attr(wei_scale=Scale(1)),
                "wei": WEI,
                "bias": None,
                "values": values,
                "later": (),
                "allow_reference": False,
                "saturation": "allow",
                "self_check": False,
                "implementation": None,
                "arrays": None,
            },
        ),
        "prepare_plan": (
            pq.prepare_plan,
            {
                "plan": plan,
                "problem": CONV,
                "wei": WEI,
                "bias": None,
                "operands": {},
                "allow_reference": False,
                "saturation": "allow",
            },
        ),
        "prepare_layer": (
            pq.prepare_layer,
            {"layer": layer, "operands": {}, "allow_reference": False, "saturation": "allow"},
        ),
        "PreparedLayer": (
            pq.ops.PreparedLayer,
            {"layer": layer, "planned": conv.prepare(SRC.shape)},
        ),
        **{
            f"prepare.{kind}": (
                pq.prepare,
                {
                    "problem": problem,
                    "attr": None,
                    "values": {},
                    "later": [],
                    "allow_reference": True,
                },
            )
            for kind, problem in _others().items()
        },
        "Conv.__call__": (
            gated,
            {"src": SRC, "out": None, "residual": gated_dst, "gate": np.ones(4, np.float32)},
        ),
        "Planned.__call__": (
            gated.prepare(SRC.shape),
            {"src": SRC, "out": None, "residual": gated_dst, "gate": np.ones(4, np.float32)},
        ),
        "Prepared.layout": (conv.prepare(SRC.shape).primitive.layout, {"name": "src"}),
        "PreparedLayer.__call__": (pq.prepare_layer(layer), {"src": FLOATS, "out": None}),
        "MatMul.__call__": (
            pq.MatMul.from_float(COLUMNS * 0.1, src_q=pq.Dynamic("u8", "per_row"), wei_levels=129),
            {"src": np.ones((2, 3, 8), np.float32), "out": np.empty((2, 3, 4), np.float32)},
        ),
        "inspect": (pq.inspect, {"prepared": conv, "src_dims": SRC.shape}),
        "model_of": (pq.model_of, {"operator": conv, "src_dims": SRC.shape}),
        "Conv": (
            pq.Conv,
            {
                "wei": WEI,
                "bias": BIAS,
                "src_q": U8,
                "wei_q": WEI_Q,
                "dst_q": U8,
                "stride": 1,
                "padding": [1, 1, 1, 1],
                "dilation": (1, 1),
                "groups": 1,
                "post": CHAIN,
                "policy": "real",
                "layout": "dense",
                "saturation": "allow",
                "strict": False,
                "zero_point": "auto",
                "requantize": None,
            },
        ),
        "Deconv": (
            pq.Deconv,
            {"wei": WEI, "bias": BIAS, **CODES, "stride": (1, 1), "padding": 1, "dst": "f32"},
        ),
        "InnerProduct": (pq.InnerProduct, {"wei": COLUMNS.T, "bias": BIAS, **CODES}),
        "MatMul": (pq.MatMul, {"wei": COLUMNS, "bias": BIAS, **CODES, "dst": "s32"}),
        "Conv.from_float": (
            pq.Conv.from_float,
            {
                "wei": reals,
                "bias": BIAS,
                "src_q": (-1.0, 2.0),
                "dst_q": FQ,
                "wei_levels": 255,
                "src_dtype": "u8",
                "dst": "u8",
                "post": CHAIN,
                "padding": 1,
            },
        ),
        "conv": (pq.conv, {"src": SRC, "wei": WEI, "bias": BIAS, **CODES, "padding": 1}),
        "deconv": (pq.deconv, {"src": SRC, "wei": WEI, **CODES, "operands": {}}),
        "inner_product": (pq.inner_product, {"src": ROWS, "wei": COLUMNS.T.copy(), **CODES}),
        "matmul": (pq.matmul, {"src": ROWS, "wei": COLUMNS, **CODES, "dst": "f32"}),
    }
