"""Plans run on real primitives: every kind, dtype and form of facts; tests/isa draws at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.expr.steps import Binary, Chain, Clip, Leaf, PRelu
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from support.plans import chains
from support.plans.problems import BIAS, WEI_SCALE, C, facts_of, problem
from support.plans.runs import Layer, assert_equal, assert_near


def check(layer: Layer, plan: Any, name: str) -> Any:
    got, prepared = layer.run(plan)
    assert plan.is_whole, plan.because
    assert prepared.kind != "reference"
    assert_near(layer, plan, got)
    if name not in chains.TRANSCENDENTAL:
        assert_equal(layer, plan, got)
    return prepared


@pytest.mark.parametrize("name", chains.NAMES)
def test_chain_lowered_step_by_step(name: str) -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=chains.NAMES.index(name))
    check(layer, compose(chains.chain(name, "u8"), facts_of(layer), rules=NO_RULES), name)


@pytest.mark.parametrize(
    "kind", ["1x1", "grouped", "depthwise", "deconvolution", "inner_product", "matmul"]
)
@pytest.mark.parametrize("dst", ["u8", "s8", "f32"])
@pytest.mark.parametrize(
    "name",
    ["05_mul_add_fq_pc", "02_relu_scale_shift", "11_mul_add_fq_mul_add", "prelu_mul_fq",
     "relu_signed_mul_fq", "signed_mul_fq", "sum_mul_pt_fq_pt", "08_sum_elu_fq", "mul_zero_fq"],
)  # fmt: skip
def test_chain_on_every_primitive(name: str, dst: str, kind: str) -> None:
    layer = Layer.of(problem(kind, dst), seed=3)
    check(layer, compose(chains.chain(name, dst), facts_of(layer)), name)


@pytest.mark.parametrize("src", ["u8", "s8"])
def test_quantized_convolution_needs_no_post_op(src: str) -> None:
    """A convolution with bias and a per-channel FakeQuantize to u8."""
    layer = Layer.of(problem("convolution", "u8", src), seed=1)
    plan = compose(chains.fq(chains.STEP_PC, stored=True), facts_of(layer))
    assert plan.post_ops == ()
    assert plan.attr.dst_scale is None
    check(layer, plan, "fq_pc")


@pytest.mark.parametrize("name", ["05_mul_add_fq_pc", "prelu_mul_fq", "signed_mul_fq"])
def test_bias_that_comes_later(name: str) -> None:
    layer = replace(Layer.of(problem("convolution", "u8"), seed=2), later=Vec(BIAS))
    plan = compose(chains.chain(name, "u8"), facts_of(layer, bias=None))
    assert plan.bias_later is not None
    check(layer, plan, name)


@pytest.mark.parametrize("cls", [ConvProblem, DeconvProblem])
@pytest.mark.parametrize("dst", ["u8", "f32"])
def test_channels_of_one_place(cls: type[ConvProblem | DeconvProblem], dst: str) -> None:
    """A gate of a squeeze-and-excite block: operands per channel are as large as dst."""
    layer = Layer.of(cls.of((1, 8, 1, 1), (C, 8, 1, 1), dst=dst, bias="f32"), seed=3)
    bounds = Clip(BIAS, BIAS + 6.0)
    chain = Chain(bounds, PRelu(WEI_SCALE), Binary("add", Leaf("r", "f32", "per_channel")))
    layer = replace(layer, operands={"r": np.arange(C, dtype=np.float32)})
    check(layer, compose(chain, facts_of(layer)), "one place")


def test_negative_scale_with_weights_that_cannot_change_sign() -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=2)
    facts = PrimitiveFacts.of(
        layer.problem, src_scale=0.5, wei_scale=WEI_SCALE, bias=BIAS, process=runtime.facts()
    )
    plan = compose(chains.chain("signed_mul_fq", "u8"), facts)
    assert [op.boundary()[:2] for op in plan.post_ops] == [("binary", "mul")]
    check(layer, plan, "signed_mul_fq")


@pytest.mark.parametrize("kind", ["convolution", "matmul"])
@pytest.mark.parametrize(
    "name", ["05_mul_add_fq_pc", "relu", "08_sum_elu_fq", "02_relu_scale_shift"]
)
def test_source_zero_point(name: str, kind: str) -> None:
    layer = Layer.of(problem(kind, "u8"), seed=4)
    plan = compose(chains.chain(name, "u8"), facts_of(layer, src_zero_point=3))
    check(layer, plan, name)


@pytest.mark.parametrize("kind", ["convolution", "matmul", "inner_product", "deconvolution"])
@pytest.mark.parametrize("name", ["relu", "fq_pt", "prelu_pc", "sum", "elu", "06_fq_pt_relu"])
def test_quantized_dst(name: str, kind: str) -> None:
    """A chain that ends in real values, stored with a scale and a zero point."""
    layer = Layer.of(problem(kind, "u8"), seed=5)
    plan = compose(chains.chain(name, "f32"), facts_of(layer, dst_scale=0.5, dst_zero_point=18))
    check(layer, plan, name)


@pytest.mark.needs_isa("AVX2")  # below, a float sum runs on reference loops
@pytest.mark.parametrize("kind", ["convolution", "matmul", "inner_product", "deconvolution"])
@pytest.mark.parametrize("name", ["05_mul_add_fq_pc", "09_prelu_mul_add", "08_sum_elu_fq"])
def test_float_primitive(name: str, kind: str) -> None:
    """f32 weights take the scales into themselves: dequantization comes before the bias."""
    layer = _as_float(Layer.of(problem(kind, "f32"), seed=6))
    plan = compose(chains.chain(name, "f32"), facts_of(layer))
    assert plan.attr.wei_scale is None
    check(layer, plan, name)


def _as_float(layer: Layer) -> Layer:
    of = layer.problem
    of = replace(of, src=replace(of.src, dtype="f32"), wei=replace(of.wei, dtype="f32"))
    return replace(
        layer, problem=of, src=layer.src.astype(np.float32), wei=layer.wei.astype(np.float32)
    )


@pytest.mark.parametrize("scales", ["folded", "separate"])
def test_scales_folded_and_separate(scales: Any) -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=7)
    plan = compose(chains.chain("05_mul_add_fq_pc", "u8"), facts_of(layer), scales=scales)
    assert (plan.attr.src_scale is not None) == (scales == "separate")
    check(layer, plan, "05_mul_add_fq_pc")


WRONG: dict[str, Any] = {
    "bias": lambda plan: replace(plan, bias=plan.bias + 0.5),
    "wei_scale": lambda plan: replace(
        plan, constants=tuple((name, vec * 2.0) for name, vec in plan.constants)
    ),
    "wei_factor": lambda plan: replace(plan, wei_factor=-plan.wei_factor),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_plan_is_noticed(name: str) -> None:
    layer = Layer.of(problem("convolution", "u8"), seed=1)
    plan = WRONG[name](compose(chains.chain("05_mul_add_fq_pc", "u8"), facts_of(layer)))
    got, _ = layer.run(plan)
    with pytest.raises(AssertionError):
        assert_equal(layer, plan, got)
    with pytest.raises(AssertionError):
        assert_near(layer, plan, got)


def test_operands_of_each_call() -> None:
    """A gate per channel and a residual of dst's size, known only when the chain runs."""
    rng = np.random.default_rng(9)
    layer = Layer.of(problem("convolution", "u8"), seed=9)
    gate = rng.integers(1, 4, C).astype(np.float32)
    residual = rng.integers(-9, 9, layer.problem.dst.dims).astype(np.int8)
    chain = Chain(
        Binary("mul", Leaf("gate", "f32", "per_channel")),
        Binary("add", Leaf("residual", "s8")),
        chains.fq(chains.STEP_PC, stored=True),
    )
    plan = compose(chain, facts_of(layer), strict=True)
    assert [leaf for _, leaf in plan.operands] == ["gate", "residual"]
    layer = replace(layer, operands={"gate": gate, "residual": residual})
    got, prepared = layer.run(plan)
    assert prepared.kind == "jit"
    assert_equal(layer, plan, got)
