"""Float values to 8-bit codes in C++, with scales that may be known only when the values are.

    code = clamp(rne(x / scale) + zero_point)

in float32, one operation after the other, as ONNX's QuantizeLinear has it. One pass over memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.native import runtime
from pyonednn_q.native.arrays import aligned
from pyonednn_q.native.order import inverse, memory_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["as_rows", "quantize", "ranges"]

Array = np.ndarray[Any, Any]


def as_rows(values: Array, rows: int = 1) -> Array:
    """Return float32 values so that they lie in memory without gaps; row by row, if there are many.

    Raises
    ------
    DTypeError
        Values of another type.
    """
    if values.dtype != np.float32:
        raise DTypeError("src", str(values.dtype), "float32 values")
    if rows == 1 and memory_order(values) is not None and values.flags.aligned:
        return values
    return np.require(values, requirements=["C", "A"])


def ranges(values: Array, rows: int = 1) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the least and the greatest value of each row; 0 is among them.

    Parameters
    ----------
    values : ndarray
        float32 values from `as_rows`, of any shape.
    rows : int
        Number of rows of equal length in row-major order, each with a range of its own; at least 1.

    Raises
    ------
    ArgumentError
        A value is not finite.
    """
    lo, hi = np.empty(rows, np.float32), np.empty(rows, np.float32)
    order = memory_order(values)
    runtime.core.ranges(values if order is None else values.transpose(order), lo, hi)
    if np.isnan(lo).any():
        raise ArgumentError("src", "values that are not finite", "finite numbers")
    return lo, hi


def quantize(
    values: Array, scales: NDArray[np.float32], zero_points: NDArray[np.int32], dtype: str
) -> Array:
    """Return codes, which lie in memory as the values do.

    Parameters
    ----------
    values : ndarray
        float32 values from `as_rows`, of any shape; infinities saturate.
    scales, zero_points : (rows,) ndarray
        float32 scales, normal numbers above 0; and int32 zero points in the range of `dtype`.
    dtype : str
        Data type of the codes: "u8" or "s8".

    Raises
    ------
    ArgumentError
        A value is NaN.
    """
    order = memory_order(values) or tuple(range(values.ndim))
    lying = values.transpose(order)
    codes = aligned(lying.shape, dtypes.numpy_dtype(dtype))
    if not runtime.core.quantize(lying, scales, zero_points, codes):
        raise ArgumentError("src", "NaN", "numbers")
    result: Array = codes.transpose(inverse(order))
    return result
