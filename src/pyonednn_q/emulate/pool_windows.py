"""Windows of pooling: what lies in each, by tap, on integers."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError
from pyonednn_q.primitive.window import Window, padding_sides, per_dim
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.window import Padding, PerDim


class Pooling:
    """The windows over a tensor of (N, C, spatial).

    Raises
    ------
    ShapeError
        The window does not fit the tensor.
    """

    def __init__(
        self, dims: tuple[int, ...], kernel: PerDim, stride: PerDim | None, padding: Padding
    ) -> None:
        if not 3 <= len(dims) <= 5:
            raise ShapeError("src", str(dims), "(N, C, 1 to 3 spatial dimensions)")
        count = len(dims) - 2
        sizes = per_dim("kernel", kernel, count)
        steps = sizes if stride is None else per_dim("stride", stride, count)
        self.lo, self.hi = padding_sides(padding, count)
        self.window = Window(sizes, steps, (1,) * count, self.lo, self.hi)
        if any(pad >= size for pad, size in zip((*self.lo, *self.hi), sizes * 2, strict=True)):
            raise ShapeError("padding", shown(padding), "less than the kernel on every side")
        self.out = self.window.gathered(dims[2:])
        if min(self.out) < 1:
            raise ShapeError("src", str(dims), f"room for a window of {sizes}")

    @property
    def size(self) -> int:
        """Number of places in a window."""
        return math.prod(self.window.kernel)

    def is_global(self, dims: tuple[int, ...]) -> bool:
        """Whether there is one window, over the whole tensor."""
        return self.window.kernel == dims[2:] and not any(self.lo + self.hi)

    def sums(self, values: Array) -> Array:
        """Return the sum in every window, row by row in floats; padding counts as 0."""
        first, *rest = self._taps(values, 0)
        total: Array = first.copy()
        for tap in rest:
            total += tap
        return total

    def largest(self, values: Array, least: int) -> Array:
        """Return the largest value in every window; padding counts as `least`."""
        first, *rest = self._taps(values, least)
        maxima: Array = first.copy()
        for tap in rest:
            np.maximum(maxima, tap, out=maxima)
        return maxima

    def counts(self, dims: tuple[int, ...]) -> Array:
        """Return the number of places of each window within the tensor."""
        return self.sums(np.ones((1, 1, *dims[2:]), np.int64))

    def _taps(self, values: Array, outside: int) -> Iterator[Array]:
        sides = [(0, 0), (0, 0), *zip(self.lo, self.hi, strict=True)]
        padded = np.pad(values, sides, constant_values=outside)
        for position in product(*(range(size) for size in self.window.kernel)):
            steps = zip(position, self.out, self.window.stride, strict=True)
            places = [slice(p, p + (n - 1) * s + 1, s) for p, n, s in steps]
            index = (slice(None), slice(None), *places)
            yield padded[index]
