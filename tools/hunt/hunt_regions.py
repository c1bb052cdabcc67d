"""Regions that the hunt scans: shapes around borders of kernels where wrong answers lay.

A region draws shapes alone, small and many; numbers, layouts and attributes are those of the hunt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from hunt_sample import LayerShape, one

Rng = np.random.Generator

CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 28, 31, 32, 33, 40, 47, 48, 63, 64, 65, 127)
COLUMNS = (1, 2, 7, 16, 31, 33, 48, 63, 64, 65, 97, 128, 129)
K = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49, 63, 64, 65, 128)


def volumes(rng: Rng) -> LayerShape:
    """Draw volumes of few planes under kernels of as many and more."""
    kernel = tuple(int(rng.integers(1, 4)) for _ in range(3))
    lengths = (int(one(rng, (1, 1, 1, 2, 3, 4))), int(rng.integers(1, 8)), int(rng.integers(1, 8)))
    stride = tuple(int(one(rng, (1, 1, 2))) for _ in range(3))
    dilation = (int(one(rng, (1, 1, 1, 2))),) * 3
    return _windowed(rng, lengths, kernel, stride, dilation, most_padding=2)


def rows(rng: Rng) -> LayerShape:
    """Draw rows of a kernel's taps that fill registers, of columns in steps of the stride."""
    columns = int(one(rng, (1, 2, 3, 4, 5, 6, 8, 12, 16)))
    stride = columns if rng.random() < 0.5 else int(one(rng, (1, 2, 4, 8)))
    width = columns * int(rng.integers(1, 6)) + int(one(rng, (0, 0, 0, 1)))
    kernel = (int(rng.integers(1, 4)), columns)
    lengths = (int(rng.integers(1, 8)), width)
    return _windowed(
        rng, lengths, kernel, (int(one(rng, (1, 1, 2, 3))), stride), (1, 1), most_padding=1
    )


def skips(rng: Rng) -> LayerShape:
    """Draw strides that pass over rows, planes or columns."""
    spatial = int(one(rng, (2, 2, 3)))
    kernel = tuple(int(one(rng, (1, 1, 2, 3, 4))) for _ in range(spatial))
    stride = tuple(length + int(one(rng, (-1, 0, 1, 2))) for length in kernel)
    lengths = tuple(int(rng.integers(1, 13)) for _ in range(spatial))
    stride = tuple(max(1, step) for step in stride)
    dilation = tuple(int(one(rng, (1, 1, 1, 2))) for _ in range(spatial))
    return _windowed(rng, lengths, kernel, stride, dilation, most_padding=2)


def leftovers(rng: Rng) -> LayerShape:
    """Draw rows that leave over at the end about as much as padding adds at the begin."""
    lo, columns = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    kernel = (int(rng.integers(1, 4)), int(rng.integers(1, 9)))
    stride = (int(rng.integers(1, 4)), lo + int(rng.integers(0, 5)))
    dilation = (1, int(one(rng, (1, 1, 1, 2))))
    width = (columns - 1) * stride[1] + (kernel[1] - 1) * dilation[1] + 1
    lengths = (int(rng.integers(3, 9)), width + int(one(rng, (0, 0, 0, 1))))
    shape = _windowed(rng, lengths, kernel, stride, dilation, most_padding=0)
    return replace(shape, window={**shape.window, "lo": (0, lo)})


def products(rng: Rng) -> LayerShape:
    """Draw products of batches, of one row above all."""
    batch, m = int(one(rng, (1, 2, 3, 5))), int(one(rng, (1, 1, 1, 2, 3, 7, 16, 33)))
    k, n = int(one(rng, K)), int(one(rng, COLUMNS))
    return LayerShape("matmul", (batch, m, k), (int(one(rng, (1, batch))), k, n), {})


REGIONS: dict[str, Callable[[Rng], LayerShape]] = {
    "volumes": volumes,
    "rows": rows,
    "skips": skips,
    "leftovers": leftovers,
    "products": products,
}


def _windowed(
    rng: Rng,
    lengths: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    *,
    most_padding: int,
) -> LayerShape:
    groups = int(one(rng, (1, 1, 1, 2, 3, 4)))
    ic, oc = (int(one(rng, CHANNELS)) for _ in range(2))
    lo, hi = (tuple(int(one(rng, range(most_padding + 1))) for _ in lengths) for _ in range(2))
    window: dict[str, Any] = {"groups": groups, "stride": stride, "dilation": dilation}
    window |= {"lo": lo, "hi": hi, "tail": (0,) * len(lengths)}
    src, batch = (groups * ic, *lengths), int(one(rng, (1, 1, 2)))
    return LayerShape("convolution", (batch, *src), (groups * oc, ic, *kernel), window)
