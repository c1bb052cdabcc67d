"""From a sum to the destination in float32, operation by operation, as kernels do it.

    x = f32(sum)
    together    x · (src_scale · wei_scale)         apart    (x · src_scale) · wei_scale
    x + bias
    post-ops in order; linear and sum are fused, with one rounding, but not by SSE4.1
    multiplied      x · f32(1 / dst_scale)          divided  x / dst_scale
    x + dst_zero_point
    round half to even, saturate                    a float destination: a cast

Kernels differ in the order of the scales, of which there is none with weight scales alone, in
fusing, and in dividing. A bare s32 destination is the sum itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import fma32
from pyonednn_q.primitive.post_ops import BinaryPostOp, EltwisePostOp, PReluPostOp, SumPostOp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyonednn_q.primitive.attr import Attr
    from pyonednn_q.primitive.post_ops import PostOp
    from pyonednn_q.primitive.problem import Problem

F32 = np.float32
AVX512 = 2  # of `eltwise_bounds.LEVELS`
_S32_MAX = F32(2147483520)  # the largest float32 below 2^31


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a kernel's operations, where kernels differ.

    Attributes
    ----------
    together : bool
        Scales of source and weights are multiplied with each other first.
    fused : bool
        linear and sum round once.
    divided : bool
        Whether values are divided by the scale of the destination, whose reciprocal others multiply
        by.
    zeros : {"kept", "negative", "positive"}
        Signs of the zeros of a floating destination. negative: relu multiplies by 0, and makes -0
        of what is negative, where others store 0; abs makes -0 of 0, and clip keeps -0 below an
        upper bound of 0. positive: 0 is added at last, so that none is -0.
    """

    together: bool
    fused: bool
    divided: bool = False
    zeros: str = "kept"

    def text(self) -> str:
        """Return the order in a few words, one for each choice."""
        scales = "together" if self.together else "apart"
        fused = "fused" if self.fused else "not fused"
        words = f"{scales}, {fused}, {'divided' if self.divided else 'multiplied'}"
        return f"{words}, zeros {self.zeros}"

    def seen(self, problem: Problem, attr: Attr) -> Order:
        """Return the first order that gives the same results on a problem."""
        linear = any(_is_linear(post_op) for post_op in attr.post_ops)
        turns = any(
            isinstance(post_op, PReluPostOp)
            or (isinstance(post_op, EltwisePostOp) and post_op.alg in _NEGATIVE)
            for post_op in attr.post_ops
        )
        negative, dst = self.zeros == "negative", problem.tensors["dst"].dtype
        two_scales = attr.src_scale is not None and attr.wei_scale is not None
        return Order(
            self.together or not two_scales,
            self.fused or not linear,
            self.divided and attr.dst_scale is not None,
            "kept" if dtypes.is_integer(dst) or (negative and not turns) else self.zeros,
        )


ORDERS = tuple(
    Order(together, fused, divided, zeros)
    for zeros in ("kept", "negative", "positive")
    for divided in (False, True)
    for fused in (True, False)
    for together in (True, False)
)


def greater(x: Array, c: Any) -> Array:  # noqa: ANN401 - an array or a number
    """Return the greater, and c where both are zeros or one is not a number, as maxps does."""
    return np.where(x > c, x, c)


def less(x: Array, c: Any) -> Array:  # noqa: ANN401 - an array or a number
    """Return the less, and c where both are zeros or one is not a number, as minps does."""
    return np.where(x < c, x, c)


ELTWISE: Mapping[str, Callable[[Array, Any, Any], Array]] = {
    "relu": lambda x, a, _: greater(x, F32(0)) if a == 0 else np.where(x > 0, x, x * a),
    "clip": lambda x, a, b: less(greater(x, a), b),
    "clip_v2": lambda x, a, b: less(greater(x, a), b),
    "round": lambda x, _, __: np.rint(x),
    "abs": lambda x, _, __: np.abs(x),
    "square": lambda x, _, __: x * x,
    "sqrt": lambda x, _, __: np.sqrt(x),
    "hardsigmoid": lambda x, a, b: _hardsigmoid(x, a, b),  # noqa: PLW0108 - it is further down
    "hardswish": lambda x, a, b: x * _hardsigmoid(x, a, b),
}
# In plain code, where the sign of a zero may be another: see `Order.zeros`.
_NEGATIVE: Mapping[str, Callable[[Array, Any, Any], Array]] = {
    "relu": lambda x, a, _: np.where(x > 0, x, x * a),
    "abs": lambda x, _, __: np.where(x > 0, x, -x),
    "clip": lambda x, a, b: np.where(greater(x, a) > b, b, greater(x, a)),
}
BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": greater,
    "min": less,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
}


def destination(
    problem: Problem,
    attr: Attr,
    sums: Array,
    order: Order,
    values: Mapping[str, Array],
    *,
    bias: Array | None = None,
    before: Array | None = None,
    level: int = 2,
) -> Array:
    """Return dst, given whole sums in dst's dimensions.

    Parameters
    ----------
    problem, attr
        Problem and attributes that run; the attributes' features are those of `features` only.
    sums : ndarray of int
        Sums from which zero points of the source are subtracted.
    order : Order
        Order in which scales and the like are applied.
    values : mapping
        Scales, zero points and operands by the names that `native.prepare` has.
    bias : ndarray, optional
        Bias, if the problem has one.
    before : ndarray, optional
        Content of dst before the call, for a sum.
    level : int
        Level of instructions that the kernel's code is made for: see `eltwise_bounds.level`.
    """
    if is_whole(problem, attr):
        return ended(problem, attr, sums, order, values)
    x = begun(problem, attr, sums, order, values, bias)
    for index, post_op in enumerate(attr.post_ops):
        x = applied(post_op, x, order, values.get(f"post_op_{index}"), before, level)
    return ended(problem, attr, x, order, values)


