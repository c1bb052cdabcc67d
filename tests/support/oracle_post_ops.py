"""The post-op chain: float32 steps applied in order to one real value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support import oracle_binary, oracle_eltwise
from support.oracle_numbers import as_float64, numpy_dtype, spread
from support.oracle_tracked import Tracked, mul, multiply_add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.post_ops import BinaryPostOp, PostOp, PReluPostOp, SumPostOp
    from pyonednn_q.primitive.tensor import TensorSpec

    Arrays = Mapping[str, NDArray[Any]]


def apply_chain(
    x: Tracked, post_ops: tuple[PostOp, ...], dst: TensorSpec, arrays: Arrays
) -> Tracked:
    """Apply every post-op in order; operands are arrays["post_op_i"], old dst is arrays["dst"]."""
    for index, post_op in enumerate(post_ops):
        x = _apply(x, post_op, f"post_op_{index}", dst, arrays)
    return x


def _apply(x: Tracked, post_op: PostOp, name: str, dst: TensorSpec, arrays: Arrays) -> Tracked:
    # The boundary tuple's first word is the kind: no class of the library is needed here.
    kind = post_op.boundary()[0]
    step: Any = post_op
    if kind == "sum":
        return _sum(x, step, dst, arrays)
    if kind == "eltwise":
        return oracle_eltwise.apply(step.alg, x, step.alpha, step.beta)
    if kind == "binary":
        return _binary(x, step, arrays[name])
    if kind == "prelu":
        return _prelu(x, step, dst, arrays[name])
    msg = f"the oracle has no meaning for post-op {kind!r}"
    raise NotImplementedError(msg)


def _sum(x: Tracked, post_op: SumPostOp, dst: TensorSpec, arrays: Arrays) -> Tracked:
    """Return x + scale * (raw - zero_point); raw dst bits are read as the sum's own dtype."""
    raw = np.ascontiguousarray(arrays["dst"], dtype=numpy_dtype(dst.dtype)).reshape(dst.dims)
    if post_op.dtype is not None:
        raw = raw.view(numpy_dtype(post_op.dtype))
    shifted = Tracked.exact(raw.astype(np.float64) - post_op.zero_point)
    return multiply_add(shifted, Tracked.exact(np.float32(post_op.scale)), x)


def _binary(x: Tracked, post_op: BinaryPostOp, operand: NDArray[Any]) -> Tracked:
    spec = post_op.src1
    values = as_float64(operand, spec.dtype).reshape(spec.dims)
    return oracle_binary.apply(post_op.alg, x, Tracked.exact(values))


def _prelu(x: Tracked, post_op: PReluPostOp, dst: TensorSpec, operand: NDArray[Any]) -> Tracked:
    """Return x where x >= 0, slope * x elsewhere."""
    slope = spread(as_float64(operand, "f32"), post_op.mask, (), dst.dims)
    below = mul(x, Tracked.exact(slope))
    steepest = np.maximum(1.0, np.abs(slope))
    value = np.where(x.value >= 0, x.value, below.value)
    error = np.where(x.value >= 0, x.error * steepest, np.maximum(below.error, x.error))
    return Tracked(value, error)
