"""Operations on float32 values: arithmetic, functions, reductions, products of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import flag, instance, integers, one_of, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Eltwise
from pyonednn_q.native import prepare
from pyonednn_q.native.program import Pass
from pyonednn_q.network.lowering import layout_like, natural
from pyonednn_q.network.moves import Transpose, dims_together, known, strides_along
from pyonednn_q.primitive.dense import MatMulProblem
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering


@dataclass(frozen=True, eq=False, slots=True)
class FloatArithmetic:
    """alg(first, second) of float32 values, broadcast as in NumPy; each result is rounded once.

    Parameters
    ----------
    alg : {"add", "sub", "mul", "div", "max", "min"}
        Operation; a maximum or minimum with NaN is NaN.
    constant : ndarray of float32, optional
        Second operand; then the operation reads one tensor.
    is_first : bool
        Whether the constant is the first operand instead.
    """

    alg: str
    constant: Array | None = None
    is_first: bool = False

    def __post_init__(self) -> None:
        one_of("alg", self.alg, ("add", "sub", "mul", "div", "max", "min"))
        flag("is_first", self.is_first)
        if self.constant is not None:
            instance("constant", self.constant, np.ndarray)
            if self.constant.dtype != np.float32:
                raise DTypeError("constant", str(self.constant.dtype), "float32")
            if not self.constant.size:
                raise ShapeError("constant", str(self.constant.shape), "an element at least")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory."""
        specs = [floats_of(at, name) for name in src]
        if self.constant is not None:
            held = TensorSpec.dense(self.constant.shape or (1,), "f32")
            specs.insert(0 if self.is_first else len(specs), held)
        if len(specs) != 2:
            raise ArgumentError("src", f"{len(src)} tensors", "2, of which a constant is one")
        dims = dims_together(specs)
        result = layout_like(dims, "f32", [at.specs[name] for name in src])
        strides = [*(strides_along(spec, dims) for spec in specs), known(result)]
        run = Pass.arithmetic(self.alg, dims, strides, self.constant, is_first=self.is_first)
        at.add(run, src, dst, result)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function of each float32 value.

    Parameters
    ----------
    step : Eltwise
        Function to apply.
    """

    step: Eltwise

    def __post_init__(self) -> None:
        instance("step", self.step, Eltwise)

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive."""
        (name,) = src
        floats_of(at, name)
        name = at.without_gaps(name)
        spec, step = at.specs[name], self.step
        problem = EltwiseProblem(spec, spec, step.alg, step.alpha, step.beta)
        at.add(prepare(problem), (name,), dst, spec)


@dataclass(frozen=True, slots=True)
class Reduction:
    """Sums, products or maxima of float32 values over axes, which then have length 1.

    Sums, products and logarithms of sums are computed in float64 and rounded once; a mean is the
    rounded sum divided in float32. A maximum with NaN is NaN.

    Parameters
    ----------
    alg : {"sum", "mean", "max", "prod", "log_sum"}
        Reduction.
    axes : tuple of int
        Dimensions to reduce; counted from the end when negative.
    """

    alg: str
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        one_of("alg", self.alg, ("sum", "mean", "max", "prod", "log_sum"))
        object.__setattr__(self, "axes", integers("axes", self.axes))
        if not self.axes:
            raise ArgumentError("axes", "none", "one at least")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory, after a copy if the dimensions are not contiguous."""
        (name,) = src
        dims = floats_of(at, name).dims
        if not all(-len(dims) <= axis < len(dims) for axis in self.axes):
            raise ArgumentError("axes", str(self.axes), f"of {len(dims)} dimensions")
        axes = {axis % len(dims) for axis in self.axes}
        lengths = tuple(1 if axis in axes else dim for axis, dim in enumerate(dims))
        longer = [axis for axis in range(len(dims)) if axis in axes and dims[axis] > 1] or [0]
        first, last = longer[0], longer[-1] + 1
        if prod(dims[first:last]) != prod(dims[axis] for axis in axes):
            kept = [axis for axis in range(len(dims)) if axis not in axes]
            turned = at.fresh(name)
            Transpose((*kept, *sorted(axes))).lower(at, turned, src)
            name, first, last = turned, len(kept), len(dims)
        spec = at.specs[name]
        name = at.in_layout(name, TensorSpec.dense(spec.dims, "f32"))
        parts = (spec.dims[:first], spec.dims[first:last], spec.dims[last:])
        run = Pass.reduction(self.alg, *(prod(each) for each in parts))
        at.add(run, (name,), dst, TensorSpec.dense(lengths, "f32"))


@dataclass(frozen=True, eq=False, slots=True)
class Interpolation:
    """Weighted sums of float32 values along a dimension, as a linear or cubic Resize has them.

    dst[.., o, ..] = Σ weights[o, i] · src[.., index[o, i], ..], each product and sum rounded.

    Parameters
    ----------
    axis : int
        Dimension along which values are interpolated.
    index : (results, taps) ndarray of int64
        Indices of the source along the axis, for each result.
    weights : (results, taps) ndarray of float32
        Factors of the source values at these indices.
    """

    axis: int
    index: Array
    weights: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", whole("axis", self.axis, lo=0))
        for name, dtype in (("index", np.int64), ("weights", np.float32)):
            array = getattr(self, name)
            instance(name, array, np.ndarray)
            if array.dtype != dtype:
                raise DTypeError(name, str(array.dtype), np.dtype(dtype).name)
            if array.ndim != 2 or not array.size or array.shape != self.index.shape:
                raise ShapeError(name, str(array.shape), "(results, taps), of both the same")

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add our pass over memory; images are channels-last, so that channels are contiguous."""
        (name,) = src
        dims = floats_of(at, name).dims
        if self.axis >= len(dims):
            raise ArgumentError("axis", str(self.axis), f"one of {len(dims)} dimensions")
        if self.index.min() < 0 or self.index.max() >= dims[self.axis]:
            raise ArgumentError("index", str(self.index.max()), f"0 to {dims[self.axis] - 1}")
        lengths = tuple(
            len(self.index) if axis == self.axis else dim for axis, dim in enumerate(dims)
        )
        name = at.in_layout(name, natural(dims, "f32"))
        order = [0, *range(2, len(dims)), 1] if len(dims) > 3 else [*range(len(dims))]
        place = order.index(self.axis)
        outer, inner = (
            prod(dims[axis] for axis in each) for each in (order[:place], order[place + 1 :])
        )
        run = Pass.interpolation(outer, dims[self.axis], inner, self.index, self.weights)
        at.add(run, (name,), dst, natural(lengths, "f32"))


