"""The order of dimensions in memory, against what NumPy says of the transposed array."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.native.arrays import by_strides, inverse, lie_alike, memory_order

CUTS = (slice(None, None, 2), slice(None, None, -1), slice(1, 2))


def views(rng: np.random.Generator) -> Any:
    """One of many layouts: permuted, reversed, with gaps, of one element, broadcast, empty."""
    dims = rng.integers(0, 4, rng.integers(0, 5)) if rng.random() < 0.2 else rng.integers(1, 4, 4)
    array = np.empty(dims, rng.choice(["i1", "f4"]))
    array = array.transpose(rng.permutation(array.ndim))
    if array.ndim and rng.random() < 0.4:
        at = [slice(None)] * array.ndim
        at[rng.integers(array.ndim)] = CUTS[rng.integers(len(CUTS))]
        array = array[tuple(at)]
    if rng.random() < 0.2:
        array = np.broadcast_to(array, (2, *array.shape))
    return array


def test_an_order_is_given_exactly_where_there_are_no_gaps() -> None:
    rng = np.random.default_rng(0)
    dense = 0
    for _ in range(5000):
        array = views(rng)
        order = by_strides(array.shape, array.strides)
        contiguous = array.transpose(order).flags.c_contiguous
        assert memory_order(array) == (order if contiguous else None)
        dense += contiguous
    assert 1000 < dense < 4500


def test_the_inverse_leads_back() -> None:
    rng = np.random.default_rng(1)
    for ndim in range(6):
        order = tuple(map(int, rng.permutation(ndim)))
        array = np.empty(range(2, 2 + ndim))
        assert array.transpose(order).transpose(inverse(order)).strides == array.strides


def test_what_lies_alike_has_the_same_strides_in_elements() -> None:
    rng = np.random.default_rng(2)
    for _ in range(500):
        array = np.empty(rng.integers(1, 4, 4), "i4").transpose(rng.permutation(4))
        other = np.empty_like(array, "i1")
        assert lie_alike(array, other)
    rows, columns = np.empty((2, 3), "i4"), np.empty((3, 2), "i1").T
    assert not lie_alike(rows, columns)
    # Three bytes apart are no place of 4-byte elements.
    odd = np.lib.stride_tricks.as_strided(np.empty(12, "i1").view("i4"), (2,), (3,))
    assert not lie_alike(odd, np.empty(2, "i1"))
