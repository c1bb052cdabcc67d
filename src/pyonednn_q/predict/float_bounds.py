"""From a sum to the two ends of what a kernel may store, where a function is known within bounds.

Up to that function every bit is known; what follows is done to both ends in the kernel's own order
(`float_order`). All those operations are monotone, each on either side of where it turns, and so is
rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.predict import float_order
from pyonednn_q.predict.eltwise_bounds import BOUNDS, spread
from pyonednn_q.primitive.post_ops import EltwisePostOp, PReluPostOp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.predict.float_order import Order
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.post_ops import PostOp
    from pyonednn_q.primitive.problem import Problem

Array = np.ndarray[Any, Any]
F32 = np.float32


def is_bounded(post_op: PostOp) -> bool:
    """Tell whether a post-op is known within bounds only."""
    return isinstance(post_op, EltwisePostOp) and post_op.alg in BOUNDS


def ends(
    problem: Problem,
    attr: Attr,
    sums: Array,
    order: Order,
    values: Mapping[str, Array],
    level: int,
    *,
    bias: Array | None = None,
    before: Array | None = None,
) -> tuple[Array, Array]:
    """Return the least and the most that dst may be, given whole sums.

    Parameters
    ----------
    problem, attr, sums, order, values, bias, before
        As for `float_order.destination`.
    level : int
        What the kernel's functions are made for: see `eltwise_bounds.level`.
    """
    if float_order.is_whole(problem, attr):
        dst = float_order.ended(problem, attr, sums, order, values)
        return dst, dst
    lo = hi = float_order.begun(problem, attr, sums, order, values, bias)
    for index, post_op in enumerate(attr.post_ops):
        operand = values.get(f"post_op_{index}")
        if isinstance(post_op, EltwisePostOp) and post_op.alg in BOUNDS:
            lo, hi = spread(post_op.alg, lo, hi, post_op.alpha, post_op.beta, level)
            continue
        exact = lo is hi
        places = [lo] if exact else [lo, hi, *(np.clip(F32(x), lo, hi) for x in _turns(post_op))]
        results = [float_order.applied(post_op, x, order, operand, before, level) for x in places]
        lo = np.minimum.reduce(results)
        hi = lo if exact else np.maximum.reduce(results)
        if not exact and isinstance(post_op, EltwisePostOp) and post_op.alg == "hardswish":
            # Two factors round against each other between the places.
            lo, hi = np.nextafter(lo, F32(-np.inf)), np.nextafter(hi, F32(np.inf))
    low = float_order.ended(problem, attr, lo, order, values)
    high = low if lo is hi else float_order.ended(problem, attr, hi, order, values)
    return low, high


def _turns(post_op: PostOp) -> tuple[float, ...]:
    """Return where a step turns from falling to rising."""
    match post_op:
        case EltwisePostOp(alg="relu" | "abs" | "square") | PReluPostOp():
            return (0.0,)
        case EltwisePostOp(alg="hardswish", alpha=alpha, beta=beta) if alpha:
            return (-beta / (2 * alpha), (1 - beta) / alpha)
    return ()
