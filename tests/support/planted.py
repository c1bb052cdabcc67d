"""Faults planted into what a primitive returns, as a blocked kernel has them.

Each kind names elements of a result; what stands there is taken from elsewhere in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.native import Prepared

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
BLOCK = 16


@dataclass(frozen=True)
class Grid:
    """Indices of a result's elements: (images, channels, places of the last dimension, rows)."""

    dims: tuple[int, ...]
    axis: int

    def of(self, axis: int) -> Array:
        """Return the index along a dimension, to broadcast."""
        shape = [-1 if at == axis else 1 for at in range(len(self.dims))]
        return np.arange(self.dims[axis]).reshape(shape)

    @property
    def channel(self) -> Array:
        """The index of the channel."""
        return self.of(self.axis)

    @property
    def channels(self) -> int:
        """How many there are."""
        return self.dims[self.axis]

    @property
    def spatial(self) -> list[int]:
        """Dimensions of places: of a product, its rows."""
        return [at for at in range(len(self.dims)) if at not in (0, self.axis)] or [0]


def block(grid: Grid, rng: Rng) -> Any:
    """One block of 16 channels."""
    return grid.channel // BLOCK == rng.integers(-(-grid.channels // BLOCK))


def tail(grid: Grid, rng: Rng) -> Any:
    """Channels behind the last whole block."""
    del rng
    return grid.channel >= grid.channels // BLOCK * BLOCK


def lane(grid: Grid, rng: Rng) -> Any:
    """One channel of each block."""
    return grid.channel % BLOCK == rng.integers(min(BLOCK, grid.channels))


def channel(grid: Grid, rng: Rng) -> Any:
    """One channel."""
    return grid.channel == rng.integers(grid.channels)


def last_column(grid: Grid, rng: Rng) -> Any:
    """The last index of the last dimension of places."""
    del rng
    axis = grid.spatial[-1]
    return grid.of(axis) == grid.dims[axis] - 1


def first_row(grid: Grid, rng: Rng) -> Any:
    """The first index of the first dimension of places."""
    del rng
    return grid.of(grid.spatial[0]) == 0


def last_row(grid: Grid, rng: Rng) -> Any:
    """The last index of the first dimension of places."""
    del rng
    axis = grid.spatial[0]
    return grid.of(axis) == grid.dims[axis] - 1


def interior(grid: Grid, rng: Rng) -> Any:
    """All but the edges of a dimension of places."""
    axis = grid.spatial[int(rng.integers(len(grid.spatial)))]
    at = grid.of(axis)
    return (at > 0) & (at < grid.dims[axis] - 1)


def columns(grid: Grid, rng: Rng) -> Any:
    """A block of 8 columns."""
    axis = grid.spatial[-1]
    return grid.of(axis) // 8 == rng.integers(-(-grid.dims[axis] // 8))


def every_other_column(grid: Grid, rng: Rng) -> Any:
    """Odd or even columns."""
    return grid.of(grid.spatial[-1]) % 2 == rng.integers(2)


def other_images(grid: Grid, rng: Rng) -> Any:
    """All images, or batches, but the first."""
    del rng
    return grid.of(0) > 0


def tail_of_last_column(grid: Grid, rng: Rng) -> Any:
    """The last column of channels behind the last whole block."""
    return last_column(grid, rng) & tail(grid, rng)


def block_of_last_row(grid: Grid, rng: Rng) -> Any:
    """The last row of one block of channels."""
    return last_row(grid, rng) & block(grid, rng)


KINDS: tuple[Callable[[Grid, Rng], Any], ...] = (
    block,
    tail,
    lane,
    channel,
    last_column,
    first_row,
    last_row,
    interior,
    columns,
    every_other_column,
    other_images,
    tail_of_last_column,
    block_of_last_row,
)


class Faulty:
    """A primitive whose result is changed; everything else is the primitive's.

    Parameters
    ----------
    prepared : Prepared
        The primitive.
    where : ndarray of bool
        Broadcasts to dst: elements that hold others' values.

    Attributes
    ----------
    changed : int
        How many elements of the last result differ from what they were.
    """

    def __init__(self, prepared: Prepared, where: Array) -> None:
        self.prepared, self.where = prepared, where
        self.changed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.prepared, name)

    def __call__(self, *inputs: Array, out: Array) -> Array:
        """Run it, and put values of other elements where they do not belong."""
        self.prepared(*inputs, out=out)
        right = out.copy()
        others = np.random.default_rng(2).permutation(right.reshape(-1)).reshape(right.shape)
        np.copyto(out, others, where=self.where)
        self.changed = int(np.count_nonzero(out != right))
        return out
