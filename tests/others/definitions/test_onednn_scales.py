"""Scales of source and weights, per tensor, per output channel, and with groups.

Accepted: folded into one weight scale, which is the default, every kernel of the library gives the
same integers, those of  f32(f32(acc) * s) + bias  rounded to nearest even. Kept separate, a kernel
multiplies in one of the two orders that are known, or divides by dst's scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, Scale
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.primitive.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from support.definitions.runs import Run, sums
from support.plans.runs import Layer
from support.unguarded import results

# Each with the mask of its weight scales: bit 0, with groups bits 0 and 1, matmul its last.
PROBLEMS: list[tuple[Any, int]] = [
    (ConvProblem.of((2, 16, 9, 9), (32, 16, 3, 3), padding=1, bias="f32"), 1),
    (ConvProblem.of((2, 16, 9, 9), (32, 16, 1, 1), bias="f32"), 1),
    (ConvProblem.of((2, 32, 9, 9), (2, 16, 16, 3, 3), padding=1, bias="f32"), 3),
    (ConvProblem.of((2, 32, 9, 9), (32, 1, 1, 3, 3), padding=1, bias="f32"), 3),
    (ConvProblem.of((2, 16, 9, 9), (32, 16, 3, 3), padding=1, src="s8", dst="s8", bias="f32"), 1),
    (DeconvProblem.of((2, 16, 6, 6), (16, 16, 4, 4), stride=2, padding=1, bias="f32"), 1),
    (InnerProductProblem.of((40, 64), 48, bias="f32"), 1),
    (MatMulProblem.of((40, 64), (64, 48), bias="f32"), 2),
]
IDS = [problem.text() for problem, _ in PROBLEMS]
LIMITS = {"u8": (0, 255), "s8": (-128, 127)}
F = np.float32


def along(problem: Any, values: Any) -> Any:
    return np.reshape(values, (1, -1, *(1,) * (problem.dst.ndim - 2)))


def filled(problem: Any, rng: np.random.Generator) -> tuple[Layer, Any]:
    src_dtype = np.uint8 if problem.src.dtype == "u8" else np.int8
    src = rng.integers(0, 64, problem.src.dims).astype(src_dtype)
    # Small even weights: exact without VNNI as well.
    wei = (2 * rng.integers(-20, 21, problem.wei.dims)).astype(np.int8)
    bias = (rng.integers(-40, 40, problem.bias.dims) / 2).astype(F)
    return Layer(problem, src, wei, np.zeros(0), {}), bias


def near_ties(problem: Any, rng: np.random.Generator) -> Any:
    """Odd multiples of half a step over small integers: products land on and beside ties."""
    channels = problem.dst.dims[1]
    return ((rng.integers(1, 200, channels) + 0.5) / rng.integers(100, 4000, channels)).astype(F)


def stored(problem: Any, value: Any) -> Any:
    return np.clip(np.rint(value), *LIMITS[problem.dst.dtype])


@pytest.mark.parametrize(("problem", "mask"), PROBLEMS, ids=IDS)
def test_folded_is_the_default(problem: Any, mask: int) -> None:
    """One weight scale, src · wei in float64 rounded once; per tensor or per channel by value."""
    scale = np.linspace(0.01, 0.02, problem.dst.dims[1])
    for wei_scale, wanted in ((scale, mask), (0.3, 0)):
        facts = PrimitiveFacts.of(problem, src_scale=0.7, wei_scale=wei_scale)
        plan = compose(Chain(), facts)
        assert (plan.attr.src_scale, plan.attr.wei_scale) == (None, Scale(wanted))
        assert dict(plan.constants) == {"wei_scale": (Vec(wei_scale) * 0.7).narrow()}
        apart = compose(Chain(), facts, scales="separate")
        assert (apart.attr.src_scale, apart.attr.wei_scale) == (Scale(), Scale(wanted))
        assert dict(apart.constants)["src_scale"] == Vec(0.7).narrow()


@pytest.mark.parametrize("scales", ["folded", "separate"])
@pytest.mark.parametrize(("problem", "mask"), PROBLEMS, ids=IDS)
def test_both_forms_mean_the_formula(problem: Any, mask: int, scales: Any, run: Run) -> None:
    """On dyadic numbers, where no order of operations shows: with a bias, and a scale of dst."""
    layer, bias = filled(problem, np.random.default_rng(6))
    layer = replace(layer, before=np.zeros(problem.dst.dims, np.uint8))
    wei_scale = np.resize([0.25, 0.5, 0.125], problem.dst.dims[1])
    facts = PrimitiveFacts.of(
        problem, wei=layer.wei, src_scale=0.25, wei_scale=wei_scale, bias=bias.reshape(-1),
        dst_scale=0.5, dst_zero_point=3,
    )  # fmt: skip
    plan = compose(Chain(), facts, scales=scales, strict=True)
    assert (plan.attr.src_scale is None) == (scales == "folded")
    assert plan.attr.wei_scale == Scale(mask)
    x = 0.25 * along(problem, wei_scale) * sums(layer) + along(problem, bias)
    np.testing.assert_array_equal(run(layer, plan), stored(problem, x / 0.5 + 3))


@pytest.mark.executed
@pytest.mark.parametrize(("problem", "mask"), PROBLEMS, ids=IDS)
def test_folded_gives_the_same_integers_on_every_kernel(problem: Any, mask: int) -> None:
    """Scales chosen near ties. The product is rounded before the bias is added: never fused."""
    rng = np.random.default_rng(3)
    for _ in range(8):
        layer, bias = filled(problem, rng)
        scale = near_ties(problem, rng)
        acc = sums(layer).astype(F)
        want = stored(problem, acc * along(problem, scale) + along(problem, bias))
        arrays = {"src": layer.src, "wei": layer.wei, "bias": bias}
        answers = dict(results(problem, Attr(wei_scale=Scale(mask)), arrays, {"wei_scale": scale}))
        assert len(answers) > 1, "only one implementation: nothing was compared"
        for impl, answer in answers.items():
            np.testing.assert_array_equal(answer, want, err_msg=impl)


ORDERS: dict[str, Callable[..., Any]] = {
    "source scale, then weight scale": lambda acc, s, w, b: acc * s * w + b,
    "product of the scales": lambda acc, s, w, b: acc * (s * w) + b,
}


@pytest.mark.executed
@pytest.mark.parametrize(("problem", "mask"), PROBLEMS, ids=IDS)
def test_separate_scales_are_multiplied_in_a_known_order(problem: Any, mask: int) -> None:
    """To f32, where every bit shows it. Two orders, no third; folded has none to choose."""
    rng = np.random.default_rng(4)
    layer, bias = filled(problem, rng)
    of = replace(problem, dst=replace(problem.dst, dtype="f32"))
    src_scale, wei_scale = F(0.0371), rng.uniform(0.01, 0.06, problem.dst.dims[1]).astype(F)
    given = (sums(layer).astype(F), src_scale, along(problem, wei_scale), along(problem, bias))
    known = {name: order(*given) for name, order in ORDERS.items()}
    one, other = known.values()
    assert (one != other).mean() > 0.05, "nothing tells the orders apart"
    attr = Attr(src_scale=Scale(), wei_scale=Scale(mask))
    values = {"src_scale": np.array([src_scale]), "wei_scale": wei_scale}
    arrays = {"src": layer.src, "wei": layer.wei, "bias": bias}
    for impl, answer in results(of, attr, arrays, values):
        assert any(np.array_equal(answer, bits) for bits in known.values()), impl


@pytest.mark.executed
@pytest.mark.parametrize(("problem", "mask"), PROBLEMS, ids=IDS)
def test_separate_scales_and_a_dst_scale(problem: Any, mask: int) -> None:
    """Generated code multiplies by the reciprocal of dst's scale, reference loops divide."""
    rng = np.random.default_rng(5)
    for _ in range(4):
        layer, bias = filled(problem, rng)
        src_scale, dst_scale = F(0.37), F(1.7)
        wei_scale = near_ties(problem, rng) * F(dst_scale / src_scale)
        given = (sums(layer).astype(F), src_scale, along(problem, wei_scale), along(problem, bias))
        known = []
        for order in ORDERS.values():
            x = order(*given)
            known += [stored(problem, x * (F(1) / dst_scale)), stored(problem, x / dst_scale)]
        attr = Attr(src_scale=Scale(), wei_scale=Scale(mask), dst_scale=Scale())
        values = {
            "src_scale": np.array([src_scale]),
            "wei_scale": wei_scale,
            "dst_scale": np.array([dst_scale]),
        }
        arrays = {"src": layer.src, "wei": layer.wei, "bias": bias}
        for impl, answer in results(problem, attr, arrays, values):
            assert any(np.array_equal(answer, integers) for integers in known), impl
