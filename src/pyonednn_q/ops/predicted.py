"""model_of: what a call will return, bit for bit, without running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.compose.argument import instance, integers
from pyonednn_q.errors import ArgumentError, NoModelError
from pyonednn_q.native import runtime
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.ops.formed import Formed
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.reshaped import Reshaped
from pyonednn_q.predict.plan_model import PlanModel, plan_model

if TYPE_CHECKING:
    from pyonednn_q.ops.planned import Planned

__all__ = ["OperatorModel", "model_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """The arithmetic of one operator on sources of one shape, on the kernel that runs it here.

    Attributes
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        Its weights and settings are used.
    planned : Planned
        What runs.
    arithmetic : PlanModel
        Of its plan and implementation; ``arithmetic.model.proof`` says what it rests on.
    """

    operator: Operator
    planned: Planned
    arithmetic: PlanModel

    def run(self, src: object, *, residual: object = None, **operands: object) -> Array:
        """Return what a call with these arguments returns, bit for bit.

        Parameters
        ----------
        src, residual, **operands
            As a call takes them.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        NoModelError
            See `KernelModel.run`.
        """
        dims, given = self._given(src, residual, operands)
        return dims.back(self.arithmetic.run(**given))

    def bounds(
        self, src: object, *, residual: object = None, **operands: object
    ) -> tuple[Array, Array]:
        """Return the least and the most that a call may return: see `KernelModel.bounds`."""
        dims, given = self._given(src, residual, operands)
        lo, hi = self.arithmetic.bounds(**given)
        return dims.back(lo), dims.back(hi)

    def _given(
        self, src: object, residual: object, operands: dict[str, object]
    ) -> tuple[Reshaped, dict[str, Any]]:
        operator, planned = self.operator, self.planned
        source = as_array("src", src)
        # An operator's own way from a caller's arrays to its primitive's.
        ready = operator._ready_for(source.shape, operator._src_dtype(source))  # noqa: SLF001
        if ready.planned is not planned:
            wanted = "a source of the shape and type that the model is for"
            raise ArgumentError("src", f"{source.dtype} {source.shape}", wanted)
        dims = Reshaped(
            operator._dst_dims(source.shape, planned),  # noqa: SLF001
            planned.dst.dims,
        )
        codes = operator._codes(source, ready)  # noqa: SLF001
        leaves = {name: dims.into(name, as_array(name, one)) for name, one in operands.items()}
        leaves |= planned.fixed
        before = None if residual is None else dims.into("residual", as_array("residual", residual))
        problem: Any = planned.primitive.problem
        return dims, {
            "src": codes.values.reshape(planned.src_dims),
            "wei": operator._wei_of(problem),  # noqa: SLF001
            "operands": leaves,
            "before": before,
        }


def model_of(operator: Operator, src_dims: tuple[int, ...]) -> OperatorModel:
    """Return what an operator computes on sources of a shape, if its kernel has a proven model.

    Parameters
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        The primitive for the shape is made if it is new.
    src_dims : tuple of int
        Of the source.

    Raises
    ------
    NoModelError
        Nothing is proven for the implementation that runs, or not with what it is asked to do; or
        more than one primitive runs.
    ArgumentError
        Something else than an operator.
    UnsupportedError
        As `prepare` raises it.

    Examples
    --------
    >>> import numpy as np
    >>> from pyonednn_q.ops.dense import MatMul
    >>> from pyonednn_q.qparams import QParams
    >>> weights = np.array([[5], [-2]], np.int8)
    >>> q = QParams(0.5, 0, "u8")
    >>> matmul = MatMul(weights, src_q=q, wei_q=QParams(1.0, 0, "s8"), dst_q=q)
    >>> src = np.array([[3, 4]], np.uint8)
    >>> try:
    ...     equal = model_of(matmul, (1, 2)).run(src) == matmul(src)
    ... except NoModelError:  # another version, or an unusual processor
    ...     equal = True
    >>> bool(np.all(equal))
    True
    """
    instance("operator", operator, Operator)
    planned = operator.prepare(integers("src_dims", src_dims))
    primitive, isa = planned.primitive, runtime.isa()
    why = ""
    if operator.settings.requantize is not None:
        why = "another runtime's arithmetic follows: it is stated in predict.dialects"
    elif operator.settings.dynamic is not None:
        why = "its source has the range of each call"
    elif operator.weights.parts is not None:
        why = "its weights are computed in parts"
    elif isinstance(planned, Formed):
        why = f"it was tuned into another form, {planned.form.name}"
    if why:
        raise NoModelError(primitive.impl, isa, why)
    problem: Any = primitive.problem
    model = plan_model(planned.plan, problem, primitive.impl, isa, runtime.version())
    return OperatorModel(operator, planned, model)
