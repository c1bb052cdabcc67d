"""Layer: float weights, FakeQuantizes and a chain, as integers and the plan of one primitive.

    FQ_dst(chain(conv(FQ_src(src), FQ_wei(wei)) + bias))

Source and weights become codes; what those are worth, and the bias, go into the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyonednn_q import dtypes
from pyonednn_q.argument import check_fields, numbers
from pyonednn_q.compose.plan import Plan
from pyonednn_q.compose.zero_point import SrcZeroPoint, unit_map
from pyonednn_q.errors import ArgumentError
from pyonednn_q.expr.evaluate import evaluate
from pyonednn_q.expr.fq_forms import CutFakeQuantize
from pyonednn_q.expr.steps import Chain
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.dense_facts import ACC_MAP, DenseProblem
from pyonednn_q.report.told import Told

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Layer(Told):
    """A quantized layer, ready to be prepared. Made by `compose_layer`.

    A value: hashable, comparable, picklable.

    Attributes
    ----------
    asked, problem : ConvProblem, DeconvProblem, InnerProductProblem or MatMulProblem
        Problem as asked for, and problem that runs: an inner product with a zero point runs as a
        matmul.
    plan : Plan
        Plan of the primitive, for `problem`.
    wei : ndarray of int8
        Codes of the weights, in the dims of `problem`; read-only.
    src, dst : CutFakeQuantize
        Ranges by which float values become codes of src, and by which codes of dst stand for
        values. dst is ``None`` when the values of the chain are stored as they are.
    zero_point : SrcZeroPoint
        The code of real 0 in src, and what carries it.
    off_by : Vec
        Largest distance of the value before the chain from the formula, in real units: a zero point
        next to a whole number was taken for that number.
    notes : tuple of str
        Decisions, with reasons.
    """

    asked: DenseProblem
    problem: DenseProblem
    plan: Plan
    wei: NDArray[np.int8]
    src: CutFakeQuantize
    dst: CutFakeQuantize | None
    zero_point: SrcZeroPoint
    off_by: Vec
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        wei = numbers("wei", self.wei, "iu").copy()
        wei.flags.writeable = False
        object.__setattr__(self, "wei", wei)

    def operands(self) -> dict[str, NDArray[Any]]:
        """Return the leaves of the plan that belong to the layer: the map of the zero point."""
        if not self.plan.facts.acc_map:
            return {}
        plain = self.wei.astype(np.float64) - (self.plan.facts.wei_zero_point or 0)
        added = -self.zero_point.in_map * unit_map(self.plan, self.problem, plain)
        dims = self.problem.dst.dims
        return {ACC_MAP: np.broadcast_to(added.astype(np.float32), dims)}

    def arranged(self, src: NDArray[Any]) -> NDArray[Any]:
        """Return a source of the dims that were asked for in those that run."""
        if not self.is_rearranged or src.shape != self.asked.src.dims:
            return src  # refused by its own name, if it is of other dims
        if _channels_come_last(self.asked):
            src = np.moveaxis(src, 1, -1)
        return src.reshape(self.problem.src.dims)

    @property
    def is_rearranged(self) -> bool:
        """Whether the source that runs has other dims than the one that was asked for."""
        return self.asked.kind != self.problem.kind

    def dequantize(self, dst: ArrayLike) -> NDArray[np.float64]:
        """Return the real values that stored ones stand for, in float64.

        Raises
        ------
        ArgumentError
            The layer stores integers and no FakeQuantize says what they stand for.
        """
        if self.dst is None:
            values = numbers("dst", dst, "iufV")  # V: bf16
            if values.dtype.kind == "V":
                dtypes.from_numpy(values.dtype, "dst")
            if values.dtype.kind in "iu":
                wanted = "float values: the layer has no dst_fq that says what integers stand for"
                raise ArgumentError("dst", str(values.dtype), wanted)
            return values.astype(np.float64)
        return evaluate(Chain(*self.dst.dequantize), dst, axis=self.plan.facts.axis)

    def __str__(self) -> str:
        return "\n".join([self.asked.text(), *(f"  note: {n}" for n in self.notes), str(self.plan)])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layer) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[type[Layer], tuple[object, ...]]:
        # Through the constructor, or the copy's weights could be written.
        return Layer, tuple(getattr(self, f.name) for f in fields(self))

    def _key(self) -> tuple[object, ...]:
        plain = (getattr(self, f.name) for f in fields(self) if f.name != "wei")
        return (*plain, self.wei.tobytes())


def as_matmul(
    problem: InnerProductProblem, wei: NDArray[np.int8]
) -> tuple[MatMulProblem, NDArray[np.int8]]:
    """Return an inner product as a matmul: source and weights in one order of columns.

    Columns follow the memory of src, so that a source without gaps is not copied.
    """
    n, *rest = problem.src.dims
    if _channels_come_last(problem):
        wei = np.moveaxis(wei, 1, -1)
    columns = np.ascontiguousarray(wei.reshape(problem.oc, -1).T)
    types = {name: spec.dtype for name, spec in problem.tensors.items() if name != "bias"}
    return MatMulProblem.of((n, int(np.prod(rest))), columns.shape, **types), columns


def _channels_come_last(problem: DenseProblem) -> bool:
    return problem.src.ndim > 2 and problem.src.is_channels_last