@dataclass(frozen=True, slots=True)
class FloatMatMul:
    """Matrix product of float32 tensors (..., M, K) and (..., K, N), broadcast as in NumPy."""

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive, after copies of a stack that is broadcast."""
        if len(src) != 2:
            raise ArgumentError("src", f"{len(src)} tensors", "2")
        first, second = (floats_of(at, name).dims for name in src)
        if min(len(first), len(second)) < 2 or first[-1] != second[-2]:
            raise ShapeError("src", f"{first} and {second}", "(..., M, K) and (..., K, N)")
        try:
            lead = np.broadcast_shapes(first[:-2], second[:-2])
        except ValueError:
            wanted = "stacks that can be broadcast"
            raise ShapeError("src", f"{first} and {second}", wanted) from None
        stack, dims = prod(lead), (*lead, first[-2], second[-1])
        if len(second) == 2:  # one matrix for all rows
            stack, first = 1, (prod(first[:-1]), first[-1])
        reads, specs = [], []
        for name, each in zip(src, (first, second), strict=True):
            wide = self._broadcast(at, name, lead) if stack > 1 else name
            dense = at.in_layout(wide, TensorSpec.dense(at.specs[wide].dims, "f32"))
            seen = at.fresh(name)
            specs.append(TensorSpec.dense((stack, *each[-2:]), "f32"))
            at.view(seen, dense, specs[-1])
            reads.append(seen)
        stored = TensorSpec.dense((stack, first[-2], second[-1]), "f32")
        product = at.fresh(dst)
        at.add(
            prepare(MatMulProblem(specs[0], specs[1], stored, None)), tuple(reads), product, stored
        )
        at.view(dst, product, TensorSpec.dense(dims, "f32"))

    @staticmethod
    def _broadcast(at: Lowering, name: str, lead: tuple[int, ...]) -> str:
        """Return a stack of matrices of which each is there: itself, or 1 times it."""
        spec = at.specs[name]
        dims = (*lead, *spec.dims[-2:])
        if prod(dims) == spec.size:
            return name
        result, copy = TensorSpec.dense(dims, "f32"), at.fresh(name)
        steps = (strides_along(spec, dims), [0] * len(dims), known(result))
        run = Pass.arithmetic("mul", dims, steps, np.ones(1, np.float32))
        at.add(run, (name,), copy, result)
        return copy


def floats_of(at: Lowering, name: str) -> TensorSpec:
    """Return a tensor's spec; DTypeError unless it has float32 values."""
    spec = at.specs[name]
    if spec.dtype != "f32":
        raise DTypeError("src", spec.dtype, "f32")
    return spec
