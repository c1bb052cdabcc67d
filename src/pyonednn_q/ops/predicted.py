"""model_of: what a call will return, bit for bit, without running it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, integers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.native import runtime
from pyonednn_q.ops.arrays import as_array, asked_array
from pyonednn_q.ops.form import RESIDUAL_LEAF
from pyonednn_q.ops.on_groups import OnGroups
from pyonednn_q.ops.operator import Operator
from pyonednn_q.ops.requantized import Requantized
from pyonednn_q.ops.source import Codes
from pyonednn_q.predict.plan_model import PlanModel, plan_model

if TYPE_CHECKING:
    from pyonednn_q.ops.form import Form
    from pyonednn_q.ops.planned import Planned

Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OperatorModel:
    """The arithmetic of one operator on sources of one shape, on the kernel that runs it here.

    Attributes
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        Operator whose weights and settings are used.
    planned : Planned
        Plan that runs.
    arithmetic : PlanModel
        Model of the operator's plan and implementation; ``arithmetic.model.proof`` says what it
        rests on.
    """

    operator: Operator
    planned: Planned
    arithmetic: PlanModel

    def __repr__(self) -> str:
        return f"<model of {self.operator!r}: {self.arithmetic.model.text()}>"

    def run(self, src: object, *, residual: object = None, **operands: object) -> Array:
        """Return the result of a call with these arguments, bit for bit.

        Parameters
        ----------
        src, residual, **operands
            Arguments of a call.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        NoModelError
            Nothing is proven here: see `KernelModel.run`.
        """
        asked, arrays = self._arrays(src, residual, operands)
        return self._back(asked, self.arithmetic.run(**arrays))

    def bounds(
        self, src: object, *, residual: object = None, **operands: object
    ) -> tuple[Array, Array]:
        """Return the least and the most that a call may return: see `KernelModel.bounds`."""
        asked, arrays = self._arrays(src, residual, operands)
        lo, hi = self.arithmetic.bounds(**arrays)
        return self._back(asked, lo), self._back(asked, hi)

    def _arrays(
        self, src: object, residual: object, operands: dict[str, object]
    ) -> tuple[Dims, dict[str, Any]]:
        operator, planned = self.operator, self.planned
        source = as_array("src", src)
        # An operator's own way from a caller's arrays to its primitive's.
        ready = operator._ready_for(source.shape, operator._src_dtype(source))  # noqa: SLF001
        if ready is not planned:
            wanted = "a source of the shape and type that the model is for"
            raise ArgumentError("src", f"{source.dtype} {source.shape}", wanted)
        asked = operator._dst_dims(source.shape, planned)  # noqa: SLF001
        in_dims = functools.partial(asked_array, asked=asked, run=planned.dst.dims)
        codes = operator._codes(source, ready) or Codes(source)  # noqa: SLF001
        values, parts = codes.values, operator.weights.parts
        if parts is not None:
            values = parts.of(values.reshape(source.shape))
        leaves = {name: in_dims(name, as_array(name, one)) for name, one in operands.items()}
        leaves |= codes.operands(ready)
        before = None if residual is None else in_dims("residual", as_array("residual", residual))
        arrays: dict[str, Any] = {
            "src": values.reshape(planned.src_dims),
            "wei": operator._wei_of(planned.form.asked),  # noqa: SLF001
            "operands": leaves,
            "before": before,
        }
        arrays = _in_form(planned.form, arrays)
        arrays["operands"] |= planned.fixed
        return asked, arrays

    def _back(self, asked: Dims, dst: Array) -> Array:
        return self.planned.form.outward(dst).reshape(asked)


@dataclass(frozen=True, slots=True)
class RequantizedModel:
    """Another runtime's arithmetic on the sums of one operator, for sources of one shape.

    Attributes
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        Operator with ``requantize=``.
    runner : Requantized
        Arithmetic that makes codes of its sums.
    src_dims : tuple of int
        Dims of a source.
    products : tuple of OperatorModel
        Models of the bare sums; several, where the weights are the sum of several.
    """

    operator: Operator
    runner: Requantized
    src_dims: tuple[int, ...]
    products: tuple[OperatorModel, ...]

    def __repr__(self) -> str:
        return f"<model of {self.operator!r}: {' and '.join(map(repr, self.products))}>"

    def run(self, src: object) -> Array:
        """Return the result of a call with this source, bit for bit.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        NoModelError
            The share of a source zero point is the products' too, of one image; and nothing is
            proven for the implementation that it takes.
        """
        source = as_array("src", src)
        if source.shape != self.src_dims:
            raise ShapeError("src", str(source.shape), f"{self.src_dims}, which the model is for")
        first = self.products[0]
        if first.operator is self.runner.fused:  # makes the codes by itself
            return first.run(self.runner.codes(self.operator, source))
        return self.runner.stated(
            self.operator,
            source,
            [functools.partial(_sums, product, self.src_dims) for product in self.products],
        )


@dataclass(frozen=True, slots=True)
class GroupedModel:
    """The arithmetic of an operator with weights in groups: see `predict.grouped_sums`.

    Attributes
    ----------
    operator : InnerProduct or MatMul
        Operator whose weights and settings are used.
    """

    operator: Operator

    def run(self, src: object) -> Array:
        """Return the result of a call with this source, bit for bit.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Naming the argument.
        """
        runner = self.operator._runner  # noqa: SLF001
        assert isinstance(runner, OnGroups)
        return runner.model(self.operator, as_array("src", src))


def _sums(model: OperatorModel, src_dims: tuple[int, ...], src: Array) -> Array:
    """Return a product's sums, of the source that the model is for or of one image of ones."""
    return (model if src.shape == src_dims else _of(model.operator, src.shape)).run(src)


