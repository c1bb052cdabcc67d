"""Named chains: the fusion patterns that the reference implementation tests, on three channels."""

from __future__ import annotations

from dataclasses import dataclass

from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.interval import Interval
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, PRelu, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Takes
from pyonednn_q.rewrite.rule import Policy

ACC = Acc(
    Interval(Vec(-(2.0**20)), Vec(2.0**20), integer=True),
    scale=Vec([0.5, 0.25, 0.125]),
    shift=Vec([1.0, -2.0, 0.5]),
    takes_scale=Takes.PER_CHANNEL,
    takes_shift=Takes.PER_CHANNEL,
)
BIAS_AT_RUN_TIME = Acc(ACC.interval, ACC.scale, because="the bias is a run-time argument")

MUL, ADD = Affine([2.0, 0.5, 1.5]), Affine(1.0, [0.25, -1.0, 3.0])
DIV, SUB = Binary("div", [2.0, 4.0, 8.0]), Binary("sub", [1.0, 2.0, 3.0])
MUL_NEGATIVE = Affine([2.0, -0.5, 1.5])
RELU, SIGMOID = Eltwise("relu"), Eltwise("logistic")
LOW, HIGH = [-1.28, -2.56, -5.12], [1.27, 2.54, 5.08]

U8_PC = FakeQuantize(0, [2.55, 5.1, 1.275], 0, 255)
U8_PT = FakeQuantize(0, 2.55, 0, 255)
S8_PC = FakeQuantize(LOW, HIGH, -128, 127)
FQ_PT = FakeQuantize(-2.56, 2.54, -2.56, 2.54)
FQ_PC = FakeQuantize(LOW, HIGH, LOW, HIGH)
FQ_UNIT = FakeQuantize(0, 1, 0, 1)


F32, U8, S8 = Dst("f32"), Dst("u8"), Dst("s8")


@dataclass(frozen=True)
class Named:
    """A chain between ends, and how many post-ops it should come to."""

    steps: tuple[Step | Chain, ...]
    post_ops: int
    acc: Acc = ACC
    dst: Dst = F32
    policy: Policy = "real"

    @property
    def chain(self) -> Chain:
        """The steps as one chain."""
        return Chain(*self.steps)


def _fq(*parts: FakeQuantize | Step) -> tuple[Step | Chain, ...]:
    return tuple(p.chain() if isinstance(p, FakeQuantize) else p for p in parts)


NAMED: dict[str, Named] = {
    "01_relu_add": Named(_fq(RELU, ADD), 1),
    "02_relu_mul_add": Named(_fq(RELU, MUL, ADD), 1),
    "02_relu_mul_add_negative": Named(_fq(RELU, MUL_NEGATIVE, ADD), 2),
    "03_mul_add": Named(_fq(MUL, ADD), 0),
    "04_clamp_round_add_relu": Named(
        _fq(Clip(3, 6), Eltwise("round"), Binary("add", 4.0), RELU), 2
    ),
    "05_mul_add_fq": Named(_fq(MUL, ADD, FQ_PC), 3),
    "05_mul_add_fq_u8": Named(_fq(MUL, ADD, U8_PC), 0, dst=U8),
    "06_fq_pc_relu": Named(_fq(FQ_PC, RELU), 3),
    "06_fq_pt_relu": Named(_fq(FQ_PT, RELU), 3),
    "07_fq_sigmoid_fq_pc": Named(_fq(FQ_PC, SIGMOID, FQ_PC), 7),
    "07_fq_sigmoid_fq_u8": Named(_fq(FQ_PC, SIGMOID, FakeQuantize(0, 1, 0, 255)), 5, dst=U8),
    "08_sum_elu_fq": Named(_fq(Sum(), Eltwise("elu", 2.0), FQ_PT), 6),
    "09_prelu_mul_add": Named(_fq(PRelu([0.25, 0.5, 2.0]), MUL, ADD), 2),
    "10_bias_gelu": Named(_fq(ADD, Eltwise("gelu_erf")), 1),
    "11_mul_add_fq_mul_add": Named(_fq(MUL, ADD, FQ_PC, MUL, ADD), 4),
    "12_div_sub_fq": Named(_fq(DIV, SUB, FQ_PC), 3),
    "13_sigmoid_fq_fq": Named(_fq(SIGMOID, FQ_UNIT, FQ_UNIT), 4),
    "14_clamp_fq": Named(_fq(Clip(3, 6), FQ_PC), 4),
    "conv_bias_fq_pc_u8": Named(_fq(U8_PC), 0, dst=U8),
    "conv_bias_fq_pc_s8": Named(_fq(S8_PC), 0, dst=S8),
    "conv_fq_pc_u8_bias_at_run_time": Named(_fq(U8_PC), 1, acc=BIAS_AT_RUN_TIME, dst=U8),
    "conv_relu_fq_u8": Named(_fq(RELU, U8_PC), 0, dst=U8),
    "conv_relu6_fq_u8": Named(_fq(Clip(0, 6), FakeQuantize(0, 6, 0, 255)), 0, dst=U8),
    "conv_sum_relu_fq_u8": Named(_fq(Sum(0.5, 3, "u8"), RELU, U8_PT), 1, dst=U8),
    "conv_fq_sum_fq_u8": Named(_fq(FQ_PT, Sum(0.5), U8_PT), 4, dst=U8),
    "conv_fq_sum_fq_u8_fast": Named(
        _fq(FQ_PT, Sum(0.5), FakeQuantize(0, 5.1, 0, 255)), 2, dst=U8, policy="fast"
    ),
    "scale_shift_fq_subnormal": Named(_fq(Affine(-1.23e-44), FakeQuantize(-1, 5, -5, 1)), 0),
    "scale_shift_fq_zero": Named(_fq(Affine(0.0), FakeQuantize(2, 4, -4, -2)), 0),
    "scale_shift_fq_negative": Named(_fq(Affine(-17.0), FakeQuantize(0, 2.55, 0, 255)), 0, dst=U8),
}  # fmt: skip
