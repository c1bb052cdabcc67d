"""Formed: a plan of another form behind the face of the plan that was asked."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.stages import SRC
from pyonednn_q.errors import ShapeError
from pyonednn_q.expr.steps import Sum
from pyonednn_q.native.arrays import checked
from pyonednn_q.ops.form import RESIDUAL_LEAF
from pyonednn_q.ops.planned import Planned

if TYPE_CHECKING:
    from pyonednn_q.ops.form import Form

__all__ = ["Formed"]

Array = np.ndarray[Any, Any]


class Formed(Planned, hot=True):
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
        self._hot = None if form.has_leaf else inner.hot
        if form.is_product:
            self.dst = replace(form.seen()["dst"], dtype=inner.plan.facts.dst)
            if self._hot is not None:
                # The same memory: arrays need not be looked at in Python.
                self._hot = inner._hot_of(inner.primitive.seen_as(form.seen()))  # noqa: SLF001
        self.src_dims = form.asked.src.dims
        self._reads = form.has_leaf or any(isinstance(step, Sum) for step in form.chain)

    @property
    def alone(self) -> tuple[str, ...] | None:
        """What each input of the primitive is; None where more runs, or it takes operands."""
        return None if self._hot is None else (SRC,)

    @property
    def nbytes(self) -> int:
        """About how many bytes it takes beside weights: those of its primitives."""
        return self.inner.nbytes

    def row_major(self) -> Planned:
        """Return this one: how arrays lie was part of the choice."""
        return self

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
        if out is not None:
            # As it was given: views of it may be copies.
            self._check_out(out, {"src": src, **operands}, residual)
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

    def __copy__(self) -> Formed:
        other = Formed(self.form, copy(self.inner))
        other.tuning = self.tuning
        return other

    @property
    def fixed(self) -> dict[str, Array]:
        """Leaves that are the same in every call, by name, in the form's dims."""
        return self.inner.fixed

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
