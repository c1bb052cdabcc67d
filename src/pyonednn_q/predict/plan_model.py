"""Kernel model of a plan: its weights, bias and values, and the model of its kernel.

Examples
--------
>>> import numpy as np
>>> from pyonednn_q.compose.composer import compose
>>> from pyonednn_q.primitive.dense_facts import PrimitiveFacts
>>> from pyonednn_q.primitive.problem import MatMulProblem
>>> from pyonednn_q.expr.steps import Chain
>>> from pyonednn_q.expr.steps import Eltwise
>>> problem = MatMulProblem.of((1, 2), (2, 1), dst="u8")
>>> plan = compose(Chain(Eltwise("relu")), PrimitiveFacts.of(problem, wei_scale=0.5))
>>> model = plan_model(plan, problem, "gemm:jit", "AVX2", (3, 13, 2))
>>> model.run(np.array([[3, 4]], np.uint8), np.array([[5], [-2]], np.int8))  # 3.5, to even
array([[4]], dtype=uint8)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.split import addend, beyond_32_bits
from pyonednn_q.argument import instance, named, numbers
from pyonednn_q.compose.plan import Plan
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.predict.kernel_model import KernelModel, kernel_model
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.qparams import along

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

    from pyonednn_q.primitive.dense_facts import DenseProblem


@dataclass(frozen=True, slots=True)
class PlanModel:
    """The arithmetic of one implementation on one plan.

    Attributes
    ----------
    plan : Plan
        Plan that runs.
    model : KernelModel
        Model of the implementation that runs the plan's primitive.
    """

    plan: Plan
    model: KernelModel

    def run(
        self,
        src: Array,
        wei: Array,
        *,
        bias: ArrayLike | None = None,
        operands: Mapping[str, Array] | None = None,
        before: Array | None = None,
    ) -> Array:
        """Return the values that the kernel stores.

        Parameters
        ----------
        src : ndarray
            Codes of the source, in the problem's dims.
        wei : ndarray
            Weights as they were before composing, as for `prepare_plan`.
        bias : array_like, optional
            Real values of the bias, one per output channel, where the plan takes it with the call.
        operands : mapping
            Leaves of the chain and other arguments of a call, by name: in the primitive's dims, or
            one value per channel.
        before : ndarray, optional
            Values of dst before the call, in its dims and data type; a sum post-op reads them.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError, NoModelError
            Errors of `KernelModel.run`.
        """
        if self.plan.sums:
            return self._sums(src, wei, bias)
        values = self._values(operands)
        dst = self.model.run(
            src, self._wei(wei), bias=self._bias(bias), values=values, before=before
        )
        return self._cast(dst)

    def bounds(
        self,
        src: Array,
        wei: Array,
        *,
        bias: ArrayLike | None = None,
        operands: Mapping[str, Array] | None = None,
        before: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the least and the most that the kernel may store: see `KernelModel.bounds`."""
        if self.plan.sums:
            return (self._sums(src, wei, bias),) * 2
        values = self._values(operands)
        low, high = self.model.bounds(
            src, self._wei(wei), bias=self._bias(bias), values=values, before=before
        )
        return self._cast(low), self._cast(high)

    def _wei(self, wei: Array) -> Array:
        return self.plan.wei(arranged(self.model.problem, wei))

    def _sums(self, src: Array, wei: Array, bias: ArrayLike | None) -> Array:
        """Return the kernel's sums, and what is added to them as integers."""
        problem: Any = self.model.problem
        if self.plan.facts.wei_zero_point:
            model = self.model
            raise NoModelError(model.impl, model.isa.text(), "sums of weights in parts of 8 bits")
        wei = arranged(problem, wei)
        total = self.model.run(src, wei).astype(np.int64)
        more = (problem, wei, self._bias(bias), self.plan.facts.src_zero_point or 0)
        added = addend(*more)
        total = total if added is None else total + added
        if not beyond_32_bits(*more):
            return total.astype(np.int32)  # what left 32 bits on the way comes back
        return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)

    def _cast(self, dst: Array) -> Array:
        """Return what is stored at last: the primitive's result, or that in 16 bits."""
        with np.errstate(over="ignore"):
            return dst.astype(dtypes.numpy_dtype(self.plan.facts.dst), copy=False)

    def _bias(self, bias: ArrayLike | None) -> Array | None:
        values = self.plan.bias_values(bias)
        return values if values is None else np.asarray(values)

    def _values(self, operands: Mapping[str, Array] | None) -> dict[str, Array]:
        plan, arrays = self.plan, named("operands", operands, object)
        values = plan.values()
        for name, leaf in (*plan.operands, *((name, name) for name in plan.later)):
            if leaf not in arrays:
                raise ArgumentError("operands", f"no {leaf!r}", "a value for each leaf")
            array = numbers("operands", arrays[leaf], "iufV")
            values[name] = array if name in plan.later else self._aligned(name, array)
        return values

    def _aligned(self, name: str, array: Array) -> Array:
        dims = self.plan.operand_dims(name)
        if array.size == np.prod(dims):
            return array.reshape(dims)
        if array.size != self.plan.facts.channels:
            raise ShapeError("operands", f"shape {array.shape}", f"{dims}, or one value a channel")
        return np.broadcast_to(along(array, self.plan.facts.axis, len(dims)), dims)


def plan_model(
    plan: Plan,
    problem: DenseProblem,
    impl: str,
    isa: InstructionSet | str,
    version: tuple[int, ...],
) -> PlanModel:
    """Return the model of an implementation that runs a plan, if one is proven.

    Parameters
    ----------
    plan : Plan
        Plan of `compose`.
    problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem with the shapes of the call, and the plan's kind, channels and data types.
    impl, isa, version
        Arguments of `kernel_model`.

    Raises
    ------
    NoModelError
        Errors of `kernel_model`; or the plan needs further primitives other than a cast.
    ArgumentError, ShapeError
        Not a plan, or a plan for another problem.
    """
    instance("plan", plan, Plan)
    if len(plan.leftovers) or not (plan.is_whole or plan.facts.dst in ("bf16", "f16")):
        raise NoModelError(
            impl, InstructionSet.of(isa).text(), f"the plan leaves steps over: {plan.because}"
        )
    return PlanModel(plan, kernel_model(plan.problem(problem), plan.attr, impl, isa, version))
