"""Weights: float rows, one per output channel, to signed codes by a FakeQuantize.

code = q + first        q = 0..levels-1, first = -(levels // 2)
FQ(wei) = scale[oc] · (code − zero_point)

Operators want whole zero points. Where one lies halfway between two codes, codes twice as fine have
it: FQ(wei) = scale/2 · (2 · code − 2 · zero_point). NNCF's wide half range has its zero 64/127
above a code, and codes within ±63 around it, so that finer ones fit into s8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyonednn_q.argument import instance, numbers, whole
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.expr.fake_quantize import FakeQuantize
from pyonednn_q.expr.fq_qparams import WHOLE_WITHIN
from pyonednn_q.expr.vec import Vec

__all__ = ["WeightCodes", "max_abs_range", "weight_codes", "whole_weight_codes"]

_MAX_LEVELS = 256
NOISE = 2.0**-36  # levels that the float64 rounding of a range's ends may make
_HALFWAY = 1.0 / 64  # how near to halfway a zero point lies: 64/127 is 1/127 of a finer code off


@dataclass(frozen=True, slots=True, eq=False)
class WeightCodes:
    """Codes that a FakeQuantize makes from weights.

    Attributes
    ----------
    codes : (channels, rest) ndarray of int8
        Weights as integers, one row for each output channel.
    scale : Vec
        Real value of one step of the codes, above 0: one value, or one per row.
    zero_point : Vec
        Code that means real 0: one value, or one per row. For symmetric ranges 0, except for the
        rounding of their ends.
    lost : float
        Largest distance, in levels, by which a zero point was rounded to a whole number.
    """

    codes: NDArray[np.int8]
    scale: Vec
    zero_point: Vec
    lost: float = 0.0

    def without_zero_point(self) -> WeightCodes | None:
        """Return codes minus zero points, as codes with zero point 0; None if s8 is too small."""
        rows = len(self.codes)
        plain = self.codes.astype(np.int16) - self.zero_point.spread(rows)[:, None].astype(np.int16)
        if plain.size and not -128 <= plain.min() <= plain.max() <= 127:
            return None
        return WeightCodes(plain.astype(np.int8), self.scale, Vec(0.0), self.lost)


def max_abs_range(rows: ArrayLike, levels: int = 255, argument: str = "levels") -> FakeQuantize:
    """Return the symmetric range of each row, up to its largest magnitude.

    Parameters
    ----------
    rows : (channels, rest) array_like
        Real weights, one row for each output channel.
    levels : int
        Number of codes, odd, so that both ends are as far from 0. 255: codes from -127 to 127,
        which can change their sign. 129: from -64 to 64, which a CPU without VNNI multiplies
        exactly.
    argument : str
        Name of `levels` in the error message.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

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
        Ranges: one for all rows or one per row; at most 256 levels, output_low < output_high.

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


def whole_weight_codes(
    rows: ArrayLike, fq: FakeQuantize | None, levels: int = 255, tolerance: float = WHOLE_WITHIN
) -> WeightCodes:
    """Return the codes of weights with whole zero points, as layers and operators take them.

    Parameters
    ----------
    rows : (channels, rest) array_like
        Real weights, one row for each output channel.
    fq : FakeQuantize or None
        Range of the rows or of each row: see `weight_codes`. None: each row's largest magnitude.
    levels : int
        Number of levels of that default; the caller's argument ``wei_levels``.
    tolerance : float
        Largest distance of a zero point from a whole number, in levels, at which it is taken for
        one.

    Raises
    ------
    ArgumentError, ShapeError
        Ranges of another number of rows, or whose 0 lies neither on a level nor halfway between
        two with room for codes twice as fine; naming ``wei_fq``.

    Examples
    --------
    >>> halfway = FakeQuantize(-128.5, 126.5, -128.5, 126.5)
    >>> made = whole_weight_codes([[-3.0, 5.0]], halfway)
    >>> made.codes.tolist(), made.zero_point.least, made.scale.least
    ([[-5, 11]], 0.0, 0.5)
    """
    values = _rows(rows)
    if fq is not None:
        instance("wei_fq", fq, FakeQuantize)
        if fq.channels not in {None, len(values)}:
            raise ShapeError("wei_fq", f"{fq.channels} ranges", f"{len(values)}, or one for all")
    coded = weight_codes(values, fq or max_abs_range(values, levels, "wei_levels"))
    points = coded.zero_point.rint()
    lost = abs(coded.zero_point - points).greatest
    if lost > tolerance:
        return _finer(coded)
    if not -128.0 <= points.least <= points.greatest <= 127.0:
        raise ArgumentError("wei_fq", f"zero points {points}", "ranges that hold 0")
    return WeightCodes(coded.codes, coded.scale, points, lost if lost > NOISE else 0.0)


def _finer(coded: WeightCodes) -> WeightCodes:
    """Return codes twice as fine, of zero point 0."""
    points = (coded.zero_point * 2.0).rint()
    lost = abs(coded.zero_point * 2.0 - points).greatest
    finer = 2 * coded.codes.astype(np.int64)
    finer -= points.spread(len(finer))[:, None].astype(np.int64)
    if lost > _HALFWAY or not -128 <= finer.min(initial=0) <= finer.max(initial=0) <= 127:
        got = f"a range whose 0 is at code {coded.zero_point.first(lambda z: z != z.round())}"
        wanted = "0 on a level, or halfway between two with room for codes twice as fine"
        raise ArgumentError("wei_fq", got, wanted)
    return WeightCodes(finer.astype(np.int8), coded.scale * 0.5, Vec(0.0), lost)


def _rows(rows: ArrayLike) -> NDArray[Any]:
    values = numbers("wei", rows).astype(np.float64)
    if values.ndim != 2:
        raise ShapeError("wei", f"shape {values.shape}", "(channels, rest)")
    if not np.isfinite(values).all():
        raise ArgumentError("wei", "values that are not finite", "finite numbers")
    return values
