"""Values of a chain, in float64 and in float32 as kernels compute them.

The float64 form is the definition. The float32 form does what oneDNN's post-ops do with a chain
lowered step by step: constants are rounded to float32, a per-tensor affine is one fused
multiply-add, everything else rounds after each operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q import dtypes
from pyonednn_q.argument import broadcast, instance, named, numbers, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.algs import ALGS
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
from pyonednn_q.expr.vec import Vec
from pyonednn_q.qparams import along


def fma32(a: NDArray[Any], x: NDArray[Any], c: NDArray[Any]) -> NDArray[np.float32]:
    """Round a*x + c once to float32.

    The product of two float32 values is exact in float64. Adding c rounds to 53 bits and the cast
    would round again, so the sum is first rounded to odd: where it was inexact, its last bit is
    set. Then the cast cannot meet a false tie (Boldo and Melquiond, 2008).
    """
    product = np.asarray(a, np.float64) * x.astype(np.float64)
    addend = np.asarray(c, np.float64)
    total: NDArray[Any] = np.asarray(product + addend)
    back = total - product
    error = (product - (total - back)) + (addend - back)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0.0) & even
    odd = np.where(inexact, np.nextafter(total, np.copysign(np.inf, error)), total)
    return odd.astype(np.float32)


Array: TypeAlias = NDArray[Any]
Operands: TypeAlias = "Mapping[str, ArrayLike] | None"
S = TypeVar("S", bound=Step)


def evaluate(
    chain: Chain,
    x: ArrayLike,
    *,
    axis: int = 1,
    dst_before: ArrayLike | None = None,
    operands: Operands = None,
) -> NDArray[np.float64]:
    """Compute a chain in float64.

    Parameters
    ----------
    chain : Chain
        The steps.
    x : array_like
        Values that enter the first step, of any shape: for a layer, the accumulator.
    axis : int
        The dimension of x that channels run along; only per-channel constants need it.
    dst_before : array_like, optional
        Content of dst before the call, in the shape of x and in codes or real values as the Sum
        step reads it; only a Sum needs it.
    operands : mapping of str to array_like, optional
        Values of the leaves, by name. A per-channel leaf is a 1-D array.

    Returns
    -------
    ndarray of float64
        The value that leaves, with the shape of x.

    Raises
    ------
    ArgumentError
        Something that a step reads is missing, or holds what its data type cannot.
    ShapeError
        x does not have as many channels as the constants.

    Examples
    --------
    >>> evaluate(Chain(Affine(2.0, 0.5), Round()), [[0.0, 1.0]]).tolist()
    [[0.0, 2.0]]
    """
    return _Frame(np.float64, axis, dst_before, operands).run(chain, x)


def evaluate_f32(
    chain: Chain,
    x: ArrayLike,
    *,
    axis: int = 1,
    dst_before: ArrayLike | None = None,
    operands: Operands = None,
) -> NDArray[np.float32]:
    """Compute a chain in float32, in the operation order of oneDNN's post-ops.

    Parameters are those of `evaluate`. x is rounded to float32 first.
    """
    return _Frame(np.float32, axis, dst_before, operands).run(chain, x)


class _Frame:
    """The arrays that one evaluation reads, and its float type."""

    def __init__(
        self, kind: type[Any], axis: int, dst_before: ArrayLike | None, operands: Operands
    ) -> None:
        self.kind = kind
        self.axis = whole("axis", axis)
        self.dst_before = dst_before
        self.operands = named("operands", operands, object)
        self.shape: tuple[int, ...] = ()

    def run(self, chain: Chain, x: ArrayLike) -> Array:
        instance("chain", chain, Chain)
        with np.errstate(over="ignore"):
            value = numbers("x", x).astype(self.kind)
        self.shape = value.shape
        # Overflow to infinity and 0 * inf are values here, as they are in a kernel.
        with np.errstate(all="ignore"):
            for step in chain:
                value = np.asarray(_MEANING[type(step)](self, step, value))
        return value

    def constant(self, vec: Vec) -> Array:
        """Shape a constant so that it broadcasts along the channel axis."""
        if vec.array is None:
            return np.asarray(self.kind(vec.least))
        return self.along_channels(vec.array.astype(self.kind))

    def along_channels(self, row: Array) -> Array:
        if not -len(self.shape) <= self.axis < len(self.shape):
            raise ArgumentError("axis", str(self.axis), f"an axis of shape {self.shape}")
        if self.shape[self.axis] != len(row):
            wanted = f"{len(row)} channels on axis {self.axis}"
            raise ShapeError("x", f"shape {self.shape}", wanted)
        return along(row, self.axis, len(self.shape))

    def leaf(self, leaf: Leaf) -> Array:
        if leaf.name not in self.operands:
            raise ArgumentError("operands", f"no {leaf.name!r}", "a value for every leaf")
        value = self.read("operands", self.operands[leaf.name], leaf.dtype)
        if leaf.extent == "per_row":
            value = value.reshape((-1, 1))
        elif leaf.extent == "per_channel":
            value = self.along_channels(value)
        return broadcast(f"operands[{leaf.name!r}]", value, self.shape)

    def read(self, name: str, array: ArrayLike, dtype: str | None) -> Array:
        """Return what comes from outside; a value that its type cannot hold has no meaning."""
        value = numbers(name, array)
        if dtype is not None and dtypes.is_integer(dtype):
            stored = np.clip(np.rint(value), dtypes.qmin(dtype), dtypes.qmax(dtype))
            if (stored != value).any():
                raise ArgumentError(name, f"{value[stored != value].flat[0]}", f"values of {dtype}")
        return value.astype(self.kind)

    def fused(self, scale: Array, x: Array, shift: Array) -> Array:
        return fma32(scale, x, shift) if self.kind is np.float32 else scale * x + shift


def _affine(frame: _Frame, step: Affine, x: Array) -> Array:
    scale, shift = frame.constant(step.scale), frame.constant(step.shift)
    if step.scale.is_per_tensor and step.shift.is_per_tensor:
        return frame.fused(scale, x, shift)
    # Not fused: a per-channel constant becomes a binary post-op of its own.
    return scale * x + shift


def _clip(frame: _Frame, step: Clip, x: Array) -> Array:
    return np.minimum(np.maximum(x, frame.constant(step.lo)), frame.constant(step.hi))


def _round(_: _Frame, __: Round, x: Array) -> Array:
    return np.rint(x)


def _eltwise(frame: _Frame, step: Eltwise, x: Array) -> Array:
    if step.alg == "linear":
        kind = frame.kind
        return frame.fused(np.asarray(kind(step.alpha)), x, np.asarray(kind(step.beta)))
    return ALGS[step.alg](x, step.alpha, step.beta)


def _prelu(frame: _Frame, step: PRelu, x: Array) -> Array:
    return np.where(x >= 0, x, frame.constant(step.slope) * x)


def _sum(frame: _Frame, step: Sum, x: Array) -> Array:
    if frame.dst_before is None:
        raise ArgumentError("dst_before", "nothing", "what dst held before: the chain has a Sum")
    before = frame.read("dst_before", frame.dst_before, step.dtype)
    before = broadcast("dst_before", before, frame.shape)
    scale, zero_point = np.asarray(frame.kind(step.scale)), frame.kind(step.zero_point)
    return frame.fused(scale, before - zero_point, x)


_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


def _binary(frame: _Frame, step: Binary, x: Array) -> Array:
    operand = step.operand
    y = frame.leaf(operand) if isinstance(operand, Leaf) else frame.constant(operand)
    return _OPERATIONS[step.alg](x, y).astype(frame.kind)


_MEANING: dict[type[Step], Callable[[_Frame, Any, Array], Array]] = {
    Affine: _affine,
    Clip: _clip,
    Round: _round,
    Eltwise: _eltwise,
    PRelu: _prelu,
    Sum: _sum,
    Binary: _binary,
}
