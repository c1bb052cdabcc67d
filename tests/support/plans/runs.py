"""Run a plan on a real primitive, and compute what its chain means, from the formula alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.attr import Attr, ZeroPoint
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Eltwise, Round
from support import oracle
from support.oracle_numbers import INTEGER_RANGES, convert, numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.compose.primitive import PrimitiveFacts

    Array = NDArray[Any]

NEAR = 2.0**-15  # above what kernels were seen to be off by in a transcendental, absolutely


@dataclass(frozen=True, eq=False)
class Layer:
    """A problem with its tensors: small whole numbers, so that sums are exact in float32."""

    problem: Any
    src: Array
    wei: Array
    before: Array
    operands: Mapping[str, Array]

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

    def x0(self, facts: PrimitiveFacts) -> Array:
        """Return src_scale · wei_scale · acc + bias in float64."""
        bare = replace(self.problem, bias=None, dst=replace(self.problem.dst, dtype="f32"))
        values = {"src": self.src, "wei": self.wei}
        attr = Attr()
        if facts.src_zero_point is not None or facts.wei_zero_point is not None:
            names = ("src_zero_point", "wei_zero_point")
            points = {n: getattr(facts, n) for n in names if getattr(facts, n) is not None}
            structure: dict[str, Any] = {name: ZeroPoint() for name in points}
            attr = Attr(**structure)
            values |= {name: np.array([z], np.int32) for name, z in points.items()}
        acc = oracle.run(bare, attr, values).real
        affine = Affine(facts.folded_scale, 0.0)
        bias = Affine(1.0, facts.bias if facts.bias is not None else 0.0)
        return evaluate(Chain(affine, bias), acc, axis=facts.axis)

    def meaning(self, chain: Chain, facts: PrimitiveFacts) -> Array:
        """Return the value before it is stored, dst's scale and zero point applied."""
        x = self.x0(facts)
        before = self.before.astype(np.float64)
        y = evaluate(chain, x, axis=facts.axis, dst_before=before, operands=self.operands)
        return np.asarray(y / facts.dst_scale + facts.dst_zero_point)

    def bracket(self, chain: Chain, facts: PrimitiveFacts, near: float = NEAR) -> tuple[Array, ...]:
        """Return the ends between which a kernel that is off by `near` may land."""
        count = len(_places(chain))
        ends = [
            self.meaning(_shifted(chain, shifts), facts)
            for shifts in product((-near, near), repeat=count)
        ]
        ends.append(self.meaning(chain, facts))
        return np.minimum.reduce(ends), np.maximum.reduce(ends)

    def run(self, plan: Plan, bias: Array | None = None) -> Any:
        """Return what the primitive stores, and the primitive."""
        from pyonednn_q import native

        problem = plan.problem(self.problem)
        prepared = native.prepare(
            problem,
            plan.attr,
            wei=plan.wei(self.wei),
            bias=plan.bias_values(bias),
            values=plan.values(),
        )
        leaves = dict(plan.operands)
        inputs = [
            self.src
            if name == "src"
            else self.operands[leaves[name]].reshape(prepared.layout(name).dims)
            for name in prepared.inputs
        ]
        reads_dst = any(op.boundary()[0] == "sum" for op in plan.post_ops)
        if not reads_dst:
            return prepared(*inputs), prepared
        out = prepared.empty("dst")
        np.copyto(out, self.before)
        return prepared(*inputs, out=out), prepared


def assert_equal(layer: Layer, plan: Plan, got: Array) -> None:
    """Compare for equality: nothing in the chain may round in float32."""
    want = convert(layer.meaning(plan.chain, plan.facts), plan.facts.dst)
    np.testing.assert_array_equal(got, want)


def assert_near(layer: Layer, plan: Plan, got: Array, near: float = NEAR) -> None:
    """Compare with the interval that errors of `near` before each rounding span."""
    low, high = layer.bracket(plan.chain, plan.facts, near)
    if plan.facts.dst in INTEGER_RANGES:
        low, high = (convert(end, plan.facts.dst).astype(np.float64) for end in (low, high))
    else:
        room = 4 * np.spacing(np.maximum(abs(low), abs(high)).astype(np.float32))
        low, high = low - room - near, high + room + near
    assert ((low <= got) & (got <= high)).all(), (got[(low > got) | (got > high)], low, high)


def _places(chain: Chain) -> list[int]:
    """Return where float32 may turn a result over: before roundings, and at the end.

    Behind a transcendental algorithm as well: kernels approximate it.
    """
    places = [len(chain)]
    for index, step in enumerate(chain):
        if isinstance(step, Round):
            places.append(index)
        elif isinstance(step, Eltwise) and ALGS[step.alg].transcendental:
            places.append(index + 1)
    return sorted(set(places))


def _shifted(chain: Chain, shifts: Sequence[float]) -> Chain:
    """Move the value by a shift at each place."""
    steps: list[Any] = list(chain)
    for place, shift in reversed(list(zip(_places(chain), shifts, strict=True))):
        steps.insert(place, Affine(1.0, shift))
    return Chain(*steps)
