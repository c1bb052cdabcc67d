"""The chains of operations that OpenVINO's CPU plugin tests behind a convolution.

They are presets of the package, `explain/presets/chains.toml`: a user sees what the tests run. Per
tensor is PT, per output channel PC. Constants are powers of two and small whole numbers, so that
float32 computes the steps exactly, but for the transcendental algorithms.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q.explain import presets, read
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec

CHANNELS = 16
STEP_PT, STEP_PC = Vec(0.25), Vec(np.resize([0.25, 0.5, 1.0], CHANNELS))
NAMES = presets.names("chains")

# What no kernel computes exactly: kernels agree with float64 to about this, absolutely.
TRANSCENDENTAL = {"elu", "gelu", "sigmoid", "tanh", "swish", "soft_plus", "hswish", "mish"} | {
    "hsigmoid", "10_bias_gelu", "07_fq_pc_sigmoid_fq_pc", "07_fq_pc_sigmoid_fq_pt",
    "08_sum_elu_fq", "13_sigmoid_fq_fq", "mul_minus_30_fq", "mul_minus_17_fq_reversed",
    "14_clamp_fq_disjoint", "mul_subnormal_fq", "mul_zero_fq", "sqrt", "swish_fq", "mul_30_fq",
    "sum_sigmoid", "sum_fq_pc_sigmoid_fq_pc", "sum_sigmoid_fq_fq",
}  # fmt: skip


def chain(name: str, dst: str) -> Chain:
    """Return a chain; for an integer dst, with the FakeQuantize that ends it kept as levels."""
    tables = presets.get(name)
    tables["dst"] = {**tables.get("dst", {}), "dtype": dst}
    return read(tables).chain


def fq(step: Vec, *, stored: bool = False) -> Chain:
    """256 levels from 0, back to real values, or kept as levels where they are stored."""
    high = step * 255.0
    return FakeQuantize(0.0, high, 0.0, 255.0 if stored else high).chain()


FQ_PC = fq(STEP_PC)
