"""Run a plan on a real primitive, and compute what its chain means, from the formula alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.attr import Attr, ZeroPoint
from support import oracle
from support.oracle_numbers import INTEGER_RANGES, convert, numpy_dtype
from support.oracle_tracked import UNIT, Tracked
from support.plans.reach import Reach, World

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.primitive.dense_facts import PrimitiveFacts

    Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Layer:
    """A problem with its tensors: small whole numbers, so that sums are exact in float32."""

    problem: Any
    src: Array
    wei: Array
    before: Array
    operands: Mapping[str, Array]
    later: Vec | None = None  # a bias that the plan is made without

    @classmethod
    def of(cls, problem: Any, seed: int, operands: Mapping[str, Array] | None = None) -> Layer:
        rng = np.random.default_rng(seed)
        src_dtype, wei_dtype, dst_dtype = (
            getattr(problem, name).dtype for name in ("src", "wei", "dst")
        )
        low = 0 if src_dtype == "u8" else -7
        src = rng.integers(low, 8, problem.src.dims).astype(numpy_dtype(src_dtype))
        wei = rng.integers(-3, 4, problem.wei.dims).astype(numpy_dtype(wei_dtype))
        if src_dtype == "s8":
            wei = wei * 2  # without VNNI, kernels for s8 sources lose the last bit of odd weights
        least, greatest = INTEGER_RANGES.get(dst_dtype, (-50, 50))
        before = rng.integers(max(least, -50), min(greatest, 50), problem.dst.dims)
        return cls(problem, src, wei, before.astype(numpy_dtype(dst_dtype)), operands or {})

    def acc(self, facts: PrimitiveFacts) -> Tracked:
        """Return the sum of products, and what float32 may miss of it: in sums, and in weights."""
        bare = replace(self.problem, bias=None, dst=replace(self.problem.dst, dtype="f32"))
        values = {"src": self.src, "wei": self.wei}
        attr = Attr()
        if facts.src_zero_point is not None or facts.wei_zero_point is not None:
            names = ("src_zero_point", "wei_zero_point")
            points = {n: getattr(facts, n) for n in names if getattr(facts, n) is not None}
            structure: dict[str, Any] = {name: ZeroPoint() for name in points}
            attr = Attr(**structure)
            values |= {name: np.array([z], np.int32) for name, z in points.items()}
        result = oracle.run(bare, attr, values)
        if facts.is_int8:
            return Tracked(result.real, result.error)
        # Weights of f32 take scales into themselves, rounded once more.
        sizes = oracle.run(bare, attr, {name: abs(value) for name, value in values.items()})
        return Tracked(result.real, result.error + UNIT * sizes.real)

    def bias(self, facts: PrimitiveFacts) -> Vec:
        """Return the bias in real units, whether the plan knew it or not."""
        given = facts.bias if facts.bias is not None else Vec(0.0)
        given = self.later if facts.bias_later and self.later is not None else given
        return given * facts.folded_scale if facts.bias_in_acc else given

    def x0(self, facts: PrimitiveFacts) -> Array:
        """Return src_scale · wei_scale · acc + bias in float64."""
        chain = Chain(Affine(facts.folded_scale, self.bias(facts)))
        return evaluate(chain, self.acc(facts).value, axis=facts.axis)

    def meaning(self, chain: Chain, facts: PrimitiveFacts) -> Array:
        """Return the value before it is stored, dst's scale and zero point applied."""
        x = self.x0(facts)
        before = self.before.astype(np.float64)
        y = evaluate(chain, x, axis=facts.axis, dst_before=before, operands=self.operands)
        return np.asarray(y / facts.dst_scale + facts.dst_zero_point)

    def wanted(self, plan: Plan) -> Array:
        """Return what the plan's chain stores, computed in float64."""
        return convert(self.meaning(plan.chain, plan.facts), plan.facts.dst)

    def reach(self, plan: Plan) -> Reach:
        """Return what the plan may give for its chain, before it is stored."""
        facts, chain = plan.facts, plan.chain
        acc = self.acc(facts)
        aligned = [1] * acc.value.ndim
        aligned[facts.axis] = -1
        scale = facts.folded_scale.values().reshape(aligned)
        bias = self.bias(facts).values().reshape(aligned)
        before = self.before.astype(np.float64)
        world = World(facts.axis, before, self.operands, plan.exactness.levels)
        store = Affine(Vec(1.0) / Vec(facts.dst_scale), float(facts.dst_zero_point))
        whole = Chain(*chain, store)
        return Reach.of(acc.value, acc.error, scale, bias).through(whole, world)

    def run(self, plan: Plan) -> tuple[Array, Any]:
        """Return dst, finished where the primitive left steps over; and the primitive."""
        from pyonednn_q import native

        later = None if plan.bias_later is None or self.later is None else self.later
        prepared = native.prepare(
            plan.problem(self.problem),
            plan.attr,
            wei=plan.wei(self.wei),
            bias=plan.bias_values(None if later is None else later.spread(plan.facts.channels)),
            values=plan.values(),
        )
        leaves = dict(plan.operands)
        inputs = [
            self.src if name == "src" else self._operand(plan, leaves[name], prepared.layout(name))
            for name in prepared.inputs
        ]
        out = None
        if any(op.boundary()[0] == "sum" for op in plan.post_ops):
            out = prepared.empty("dst")
            np.copyto(out, self.before)
        got = prepared(*inputs, out=out)
        return (got if plan.is_whole else self.finished(plan, got)), prepared

    def _operand(self, plan: Plan, leaf: str, spec: Any) -> Array:
        """Return a leaf's values in the shape that the post-op wants."""
        values = self.operands[leaf]
        if values.ndim == 1:
            values = values.reshape([-1 if i == plan.facts.axis else 1 for i in range(spec.ndim)])
        return np.ascontiguousarray(np.broadcast_to(values, spec.dims))

    def finished(self, plan: Plan, got: Array) -> Array:
        """Do what the primitive left over: the steps, and the store."""
        assert plan.dst == "f32"
        axis, before = plan.facts.axis, self.before.astype(np.float64)
        y = evaluate(plan.leftovers, got, axis=axis, dst_before=before, operands=self.operands)
        return convert(y, plan.facts.dst)


def assert_equal(layer: Layer, plan: Plan, got: Array) -> None:
    """Compare for equality: nothing in the chain may round in float32."""
    np.testing.assert_array_equal(got, layer.wanted(plan))


def assert_near(layer: Layer, plan: Plan, got: Array) -> float:
    """Compare with what the plan may give; return the fraction of results that leave no choice."""
    reach = layer.reach(plan)
    low, high = (convert(end, plan.facts.dst) for end in (reach.lo, reach.hi))
    wide = got.astype(np.float64)
    wrong = ~((low.astype(np.float64) <= wide) & (wide <= high.astype(np.float64)))
    assert not wrong.any(), (plan.chain, got[wrong], low[wrong], high[wrong])
    return float((low == high).mean())
