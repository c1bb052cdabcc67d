"""Parts: weights of nine bits as sums of s8 weights, on a source whose channels are repeated.

    Σ src · wei = Σ src · part_0 + Σ src · part_1 + ...        part_0 + part_1 + ... = wei

Weights less their zero point go from -255 to 255. The parts lie side by side along the input
channels, and so do copies of the channels that have a second part: one primitive adds up all of
them in its accumulator. Every product and sum is an integer, so zero points, padding, scales and
post-ops mean what they meant, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.errors import ShapeError
from pyonednn_q.native.arrays import aligned

Array = np.ndarray[Any, Any]

_LEAST = 2  # dimensions of a source


@dataclass(frozen=True, slots=True)
class Parts:
    """Which input channels of a group are repeated, and where they lie.

    Attributes
    ----------
    axis : int
        Of the source's channels: 1, or -1 for the columns of a matmul.
    groups, channels : int
        Groups, and channels of each.
    repeated : tuple of (int, int)
        First and last but one channel of each further part.
    """

    axis: int
    groups: int
    channels: int
    repeated: tuple[tuple[int, int], ...]

    @property
    def widened(self) -> int:
        """Channels of a group, with those that are repeated."""
        return self.channels + sum(stop - start for start, stop in self.repeated)

    def dims(self, src_dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return a source's dims with its channels repeated.

        Raises
        ------
        ShapeError
            Another number of channels, or none.
        """
        channels = self.groups * self.channels
        if len(src_dims) < _LEAST or src_dims[self.axis] != channels:
            where = "columns" if self.axis == -1 else "input channels"
            raise ShapeError("src", str(src_dims), f"{channels} {where}, as wei has")
        dims = list(src_dims)
        dims[self.axis] = self.groups * self.widened
        return tuple(dims)

    def of(self, src: Array) -> Array:
        """Return a source with its channels repeated, channels last in memory."""
        last = np.moveaxis(np.asarray(src), self.axis, -1)  # a matrix would stay one
        lead = last.shape[:-1]
        given = last.reshape(math.prod(lead), self.groups, self.channels)
        wide = aligned((given.shape[0], self.groups, self.widened), src.dtype)
        wide[..., : self.channels] = given
        at = self.channels
        for start, stop in self.repeated:
            wide[..., at : at + stop - start] = given[..., start:stop]
            at += stop - start
        return np.moveaxis(wide.reshape(*lead, self.groups * self.widened), -1, self.axis)


def merged(wei: Array, groups: int, most: int) -> tuple[Array, int]:
    """Return weights of fewer groups, with zeros between those of different ones; and how many.

    Kernels are slow on groups of a few channels, or have none: as many neighbours become one group
    as divide the groups and have no more than `most` channels together.

    Parameters
    ----------
    wei : (OC, IC / groups, ...) ndarray
        Weights.
    groups : int
        Of channels.
    most : int
        Channels of a group.
    """
    channels = wei.shape[1]
    count = max(
        n for n in range(1, groups + 1) if groups % n == 0 and (n == 1 or n * channels <= most)
    )
    if count == 1:
        return wei, groups
    wide = np.zeros((groups // count, count, len(wei) // groups, count, *wei.shape[1:]), wei.dtype)
    own = wei.reshape(groups // count, count, len(wei) // groups, *wei.shape[1:])
    for at in range(count):
        wide[:, at, :, at] = own[:, at]
    return wide.reshape(len(wei), count * channels, *wei.shape[2:]), groups // count


def split(
    wei: Array, in_axis: int, limits: tuple[int, int] = (-128, 127), *, whole: bool = False
) -> tuple[Array, tuple[tuple[int, int], ...]]:
    """Return s8 weights side by side along `in_axis`, and the channels of each further part.

    Parameters
    ----------
    wei : ndarray of int16
        Weights less their zero point.
    in_axis : int
        Of the input channels.
    limits : (int, int)
        What a part may hold, both ends included.
    whole : bool
        Repeat all channels where some must be: kernels of groups want even numbers of them.

    Examples
    --------
    >>> split(np.array([[5, 200, -7], [0, -130, 255]], np.int16), 1)[0].tolist()
    [[5, 127, -7, 73, 0, 0], [0, -128, 127, -2, 127, 1]]
    """
    rest = np.moveaxis(wei, in_axis, 0).astype(np.int16)
    first = np.clip(rest, *limits)
    found, repeated = [first], []
    rest = rest - first
    while rest.any():
        needed = np.flatnonzero(rest.reshape(len(rest), -1).any(axis=1))
        start, stop = (0, len(rest)) if whole else (int(needed[0]), int(needed[-1]) + 1)
        part = np.clip(rest[start:stop], *limits)
        found.append(part)
        repeated.append((start, stop))
        rest = rest.copy()
        rest[start:stop] -= part
    wide = np.concatenate(found).astype(np.int8)
    return np.ascontiguousarray(np.moveaxis(wide, 0, in_axis)), tuple(repeated)
