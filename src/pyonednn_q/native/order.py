"""The order of dimensions in memory, for passes that take arrays as they lie."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


def by_strides(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost; those of one element go inside others."""

    def distance(axis: int) -> tuple[int, bool, int]:
        return -abs(strides[axis]), dims[axis] == 1, axis

    return tuple(sorted(range(len(dims)), key=distance))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return where each dimension is in an order: that of the axes of what lies so."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def memory_order(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the dimensions from outermost to innermost; None when there are gaps or overlaps.

    Examples
    --------
    >>> import numpy as np
    >>> memory_order(np.zeros((2, 3, 4)).transpose(0, 2, 1))
    (0, 2, 1)
    """
    return _dense_order(array.shape, array.strides, array.itemsize)


def lie_alike(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Tell whether arrays of the same dims have their elements in the same places."""
    return all(
        size <= 1 or first * b.itemsize == second * a.itemsize
        for size, first, second in zip(a.shape, a.strides, b.strides, strict=True)
    )


# A layer asks the same at every call.
@functools.lru_cache(maxsize=1024)
def _dense_order(
    dims: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...] | None:
    order = by_strides(dims, strides)
    if 0 in dims:
        return order
    step = itemsize
    for axis in reversed(order):
        if dims[axis] != 1:
            if strides[axis] != step:
                return None
            step *= dims[axis]
    return order
