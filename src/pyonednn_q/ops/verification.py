"""Verification: a plan made ready, run once on seeded data and compared with what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.places import Places
from pyonednn_q.compose.tensor import TensorSpec
from pyonednn_q.expr.steps import Binary, Leaf, Sum
from pyonednn_q.native.trial import Draw, compare
from pyonednn_q.ops.formed import Formed

if TYPE_CHECKING:
    from pyonednn_q.compose.meaning import Meaning
    from pyonednn_q.compose.primitive import DenseProblem
    from pyonednn_q.ops.planned import Planned

__all__ = ["verify"]

Array = np.ndarray[Any, Any]


def verify(planned: Planned, meaning: Meaning, problem: DenseProblem, wei: Array) -> None:
    """Run a plan once, everything after its primitive included, and compare.

    Parameters
    ----------
    planned : Planned
        What was made ready.
    meaning, problem : Meaning and problem
        What was asked; the plan's own lowering is not looked at.
    wei : ndarray
        In the problem's dims.

    Raises
    ------
    SelfCheckError
        A result differs by more than float32 and the plan's declared exactness allow.
    """
    if planned.primitive.kind == "none":
        return
    draw = Draw()
    src = draw.source(problem.src, meaning.src_zero_point)
    sums = [step for step in meaning.chain if isinstance(step, Sum)]
    residual = None
    if sums:
        read = TensorSpec(problem.dst.dims, sums[0].dtype or meaning.dst)
        residual = draw.source(read, sums[0].zero_point)
    axis = problem.dst.ndim - 1 if problem.kind == "matmul" else 1
    dims = problem.dst.dims
    sizes = {"full": dims, "per_channel": (dims[axis],), "per_tensor": (1,)}
    steps = [step.operand for step in meaning.chain if isinstance(step, Binary)]
    leaves = [operand for operand in steps if isinstance(operand, Leaf)]
    operands = {leaf.name: draw.operand(sizes[leaf.extent], leaf.dtype) for leaf in leaves}
    dst = planned(src, residual=residual, **operands)
    compare(
        Places.of(problem),
        meaning,
        dst,
        planned.primitive,
        src,
        wei,
        before=residual,
        operands=operands,
        packed=planned.form.wei(wei) if isinstance(planned, Formed) else wei,
    )
