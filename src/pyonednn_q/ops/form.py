"""Form: another way to ask for the same numbers, and a plan of that form behind the first's face.

matmul       a 1x1 convolution over channels-last arrays, or an inner product, is a matmul of
             the same memory seen as a matrix
binary add   a Sum of scale 1 reads its tensor as an operand, not from dst: a residual that is
             to stay as it is then needs no copy
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.convolution import ConvProblem, DeconvProblem
from pyonednn_q.compose.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.errors import ShapeError
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Binary, Leaf, Sum
from pyonednn_q.native.arrays import checked
from pyonednn_q.ops.planned import Planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.compose.primitive import DenseProblem

__all__ = ["Form", "Formed", "forms"]

Array = np.ndarray[Any, Any]

AS_ASKED = "as asked"
RESIDUAL_LEAF = "what_the_sum_reads"


@dataclass(frozen=True, slots=True)
class Form:
    """A problem and a chain that mean the same as another problem and chain.

    Attributes
    ----------
    name : str
        Of the form.
    asked, problem : problems
        What was asked, and what it becomes.
    chain : Chain
        What follows.
    has_leaf : bool
        Whether what a Sum reads is an operand.
    """

    name: str
    asked: DenseProblem
    problem: DenseProblem
    chain: Chain
    has_leaf: bool = False

    @property
    def is_product(self) -> bool:
        """Whether tensors are seen as matrices."""
        return self.problem.kind != self.asked.kind

    def wei(self, wei: Array) -> Array:
        """Return the weights of what was asked, as this form has them."""
        if not self.is_product:
            return wei
        return np.ascontiguousarray(wei.reshape(len(wei), -1).T)

    def inward(self, array: Array) -> Array:
        """Return a source, or a tensor of dst's dims, as this form has it."""
        if not self.is_product:
            return array
        rows = np.moveaxis(array, 1, -1) if isinstance(self.asked, ConvProblem) else array
        return rows.reshape(self.problem.src.dims[0], -1)

    def outward(self, dst: Array) -> Array:
        """Return a result in the dims that were asked for, without a copy."""
        if not self.is_product or dst.shape == self.asked.dst.dims:
            return dst
        batch, channels, *lengths = self.asked.dst.dims
        return np.moveaxis(dst.reshape(batch, *lengths, channels), -1, 1)


def forms(problem: DenseProblem, chain: Chain) -> Iterator[Form]:
    """Give every form of a problem and a chain, as it was asked first."""
    asked = Form(AS_ASKED, problem, problem, chain)
    yield asked
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        rows = replace(problem, src=_dense(problem.src), dst=_dense(problem.dst))
        yield replace(asked, name="row-major", problem=rows)
    product = _as_matmul(problem)
    if product is not None:
        yield replace(asked, name="matmul", problem=product)
    added = _with_leaf(chain, problem.dst.dtype)
    if added is not None:
        yield replace(asked, name="binary add", chain=added, has_leaf=True)
        if product is not None:
            name = "matmul with binary add"
            yield Form(name, problem, product, added, has_leaf=True)


def _as_matmul(problem: DenseProblem) -> MatMulProblem | None:
    if isinstance(problem, ConvProblem):
        is_point = max(problem.window.kernel) == 1 == max(problem.strides)
        padding = max(problem.padding_lo + problem.padding_hi)
        if not is_point or padding or problem.has_groups or not problem.src.is_channels_last:
            return None
    elif not isinstance(problem, InnerProductProblem):
        return None
    inner = problem.wei.size // problem.oc
    return MatMulProblem.of(
        (problem.src.size // inner, inner),
        (inner, problem.oc),
        src=problem.src.dtype,
        wei=problem.wei.dtype,
        dst=problem.dst.dtype,
        bias=None if problem.bias is None else problem.bias.dtype,
    )


def _dense(spec: TensorSpec) -> TensorSpec:
    return TensorSpec.dense(spec.dims, spec.dtype)


def _with_leaf(chain: Chain, dst: str) -> Chain | None:
    sums = [step for step in chain if isinstance(step, Sum)]
    if len(sums) != 1 or (sums[0].scale, sums[0].zero_point) != (1.0, 0):
        return None
    added = Binary("add", Leaf(RESIDUAL_LEAF, sums[0].dtype or dst))
    return Chain(*(added if isinstance(step, Sum) else step for step in chain))


class Formed(Planned):
    """A plan of another form, called as the one that was asked.

    Parameters
    ----------
    form : Form
        How it was changed.
    inner : Planned
        The changed plan, made ready.
    """

    def __init__(self, form: Form, inner: Planned) -> None:
        self.form = form
        self.inner = inner
        self.plan = inner.plan
        self.primitive = inner.primitive
        self.leaves = tuple(name for name in inner.leaves if name != RESIDUAL_LEAF)
        self.decided = inner.decided
        self.dst = inner.dst
        if form.is_product:
            self.dst = TensorSpec.channels_last(form.asked.dst.dims, inner.plan.facts.dst)
        self.src_dims = form.asked.src.dims
        self._reads = form.has_leaf or any(isinstance(step, Sum) for step in form.chain)

    def __call__(
        self,
        /,
        src: Array,
        *,
        out: Array | None = None,
        residual: Array | None = None,
        **operands: Array,
    ) -> Array:
        """Run the plan; arguments and errors as of `Planned`."""
        form, dims = self.form, self.form.asked.dst.dims
        checked("src", src, form.asked.src)
        for name, array in (("out", out), ("residual", residual)):
            if array is not None and np.shape(array) != dims:
                raise ShapeError(name, str(np.shape(array)), str(dims))
        for name, array in operands.items():
            operands[name] = form.inward(array) if np.shape(array) == dims else array
        before = out if residual is None and self._reads else residual
        if before is not None:
            before = form.inward(before)
        if form.has_leaf and before is not None:
            operands[RESIDUAL_LEAF] = before
            before = None
        target = None if out is None else form.inward(out)
        in_place = target is not None and out is not None and np.may_share_memory(target, out)
        dst = self.inner(
            form.inward(src), out=target if in_place else None, residual=before, **operands
        )
        if out is None:
            return form.outward(dst)
        if not in_place:
            np.copyto(out, form.outward(dst))
        return out

    @property
    def hot(self) -> None:
        """None: arrays are looked at before the primitive sees them."""
        return

    @property
    def notes(self) -> tuple[str, ...]:
        """What a caller should know."""
        return (*self.inner.notes, f"asked as {self.form.name}, which is the same")

    @property
    def after(self) -> tuple[str, ...]:
        """A line for every primitive that runs after the first."""
        return self.inner.after

    def describe(self) -> str:
        """Return the plan, the primitive, and what runs after it."""
        return self.inner.describe()

    def __repr__(self) -> str:
        return repr(self.inner)
