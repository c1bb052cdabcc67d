"""Draw: seeded data on which a misreading shows, and what float data means as codes.

    code = clamp(rne(x / scale) + zero_point)         float32, one operation after the other

Written apart from what calls run: `native.quantize` and `quantize.ranges`.

Sources rise in styles, from codes next to the zero point to codes of the whole range, so that not
every result saturates and not every one is small; the last two have only the ends of the range, on
the sides that make one channel largest, and least. Styles follow each other in blocks along one
dimension; where that is too short for all, they are drawn in turns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.random  # NumPy loads it late: a child forked amid a first call would wait for it

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array


class QuantizedSrc(NamedTuple):
    """Codes of a source, with scale and zero point: one value, or one per row."""

    codes: Array
    scale: Array
    zero_point: Array


def quantized(values: Array, scale: Array, zero_point: Array, dtype: str) -> Array:
    """Return codes of f32 values; scale and zero point broadcast."""
    with np.errstate(over="ignore"):
        whole = np.rint(values / np.asarray(scale, np.float32)) + np.asarray(zero_point, np.float32)
    codes = np.clip(whole, dtypes.qmin(dtype), dtypes.qmax(dtype))
    return np.asarray(codes).astype(dtypes.numpy_dtype(dtype))


def by_own_range(values: Array, dtype: str, rows: int = 1) -> QuantizedSrc:
    """Return codes of f32 values by the range of all, or by that of each of so many rows.

    Parameters
    ----------
    values : ndarray of float32
        Real values of a source, of any shape.
    dtype : {"u8", "s8"}
        u8: asymmetric, as ONNX's DynamicQuantizeLinear has it; s8: symmetric.
    rows : int
        Number of rows of equal length in the source, in row-major order; each gets its own range.

    Examples
    --------
    >>> by_own_range(np.array([-1.0, 1.55], np.float32), "u8").zero_point
    array([[100.]], dtype=float32)
    """
    flat = values.reshape(rows, -1)
    lo = np.minimum(flat.min(axis=1, keepdims=True), np.float32(0))
    hi = np.maximum(flat.max(axis=1, keepdims=True), np.float32(0))
    if dtype == "s8":
        scale = np.maximum(-lo, hi) / np.float32(127)
        point = np.zeros_like(scale)
    else:
        scale = (hi - lo) / np.float32(255)
        point = np.zeros_like(scale)
    nothing = (lo == 0) & (hi == 0)
    scale = np.where(nothing, np.float32(1), np.maximum(scale, np.finfo(np.float32).tiny))
    if dtype == "u8":
        point = np.clip(np.rint(-lo / scale), np.float32(0), np.float32(255))
    codes = quantized(flat, scale, point, dtype).reshape(values.shape)
    return QuantizedSrc(codes, scale, point)


Dims = tuple[int, ...]

_LOUD = 6  # styles from quiet to loud
_STYLES = _LOUD + 2
_FLOATS = 4.0
WIDE = 2**20  # of a residual of 32 bits


class Draw:
    """Seeded data."""

    def __init__(self, seed: int = 7) -> None:
        self._rng = np.random.default_rng(seed)

    @staticmethod
    def turns(blocks: int) -> int:
        """Return the number of sources, of so many blocks each, that have all styles."""
        return -(-_STYLES // min(blocks, _STYLES))

    def source(
        self,
        dims: Dims,
        dtype: str,
        zero_point: int = 0,
        *,
        blocks: tuple[int, int] | None = None,
        turn: int = 0,
        toward: Array | None = None,
    ) -> Array:
        """Return values of a source.

        Parameters
        ----------
        dims : tuple of int
            Dims of the source.
        dtype : str
            Data type of the source.
        zero_point : int
            The code that stands for real 0.
        blocks : (int, int), optional
            The dimension along which the sizes of values change, and in how many blocks at most; by
            default the longest dimension, at each place.
        turn : int
            Number of the draw, below `turns`: each has other sizes in each block.
        toward : ndarray, optional
            Weights of a channel, which broadcast to the source: the largest values take their
            signs.
        """
        axis, count = (int(np.argmax(dims)), max(dims)) if blocks is None else blocks
        block = np.arange(dims[axis]) * min(count, _STYLES) // max(dims[axis], 1)
        aligned = [-1 if i == axis else 1 for i in range(len(dims))]
        style = ((turn * min(count, _STYLES) + block) % _STYLES).reshape(aligned)
        is_float = dtypes.is_float(dtype)
        lo, hi = -_FLOATS, _FLOATS
        if not is_float:
            lo, hi = dtypes.qmin(dtype), min(dtypes.qmax(dtype), WIDE)
            lo = max(lo, -WIDE)
        sizes = np.geomspace((hi - lo) / 128, hi - lo, _LOUD)[np.minimum(style, _LOUD - 1)]
        least, greatest = (np.clip(zero_point + ends, lo, hi) for ends in (-sizes, sizes))
        uniform = least + self._rng.random(dims) * (greatest - least)
        signs = np.where(np.asarray(1.0 if toward is None else toward) < 0, -1, 1)
        most = np.where(signs * (_LOUD - style + 0.5) > 0, hi, lo)
        values = np.where(style < _LOUD, uniform if is_float else np.rint(uniform), most)
        result: Array = values.astype(dtypes.numpy_dtype(dtype))
        return result

    def floats(self, codes: Array, scale: float, zero_point: int, dtype: str) -> Array:
        """Return f32 values next to those that codes stand for, beyond them at the ends."""
        beside = self._rng.uniform(-0.45, 0.45, codes.shape)
        at_end = (codes == dtypes.qmin(dtype)) * -1.0 + (codes == dtypes.qmax(dtype)) * 1.0
        whole = codes.astype(np.float64) - zero_point
        return ((whole + np.where(at_end == 0, beside, at_end * 9.0)) * scale).astype(np.float32)

    def operand(self, dims: Dims, dtype: str) -> Array:
        """Return values of both signs from which a result can be divided."""
        if dtypes.is_float(dtype):
            size = self._rng.uniform(0.5, 2.0, dims) * self._rng.choice([-1.0, 1.0], dims)
            return np.asarray(size, dtypes.numpy_dtype(dtype))
        low = max(dtypes.qmin(dtype), -9)
        return self._rng.integers(1 if low >= 0 else low, 10, dims).astype(
            dtypes.numpy_dtype(dtype)
        )
