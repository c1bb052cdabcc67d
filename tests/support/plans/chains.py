"""The chains of operations that OpenVINO's CPU plugin tests behind a convolution.

Per tensor is PT, per output channel PC. Constants are powers of two and small whole numbers, so
that float32 computes the steps exactly, but for the transcendental algorithms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Binary, Clip, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec

CHANNELS = 16

Chains = dict[str, tuple[Step | Chain, ...]]


def _per_channel(*values: float) -> Vec:
    return Vec(np.resize(np.array(values, np.float64), CHANNELS))


SCALE = _per_channel(0.5, 2.0, 1.0, 0.25)
SHIFT = _per_channel(1.0, -2.0, 0.5, 3.0, 0.0)
SLOPE = _per_channel(0.25, 0.5, -0.5)
STEP_PT = 0.25
STEP_PC = _per_channel(0.25, 0.5, 1.0)

MUL_PC, ADD_PC = Binary("mul", SCALE), Binary("add", SHIFT)
SIGNED_MUL_PC = Binary("mul", _per_channel(0.5, -2.0, 1.0, -0.25))
RELU = Eltwise("relu")


def fq(step: float | Vec, *, stored: bool = False, low: int = 0) -> Chain:
    """256 levels from `low`, back to real values, or kept as levels where they are stored."""
    width = Vec(step)
    il, ih = width * float(low), width * float(low + 255)
    return FakeQuantize(il, ih, low if stored else il, low + 255 if stored else ih).chain()


FQ_PT, FQ_PC = fq(STEP_PT), fq(STEP_PC)

# Each takes the FakeQuantize that ends it, which is kept as levels where dst is an integer.
OPEN: Chains = {
    "empty": (),
    "relu": (RELU,),
    "elu": (Eltwise("elu", 2.0),),
    "gelu": (Eltwise("gelu_erf"),),
    "sigmoid": (Eltwise("logistic"),),
    "clamp": (Clip(3, 6),),
    "tanh": (Eltwise("tanh"),),
    "abs": (Eltwise("abs"),),
    "swish": (Eltwise("swish", 1.0),),
    "soft_plus": (Eltwise("soft_relu", 1.0),),
    "hswish": (Eltwise("hardswish", 1.0 / 6.0, 0.5),),
    "mish": (Eltwise("mish"),),
    "hsigmoid": (Eltwise("hardsigmoid", 1.0 / 6.0, 0.5),),
    "prelu_pt": (PRelu(0.25),),
    "prelu_pc": (PRelu(SLOPE),),
    "mul_pt": (Binary("mul", 0.5),),
    "mul_pc": (MUL_PC,),
    "add_pt": (Binary("add", 1.5),),
    "add_pc": (ADD_PC,),
    "sub_pc": (Binary("sub", SHIFT),),
    "div_pc": (Binary("div", SCALE),),
    "sum": (Sum(),),
    "01_relu_add": (RELU, ADD_PC),
    "02_relu_scale_shift": (RELU, MUL_PC, ADD_PC),
    "03_scale_shift": (MUL_PC, ADD_PC),
    "04_clamp_round_add_relu": (Clip(3, 6), Round(), Binary("add", -4.0), RELU),
    "06_fq_pc_relu": (FQ_PC, RELU),
    "06_fq_pt_relu": (FQ_PT, RELU),
    "09_prelu_mul_add": (PRelu(SLOPE), MUL_PC, ADD_PC),
    "10_bias_gelu": (ADD_PC, Eltwise("gelu_erf")),
    "11_mul_add_fq_mul_add": (MUL_PC, ADD_PC, FQ_PC, MUL_PC, ADD_PC),
}
ENDED: dict[str, tuple[tuple[Step | Chain, ...], Callable[[bool], Chain]]] = {
    "fq_pt": ((), lambda stored: fq(STEP_PT, stored=stored)),
    "fq_pc": ((), lambda stored: fq(STEP_PC, stored=stored)),
    "05_mul_add_fq_pc": ((MUL_PC, ADD_PC), lambda stored: fq(STEP_PC, stored=stored)),
    "07_fq_pc_sigmoid_fq_pc": (
        (FQ_PC, Eltwise("logistic")),
        lambda stored: fq(STEP_PC * (1 / 64), stored=stored),
    ),
    "07_fq_pc_sigmoid_fq_pt": (
        (FQ_PC, Eltwise("logistic")),
        lambda stored: fq(1 / 256, stored=stored),
    ),
    "08_sum_elu_fq": ((Sum(0.5), Eltwise("elu", 2.0)), lambda stored: fq(STEP_PT, stored=stored)),
    "12_div_sub_fq": (
        (Binary("div", SCALE), Binary("sub", SHIFT)),
        lambda stored: fq(STEP_PC, stored=stored),
    ),
    "13_sigmoid_fq_fq": (
        (Eltwise("logistic"), fq(STEP_PC * (1 / 64))),
        lambda stored: fq(STEP_PC * (1 / 64), stored=stored),
    ),
    "14_clamp_fq": ((Clip(3, 6),), lambda stored: fq(STEP_PC, stored=stored)),
    "14_clamp_fq_disjoint": (
        (Clip(3, 6),),
        lambda stored: FakeQuantize(-1, 1, 0 if stored else -1, 255 if stored else 1).chain(),
    ),
    "sum_fq_pt_relu_fq": ((Sum(0.5), FQ_PT, RELU), lambda stored: fq(2.0, stored=stored)),
    "relu_signed_mul_fq": ((RELU, SIGNED_MUL_PC), lambda stored: fq(STEP_PC, stored=stored)),
    "prelu_mul_fq": ((PRelu(SLOPE), MUL_PC), lambda stored: fq(STEP_PC, stored=stored)),
    "signed_mul_fq": ((SIGNED_MUL_PC,), lambda stored: fq(STEP_PC, stored=stored)),
    "sum_mul_pt_fq_pt": ((Sum(0.5), Binary("mul", 2.0)), lambda stored: fq(1.0, stored=stored)),
    "mul_minus_30_fq": (
        (Binary("mul", -30.0),),
        lambda stored: FakeQuantize(0, 2.55, 0, 255 if stored else 2.55).chain(),
    ),
    "mul_minus_17_fq_reversed": (
        (Binary("mul", -17.0),),
        lambda stored: FakeQuantize(-1, 5, 0 if stored else -5, 255 if stored else 1).chain(),
    ),
    "mul_subnormal_fq": (
        (Binary("mul", -1.23e-44),),
        lambda stored: FakeQuantize(-1, 5, 0 if stored else -5, 255 if stored else 1).chain(),
    ),
    "mul_zero_fq": (
        (Binary("mul", 0.0),),
        lambda stored: FakeQuantize(2, 4, 0 if stored else -4, 255 if stored else -2).chain(),
    ),
    "fq_pc_residual_fq": ((FQ_PC, Sum(0.5)), lambda stored: fq(1.0, stored=stored)),
}
# What no kernel computes exactly: kernels agree with float64 to about this, absolutely.
TRANSCENDENTAL = {"elu", "gelu", "sigmoid", "tanh", "swish", "soft_plus", "hswish", "mish"} | {
    "hsigmoid", "10_bias_gelu", "07_fq_pc_sigmoid_fq_pc", "07_fq_pc_sigmoid_fq_pt",
    "08_sum_elu_fq", "13_sigmoid_fq_fq", "mul_minus_30_fq", "mul_minus_17_fq_reversed",
    "14_clamp_fq_disjoint", "mul_subnormal_fq", "mul_zero_fq",
}  # fmt: skip

NAMES = (*OPEN, *ENDED)


def chain(name: str, dst: str) -> Chain:
    """Return a chain; for an integer dst, with the FakeQuantize that ends it kept as levels."""
    if name in OPEN:
        return Chain(*OPEN[name])
    before, end = ENDED[name]
    return Chain(*before, end(dst != "f32"))
