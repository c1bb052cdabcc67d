"""Whether a table of two codes is the product or the sum of their real values, as arithmetic.

A table of 65 536 bytes does not fit into a core's first cache, and a product or a sum of codes is a
few operations of vectors: ten times faster for the gates of squeeze-and-excite layers, 2.7 times
for sums. It takes the table's place only where it gives every one of its entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.native.program import CodeProduct, CodeSum
    from pyonednn_q.qparams import QParams

__all__ = ["product_of", "sum_of"]

_MOST = 16  # pairs of zero points that are tried whole
_STEPS = 8  # floats on either side of the middle


def product_of(table: Array, first: str, second: str) -> CodeProduct | None:
    """Return the scale and zero points of a product that gives all entries of a table.

        table[x, g] = clip(rne((x − zx) · ((g − zg) · scale)) + zy)

    Parameters
    ----------
    table : (256, 256) ndarray of uint8 or int8
        Table by the bytes of x and of g.
    first, second : {"u8", "s8"}
        Data types of x and g.

    Returns
    -------
    tuple or None
        scale, (zx, zg, zy) and which of them are s8. None: no product gives all.
    """
    signs = (first == "s8", second == "s8", table.dtype == np.int8)
    flips = [128 * sign for sign in signs]  # s8 codes from -128 on
    places = np.arange(256)
    codes = (table.view(np.uint8)[places ^ flips[0]][:, places ^ flips[1]] ^ flips[2]).astype(int)
    for zero_x, zero_g in _zero_points(codes):
        zero_y = int(codes[zero_x, zero_g])
        both = (places - zero_x, places - zero_g)
        least, most = _scales(np.multiply.outer(*both), codes, zero_y)
        scale = np.float32((least + most) / 2) if 0 < least <= most else np.float32(0)
        for near in _beside(scale) if scale > 0 and np.isfinite(scale) else ():
            if np.array_equal(_codes(*both, near, zero_y), codes):
                points = [
                    int(at) - flip for at, flip in zip((zero_x, zero_g, zero_y), flips, strict=True)
                ]
                return float(near), (points[0], points[1], points[2]), signs
    return None


def sum_of(table: Array, first: QParams, second: QParams, dst: QParams) -> CodeSum | None:
    """Return scales and zero points of a sum that gives all entries of a table.

        table[x, g] = clip(rne(((x − zx) · sx + (g − zg) · sg) / sy) + zy)      in float32

    Parameters
    ----------
    table : (256, 256) ndarray of uint8 or int8
        Table by the bytes of x and of g.
    first, second, dst : QParams
        QParams of x, g and the result: per tensor, 8 bits.

    Returns
    -------
    CodeSum or None
        Sum of codes; None where the table is of another operation.
    """
    params = (first, second, dst)
    signs = tuple(each.dtype == "s8" for each in params)
    scales = [np.float32(each.scale) for each in params]
    points = [int(each.zero_point) for each in params]
    every = np.arange(256).astype(np.uint8)
    terms = [
        ((every.view(np.int8) if sign else every).astype(np.float32) - np.float32(point)) * scale
        for scale, point, sign in zip(scales[:2], points, signs, strict=False)
    ]
    least = -128 if signs[2] else 0
    with np.errstate(all="ignore"):
        levels = np.rint(np.add.outer(*terms) / scales[2]) + np.float32(points[2])
        codes = np.clip(levels, least, least + 255)
    if table.dtype != (np.int8 if signs[2] else np.uint8) or not np.array_equal(codes, table):
        return None
    scale, point = (float(scales[0]), float(scales[1]), float(scales[2])), tuple(points)
    return scale, (point[0], point[1], point[2]), (signs[0], signs[1], signs[2])


def _zero_points(codes: Array) -> Iterator[tuple[int, int]]:
    """Yield places of 0: of constant rows and columns, those that suit one row and one column."""
    rows = np.flatnonzero((codes == codes[:, :1]).all(axis=1))
    columns = np.flatnonzero((codes == codes[:1]).all(axis=0))
    if not rows.size or not columns.size:
        return
    # The row and the column that change most.
    row = codes[max(0, 255, key=lambda at: np.ptp(codes[at]))]
    column = codes[:, max(0, 255, key=lambda at: np.ptp(codes[:, at]))]
    suit_row = [int(at) for at in columns if _is_line(row, int(at))]
    suit_column = [int(at) for at in rows if _is_line(column, int(at))]
    pairs = ((x, g) for x in suit_column for g in suit_row)
    for pair, _ in zip(pairs, range(_MOST), strict=False):
        yield pair


def _is_line(line: Array, zero: int) -> bool:
    places = np.arange(256) - zero
    rises = line[-1] >= line[0]
    least, most = _scales(places if rises else -places, line, int(line[zero]))
    return bool(0 < least <= most)


def _scales(factors: Array, codes: Array, zero: int) -> tuple[float, float]:
    """Return the least and the greatest scale that may give all codes, in real arithmetic."""
    sizes, signs = np.abs(factors), np.sign(factors)
    steps = (codes - zero) * signs
    # Codes at the end of the range stand for anything beyond it.
    ends = np.where(signs > 0, 255 - zero, zero)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.where(sizes > 0, (steps - 0.5) / sizes, -np.inf).max()
        most = np.where((sizes > 0) & (steps < ends), (steps + 0.5) / sizes, np.inf).min()
    return float(least), float(most)


def _beside(middle: np.float32) -> Iterator[np.float32]:
    yield middle
    for end in (np.float32(0), np.float32(np.inf)):
        near = middle
        for _ in range(_STEPS):
            near = np.nextafter(near, end)
            yield near


def _codes(x: Array, g: Array, scale: np.float32, zero: int) -> Array:
    """Return the codes that the extension computes."""
    values = np.multiply.outer(x.astype(np.float32), g.astype(np.float32) * scale)
    values = np.clip(values, np.float32(-zero), np.float32(255 - zero))
    return np.asarray(np.rint(values).astype(int) + zero)
