"""Multiplications folded into weight scale, bias, sum's scale or dst's scale.

Accepted: within 1 ulp of float32 of the unfolded chain, and equal integers but next to ties. A
scale on its own is rounded once as a constant and once as a product, half an ulp each; whatever a
chain adds brings its own roundings, and those are counted too. A negative factor behind a relu or
prelu that has no right identity is refused, and a bias is multiplied together with the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.steps import Affine, Chain, Eltwise, PRelu, Round, Step, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.definitions.composing import fired, ops, refusals
from support.definitions.runs import Run, sums
from support.plans.chains import CHANNELS as C
from support.plans.problems import problem
from support.plans.runs import Layer

UNIT = 2.0**-24  # half an ulp, relatively: one rounding to float32
KINDS = ("convolution", "deconvolution", "inner_product", "matmul")
RNG = np.random.default_rng(12)


def float32(values: Any) -> Any:
    return np.asarray(values, np.float32).astype(np.float64)


SCALE = float32(RNG.uniform(0.01, 0.1, C))  # of the weights; no power of two anywhere
FACTOR, SLOPE = float32(RNG.uniform(0.1, 3.0, C)), float32(RNG.uniform(0.1, 0.9, C))
BIAS = float32(RNG.uniform(-5.0, 5.0, C))
SIGNED = FACTOR * np.resize([1, -1, 1], C)
LEAK, SIGMA, ONE = (float(float32(v)) for v in (0.3, 0.7, 1.37))


@dataclass(frozen=True)
class Folded:
    """Steps that fold away, with what they mean and the roundings that remain.

    ``meaning`` takes s*acc, what dst held, and a function that lays channels out; it returns y and
    how far float32 may be from it, in half ulps.
    """

    steps: tuple[Step, ...]
    left: list[str]
    meaning: Callable[[Any, Any, Any], tuple[Any, Any]]
    bias: Any = None


def _leaky(a: Any, factor: Any, slope: Any) -> tuple[Any, Any]:
    y = factor * np.where(a >= 0, a, slope * a)
    return y, abs(y) * np.where(a >= 0, 2, 3)


def _bent_over(a: Any, factor: float, slope: float) -> tuple[Any, Any]:
    y = factor * np.where(a >= 0, a, slope * a)
    return y, 4 * abs(y)  # scale, product, and slope 1/a with its product


def _with_bias(a: Any, factor: Any, bias: Any) -> tuple[Any, Any]:
    y = factor * (a + bias)
    return y, 2 * abs(factor * a) + abs(factor * bias) + abs(y)


def _with_sum(a: Any, before: Any, factor: float) -> tuple[Any, Any]:
    y = factor * (a + SIGMA * before)
    return y, 2 * abs(factor * a) + 2 * abs(factor * SIGMA * before) + abs(y)


def _relu(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return np.maximum(pair[0], 0), pair[1]


RELU = Eltwise("relu")
CASES = {
    "first": Folded(
        (Affine(FACTOR),), [], lambda a, _, ch: (ch(FACTOR) * a, 2 * abs(ch(FACTOR) * a))
    ),
    "two in a row": Folded(
        (Affine(FACTOR), Affine(ONE)),
        [],
        lambda a, _, ch: (ONE * ch(FACTOR) * a, 2 * abs(ONE * ch(FACTOR) * a)),
    ),
    "behind relu": Folded(
        (RELU, Affine(FACTOR)),
        ["eltwise_relu"],
        lambda a, _, ch: _leaky(a, ch(FACTOR), 0.0),
    ),
    "behind leaky relu": Folded(
        (Eltwise("relu", LEAK), Affine(FACTOR)),
        ["prelu"],
        lambda a, _, ch: _leaky(a, ch(FACTOR), LEAK),
    ),
    "behind prelu": Folded(
        (PRelu(SLOPE), Affine(FACTOR)),
        ["prelu"],
        lambda a, _, ch: _leaky(a, ch(FACTOR), ch(SLOPE)),
    ),
    "negative behind leaky relu": Folded(
        (Eltwise("relu", LEAK), Affine(-ONE)),
        ["prelu"],
        lambda a, *_: _bent_over(a, -ONE, LEAK),
    ),
    "with a bias": Folded(
        (Affine(FACTOR),), [], lambda a, _, ch: _with_bias(a, ch(FACTOR), ch(BIAS)), BIAS
    ),
    "with a bias, negative": Folded(
        (Affine(SIGNED),), [], lambda a, _, ch: _with_bias(a, ch(SIGNED), ch(BIAS)), BIAS
    ),
    "with a bias, behind relu": Folded(
        (RELU, Affine(FACTOR)),
        ["eltwise_relu"],
        lambda a, _, ch: _relu(_with_bias(a, ch(FACTOR), ch(BIAS))),
        BIAS,
    ),
    "behind a sum": Folded(
        (Sum(SIGMA), Affine(ONE)), ["sum"], lambda a, before, _: _with_sum(a, before, ONE)
    ),
}


def layer_of(kind: str, dst: str) -> Layer:
    return Layer.of(problem(kind, dst, bias=None), seed=12)


def composed(layer: Layer, *steps: Step | Chain, bias: Any = None, **options: Any) -> Plan:
    facts = PrimitiveFacts.of(
        layer.problem, wei=layer.wei, wei_scale=options.pop("scale", SCALE), bias=bias
    )
    return compose(Chain(*steps), facts, strict=True, **options)


def along(layer: Layer) -> Callable[[Any], Any]:
    """Lay channels out along dst's axis 1, where all these kinds have them."""
    dims = (1, -1, *(1,) * (layer.problem.dst.ndim - 2))
    return lambda values: np.reshape(values, dims)


