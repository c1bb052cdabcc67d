"""What a composer on oneDNN is known to get wrong, each with the right answer.

The plan is evaluated here from its own values, so the answer does not depend on a machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, PRelu, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import ConvProblem
from support import oracle

FACTS = PrimitiveFacts("convolution", 2, wei_has_min=False)
SRC = np.array([0, 1, 2, 3, 5, 10, 100, 255], np.uint8).reshape(1, 1, 8, 1)
WEI = np.array([1, -1], np.int8).reshape(2, 1, 1, 1)


def run(plan: Plan) -> Any:
    """Run the plan on a 1x1 convolution whose channels are acc = src and acc = -src."""
    problem = ConvProblem.of(SRC.shape, WEI.shape, src="u8", dst=plan.facts.dst)
    if not plan.facts.is_int8:
        types: dict[str, Any] = dict.fromkeys(("src", "wei"), plan.facts.wei)
        problem = ConvProblem.of(SRC.shape, WEI.shape, dst="f32", **types)
    wei = WEI if plan.facts.is_int8 else WEI.astype(np.float32)
    arrays = {"src": SRC, "wei": plan.wei(wei), **plan.values()}
    bias = plan.bias_values()
    if bias is not None:
        arrays["bias"] = bias
    return oracle.run(plan.problem(problem), plan.attr, arrays).dst[0, :, :, 0]


ACC = np.stack([SRC.reshape(-1), -SRC.reshape(-1).astype(float)])


def stored(y: Any) -> Any:
    return np.clip(np.rint(y), 0, 255)


def test_negative_multiplier_across_relu() -> None:
    """A relu times -30 is never above 0; folded through the relu, acc = -10 would give 255."""
    fq = FakeQuantize(0, 2.55, 0, 255).chain()
    for bend in (Eltwise("relu"), PRelu([0.0, 0.0])):
        plan = compose(Chain(bend, Binary("mul", -30.0), fq), FACTS)
        assert not run(plan).any()
    bent = compose(Chain(PRelu([0.5, 0.25]), Binary("mul", [-1.0, -4.0]), Clip(0, 255)), FACTS)
    slopes = np.array([[0.5], [0.25]])
    want = stored(np.where(ACC >= 0, ACC, slopes * ACC) * [[-1.0], [-4.0]])
    np.testing.assert_array_equal(run(bent), want)


def test_weight_scale_whose_product_is_one() -> None:
    """0.5 published and 2 folded later must not leave 0.5 in the attribute."""
    facts = PrimitiveFacts("convolution", 2, wei_scale=Vec(0.5), wei_has_min=False)
    plan = compose(Chain(Binary("mul", 2.0)), facts)
    assert plan.attr.wei_scale is None
    np.testing.assert_array_equal(run(plan), stored(ACC))


@pytest.mark.parametrize("dst", ["u8", "f32"])
def test_clamp_and_range_that_are_disjoint(dst: str) -> None:
    fq = FakeQuantize(-1, 1, 0 if dst == "u8" else -1, 255 if dst == "u8" else 1).chain()
    plan = compose(Chain(Clip(3, 6), fq), PrimitiveFacts("convolution", 2, dst=dst))
    assert (run(plan) == (255 if dst == "u8" else 1)).all()


@pytest.mark.parametrize("wei", ["f32", "bf16"])
def test_dequantization_comes_before_the_bias(wei: str) -> None:
    """On the float fallback: acc·s + b, and not (acc + b)·s."""
    facts = PrimitiveFacts(
        "convolution", 2, src=wei, wei=wei, dst="f32",
        src_scale=0.5, wei_scale=Vec([0.25, 2.0]), bias=Vec([3.0, -1.0]),
    )  # fmt: skip
    plan = compose(Chain(), facts)
    want = ACC * [[0.125], [1.0]] + [[3.0], [-1.0]]
    if wei == "f32":
        assert plan.post_ops == ()
        np.testing.assert_array_equal(run(plan), want)
    else:
        assert plan.bias is None
        assert [op.text() for op in plan.post_ops] == [
            "binary_mul:f32:1x2x1x1",
            "binary_add:f32:1x2x1x1",
        ]


def test_odd_shift_of_a_narrow_range() -> None:
    """255 levels from -127: ties go where the definition sends them."""
    fq = FakeQuantize(-127, 127, -127, 127, 255)
    facts = PrimitiveFacts("convolution", 2, dst="s8", src_scale=0.5, wei_has_min=False)
    plan = compose(fq.chain(), facts)
    want = fq(0.5 * ACC, axis=0)
    np.testing.assert_array_equal(run(plan), want)


def test_thresholds_reach_their_operand() -> None:
    """Not zeros: each channel is compared with its own."""
    plan = compose(FakeQuantize([2, -5], [2, -5], 0, 1, 2).chain(), FACTS)
    assert plan.values()["post_op_0"].reshape(-1).tolist() == [2, -5]
    np.testing.assert_array_equal(run(plan), np.array([[2], [-5]]) < ACC)


def test_nothing_is_emitted_for_one_and_zero() -> None:
    facts = PrimitiveFacts("convolution", 2, dst="f32")
    chain = Chain(Eltwise("tanh"), Binary("mul", 1.0), Binary("add", [0.0, 0.0]), Affine())
    assert [op.text() for op in compose(chain, facts).post_ops] == ["eltwise_tanh"]


def test_odd_zero_point_after_a_rounding() -> None:
    """round(x) + 3 and round(x + 3) differ at ties: the round stays, the zero point takes the 3."""
    facts = PrimitiveFacts("convolution", 2, src_scale=0.5, wei_has_min=False)
    plan = compose(Chain(Round(), Affine(1.0, 3.0)), facts)
    assert [op.text() for op in plan.post_ops] == ["eltwise_round"]
    assert dict(plan.constants)["dst_zero_point"] == Vec(3.0)
    np.testing.assert_array_equal(run(plan), stored(np.rint(0.5 * ACC) + 3))
