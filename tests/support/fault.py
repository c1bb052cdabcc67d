"""Fault: a problem on which a row of the guard table shows, and arrays for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.post_ops import BinaryPostOp
from support.oracle_numbers import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.problem import Problem

    Arrays = dict[str, NDArray[Any]]

# The versions on which the table's rows were looked up, one by one (docs/reference/guards.md).
MEASURED = {(3, 7), (3, 13)}


# Where values of src other than 0 to 19, or weights other than -6 to 6, show it: ends, half of 6.
_ENDS = {
    "prelu-across-layout": (-20, 20, 3),
    "maxima-stored-early": (-20, 20, 3),
    "matmul-in-shares": (-128, 128, 31),
}


@dataclass(frozen=True)
class Fault:
    """A problem on which a row's fault shows, where, and values of attributes that matter."""

    row: str
    level: str
    problem: Problem
    attr: Attr = field(default_factory=Attr)
    values: Mapping[str, Any] = field(default_factory=dict)
    since: tuple[int, int, int] = (0, 0, 0)  # shown in a fresh process from this version on
    threads: int = 2

    @property
    def text(self) -> str:
        """The name of the test."""
        return f"{self.row}-{self.level}-{self.problem.text()} {self.attr.text()}".rstrip()


def filled(fault: Fault) -> tuple[Arrays, Arrays]:
    """Arrays of the problem and values of the attributes, small whole numbers throughout."""
    rng = np.random.default_rng(5)
    tensors = fault.problem.tensors
    # Slopes are for values below 0, and so is what saturates early; pairs saturate of large ones.
    least, end, half = _ENDS.get(fault.row, (0, 20, 3))
    arrays: Arrays = {
        name: rng.integers(least, end, tensors[name].dims).astype(numpy_dtype(tensors[name].dtype))
        for name in tensors
        if name not in ("wei", "bias", "dst")
    }
    if "wei" in tensors:
        wei = tensors["wei"]
        arrays["wei"] = (2 * rng.integers(-half, half + 1, wei.dims)).astype(numpy_dtype(wei.dtype))
    if "bias" in tensors:
        pytest.importorskip("ml_dtypes")
        dtype = numpy_dtype(tensors["bias"].dtype)
        arrays["bias"] = rng.integers(-9, 10, tensors["bias"].dims).astype(dtype)
    dst = tensors["dst"]
    arrays["dst"] = rng.integers(0, 20, dst.dims).astype(numpy_dtype(dst.dtype))
    values: Arrays = {}
    for name in fault.attr.runtime_names(fault.problem):
        if name.startswith("post_op"):
            op = fault.attr.post_ops[int(name.removeprefix("post_op_"))]
            assert isinstance(op, BinaryPostOp)
            values[name] = rng.integers(-9, 10, op.src1.dims).astype(numpy_dtype(op.src1.dtype))
        else:
            value = fault.values.get(name, 4)
            values[name] = np.atleast_1d(np.asarray(value, "i4" if "zero" in name else "f4"))
    return arrays, values
