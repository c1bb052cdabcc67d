"""A case made ready: composed, prepared, and its arrays filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import native
from pyonednn_q.bench.data import Sample, channels, quantise
from pyonednn_q.bench.tail import Ending
from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.primitive import PrimitiveFacts
from pyonednn_q.compose.saturation import pair_overflow
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.bench.case import Case
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.native import Prepared

__all__ = ["Trial"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """A primitive that computes a case, and arrays to compute it on.

    Attributes
    ----------
    case : Case
        What is computed.
    plan : Plan
        How.
    prepared : Prepared
        By what.
    arrays : tuple of ndarray
        The arrays of a call, dst last.
    ending : Ending
        What the stored values are worth.
    saturates : bool
        Without VNNI these weights can overflow 16 bits.
    tuning : str
        What was chosen by time; empty: the library's first choice.
    """

    case: Case
    plan: Plan
    prepared: Prepared
    arrays: tuple[Array, ...]
    ending: Ending
    saturates: bool
    tuning: str = ""

    @classmethod
    def of(cls, case: Case, sample: Sample, implementation: str | None = None) -> Trial:
        """Compose and prepare `case`, on that sample; by a named implementation, or by the first.

        Raises
        ------
        UnsupportedError
            No implementation takes it but a reference loop.
        """
        problem = case.shape.problem(case.precision, case.layout)
        given = quantise(case, sample)
        ending = case.tail.ending(channels(case.shape), case.precision)
        facts = PrimitiveFacts.of(
            problem,
            src_scale=given.src_scale,
            wei_scale=given.wei_scale,
            bias=None if problem.bias is None else sample.bias,
            dst_scale=ending.dst_scale,
            dst_zero_point=ending.dst_zero_point,
            process=runtime.facts(),
        )
        plan = compose(ending.chain, facts, strict=True)
        to_prepare = plan.problem(problem)
        prepared = native.prepare(
            to_prepare,
            plan.attr,
            wei=None if case.shape.has_two_sources else plan.wei(given.wei),
            bias=plan.bias_values(),
            values=plan.values(),
            saturation="allow",
            implementation=implementation,
        )
        filled = {"src": given.src, "wei": given.wei, "dst": given.dst}
        filled |= dict.fromkeys((name for name, _ in plan.operands), sample.residual)
        arrays = []
        for name in (*prepared.inputs, "dst"):
            array = prepared.empty(name)
            if filled[name].size:
                array[...] = filled[name].reshape(array.shape)
            arrays.append(array)
        overflow = pair_overflow(given.wei, to_prepare, runtime.isa())
        return cls(case, plan, prepared, tuple(arrays), ending, bool(overflow))

    def seconds(self, calls: int) -> float:
        """Return seconds per call, of a loop in C++ over that many."""
        return self.prepared.time_calls(*self.arrays, calls=calls)

    def real_result(self) -> NDArray[np.float32]:
        """Run once and return what the stored values are worth. A sum reads what dst holds now."""
        *inputs, dst = self.arrays
        stored = self.prepared(*inputs, out=dst).astype(np.float32)
        scale, shift = (self._aligned(vec) for vec in (self.ending.scale, self.ending.shift))
        return np.asarray(stored * scale + shift, np.float32)

    def _aligned(self, vec: Vec) -> NDArray[np.float32]:
        dims = [1] * self.arrays[-1].ndim
        dims[-1 if self.case.shape.kind == "matmul" else 1] = vec.channels or 1
        return vec.values().astype(np.float32).reshape(dims)
