"""Codes and parameters for the quantized operators, drawn: random scales, and powers of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.qparams import QParams
from support.oracle_numbers import numpy_dtype
from support.oracles.layers import LIMITS

Array = np.ndarray[Any, Any]


class Draw(NamedTuple):
    """Parameters, and two images of (N, C, H, W), that hold every code."""

    dtype: str
    q: list[QParams]
    x: Array
    y: Array
    rng: np.random.Generator


def draws(dtype: str, count: int, *, symmetric: bool = False) -> Iterator[Draw]:
    """Draw `count` times; every third has scales that are powers of two, so that ties are met."""
    lo, hi = LIMITS[dtype]
    for seed in range(count):
        rng = np.random.default_rng([seed, len(dtype), lo % 7])
        scales = rng.uniform(0.01, 0.2, 4) if seed % 3 else 2.0 ** rng.integers(-4, 0, 4)
        points = np.zeros(4, int) if symmetric else rng.integers(lo, hi + 1, 4)
        pairs = zip(scales.astype(np.float32), points, strict=True)
        q = [QParams(float(scale), int(point), dtype) for scale, point in pairs]
        x, y = (
            rng.integers(lo, hi + 1, (2, 12, 9, 9)).astype(numpy_dtype(dtype)) for _ in range(2)
        )
        yield Draw(dtype, q, x, y, rng)