def is_whole(problem: Problem, attr: Attr) -> bool:
    """Tell whether the sums are stored as they are: bare, in 32 bits."""
    bare = "bias" not in problem.tensors and not attr.text()
    return bare and problem.tensors["dst"].dtype == "s32"


def begun(
    problem: Problem,
    attr: Attr,
    sums: Array,
    order: Order,
    values: Mapping[str, Array],
    bias: Array | None,
) -> Array:
    """Return the value that the first post-op reads: sums, scaled, and the bias."""
    x = _scaled(problem, attr, sums.astype(F32), order, values)
    return x if bias is None else x + _along_channels(problem, bias)


def ended(
    problem: Problem, attr: Attr, x: Array, order: Order, values: Mapping[str, Array]
) -> Array:
    """Return the stored value of the last post-op's results."""
    if is_whole(problem, attr):
        return x.astype(np.int32)
    if attr.dst_scale is not None:
        scale = F32(values["dst_scale"].ravel()[0])
        x = x / scale if order.divided else x * (F32(1) / scale)
    if attr.dst_zero_point is not None:
        x = x + F32(values["dst_zero_point"].ravel()[0])
    if order.zeros == "positive":
        x = x + F32(0)
    return _stored(x, problem.tensors["dst"].dtype)


def _scaled(
    problem: Problem, attr: Attr, x: Array, order: Order, values: Mapping[str, Array]
) -> Array:
    src = None if attr.src_scale is None else F32(values["src_scale"].ravel()[0])
    wei = None if attr.wei_scale is None else _along_channels(problem, values["wei_scale"])
    if src is not None and wei is not None:
        return np.asarray(x * (src * wei) if order.together else (x * src) * wei)
    factor = src if src is not None else wei
    return x if factor is None else np.asarray(x * factor)


def _along_channels(problem: Problem, values: Array) -> Array:
    """Return one value, or one per output channel, as they meet dst."""
    flat = np.asarray(values).astype(F32).ravel()
    behind = problem.tensors["dst"].ndim - 1 - problem.channel_axis
    return flat.reshape(-1, *[1] * behind)


def applied(
    post_op: PostOp,
    x: Array,
    order: Order,
    operand: Array | None,
    before: Array | None,
    level: int = 2,
) -> Array:
    """Return the result of a post-op for x.

    Raises
    ------
    ArgumentError
        One that is not known to the last bit, or that lacks its operand.
    """
    match post_op:
        case EltwisePostOp(alg="linear", alpha=alpha, beta=beta):
            return _sum_of_product(F32(alpha), x, F32(beta), order)
        case EltwisePostOp(alg=alg, alpha=alpha, beta=beta) if alg in ELTWISE:
            plain = order.zeros == "negative" and alg in _NEGATIVE
            return np.asarray((_NEGATIVE if plain else ELTWISE)[alg](x, F32(alpha), F32(beta)))
        case SumPostOp(scale=scale, zero_point=zero_point) if before is not None:
            old = before.astype(F32) - F32(zero_point)
            return _sum_of_product(F32(scale), old, x, order)
        case BinaryPostOp(alg=alg) if operand is not None and alg in BINARY:
            return np.asarray(BINARY[alg](x, operand.astype(F32)), F32)
        case PReluPostOp(mask=mask) if operand is not None:
            dims = [dim if mask >> axis & 1 else 1 for axis, dim in enumerate(x.shape)]
            return _prelu(x, operand.astype(F32).reshape(dims), order, level)
    wanted = "one known to the last bit, with the operand or old dst that it reads"
    raise ArgumentError("post_ops", post_op.text(), wanted)


def _prelu(x: Array, slope: Array, order: Order, level: int) -> Array:
    """Return x or slope · x; kernels differ in the signs of zeros."""
    if order.zeros == "negative":
        return np.where(x >= 0, x, x * slope)
    # AVX2 picks by the sign bit, AVX-512 by a comparison.
    return np.where(np.signbit(x) if level < AVX512 else ~(x > 0), x * slope, x)


def _hardsigmoid(x: Array, a: Any, b: Any) -> Array:  # noqa: ANN401 - numbers
    return less(greater(a * x + b, F32(0)), F32(1))


def _is_linear(post_op: PostOp) -> bool:
    return isinstance(post_op, SumPostOp) or (
        isinstance(post_op, EltwisePostOp) and post_op.alg == "linear"
    )


def _sum_of_product(a: Any, x: Array, c: Any, order: Order) -> Array:  # noqa: ANN401 - or a number
    return fma32(a, x, c) if order.fused else np.asarray(a * x + c)


def _stored(x: Array, dtype: str) -> Array:
    wanted = dtypes.numpy_dtype(dtype)
    if not dtypes.is_integer(dtype):
        return x.astype(wanted)
    hi = _S32_MAX if dtype == "s32" else F32(dtypes.qmax(dtype))
    return np.clip(np.rint(x), F32(dtypes.qmin(dtype)), hi).astype(wanted)
