"""GroupedTrial: a product with weights in groups made ready, on float32 rows that become codes.

It has no primitive of oneDNN, and runs as `MatMul.from_float(..., groups=...)` does: each row is s8
codes by its own range, made in the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import DTypeError
from pyonednn_q.native.timing import looped
from pyonednn_q.ops.dense import InnerProduct, MatMul
from pyonednn_q.quantize.ranges import Dynamic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyonednn_q.bench.case import Case, Setting
    from pyonednn_q.bench.data import Sample
    from pyonednn_q.ops.operator import Operator

__all__ = ["GroupedTrial"]


@dataclass(frozen=True, slots=True)
class GroupedTrial:
    """Operator for a case of weights in groups, and the rows that it computes.

    Attributes
    ----------
    case : Case
        Case to measure.
    layer : MatMul or InnerProduct
        Layer that computes the case.
    src : ndarray of float32
        Rows.
    """

    case: Case
    layer: Operator
    src: Array

    @classmethod
    def of(cls, case: Case, sample: Sample) -> GroupedTrial:
        """Make a case ready on a sample.

        Raises
        ------
        DTypeError
            No layer of weights in groups, which says why.
        """
        shape, precision = case.shape, case.precision
        rows = shape.src[-1] if shape.kind == "matmul" else int(np.prod(shape.src[1:]))
        why = ""
        if shape.kind not in {"matmul", "ip"} or shape.has_two_sources:
            why = "constant weights of a matmul or an inner product"
        elif case.tail.words:
            why = "no tail: nothing follows in such a layer"
        elif rows % precision.group:
            why = f"a group that divides {rows}"
        if why:
            raise DTypeError("dtype", precision.name, why)
        kind = MatMul if shape.kind == "matmul" else InnerProduct
        wei = sample.wei if shape.kind == "matmul" else sample.wei.reshape(shape.wei[0], -1)
        layer = kind.from_float(
            wei.reshape(wei.shape[-2:]),
            sample.bias,
            src_q=Dynamic("s8", "per_row"),
            groups=precision.group,
            bits=dtypes.bits(precision.wei),
            symmetric=precision.wei.startswith("s"),
        )
        src = sample.src if shape.kind == "matmul" else sample.src.reshape(shape.src[0], -1)
        return cls(case, layer, src)

    def seconds(self, calls: int) -> float:
        """Return seconds per call, of a loop over that many."""
        return looped(self.call)(calls)

    def call(self) -> Array:
        """Run once, as a user does."""
        return self.layer(self.src)

    def real_result(self) -> NDArray[np.float32]:
        """Run once, and return the result in the dims of the case."""
        return np.asarray(self.call().reshape(self.case.shape.dst), np.float32)

    def told(self, _setting: Setting) -> dict[str, Any]:
        """Return columns for its row, by name."""
        group = self.case.precision.group
        return {
            "impl": "ours:groups",
            "attributes": f"src:s8 per row, wei:{self.case.precision.wei} groups of {group}",
            "notes": self.layer.notes,
            "benchdnn": "",
        }
