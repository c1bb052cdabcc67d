"""bounded: a chain in float64, with a bound on how far float32 arithmetic may be from it.

Kernels compute in float32, in orders of their own, with constants that were folded and rounded
once. What a step may add to the error is stated here, generously but from its own arithmetic:

- each step costs at most four roundings of the terms that it adds up: two constants, a product, a
  sum; a rounding is 2**-24 of the term;
- a transcendental function is off by at most 2**-16, or that part of its value: a good ten times
  what kernels were measured to be off;
- an error that comes in goes out as far as the step moves when its input moves by it: so a step
  with jumps (round, compare) passes nothing on until a jump is within reach.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Round, Step, Sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    F64 = NDArray[np.float64]

UNIT = 2.0**-24  # what one float32 rounding changes, in parts of the value
ROUNDINGS = 4.0
_TRANSCENDENTAL = 2.0**-16
_FLT_MAX = 3.4e38
_CLIPS = frozenset(("clip", "clip_v2", "round"))
_PLAIN = frozenset(("relu", "linear", "abs", "square", "sqrt", "hardsigmoid", "hardswish"))


def evaluate_bounded(
    chain: Chain,
    x: ArrayLike,
    error: ArrayLike,
    *,
    levels: int = 0,
    dst_before: ArrayLike | None = None,
    operands: Mapping[str, Any] | None = None,
) -> tuple[F64, F64]:
    """Return what a chain gives in float64, and how far float32 arithmetic may be from it.

    Parameters
    ----------
    chain, x, dst_before, operands
        As in `evaluate`; channels are on axis 1.
    error : array_like
        By how much x may be wrong, in its own units; broadcasts to x.
    levels : int
        By how many levels a rounding may be off, as rewrites with a bound declare.

    Returns
    -------
    (ndarray, ndarray) of float64
        Values and bounds; infinite where float32 may leave its range.

    Examples
    --------
    >>> y, e = evaluate_bounded(Chain(Round()), [[0.25, 0.4999]], 1e-3)
    >>> y.tolist(), e.tolist()
    ([[0.0, 0.0]], [[0.0, 1.0]])
    """
    value = np.asarray(x, np.float64)
    bound = np.broadcast_to(np.asarray(error, np.float64), value.shape)
    run = partial(evaluate, dst_before=dst_before, operands=operands)
    with np.errstate(all="ignore"):
        for step in chain:
            alone = Chain(step)
            out = run(alone, value)
            moved = [np.abs(run(alone, value + sign * bound) - out) for sign in (-1.0, 1.0)]
            bound = np.maximum(*moved) + _own(step, value, out, levels)
            value = out
            bound = np.where(np.abs(value) + bound < _FLT_MAX, bound, np.inf)
    return value, bound


def _own(step: Step, x: F64, y: F64, levels: int) -> F64 | float:
    """Return what a step adds to the error, on its way from x to y."""
    if isinstance(step, Round):
        return float(levels)
    if isinstance(step, Clip) or (isinstance(step, Eltwise) and step.alg in _CLIPS):
        return UNIT * np.abs(y)  # its limits are constants
    if isinstance(step, Eltwise) and step.alg not in _PLAIN:
        size = max(1.0, abs(step.alpha), abs(step.beta))
        return _TRANSCENDENTAL * np.maximum(np.maximum(np.abs(y), np.abs(x)), size)
    terms = np.abs(y)
    if isinstance(step, Affine):
        terms = terms + np.abs(step.scale.spread(y.shape[1]) * x)
    elif isinstance(step, (Sum, Binary)):
        terms = terms + np.abs(x)  # what was added is no more than both together
    elif isinstance(step, Eltwise):
        terms = terms + abs(step.alpha) * np.abs(x) + abs(step.beta)
    return ROUNDINGS * UNIT * terms
