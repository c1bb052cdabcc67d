"""The quantized operators that a primitive takes along: each composes strictly, into how much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Eltwise, Leaf, PRelu, Step, Sum
from pyonednn_q.expr.vec import Vec
from support.plans.chains import CHANNELS
from support.plans.golden import facts

SLOPES = Vec([0.25, 0.5] * (CHANNELS // 2))
LEVELS = FakeQuantize(0.0, 255.0, 0.0, 255.0, 256).chain()

# operator: its steps, the kinds of post-op stored as u8, and as f32
FUSED: dict[str, tuple[tuple[Step, ...], list[str], list[str]]] = {
    "add": ((Sum(0.5),), ["sum"], ["sum"]),
    "add of another tensor": (
        (Binary("add", Leaf("other", "s8")),), ["binary_add"], ["binary_add"]
    ),
    "bias add": ((Affine(Vec(1.0), SLOPES),), [], []),
    "relu": ((Eltwise("relu", 0.0, 0.0),), [], ["eltwise_relu"]),
    # Measured to cost less than the eltwise.
    "leaky relu": ((Eltwise("relu", 0.25, 0.0),), ["prelu"], ["prelu"]),
    "prelu": ((PRelu(SLOPES),), ["prelu"], ["prelu"]),
    "power": ((Eltwise("pow", 1.0, 3.0),), ["eltwise_pow"], ["eltwise_pow"]),
    "power with scale and shift": (
        (Affine(Vec(0.5), Vec(2.0)), Eltwise("square", 0.0, 0.0)),
        ["eltwise_square"],
        ["eltwise_square"],
    ),
    "sigmoid": ((Eltwise("logistic", 0.0, 0.0),), ["eltwise_logistic"], ["eltwise_logistic"]),
}  # fmt: skip


@pytest.mark.parametrize("dst", ["u8", "f32"])
@pytest.mark.parametrize("name", FUSED)
def test_an_operator_becomes_a_post_op_or_nothing(name: str, dst: str) -> None:
    steps, stored, plain = FUSED[name]
    chain = Chain(*steps, *(LEVELS if dst == "u8" else ()))
    plan = compose(chain, replace(facts(dst), dst_dims=(1, CHANNELS, 4, 4)), strict=True)
    assert not plan.leftovers
    found = [post_op.text().split(":")[0] for post_op in plan.post_ops]
    assert found == (stored if dst == "u8" else plain)
