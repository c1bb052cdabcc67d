"""Plans executed, against the float64 meaning of the chains they were made from.

Clean numbers: equal. Dirty numbers: within what float32 roundings can do (`support.plans.reach`),
so that integers differ next to ties only, and nowhere by more than the plan declares.

``--random-plans N`` sets how many are drawn (2 000 by default). A plan is drawn again from its
seed alone: ``drawn.dirty(17)``.
"""

from __future__ import annotations

import collections
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.compose.composer import NO_RULES, compose
from pyonednn_q.errors import KnownWrongError
from pyonednn_q.native import implementations, runtime
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import BinaryPostOp, SumPostOp
from support.plans import chains, drawn
from support.plans.problems import facts_of, problem
from support.plans.runs import Layer, assert_equal, assert_near

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan

DECIDED = 0.85  # of all integers, on average: the rest are next to ties, where many were put


def seeds(request: pytest.FixtureRequest) -> range:
    return range(request.config.getoption("random_plans"))


@pytest.mark.parametrize("dst", ["u8", "f32"])
@pytest.mark.parametrize("name", chains.NAMES)
def test_known_chain(name: str, dst: str) -> None:
    layer = Layer.of(problem("convolution", dst), seed=chains.NAMES.index(name))
    plan = compose(chains.chain(name, dst), facts_of(layer), strict=True)
    got, prepared = layer.run(plan)
    assert prepared.kind == "jit"
    assert_near(layer, plan, got)
    if name not in chains.TRANSCENDENTAL:
        assert_equal(layer, plan, got)


def test_known_chains_on_dirty_numbers() -> None:
    decided = []
    for seed, name in enumerate(chains.NAMES):
        for dst in ("u8", "f32"):
            layer, facts = drawn.filled(problem("convolution", dst), seed)
            plan = compose(chains.chain(name, dst), facts, strict=True)
            share = assert_near(layer, plan, layer.run(plan)[0])
            decided += [share] if dst == "u8" else []
    assert np.mean(decided) > DECIDED


@pytest.mark.parametrize("name", ["empty", "03_scale_shift", "relu", "prelu_pc", "tanh"])
def test_the_bound_is_sharp(name: str) -> None:
    """A scale that is off by 2**-18, or a bias by as much of the results, is noticed."""
    layer, facts = drawn.filled(problem("convolution", "f32"), seed=1)
    plan = compose(chains.chain(name, "f32"), facts)
    assert_near(layer, plan, layer.run(plan)[0])
    off = 1.0 + 2.0**-18
    constants = tuple((key, vec * off) for key, vec in plan.constants)
    assert plan.bias is not None
    for wrong in (replace(plan, constants=constants), replace(plan, bias=plan.bias + 2.0**-11)):
        with pytest.raises(AssertionError):
            assert_near(layer, plan, layer.run(wrong)[0])


class Runs:
    """Plans run one after the other, and how each of them went."""

    def __init__(self) -> None:
        self.tally: collections.Counter[str] = collections.Counter()

    def __call__(self, one: drawn.Drawn, plan: Plan) -> Any:
        """Return what a plan gives, or None where the library is known to be wrong."""
        self.tally["all"] += 1
        try:
            got, prepared = one.layer.run(plan)
        except KnownWrongError as error:
            self.tally.update(error.guards)
            return None
        self.tally["whole"] += plan.is_whole
        self.tally[prepared.kind] += 1
        return got

    def check(self) -> None:
        """Refuse a run that proves little: most plans must be whole, and none on slow loops."""
        assert self.tally["whole"] > 0.85 * self.tally["all"], self.tally
        assert not self.tally["reference"], self.tally


def test_random_chains_on_clean_numbers(request: pytest.FixtureRequest) -> None:
    run = Runs()
    for seed in seeds(request):
        one = drawn.clean(seed)
        plan = one.plan()
        got = run(one, plan)
        if got is not None:
            assert_equal(one.layer, plan, got)
    run.check()


@pytest.mark.parametrize("policy", ["real", "fast"])
def test_random_chains_on_dirty_numbers(policy: Any, request: pytest.FixtureRequest) -> None:
    run, decided, differ = Runs(), [], 0
    for seed in seeds(request)[:: 1 if policy == "real" else 4]:
        one = drawn.dirty(seed)
        plan = one.plan(policy)
        got = run(one, plan)
        if got is None:
            continue
        share = assert_near(one.layer, plan, got)
        if plan.facts.dst != "f32":
            decided.append(share)
            differ += int((got != one.layer.wanted(plan)).sum())
    run.check()
    if policy == "real":
        # Half of the layers have a result on a tie: float32 must have turned some over.
        assert differ
        assert np.mean(decided) > DECIDED


def test_bitwise_plans_give_the_bits_of_the_chain(request: pytest.FixtureRequest) -> None:
    """Step by step without any rule, and rewritten under policy "bitwise"."""
    run, changed = Runs(), 0
    for seed in seeds(request)[::4]:
        one = drawn.dirty(seed)
        plan, steps = one.plan("bitwise"), one.plan(rules=NO_RULES)
        if not (plan.is_whole and steps.is_whole):
            continue
        got, want = run(one, plan), run(one, steps)
        if got is not None and want is not None:
            changed += plan.post_ops != steps.post_ops
            np.testing.assert_array_equal(got, want)
    assert changed > 0.1 * run.tally["all"]


def test_no_post_op_costs_the_fast_kernel(request: pytest.FixtureRequest) -> None:
    """What is offered first for a plan's post-ops is of the kind that is offered without any.

    Guard rows step over some of it; that is the library's fault and not the plan's.
    """
    fast = 0
    for seed in seeds(request)[::8]:
        for one in (drawn.clean(seed), drawn.dirty(seed)):
            plan = one.plan()
            of = plan.problem(one.layer.problem)
            kinds = [kind_of(of, attr) for attr in (plan.attr, replace(plan.attr, post_ops=()))]
            assert kinds[0] == kinds[1] or is_left_to_gemm(plan), f"{plan}\n{kinds}"
            fast += kinds[0] == "jit"
    assert fast


def is_left_to_gemm(plan: Plan) -> bool:
    """3.7 has no other deconvolution for a full operand beside a sum with a zero point."""
    ops = plan.post_ops
    shifted = any(isinstance(op, SumPostOp) and op.zero_point for op in ops)
    full = any(isinstance(op, BinaryPostOp) and max(op.src1.dims[2:]) > 1 for op in ops)
    old = runtime.version() < (3, 8)
    return old and plan.facts.kind == "deconvolution" and shifted and full


def kind_of(of: Any, attr: Attr) -> str:
    """Name the kind of kernel that is offered first."""
    return next(offer.kind for offer in implementations(of, attr))
