"""Reach: every value that a plan may give for a chain, as an interval per element.

A plan computes the chain's meaning in float32, in an order of its own: constants folded and
rounded, steps exchanged. The interval follows the chain in float64 and grows with every step by
what those roundings can do. It knows no plan: any that keeps the chain's real meaning stays inside.

What one step can cost is at most `STEP` roundings of the largest number that any order of the
steps so far can hold (`size`): a constant, a fold of two, a product and a sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import (
    Affine,
    Binary,
    Chain,
    Clip,
    Eltwise,
    Leaf,
    PRelu,
    Round,
    Step,
    Sum,
)
from support.oracle_eltwise import TRANSCENDENTAL, kernel_error
from support.oracle_tracked import UNIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyonednn_q.expr.vec import Vec
    from support.oracle_tracked import F64

STEP = 4  # a constant, a fold of two, a product, a sum
FIRST = 6  # those, and the sum's way to float32, and a src scale of its own
# The kernels' errors were measured for |x| <= 12. Beyond, they are of this many units of y.
FAR = 8


@dataclass(frozen=True, eq=False)
class World:
    """What a chain reads besides x, spread over dst."""

    axis: int
    before: F64
    operands: Mapping[str, F64]
    levels: int = 0  # that a bounded rewrite may move a rounding by

    def run(self, step: Step, x: F64) -> F64:
        chain = Chain(step)
        return evaluate(chain, x, axis=self.axis, dst_before=self.before, operands=self.operands)

    def spread(self, vec: Vec, like: F64) -> F64:
        aligned = [1] * like.ndim
        aligned[self.axis] = -1
        return vec.values().reshape(aligned)


@dataclass(frozen=True, eq=False)
class Reach:
    """lo <= what a kernel holds <= hi; magnitudes of all it may hold, and of constants alone."""

    lo: F64
    hi: F64
    size: F64
    fixed: F64

    @classmethod
    def of(cls, acc: F64, error: F64, scale: F64, bias: F64) -> Reach:
        """Begin with scale · acc + bias, acc being known up to an error."""
        value = scale * acc + bias
        size = np.abs(scale * acc) + np.abs(bias)
        room = np.abs(scale) * error + FIRST * UNIT * size
        fixed = np.broadcast_to(np.abs(bias), value.shape)
        return cls(value - room, value + room, size, fixed)

    def through(self, chain: Chain, world: World) -> Reach:
        """Follow a chain."""
        reach = self
        for index, step in enumerate(chain):
            if isinstance(step, Round):
                # A shift behind the rounding may be added before it.
                reach = reach.wider(_shifts_behind(chain, index, world, reach.lo))
            reach = _STEPS[type(step)](reach, step, world)
        return reach

    def wider(self, size: F64 | float = 0.0) -> Reach:
        """Grow by one step's roundings of all there is, and more."""
        room = STEP * UNIT * (self.size + size)
        return replace(self, lo=self.lo - room, hi=self.hi + room)

    def image(self, function: Callable[[F64], F64]) -> tuple[F64, F64]:
        """Return the image under a function that bends at 0 only."""
        ends = [function(self.lo), function(self.hi)]
        ends.append(function(np.clip(0.0, self.lo, self.hi)))
        return np.minimum.reduce(ends), np.maximum.reduce(ends)


def _shifts_behind(chain: Chain, index: int, world: World, like: F64) -> F64:
    total = np.zeros(())
    for step in chain.steps[index + 1 :]:
        if isinstance(step, Affine):
            if not abs(step.scale).is_all(1.0):
                break
            total = total + np.abs(world.spread(step.shift, like))
        elif not isinstance(step, (Clip, Round, Sum)):
            break
    return total


def _affine(x: Reach, step: Affine, world: World) -> Reach:
    scale, shift = world.spread(step.scale, x.lo), world.spread(step.shift, x.lo)
    lo, hi = x.image(lambda v: world.run(step, v))
    steep, off = np.abs(scale), np.abs(shift)
    return Reach(lo, hi, steep * x.size + off, steep * x.fixed + off).wider()


def _clip(x: Reach, step: Clip, world: World) -> Reach:
    lo, hi = world.run(step, x.lo), world.run(step, x.hi)
    bound = np.where((lo != x.lo) | (hi != x.hi), np.maximum(np.abs(lo), np.abs(hi)), 0.0)
    # Where nothing but the bound comes out, only constants were rounded.
    size = np.where(lo == hi, x.fixed + bound, x.size)
    room = STEP * UNIT * np.where(lo == hi, size, bound)
    return Reach(lo - room, hi + room, size, x.fixed + bound)


def _round(x: Reach, _: Round, world: World) -> Reach:
    lo, hi = np.rint(x.lo) - world.levels, np.rint(x.hi) + world.levels
    return replace(x, lo=lo, hi=hi)


def _prelu(x: Reach, step: PRelu, world: World) -> Reach:
    lo, hi = x.image(lambda v: world.run(step, v))
    steep = np.maximum(1.0, np.abs(world.spread(step.slope, x.lo)))
    return Reach(lo, hi, steep * x.size, steep * x.fixed).wider()


def _sum(x: Reach, step: Sum, world: World) -> Reach:
    lo, hi = world.run(step, x.lo), world.run(step, x.hi)
    added = abs(step.scale) * (np.abs(world.before) + abs(step.zero_point))
    return Reach(lo, hi, x.size + added, x.fixed + added).wider()


def _binary(x: Reach, step: Binary, world: World) -> Reach:
    operand: Any = step.operand
    if isinstance(operand, Leaf):
        value = np.abs(np.asarray(world.operands[operand.name], np.float64))
        if operand.extent == "per_channel":
            value = value.reshape([-1 if i == world.axis else 1 for i in range(x.lo.ndim)])
    else:
        value = np.abs(world.spread(operand, x.lo))
    lo, hi = x.image(lambda v: world.run(step, v))
    if step.alg in {"mul", "div"}:
        factor = value if step.alg == "mul" else 1.0 / value
        return Reach(lo, hi, factor * x.size, factor * x.fixed).wider()
    if step.alg in {"add", "sub", "max", "min"}:
        return Reach(lo, hi, x.size + value, x.fixed + value).wider()
    raise NotImplementedError(step.alg)


def _eltwise(x: Reach, step: Eltwise, world: World) -> Reach:
    if step.alg == "sqrt":
        # Of what is not below 0: only the roundings that were added reach there.
        x = replace(x, lo=np.maximum(x.lo, 0.0), hi=np.maximum(x.hi, 0.0))
    lo, hi = x.image(lambda v: world.run(step, v))
    steep = max(1.0, abs(step.alpha)) if step.alg == "relu" else 1.0
    size = np.maximum(steep * x.size, np.maximum(np.abs(lo), np.abs(hi)))
    grown = Reach(lo, hi, size, np.maximum(steep * x.fixed, size * 0.0)).wider()
    if step.alg in TRANSCENDENTAL:
        far = np.maximum(np.abs(x.lo), np.abs(x.hi)) > 12.0
        # That of exp is relative, those of the others absolute.
        known, is_relative = kernel_error(step.alg), step.alg == "exp"
        near = 0.0 if is_relative else known * max(1.0, abs(step.alpha))
        own = np.where(far, FAR, known if is_relative else 0.0) * np.abs(size) + near
        return replace(grown, lo=grown.lo - own * UNIT, hi=grown.hi + own * UNIT)
    return grown


_STEPS: dict[type[Step], Callable[[Reach, Any, World], Reach]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}