def kinds_of(plan: Plan) -> list[str]:
    return [op.split(":")[0] for op in ops(plan)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_within_1_ulp_of_the_unfolded(name: str, kind: str, run: Run) -> None:
    layer, case = layer_of(kind, "f32"), CASES[name]
    plan = composed(layer, *case.steps, bias=case.bias)
    assert kinds_of(plan) == case.left
    channels = along(layer)
    y, halves = case.meaning(channels(SCALE) * sums(layer), layer.before.astype(float), channels)
    reach = UNIT * halves * (1 + 2.0**-20)
    assert (abs(run(layer, plan) - y) <= reach).all()
    naive = composed(layer, *case.steps, bias=case.bias, rules=NO_RULES)
    assert len(naive.post_ops) > len(plan.post_ops)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_integers_equal_but_next_to_ties(name: str, kind: str, run: Run) -> None:
    """With a FakeQuantize behind it, whose scale is folded into the same constants."""
    layer, case = layer_of(kind, "u8"), CASES[name]
    channels = along(layer)
    y, halves = case.meaning(channels(SCALE) * sums(layer), layer.before.astype(float), channels)
    step = float(abs(y).max()) / 300
    quantize = FakeQuantize(0, 255 * step, 0, 255).chain()
    plan = composed(layer, *case.steps, quantize, bias=case.bias)
    assert len(plan.post_ops) <= len(case.left)
    place = y / step
    near = np.abs(place - np.floor(place) - 0.5) <= UNIT * halves / step * (1 + 2.0**-20)
    got, want = run(layer, plan), np.clip(np.rint(place), 0, 255)
    assert (np.abs(got - want) <= near).all()
    assert len(np.unique(got)) > 20


@pytest.mark.parametrize("kind", ["convolution", "deconvolution", "matmul"])
@pytest.mark.parametrize("factor", [1.37, 0.613, 0.0999])
def test_the_last_multiplication_is_the_dst_scale(factor: float, kind: str, run: Run) -> None:
    """Behind a rounding, which lets no scale pass; dst's scale is the nearest reciprocal."""
    layer = layer_of(kind, "u8")
    plan = composed(layer, Round(), Affine(factor), scale=0.5)
    assert kinds_of(plan) == ["eltwise_round"]
    assert "move_scale_to_dst" in fired(plan)
    applied = np.float32(1) / plan.values()["dst_scale"]
    assert abs(float(applied[0]) / factor - 1) <= 2 * UNIT, "no nearer reciprocal was looked for"
    place = factor * np.rint(0.5 * sums(layer))
    near = np.abs(place - np.floor(place) - 0.5) <= 3 * UNIT * abs(place) * (1 + 2.0**-20)
    assert (np.abs(run(layer, plan) - np.clip(np.rint(place), 0, 255)) <= near).all()


REFUSED: dict[str, tuple[tuple[Step, ...], str, Callable[[Any, Any], Any]]] = {
    "relu, both signs": (
        (RELU, Affine(SIGNED)),
        "it would not save a constant",
        lambda a, ch: ch(SIGNED) * np.maximum(a, 0),
    ),
    "prelu of slopes below 0": (
        (PRelu(-SLOPE), Affine(SIGNED)),
        "scale is negative in channel 1 and slope",
        lambda a, ch: ch(SIGNED) * np.where(a >= 0, a, -ch(SLOPE) * a),
    ),
    "prelu, one slope of 0": (
        (PRelu(np.where(np.arange(C) == 1, 0, SLOPE)), Affine(SIGNED)),
        "scale is negative in channel 1 and slope 0 is not above 0",
        lambda a, ch: ch(SIGNED) * np.where(
            a >= 0, a, ch(np.where(np.arange(C) == 1, 0, SLOPE)) * a),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_negative_factors_without_an_identity_are_refused(name: str, run: Run) -> None:
    steps, reason, meaning = REFUSED[name]
    layer = layer_of("convolution", "f32")
    plan = composed(layer, *steps)
    assert kinds_of(plan)[-1] == "binary_mul"
    assert reason in refusals(plan)
    assert dict(plan.constants)["wei_scale"] == Vec(SCALE)
    channels = along(layer)
    y = meaning(channels(SCALE) * sums(layer), channels)
    assert (abs(run(layer, plan) - y) <= 3 * UNIT * abs(y)).all()


def test_a_bias_that_comes_later_is_multiplied_when_it_comes(run: Run) -> None:
    layer = layer_of("convolution", "f32")
    layer = replace(layer, problem=problem("convolution", "f32"))
    plan = composed(layer, Affine(SIGNED))
    assert plan.post_ops == ()
    channels = along(layer)
    y, halves = _with_bias(channels(SCALE) * sums(layer), channels(SIGNED), channels(BIAS))
    assert (abs(run(layer, plan, BIAS) - y) <= UNIT * halves * (1 + 2.0**-20)).all()