def _in_form(form: Form, asked: dict[str, Any]) -> dict[str, Any]:
    """Return arrays of what was asked as a form's primitive has them."""
    src, dims = form.inward(asked["src"]), form.asked.dst.dims
    # Channels that were added to the source meet weights of 0.
    more = [(0, to - have) for to, have in zip(form.problem.src.dims, src.shape, strict=True)]
    leaves = {
        name: form.inward(one) if np.shape(one) == dims else one
        for name, one in asked["operands"].items()
    }
    before = asked["before"]
    if before is not None:
        before = form.inward(before)
        if form.has_leaf:
            leaves[RESIDUAL_LEAF], before = before, None
    return {
        "src": np.pad(src, more),
        "wei": form.wei(asked["wei"]),
        "operands": leaves,
        "before": before,
    }


def model_of(
    operator: Operator, src_dims: tuple[int, ...]
) -> OperatorModel | RequantizedModel | GroupedModel:
    """Return the NumPy model of an operator on sources of a shape, if its kernel has a proven one.

    Parameters
    ----------
    operator : Conv, Deconv, InnerProduct or MatMul
        The primitive for the shape is made if it is new.
    src_dims : tuple of int
        Dims of the source.

    Raises
    ------
    NoModelError
        Nothing is proven for the implementation that runs, or not with what it is asked to do; or
        primitives run after it.
    ArgumentError
        Something else than an operator.
    UnsupportedError
        Errors of `prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from pyonednn_q.errors import NoModelError
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
    dims, runner = integers("src_dims", src_dims), operator._runner  # noqa: SLF001
    if isinstance(runner, OnGroups):
        return GroupedModel(operator)
    if isinstance(runner, Requantized):
        products = tuple(_of(product, dims) for product in operator.products(dims))
        return RequantizedModel(operator, runner, dims, products)
    return _of(operator, dims)


def _of(operator: Operator, src_dims: tuple[int, ...]) -> OperatorModel:
    planned = operator.prepare(src_dims)
    primitive = planned.primitive
    problem: Any = primitive.problem
    if not dtypes.is_integer(problem.src.dtype):
        wanted = "one on codes: sums of floating values depend on the order of additions"
        raise ArgumentError("operator", f"one on {problem.src.dtype} values", wanted)
    model = plan_model(planned.plan, problem, primitive.impl, runtime.isa(), runtime.version())
    return OperatorModel(operator, planned, model)
