"""A case made ready: composed, prepared, and its arrays filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import native
from pyonednn_q.bench.data import Sample, channels, quantize
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Ending
from pyonednn_q.compose.benchdnn import DRIVERS
from pyonednn_q.compose.composer import compose
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native import runtime
from pyonednn_q.ops.form import AS_ASKED, Form, faster_form, forms, if_generated
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from pyonednn_q.saturation.pairs import pair_overflow

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
    form : Form
        As which problem: the one asked for, or one that means the same.
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
    form: Form
    saturates: bool
    tuning: str = ""

    @classmethod
    def of(
        cls,
        case: Case,
        sample: Sample,
        implementation: str | None = None,
        form: Form | None = None,
    ) -> Trial:
        """Compose and prepare `case`, on that sample; by a named implementation, or by the first.

        Parameters
        ----------
        case : Case
            What is computed.
        sample : Sample
            Real values of its tensors.
        implementation : str, optional
            As oneDNN names it.
        form : Form, optional
            Of `products`; as it was asked, without.

        Raises
        ------
        UnsupportedError
            No implementation takes it but a reference loop.
        """
        given = quantize(case, sample)
        ending = case.tail.ending(channels(case.shape), case.precision)
        form = form or _as_asked(case, ending)
        problem, wei = form.problem, form.wei(given.wei)
        facts = PrimitiveFacts.of(
            problem,
            src_scale=given.src_scale,
            wei_scale=given.wei_scale,
            bias=None if problem.bias is None else sample.bias,
            dst_scale=ending.dst_scale,
            dst_zero_point=ending.dst_zero_point,
            process=runtime.facts(),
        )
        plan = compose(form.chain, facts, strict=True)
        to_prepare = plan.problem(problem)
        prepared = native.prepare(
            to_prepare,
            plan.attr,
            wei=None if case.shape.has_two_sources else plan.wei(wei),
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
                values = filled[name] if name == "wei" else form.inward(filled[name])
                array[...] = values.reshape(array.shape)
            arrays.append(array)
        overflow = pair_overflow(wei, to_prepare, runtime.isa())
        return cls(case, plan, prepared, tuple(arrays), ending, form, bool(overflow))

    @classmethod
    def as_called(cls, case: Case, sample: Sample) -> Trial:
        """Make ready what `MatMul` and its like run: the form that is always faster, if one is.

        Raises
        ------
        UnsupportedError
            As `of` does.
        """
        asked = cls.of(case, sample)
        if case.shape.has_two_sources:
            return asked
        faster = if_generated(
            faster_form(asked.form.problem, asked.form.chain, runtime.isa()),
            lambda form: cls.of(case, sample, form=form),
            lambda trial: trial.prepared.impl,
        )
        return faster or asked

    @property
    def shape(self) -> Shape:
        """What the primitive computes; with another form, not what was asked."""
        problem = self.form.problem
        if not self.form.is_product:
            return self.case.shape
        return Shape(DRIVERS[problem.kind], problem.src.dims, problem.wei.dims)

    def products(self) -> Iterator[Form]:
        """Give the forms that see its tensors as matrices, or its matrices as an image."""
        if not self.case.shape.has_two_sources:
            asked = self.form
            for form in forms(asked.problem, asked.chain, self.case.layout):
                if form.is_product and not form.has_leaf:
                    yield form

    def seconds(self, calls: int) -> float:
        """Return seconds per call, of a loop in C++ over that many."""
        return self.prepared.time_calls(*self.arrays, calls=calls)

    def real_result(self) -> NDArray[np.float32]:
        """Run once and return what the stored values are worth. A sum reads what dst holds now."""
        *inputs, dst = self.arrays
        stored = self.form.outward(self.prepared(*inputs, out=dst)).astype(np.float32)
        scale, shift = (self._aligned(vec) for vec in (self.ending.scale, self.ending.shift))
        return np.asarray(stored * scale + shift, np.float32)

    def _aligned(self, vec: Vec) -> NDArray[np.float32]:
        dims = [1] * len(self.case.shape.dst)
        dims[-1 if self.case.shape.kind == "matmul" else 1] = vec.channels or 1
        return vec.values().astype(np.float32).reshape(dims)


def _as_asked(case: Case, ending: Ending) -> Form:
    problem = case.shape.problem(case.precision, case.layout)
    return Form(AS_ASKED, problem, problem, ending.chain)
