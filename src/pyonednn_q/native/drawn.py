"""Drawn: arrays for a first run, of seeded values that cost a copy of memory and no more.

A tensor holds a pool of values over and over. Their number is a prime, so that its rows differ.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.check.draw import Draw
from pyonednn_q.dtypes import Array
from pyonednn_q.native.arrays import aligned

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyonednn_q.check.meaning import Band
    from pyonednn_q.check.sample import Slots
    from pyonednn_q.primitive.tensor import TensorSpec


class NoModelHereError(Exception):
    """Something that is not judged: docs/self_check.md."""


_POOL = 8191
# Bytes behind an array that hold values, too: as many as it has, within these bounds. A kernel that
# reads a row, or a plane, behind src would mostly find zeros there, and be right by chance.
_LEAST_BEHIND, _MOST_BEHIND = 64, 2**16
# Bytes behind those, which nobody reads: what a wrong kernel writes there harms nobody, and pages
# that nobody touches cost nothing.
_BEYOND = 2**20


@functools.lru_cache(maxsize=64)
def pool(dtype: str, lo: int, hi: int) -> bytes:
    """Return seeded values of a type: whole numbers from lo to hi.

    The first is hi: a tensor of a single value would otherwise now and then be nearly nothing.
    """
    rng = np.random.default_rng([3, len(dtype), lo & 0xFFFF, hi & 0xFFFF])
    values = rng.integers(lo, hi + 1, _POOL)
    values[0] = hi
    return values.astype(dtypes.numpy_dtype(dtype)).tobytes()


@functools.lru_cache(maxsize=16)
def pool_of_factors(dtype: str) -> bytes:
    """Return seeded values by which a result can be divided."""
    return Draw(5).operand((_POOL,), dtype).tobytes()


@functools.lru_cache(maxsize=64)
def pool_of_reals(dtype: str, power: int) -> bytes:
    """Return seeded values of a floating type, up to a power of two on both sides."""
    rng = np.random.default_rng([9, len(dtype), power & 0xFFFF])
    values = rng.uniform(-(2.0**power), 2.0**power, _POOL)
    return values.astype(dtypes.numpy_dtype(dtype)).tobytes()


def small(dtype: str) -> tuple[int, int]:
    """Return between which values a residual, or weights of each call, are drawn."""
    if dtypes.is_float(dtype):
        return -9, 9
    return max(dtypes.qmin(dtype), -9), min(dtypes.qmax(dtype), 9)


def laid(spec: TensorSpec, values: bytes) -> Array:
    """Return an array that lies as said, in and around which are values of a pool."""
    return _laid(spec, values)[0]


def laid_watched(spec: TensorSpec, values: bytes) -> tuple[Array, Array]:
    """Return the same, and the bytes behind it: a right kernel leaves them as they are."""
    return _laid(spec, values, _BEYOND)


def _laid(spec: TensorSpec, values: bytes, beyond: int = 0) -> tuple[Array, Array]:
    filled = spec.nbytes + max(_LEAST_BEHIND, min(spec.nbytes, _MOST_BEHIND))
    raw = aligned((filled + beyond,), np.dtype(np.uint8))[:filled]
    source = np.frombuffer(values, np.uint8)
    whole = len(raw) // len(source)
    cut = whole * len(source)
    raw[:cut].reshape(whole, len(source))[:] = source
    raw[cut:] = source[: len(raw) - cut]
    dtype = dtypes.numpy_dtype(spec.dtype)
    strides = [step * dtype.itemsize for step in spec.strides or ()]
    return np.ndarray(spec.dims, dtype, raw, 0, strides), raw[spec.nbytes :]


WRITTEN_BEHIND = "bytes behind dst are written"


def difference(sample: Slots, band: Band, dst: Array, lost: Collection[int] = ()) -> str:
    """Return the difference of a result at a sample, in words; nothing where there is none.

    Parameters
    ----------
    sample, band
        Places, and the band of right values there: of (1, slots).
    dst : ndarray
        The result.
    lost : collection of int
        Channels that are not compared: indices of dimension 1, or of the last of a product.
    """
    values = sample.take(dst)
    wrong = band.wrong(values[np.newaxis])[0]
    if len(lost):
        wrong &= ~np.isin(sample.index[sample.axis], list(lost))
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    slot = int(np.argmax(wrong))
    low, high = float(band.low[0, slot]), float(band.high[0, slot])
    right = f"{low:.9g}" if low == high else f"{low:.9g} to {high:.9g}"
    place = list(sample.at(slot))
    return (
        f"{count} of {sample.count} elements differ, first dst{place} = "
        f"{float(values[slot]):.9g}, should be {right}"
    )
