"""The order of dimensions in memory, against what NumPy says of the transposed array."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyonednn_q.native.order import by_strides, inverse, memory_order

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
