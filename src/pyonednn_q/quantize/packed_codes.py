"""Codes of few bits in words or bytes, taken apart: what readers of all layouts share."""

from __future__ import annotations

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.shown import shown

__all__ = [
    "as_matrix",
    "bytes_of",
    "codes_of_groups",
    "scales_of",
    "sized",
    "split_codes",
    "width_of",
    "words_of",
]

Codes = tuple[Array, QParams]

BITS = (2, 4, 8)


def codes_of_groups(codes: Array, scale: Array, point: Array, size: int, width: int) -> Codes:
    """Return codes (K, N) and their QParams; a scale of 0 is 1, of codes that all stand for 0."""
    dtype = "u8" if width > BITS[1] else "u4"
    rows = np.ascontiguousarray(codes, np.uint8)
    if (is_nothing := scale == 0.0).any():
        own = np.repeat(is_nothing, size, axis=0)
        rows = np.where(own, np.repeat(point, size, axis=0), rows).astype(np.uint8)
        scale = np.where(is_nothing, np.float32(1.0), scale)
    return rows, QParams(scale, point, dtype, axis=0, block=(size,))


def width_of(bits: int, allowed: tuple[int, ...] = BITS) -> int:
    """Return a width in bits, checked."""
    width = whole("bits", bits)
    if width not in allowed:
        raise ArgumentError("bits", str(width), " or ".join(map(str, allowed)))
    return width


def bytes_of(name: str, values: object) -> Array:
    """Return bytes, flat; integers of other types that are within 0 to 255 count."""
    array = numbers(name, values, "iu")
    if array.size and (array.min() < 0 or array.max() > 255):
        raise DTypeError(name, f"{array.dtype}", "uint8")
    return array.astype(np.uint8).reshape(-1)


def words_of(name: str, values: object) -> Array:
    """Return a matrix of words as unsigned ones."""
    array = as_matrix(name, numbers(name, values, "iu"))
    if array.min() < -(2**31) or array.max() >= 2**32:
        raise DTypeError(name, f"{array.dtype}", "int32")
    return array.astype(np.int64).astype(np.uint32)


def scales_of(name: str, values: object) -> Array:
    """Return scales of any floating type as float32."""
    array = numbers(name, values, "iufV")
    if array.dtype.kind == "V" and dtypes.from_numpy(array.dtype, name) != "bf16":
        raise DTypeError(name, str(array.dtype), "float32, float16 or bfloat16")
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    if (np.isinf(rounded) & ~np.isinf(array.astype(np.float64))).any():
        raise ArgumentError(name, shown(array), "numbers that float32 holds")
    return rounded


def as_matrix(name: str, array: Array) -> Array:
    """Return an array that is a matrix, and not empty."""
    """Return an array that is a matrix, and not empty."""
    if array.ndim != 2 or not array.size:
        raise ShapeError(name, str(array.shape), "a matrix")
    return array


def sized(name: str, array: Array, count: int) -> Array:
    """Return a flat array of so many values."""
    if array.size != count:
        raise ShapeError(name, f"{array.size} values", f"{count}, as the attributes say")
    return array.reshape(-1)


def split_codes(words: Array, width: int, of_word: int) -> Array:
    """Return the codes of rows of words, the lowest bits first; one may begin in a word's last."""
    if of_word % width:
        bits = np.unpackbits(words.astype(f"<u{of_word // 8}").view(np.uint8), 1, bitorder="little")
        whole_ones = bits[:, : bits.shape[1] // width * width].reshape(len(words), -1, width)
        return np.packbits(whole_ones, 2, bitorder="little")[..., 0]
    shifts = np.arange(0, of_word, width, dtype=words.dtype)
    codes = (words[:, :, None] >> shifts) & words.dtype.type((1 << width) - 1)
    rows: Array = codes.astype(np.uint8).reshape(len(words), -1)
    return rows
