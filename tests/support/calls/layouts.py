"""The same array lying in memory in every way that NumPy allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def channels_last(array: Array) -> Array:
    """Axis 1 lies innermost."""
    return np.moveaxis(np.moveaxis(array, 1, -1).copy(order="C"), -1, 1)


def columns(array: Array) -> Array:
    """The first axis lies innermost."""
    return np.asfortranarray(array)


def strided(array: Array) -> Array:
    """Every other element of a larger array along each axis."""
    wide = np.zeros([2 * n + 1 for n in array.shape], array.dtype)
    view: Array = wide[tuple(slice(1, 2 * n + 1, 2) for n in array.shape)]
    view[...] = array
    return view


def backwards(array: Array) -> Array:
    """Every stride is negative."""
    flip = (slice(None, None, -1),) * array.ndim
    view: Array = array[flip].copy(order="C")[flip]
    return view


def at_odd_address(array: Array) -> Array:
    """The first byte lies one beyond a multiple of any item."""
    raw = np.zeros(array.nbytes + 64, np.uint8)
    start = (-raw.ctypes.data) % 64 + 1
    view: Array = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def of_records(array: Array) -> Array:
    """A field of packed records: strides are no multiples of the item."""
    records = np.zeros(array.shape, np.dtype([("pad", "u1"), ("value", array.dtype)]))
    view: Array = records["value"]
    view[...] = array
    return view


def read_only(array: Array) -> Array:
    """A copy that cannot be written."""
    frozen: Array = array.copy(order="K")
    frozen.flags.writeable = False
    return frozen


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    layout.__name__: layout
    for layout in (
        np.ascontiguousarray,
        channels_last,
        columns,
        strided,
        backwards,
        at_odd_address,
        of_records,
        read_only,
    )
}


def relaid(rng: np.random.Generator, array: Array) -> Array:
    """Return an array of the same content, in a random layout half of the time."""
    if rng.random() < 0.5 or array.ndim < 2:
        return array
    layouts = tuple(LAYOUTS.values())
    return layouts[int(rng.integers(len(layouts)))](array)
