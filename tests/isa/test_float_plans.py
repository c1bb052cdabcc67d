"""Plans of float primitives executed: f32, bf16 and f16, where dequantization precedes the bias.

Sums of products round here, so the bound begins with what a float32 sum in any order can miss, and
with the one rounding of f32 weights that take scales into themselves. 16-bit weights take none:
their scale is a step. Types that this instruction set does not multiply are skipped by name.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.native import runtime
from support import isa
from support.plans import chains, drawn
from support.plans.problems import KINDS, facts_of, problem
from support.plans.runs import Layer, assert_equal, assert_near

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan

NEEDED = {"f32": "AVX2", "bf16": "AVX512_CORE", "f16": "AVX512_CORE_FP16"}


@pytest.fixture(params=NEEDED)
def dtype(request: pytest.FixtureRequest) -> str:
    """One float type that this process can multiply."""
    pytest.importorskip("ml_dtypes")
    name = str(request.param)
    isa.skip_without(runtime.isa(), NEEDED[name])
    return name


def check(layer: Layer, plan: Plan, name: str) -> Any:
    got, prepared = layer.run(plan)
    assert prepared.kind != "reference"
    assert_near(layer, plan, got)
    if name not in chains.TRANSCENDENTAL:
        assert_equal(layer, plan, got)
    return prepared


@pytest.mark.parametrize("name", chains.NAMES)
def test_known_chain(name: str, dtype: str) -> None:
    for dst in {dtype, "f32"}:
        layer = Layer.of(problem("convolution", dst, dtype, dtype), chains.NAMES.index(name))
        check(layer, compose(chains.chain(name, "f32"), facts_of(layer)), name)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind: str, dtype: str) -> None:
    for name in ("05_mul_add_fq_pc", "09_prelu_mul_add", "sum", "prelu_pc"):
        layer = Layer.of(problem(kind, dtype, dtype, dtype), seed=6)
        check(layer, compose(chains.chain(name, "f32"), facts_of(layer)), name)


def test_known_chains_on_dirty_numbers(dtype: str) -> None:
    for seed, name in enumerate(chains.NAMES):
        layer, facts = drawn.filled(problem("convolution", "f32", dtype, dtype), seed)
        plan = compose(chains.chain(name, "f32"), facts)
        assert_near(layer, plan, layer.run(plan)[0])


def test_dequantization_precedes_the_bias(dtype: str) -> None:
    """In f32 weights it is gone; 16-bit weights stay as they are, and a step multiplies first."""
    layer = Layer.of(problem("convolution", "f32", dtype, dtype), seed=1)
    plan = compose(chains.chain("relu", "f32"), facts_of(layer))
    ops = [op.boundary()[:2] for op in plan.post_ops]
    assert plan.attr.wei_scale is plan.attr.src_scale is None
    if dtype == "f32":
        assert (plan.has_bias, plan.wei_factor.is_per_tensor, len(ops)) == (True, False, 1)
    else:
        assert (plan.has_bias, plan.wei_factor.is_all(1.0)) == (False, True)
        assert set(ops[:2]) == {("binary", "add"), ("binary", "mul")}
    check(layer, plan, "relu")


def test_random_chains(request: pytest.FixtureRequest, dtype: str) -> None:
    count = max(50, request.config.getoption("random_plans") // 4)
    tally: collections.Counter[str] = collections.Counter()
    for seed in range(count):
        one = drawn.floating(seed, dtype)
        plan = one.plan()
        got, prepared = one.layer.run(plan)
        assert_near(one.layer, plan, got)
        tally[prepared.kind] += 1
        tally["whole"] += plan.is_whole
    assert not tally["reference"]
    assert tally["whole"] > 0.6 * count, tally
