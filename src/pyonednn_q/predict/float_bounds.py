"""Within which bounds a kernel stores what no two kernels compute alike.

Generated code evaluates polynomials, reference loops call the C library. So y = f(x) is known as an
interval: |kernel - f(x)| ≤ units · 2^-24 · max(1, |f(x)|), over all finite x, measured on the
kernels (tests/native/test_eltwise_bounds.py measures again). Code for SSE4.1 has no fused
multiply-add, and AVX-512 has a polynomial of its own for gelu_erf.

Up to that function every bit is known; what follows is done to both ends in the kernel's own order
(`float_order`). All those operations are monotone, each on either side of where it turns, and so is
rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import F32_FAR, F32_LEAST, F32_UNIT, Array
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.predict import float_order
from pyonednn_q.primitive.post_ops import EltwisePostOp, PReluPostOp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyonednn_q.predict.float_order import Order
    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.isa import InstructionSet
    from pyonednn_q.primitive.post_ops import PostOp
    from pyonednn_q.primitive.problem import Problem

F32, F64 = np.float32, np.float64
_SMALLEST = 2 * F32_LEAST  # what is smaller becomes 0
SMALL_ALPHA = 0.01  # of swish: then it is large where it is less than 0
LEVELS = ("sse41", "avx2", "avx512")
EXP_LOSES = (0.95, 0.042, 0.042)
FAR = -16.0  # left of it, soft_relu of generated code stays above 0


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound of one function's error.

    Attributes
    ----------
    units : (float, float, float)
        Largest error for each of `LEVELS`, in units of 2^-24 · max(1, |f(x)|).
    relative : bool
        Whether the error is in parts of |f(x)| also where that is below 1.
    turns : callable
        (alpha, beta) to where it turns from falling to rising or back.
    """

    units: tuple[float, float, float]
    relative: bool = False
    turns: Callable[[float, float], tuple[float, ...]] = lambda _alpha, _beta: ()


BOUNDS = {
    "tanh": Bound((1.25, 1.25, 1.25)),
    "logistic": Bound((1.6, 1.6, 1.6)),
    "elu": Bound((2.2, 2.0, 2.0), turns=lambda a, _: (0.0,) if a < 0 else ()),
    "swish": Bound((8, 8, 8), turns=lambda a, _: (-1.2784645427610738 / a,) if a else ()),
    "gelu_tanh": Bound((2.6, 2.6, 2.6), turns=lambda _, __: (-0.7524614220710162,)),
    "gelu_erf": Bound((5.6, 4.6, 19), turns=lambda _, __: (-0.7517915246935645,)),
    "mish": Bound((17.5, 17.5, 17.5), turns=lambda _, __: (-1.1924312145154863,)),
    "soft_relu": Bound((20, 19, 19)),
    "log": Bound((125, 62, 62)),
    "exp": Bound((3.2, 3.2, 3.2), relative=True),  # and what it loses with each unit of |x|
    "pow": Bound((1.9, 1.9, 1.9), relative=True, turns=lambda _, __: (0.0,)),
}


def level(impl: str, isa: InstructionSet) -> int:
    """Return which of `LEVELS` an implementation's code is for."""
    if "sse41" in impl or not isa.has("AVX2"):
        return 0
    narrow = "avx2" in impl and "brg" not in impl  # those by brgemm take what the machine has
    return 2 if isa.has_avx512() and not narrow else 1


def spread(alg: str, lo: Array, hi: Array, alpha: float, beta: float, at: int) -> list[Array]:
    """Return the ends, in float32, of what a kernel may make of x in [lo, hi].

    Parameters
    ----------
    alg : str
        The function: a key of `BOUNDS`.
    lo, hi : ndarray of float32
        Least and greatest values that may enter the function, of one shape.
    alpha, beta : float
        Parameters of the function, as oneDNN has them.
    at : int
        Index in `LEVELS`: what the kernel's code is made for.
    """
    bound = BOUNDS[alg]
    alpha, beta = float(F32(alpha)), float(F32(beta))
    places = (
        [lo, hi] if lo is hi else [lo, hi, *(np.clip(x, lo, hi) for x in bound.turns(alpha, beta))]
    )
    ends: list[tuple[Array, Array]] = []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for x in places:
            wide = x.astype(F64)
            y = ALGS[alg](wide, alpha, beta)
            error = np.where(np.isfinite(y), _error(alg, wide, y, alpha, at), 0.0)
            ends.append((np.minimum(y - error, F32_FAR), np.maximum(y + error, -F32_FAR)))
        below = np.minimum.reduce([end for end, _ in ends])
        above = np.maximum.reduce([end for _, end in ends])
        return [_rounded(below, -np.inf), _rounded(above, np.inf)]


def _error(alg: str, x: Array, y: Array, alpha: float, at: int) -> Array:
    bound = BOUNDS[alg]
    units, size = bound.units[at], np.abs(y)
    if alg == "exp":
        return np.asarray((units + EXP_LOSES[at] * np.abs(x)) * F32_UNIT * size + _SMALLEST)
    if bound.relative:
        return np.asarray(units * F32_UNIT * size + _SMALLEST)
    if alg == "swish" and abs(alpha) < SMALL_ALPHA:
        # x times a logistic function with the relative error of exp, of a product that was rounded.
        lost = 6 + (1 + EXP_LOSES[at]) * np.abs(alpha * x)
        return np.asarray(lost * F32_UNIT * size + np.abs(x) * _SMALLEST)
    if alg == "elu":
        return np.where(x > 0, 0.0, units * F32_UNIT * abs(alpha))
    if alg == "soft_relu":
        inner = np.where(alpha * x < FAR, 130.0, units)
        return np.asarray(inner * F32_UNIT * np.maximum(1 / abs(alpha), size))
    return np.asarray(units * F32_UNIT * np.maximum(1.0, size))


def _rounded(ends: Array, towards: float) -> Array:
    """Round to float32 in one direction."""
    near = ends.astype(F32)
    inside = near > ends if towards < 0 else near < ends
    return np.where(inside, np.nextafter(near, F32(towards)), near)


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
        Arguments of `float_order.destination`.
    level : int
        Level of instructions that the kernel's functions are made for: see `eltwise_bounds.level`.
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
