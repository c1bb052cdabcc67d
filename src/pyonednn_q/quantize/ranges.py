"""Ranges: from the least and the greatest value to scale and zero point, in float32.

asymmetric   scale = (hi − lo) / (qmax − qmin)     zero_point = clamp(rne(qmin − lo / scale))
symmetric    scale = max(−lo, hi) / qmax           zero_point = 0

with 0 counted among the values. The first is ONNX's DynamicQuantizeLinear. A range that holds
nothing but 0 has the scale 1; a scale below float32's least normal number is that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import broadcast, flag, numbers, one_of, real
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from pyonednn_q.dtypes import DType

__all__ = ["Dynamic", "Extent", "number", "qparams_from_range", "scales_and_points"]

Extent: TypeAlias = Literal["per_tensor", "per_row", "per_group"]

_SMALLEST = np.finfo(np.float32).tiny
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A float source that every call quantizes by its own range.

    Parameters
    ----------
    dtype : data type
        Type of the codes. "u8": asymmetric, with a zero point from 0 to 255. "s8": symmetric, zero
        point 0, codes from -127 to 127.
    extent : {"per_tensor", "per_row", "per_group"}
        One range for the source; one for each row of a matmul or an inner product, that is for each
        token of a language model; or one for each group of a row, if weights are in groups.
    """

    dtype: str = "u8"
    extent: Extent = "per_tensor"

    if TYPE_CHECKING:  # it takes more types than the fields have

        def __init__(self, dtype: DType = "u8", extent: Extent = "per_tensor") -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", dtypes.checked(self.dtype, "dtype", dtypes.INT8))
        object.__setattr__(self, "extent", one_of("extent", self.extent, get_args(Extent)))

    @property
    def is_symmetric(self) -> bool:
        """Whether zero points are 0."""
        return self.dtype == "s8"

    def parameters(
        self, lo: NDArray[np.float32], hi: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return scales and zero points for ranges that contain 0.

        Raises
        ------
        ArgumentError
            A range that float32 cannot span.
        """
        return scales_and_points(lo, hi, self.dtype, symmetric=self.is_symmetric)


def scales_and_points(
    lo: ArrayLike, hi: ArrayLike, dtype: str, *, symmetric: bool
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return scales and zero points, by the formulas above.

    Parameters
    ----------
    lo, hi : array_like
        Lowest and highest real value of each range, of any shape (of one shape, or `lo` one value);
        taken as float32; finite, lo <= 0 <= hi.
    dtype : str
        Type of the codes: "u8", or "s8", which is the one to take if `symmetric`.

    Raises
    ------
    ArgumentError
        A range that float32 cannot span.

    Examples
    --------
    >>> scales_and_points([-1.0, 0.0], [1.55, 0.0], "u8", symmetric=False)
    (array([0.01, 1.  ], dtype=float32), array([100,   0], dtype=int32))
    """
    dtype = dtypes.checked(dtype, "dtype", dtypes.INT8)
    flag("symmetric", symmetric)
    with np.errstate(over="ignore"):
        low, high = (numbers("src", end).astype(np.float32) for end in (lo, hi))
    low = broadcast("lo", low, high.shape) if high.ndim else low
    if not low.size:
        raise ArgumentError("lo", "no values", "the ends of at least one range")
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    with np.errstate(over="ignore"):
        if symmetric:
            scale = np.maximum(-low, high) / np.float32(qmax)
        else:
            scale = (high - low) / np.float32(qmax - qmin)
    if not np.isfinite(scale).all():
        got = f"values from {low.min()} to {high.max()}"
        raise ArgumentError("src", got, "a range that float32 can span")
    if (low > 0.0).any() or (high < 0.0).any():
        raise ArgumentError("lo", f"values from {low.min()} to {high.max()}", "lo <= 0 <= hi")
    is_zero = (low == 0.0) & (high == 0.0)
    scale = np.where(is_zero, np.float32(1.0), np.maximum(scale, _SMALLEST))
    if symmetric:
        return scale, np.zeros(scale.shape, np.int32)
    points = np.clip(np.rint(np.float32(qmin) - low / scale), qmin, qmax)
    return scale, points.astype(np.int32)


def qparams_from_range(lo: float, hi: float, dtype: DType, *, symmetric: bool = False) -> QParams:
    """Return the QParams of a range, which is widened to contain 0.

    Parameters
    ----------
    lo, hi : float
        Lowest and highest real value of the range, lo <= hi.
    dtype : {"u8", "s8"}
        Type of the codes.
    symmetric : bool
        Whether the zero point is 0 and both sides are as long as the longer one; s8 only.

    Raises
    ------
    ArgumentError, DTypeError
        Ends that are no numbers, or lo > hi; another type.

    Examples
    --------
    >>> qparams_from_range(-1.0, 1.55, "u8").zero_point
    100
    """
    dtype = dtypes.checked(dtype, "dtype", dtypes.INT8)
    flag("symmetric", symmetric)
    if symmetric and dtype != "s8":
        raise DTypeError("dtype", dtype, "s8 for a symmetric range")
    least, greatest = number("lo", lo), number("hi", hi)
    if not least <= greatest:
        raise ArgumentError("lo", f"{least} above {greatest}", "lo <= hi")
    ends = min(least, 0.0), max(greatest, 0.0)
    scale, point = scales_and_points(*ends, dtype, symmetric=symmetric)
    return QParams(float(scale), int(point), dtype)


def number(name: str, value: Any) -> float:  # noqa: ANN401 - what it is, is the question
    """Return a finite number of float32's range.

    Raises
    ------
    ArgumentError
        Anything else, by name.
    """
    if isinstance(value, bool):
        raise ArgumentError(name, shown(value), "a number")
    return real(name, value)
