"""Weights: float rows, one per output channel, to signed codes by a FakeQuantize.

code = q + first        q = 0..levels-1, first = -(levels // 2)
FQ(wei) = scale[oc] · (code − zero_point)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q.argument import instance, numbers, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.vec import Vec

__all__ = ["WeightCodes", "max_abs_range", "weight_codes"]

_MAX_LEVELS = 256


@dataclass(frozen=True, slots=True, eq=False)
class WeightCodes:
    """What a FakeQuantize makes of weights.

    Attributes
    ----------
    codes : (channels, rest) ndarray of int8
        The weights as integers, one row for each output channel.
    scale : Vec
        Real value of one step of the codes, above 0: one value, or one per row.
    zero_point : Vec
        The code that stands for real 0: one value, or one per row. For symmetric ranges 0, but for
        the rounding of their ends.
    """

    codes: NDArray[np.int8]
    scale: Vec
    zero_point: Vec


def max_abs_range(rows: ArrayLike, levels: int = 255, argument: str = "levels") -> FakeQuantize:
    """Return the symmetric range of each row that its largest magnitude spans.

    Parameters
    ----------
    rows : (channels, rest) array_like
        Real weights, one row for each output channel.
    levels : int
        Number of codes, odd, so that both ends are as far from 0. 255: codes from -127 to 127,
        which can change their sign. 129: from -64 to 64, which a CPU without VNNI multiplies
        exactly.
    argument : str
        What the caller calls `levels`, for the message.

    Notes
    -----
    A row of zeros has no magnitude; it gets the range of 1, and codes of 0.

    Examples
    --------
    >>> print(max_abs_range([[1.27, -0.5], [0.0, 0.0]]))
    fake_quantize(x, [[-1.27, -1], [1.27, 1]] -> [[-1.27, -1], [1.27, 1]], 255 levels)
    """
    levels = whole(argument, levels)
    if levels % 2 != 1 or not 3 <= levels < _MAX_LEVELS:
        raise ArgumentError(argument, str(levels), f"an odd number from 3 to {_MAX_LEVELS - 1}")
    largest = np.abs(_rows(rows)).max(axis=1, initial=0.0)
    high = Vec(np.where(largest > 0.0, largest, 1.0))
    return FakeQuantize(-high, high, -high, high, levels)


def weight_codes(rows: ArrayLike, fq: FakeQuantize) -> WeightCodes:
    """Return the codes of weights, by the definition of the FakeQuantize in float64.

    Parameters
    ----------
    rows : (channels, rest) array_like
        Real weights, one row for each output channel.
    fq : FakeQuantize
        Its ranges: one for all rows or one per row; at most 256 levels, output_low < output_high.

    Raises
    ------
    ArgumentError
        Other levels or ranges, or weights that are no numbers.

    Examples
    --------
    >>> rows = [[1.27, -0.5], [0.5, 0.2]]
    >>> weight_codes(rows, max_abs_range(rows)).codes.tolist()
    [[127, -50], [127, 51]]
    """
    values = _rows(rows)
    instance("fq", fq, FakeQuantize)
    if fq.levels > _MAX_LEVELS:
        raise ArgumentError("wei_fq", f"{fq.levels} levels", f"at most {_MAX_LEVELS}: 8 bits")
    scale = fq.scale_out
    if scale.least <= 0.0:
        got = f"a scale of {scale.first(lambda s: s <= 0)}"
        raise ArgumentError("wei_fq", got, "output_low < output_high in every channel")
    first = -(fq.levels // 2)
    last = float(fq.levels - 1)
    to_levels = FakeQuantize(fq.input_low, fq.input_high, 0.0, last, fq.levels)
    codes = (np.rint(to_levels(values, axis=0)) + first).astype(np.int8)
    return WeightCodes(codes, scale, fq.zero_out + float(first))


def _rows(rows: ArrayLike) -> NDArray[Any]:
    values = numbers("wei", rows).astype(np.float64)
    if values.ndim != 2:
        raise ShapeError("wei", f"shape {values.shape}", "(channels, rest)")
    if not np.isfinite(values).all():
        raise ArgumentError("wei", "values that are not finite", "finite numbers")
    return values
