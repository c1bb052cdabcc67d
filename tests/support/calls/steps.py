"""The steps of a chain on bounded values, written from their definitions.

Affine(s, t)      s · x + t                     PRelu(a)   x if x >= 0 else a · x
Clip(lo, hi)      min(max(x, lo), hi)           Sum(s, z)  x + s · (dst_before − z)
Round()           nearest, ties to even         Binary     x alg operand
Eltwise(alg)      oneDNN's table
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Step, Sum
from support.calls.bounded import Bounded
from support.oracle_numbers import numpy_dtype

if TYPE_CHECKING:
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.expr.vec import Vec
    from support.oracle_tracked import F64

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


@dataclass(frozen=True, slots=True)
class Around:
    """What steps read beside the value: its dims, what dst held, the operands of the call."""

    dims: tuple[int, ...]
    axis: int
    dtype: str
    before: np.ndarray[Any, Any] | None
    operands: Mapping[str, Any]

    def constant(self, vec: Vec) -> F64:
        """Return a constant, shaped to broadcast over the channels."""
        return self.channels(np.asarray(vec.values(), np.float64))

    def channels(self, values: F64) -> F64:
        if values.size == 1:
            return values.reshape(())
        aligned = [1] * len(self.dims)
        aligned[self.axis] = -1
        return values.reshape(aligned)

    def operand(self, leaf: Leaf) -> F64:
        values = np.asarray(self.operands[leaf.name]).astype(np.float64)
        if leaf.extent == "full":
            assert values.shape == self.dims
            return values
        assert values.size == (self.dims[self.axis] if leaf.extent == "per_channel" else 1)
        return self.channels(values.ravel())


def run(chain: Chain, x: Bounded, around: Around, end: F64 | float = 0.0) -> Bounded:
    """Apply a chain; `end` is the zero point that the store adds behind it."""
    steps = tuple(chain)
    for index, step in enumerate(steps):
        if isinstance(step, Round) or (isinstance(step, Eltwise) and step.alg == "round"):
            x = x.round(_later_shifts(steps[index + 1 :], around, end))
        else:
            x = _MEANING[type(step)](x, step, around)
    return x


def _later_shifts(steps: tuple[Step, ...], around: Around, end: F64 | float) -> F64 | float:
    """Return the size of the shifts behind a rounding that a rewrite may move before it."""
    scale: F64 | float = 1.0
    total: F64 | float = 0.0
    for step in steps:
        affine = _as_affine(step, around)
        if affine is None:
            if isinstance(step, Clip) or (isinstance(step, Eltwise) and step.alg == "relu"):
                continue
            return total
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = scale * affine[0]
            total = total + np.where(scale == 0, 0.0, np.abs(affine[1] / scale))
    return np.asarray(total + np.abs(end))


def _as_affine(step: Step, around: Around) -> tuple[F64, F64] | None:
    one, zero = np.ones(()), np.zeros(())
    if isinstance(step, Affine):
        return around.constant(step.scale), around.constant(step.shift)
    if isinstance(step, Eltwise) and step.alg == "linear":
        return np.asarray(step.alpha), np.asarray(step.beta)
    if not isinstance(step, Binary) or isinstance(step.operand, Leaf):
        return None
    operand = around.constant(step.operand)
    match step.alg:
        case "add":
            return one, operand
        case "sub":
            return one, -operand
        case "mul":
            return operand, zero
        case "div":
            return 1.0 / operand, zero
    return None


def _affine(x: Bounded, step: Affine, around: Around) -> Bounded:
    return _in_float32(x, around.constant(step.scale), around.constant(step.shift))


def _in_float32(x: Bounded, scale: F64, shift: F64) -> Bounded:
    """Return scale · x + shift; as float32, both are far off where they are subnormal."""
    found = x.affine(scale, shift)
    lost = np.abs(np.float32(scale) - scale) * x.size + np.abs(np.float32(shift) - shift)
    return Bounded(found.value, found.error + lost, found.size)


def _clip(x: Bounded, step: Clip, around: Around) -> Bounded:
    return x.clip(around.constant(step.lo), around.constant(step.hi))


def _eltwise(x: Bounded, step: Eltwise, _: Around) -> Bounded:
    alpha, beta = np.asarray(step.alpha), np.asarray(step.beta)
    match step.alg:
        case "linear":
            return _in_float32(x, alpha, beta)
        case "relu":
            return x.slope_below(alpha)
        case "clip" | "clip_v2":
            return x.clip(alpha, beta)
        case "abs":
            return Bounded(np.abs(x.value), x.error, x.size)
        case "hardsigmoid":
            return x.affine(alpha, beta).clip(np.zeros(()), np.ones(()))
    return x.eltwise(step.alg, step.alpha, step.beta)


def _prelu(x: Bounded, step: PRelu, around: Around) -> Bounded:
    return x.slope_below(around.constant(step.slope))


def _sum(x: Bounded, step: Sum, around: Around) -> Bounded:
    assert around.before is not None, "a Sum without a residual"
    dtype = numpy_dtype(step.dtype or around.dtype)
    before = np.ascontiguousarray(around.before).view(dtype).astype(np.float64)
    size = abs(step.scale) * (np.abs(before) + abs(step.zero_point))
    return x.plus(step.scale * (before - step.zero_point), size)


def _binary(x: Bounded, step: Binary, around: Around) -> Bounded:
    affine = _as_affine(step, around)
    if affine is not None:
        return _in_float32(x, *affine)
    operand = step.operand
    given = around.operand(operand) if isinstance(operand, Leaf) else around.constant(operand)
    other = np.broadcast_to(given, around.dims)
    if step.alg in _COMPARISONS:
        value = _COMPARISONS[step.alg](x.value, other).astype(np.float64)
        return Bounded.of(value, x.undecided(other).astype(np.float64))
    match step.alg:
        case "add":
            return x.plus(other, np.abs(other))
        case "sub":
            return x.plus(-other, np.abs(other))
        case "mul":
            return x.times(other)
        case "div":
            with np.errstate(divide="ignore", invalid="ignore"):
                return x.times(1.0 / other)
        case "max":
            return x.greatest(other)
        case "min":
            return x.least(other)
    raise AssertionError(step.alg)


_MEANING: dict[type[Step], Callable[[Bounded, Any, Around], Bounded]] = {
    Affine: _affine,
    Clip: _clip,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}
