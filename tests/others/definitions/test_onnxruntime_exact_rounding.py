"""`exact_rounding=True` gives the integers of ONNX Runtime's QLinear operators.

Accepted: no element differs from

    v = f32(acc + bias) · M,   M = f32(f32(src_scale · wei_scale) / dst_scale)
    q = rne(clamp(v, lo - z, hi - z)) + z

on any implementation that the library offers, by recipe A (no bias: M is the weight scale, a round
post-op, the zero point) and by recipe B (s32 bias, multiplication by M, round, zero point); while
the sums stay below 2**24, and a refusal where they may not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError, DTypeError, UnsupportedError
from pyonednn_q.expr.steps import Affine, Chain, Clip, Eltwise, Step
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Scale, ZeroPoint
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import MatMulProblem
from support.definitions.runs import Run, by_formula, on_primitive, sums
from support.plans.chains import CHANNELS as C
from support.plans.problems import USUAL_KINDS, problem
from support.plans.runs import Layer
from support.unguarded import results

LIMITS = {"u8": (0, 255), "s8": (-128, 127)}
F = np.float32
SCALES: dict[str, Any] = {
    "any": (0.0371, np.random.default_rng(8).uniform(0.01, 0.06, C), 0.0293),
    "dyadic, with ties": (0.5, np.resize([0.5, 0.25, 1.0, 0.125], C), 0.5),
    "one for all channels": (0.5, 0.25, 0.5),
}


def ort(acc: Any, facts: PrimitiveFacts, bias: Any = 0) -> Any:
    """The rule, in float32, from integers."""
    dims = [1] * acc.ndim
    dims[facts.axis] = -1
    scales = facts.wei_scale.spread(facts.channels).astype(F)
    multiplier = (F(facts.src_scale) * scales / F(facts.dst_scale)).reshape(dims)
    assert multiplier.dtype == F
    v = (acc.astype(np.int64) + np.reshape(bias, dims)).astype(F) * multiplier
    lo, hi = LIMITS[facts.dst]
    z = facts.dst_zero_point
    return np.rint(np.clip(v, F(lo - z), F(hi - z))).astype(np.int64) + z


def exact(
    layer: Layer, name: str, zero_point: int, bias: Any = None, *steps: Step
) -> tuple[Plan, PrimitiveFacts]:
    src_scale, wei_scale, dst_scale = SCALES[name]
    facts = PrimitiveFacts.of(
        layer.problem, wei=layer.wei, src_scale=src_scale, wei_scale=wei_scale, bias=bias,
        bias_in_acc=True, dst_scale=dst_scale, dst_zero_point=zero_point,
    )  # fmt: skip
    return compose(Chain(*steps), facts, strict=True, exact_rounding=True), facts


def biases(recipe: str) -> Any:
    return None if recipe == "A" else np.random.default_rng(80).integers(-300, 300, C)


@pytest.mark.parametrize("zero_point", [3, 0, 100])
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("recipe", ["A", "B"])
@pytest.mark.parametrize(("src", "dst"), [("u8", "u8"), ("s8", "s8"), ("u8", "s8")])
@pytest.mark.parametrize("kind", USUAL_KINDS)
def test_no_element_differs(
    kind: str, src: str, dst: str, recipe: str, name: str, zero_point: int, run: Run
) -> None:
    layer, bias = Layer.of(problem(kind, dst, src, bias=None), seed=8), biases(recipe)
    plan, facts = exact(layer, name, zero_point, bias)
    want = ort(sums(layer), facts, 0 if bias is None else bias)
    np.testing.assert_array_equal(run(layer, plan), want)


@pytest.mark.parametrize("recipe", ["A", "B"])
def test_the_recipes(recipe: str) -> None:
    layer = Layer.of(problem("convolution", "u8", bias=None), seed=8)
    plan, _ = exact(layer, "any", 131, biases(recipe))
    kinds = [op.boundary()[:2] for op in plan.post_ops]
    assert plan.attr.dst_zero_point == ZeroPoint()
    assert (plan.attr.src_scale, plan.attr.dst_scale) == (None, None)
    if recipe == "A":
        assert (plan.attr.wei_scale, plan.bias) == (Scale(1), None)
        assert kinds == [("eltwise", "round")]
    else:
        assert (plan.attr.wei_scale, plan.bias_dtype) == (None, "s32")
        assert kinds == [("binary", "mul"), ("eltwise", "round")]


@pytest.mark.parametrize("recipe", ["A", "B"])
def test_the_multiplier_is_rounded_twice_as_there(recipe: str) -> None:
    """The product to float32, then the quotient; rounded once it would often be another number."""
    channels, rng = 1000, np.random.default_rng(3)
    scales = rng.uniform(0.001, 0.1, channels)
    facts = PrimitiveFacts(
        "convolution", channels, src_scale=0.0371, wei_scale=Vec(scales), dst_scale=0.0293,
        bias=None if recipe == "A" else Vec(5.0), bias_in_acc=True,
    )  # fmt: skip
    plan = compose(Chain(), facts, exact_rounding=True)
    want = F(0.0371) * scales.astype(F) / F(0.0293)
    got = plan.values()["wei_scale" if recipe == "A" else "post_op_0"]
    np.testing.assert_array_equal(got.reshape(-1), want)
    assert (want != (0.0371 * scales / 0.0293).astype(F)).any()


def test_an_inner_product_adds_its_zero_point_by_a_post_op() -> None:
    """It takes none: oneDNN offers no implementation that does."""
    layer = Layer.of(problem("inner_product", "u8", bias=None), seed=8)
    plan, _ = exact(layer, "any", 131)
    assert plan.attr.dst_zero_point is None
    assert plan.values()["post_op_1"].tolist() == [[131.0]]
    assert [op.text() for op in plan.post_ops] == ["eltwise_round", "binary_add:f32:1x1"]


@pytest.mark.executed
@pytest.mark.parametrize("recipe", ["A", "B"])
@pytest.mark.parametrize("kind", USUAL_KINDS)
def test_on_every_implementation(kind: str, recipe: str) -> None:
    compared = 0
    for seed, name in enumerate(SCALES):
        layer, bias = Layer.of(problem(kind, "u8", bias=None), seed), biases(recipe)
        plan, facts = exact(layer, name, 131, bias)
        want = ort(sums(layer), facts, 0 if bias is None else bias)
        arrays = {"src": layer.src, "wei": plan.wei(layer.wei)}
        values = plan.bias_values()
        if values is not None:
            arrays["bias"] = values
        of = plan.problem(layer.problem)
        for impl, answer in results(of, plan.attr, arrays, plan.values()):
            np.testing.assert_array_equal(answer, want, err_msg=impl)
            compared += 1
    assert compared > len(SCALES), "only one implementation: nothing was compared"


@pytest.mark.parametrize("recipe", ["A", "B"])
def test_sums_just_below_2_to_24(recipe: str, run: Run) -> None:
    """A thousand products of 255 · 63, weights that no ISA saturates: float32 holds every sum."""
    of = MatMulProblem.of((6, 1040), (1040, C), dst="s8")
    rng = np.random.default_rng(24)
    src = rng.integers(250, 256, of.src.dims).astype(np.uint8)
    wei = rng.choice([-63, 62, 63], of.wei.dims, p=[0.01, 0.29, 0.7]).astype(np.int8)
    layer = Layer(of, src, wei, np.zeros(of.dst.dims, np.int8), {})
    acc = sums(layer)
    assert 2**23.8 < acc.max() < 2**24
    facts = PrimitiveFacts.of(
        of, wei=wei, src_scale=1.0, wei_scale=0.9, dst_scale=float(acc.max()) / 90,
        dst_zero_point=-7, bias=None if recipe == "A" else biases("B"), bias_in_acc=True,
    )  # fmt: skip
    plan = compose(Chain(), facts, strict=True, exact_rounding=True)
    want = ort(acc, facts, 0 if recipe == "A" else biases("B"))
    np.testing.assert_array_equal(run(layer, plan), want)


@pytest.mark.parametrize("recipe", ["A", "B"])
@pytest.mark.parametrize(
    ("steps", "limit"),
    [
        ((Eltwise("relu"),), (0.0, np.inf)),
        ((Clip(-1.5, 6.25),), (-1.5, 6.25)),
        ((Eltwise("relu"), Clip(hi=6.25)), (0.0, 6.25)),
    ],
)
def test_clips_and_relu_are_bounds_of_the_levels(
    steps: tuple[Step, ...], limit: tuple[float, float], recipe: str, run: Run
) -> None:
    """As a runtime fuses them: the quantized bound is a bound of q."""
    layer, bias = Layer.of(problem("convolution", "s8", bias=None), seed=8), biases(recipe)
    plan, facts = exact(layer, "any", 3, bias, *steps)
    lo, hi = (np.rint(np.float64(end) / facts.dst_scale) + 3 for end in limit)
    want = np.clip(ort(sums(layer), facts, 0 if bias is None else bias), lo, hi)
    np.testing.assert_array_equal(run(layer, plan), want)


def test_the_default_differs_on_ties_of_an_odd_zero_point() -> None:
    """Why there is an option: the store adds its zero point before it rounds."""
    layer = Layer.of(problem("convolution", "u8", bias=None), seed=8)
    plan, facts = exact(layer, "dyadic, with ties", 131)
    folded = compose(Chain(), facts, strict=True)
    want = ort(sums(layer), facts)
    assert (by_formula(layer, folded) != want).any()
    np.testing.assert_array_equal(by_formula(layer, plan), want)
    even = replace(facts, dst_zero_point=130)
    np.testing.assert_array_equal(
        by_formula(layer, compose(Chain(), even, strict=True)), ort(sums(layer), even)
    )


@pytest.mark.executed
def test_and_so_it_does_on_a_primitive() -> None:
    layer = Layer.of(problem("convolution", "u8", bias=None), seed=8)
    _, facts = exact(layer, "dyadic, with ties", 131)
    got = on_primitive(layer, compose(Chain(), facts, strict=True))
    assert (got != ort(sums(layer), facts)).any()


def test_refusals_name_their_reason() -> None:
    layer = Layer.of(problem("convolution", "u8", bias=None), seed=8)
    with pytest.raises(UnsupportedError, match="only clips and relu stand before the rounding"):
        exact(layer, "any", 3, None, Affine(2.0))
    with pytest.raises(ArgumentError, match="units of the accumulator"):
        exact(layer, "any", 3, 0.5)
    facts = PrimitiveFacts.of(layer.problem, bias=1.0)
    with pytest.raises(ArgumentError, match="bias_in_acc"):
        compose(Chain(), facts, exact_rounding=True)
    with pytest.raises(DTypeError, match="integer dst"):
        compose(Chain(), replace(facts, dst="f32", bias=None), exact_rounding=True)
    far = MatMulProblem.of((2, 1100), (1100, C))
    wei = np.full(far.wei.dims, 63, np.int8)
    facts = PrimitiveFacts.of(far, wei=wei, bias=5, bias_in_acc=True)
    with pytest.raises(UnsupportedError, match=r"float32 is exact below 2\*\*24"):
        compose(Chain(), facts, exact_rounding=True)
