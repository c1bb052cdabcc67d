"""What nodes compute of float32 values: arithmetic, functions, products of two tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag, instance, one_of
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.steps import Eltwise
from pyonednn_q.native import prepare
from pyonednn_q.native.program import Pass
from pyonednn_q.network.lowering import natural
from pyonednn_q.network.moves import known, strides_along
from pyonednn_q.primitive.dense import MatMulProblem
from pyonednn_q.primitive.problem import EltwiseProblem
from pyonednn_q.primitive.tensor import TensorSpec

if TYPE_CHECKING:
    from pyonednn_q.network.lowering import Lowering

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, slots=True)
class FloatArithmetic:
    """alg(first, second) of float32 values, each rounded once, broadcast as NumPy's are.

    Parameters
    ----------
    alg : {"add", "sub", "mul", "div"}
        What is done.
    constant : ndarray of float32, optional
        The second of both, where only one is a tensor.
    is_first : bool
        Whether the constant is the first of both.
    """

    alg: str
    constant: Array | None = None
    is_first: bool = False

    def __post_init__(self) -> None:
        one_of("alg", self.alg, ("add", "sub", "mul", "div"))
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
        try:
            dims = np.broadcast_shapes(*(spec.dims for spec in specs))
        except ValueError:
            got = " and ".join(str(spec.dims) for spec in specs)
            raise ShapeError("src", got, "dimensions that can be broadcast") from None
        result = natural(dims, "f32")
        tensors = [at.specs[name] for name in src]
        like = next((s for s in tensors if s.dims == dims and not s.has_gaps), None)
        if like is not None:
            result = TensorSpec(dims, "f32", like.strides)
        strides = [*(strides_along(spec, dims) for spec in specs), known(result)]
        run = Pass.arithmetic(self.alg, dims, strides, self.constant, is_first=self.is_first)
        at.add(run, src, dst, result)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A function of each float32 value.

    Parameters
    ----------
    step : Eltwise
        Which function.
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
class FloatMatMul:
    """The matrix product of two tensors of float32 values, (..., M, K) and (..., K, N)."""

    def lower(self, at: Lowering, dst: str, src: tuple[str, ...]) -> None:
        """Add its primitive."""
        if len(src) != 2:
            raise ArgumentError("src", f"{len(src)} tensors", "2")
        first, second = (floats_of(at, name).dims for name in src)
        is_of_rows = min(len(first), len(second)) > 1
        if not is_of_rows or first[:-2] != second[:-2] or first[-1] != second[-2]:
            raise ShapeError("src", f"{first} and {second}", "(..., M, K) and (..., K, N)")
        stack, dims = prod(first[:-2]), (*first[:-1], second[-1])
        reads, specs = [], []
        for name, each in zip(src, (first, second), strict=True):
            dense = at.in_layout(name, TensorSpec.dense(each, "f32"))
            seen = at.fresh(name)
            specs.append(TensorSpec.dense((stack, *each[-2:]), "f32"))
            at.view(seen, dense, specs[-1])
            reads.append(seen)
        stored = TensorSpec.dense((stack, *dims[-2:]), "f32")
        product = at.fresh(dst)
        at.add(
            prepare(MatMulProblem(specs[0], specs[1], stored, None)), tuple(reads), product, stored
        )
        at.view(dst, product, TensorSpec.dense(dims, "f32"))


def floats_of(at: Lowering, name: str) -> TensorSpec:
    """Return a tensor's spec; DTypeError unless it has float32 values."""
    spec = at.specs[name]
    if spec.dtype != "f32":
        raise DTypeError("src", spec.dtype, "f32")
    return spec
