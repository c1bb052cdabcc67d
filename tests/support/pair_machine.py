"""A machine that adds products in pairs of 16 bits, one instruction at a time.

Written from the description of the instruction and of how kernels walk, with Python's integers and
no arrays of sums: for each output, the list of (source, weight) in the order of the kernel.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem

Product = tuple[int, int]


def in_pairs(products: list[Product]) -> int:
    """vpmaddubsw, then additions in 32 bits: neighbours 2k and 2k+1 meet in 16 bits."""
    total = 0
    for at in range(0, len(products), 2):
        pair = sum(x * w for x, w in products[at : at + 2])
        total += max(-32768, min(32767, pair))
    return total


def shifted(products: list[Product]) -> int:
    """An s8 source made unsigned first, and the extra taken off in 32 bits."""
    return in_pairs([(x + 128, w) for x, w in products]) - 128 * sum(w for _, w in products)


def halved(products: list[Product]) -> int:
    """Weights halved, ties to even, and the sum doubled."""
    return 2 * sum(x * round(w / 2) for x, w in products)


def window_runs(
    problem: ConvProblem | DeconvProblem, src: Any, wei: Any, output: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], list[Product]]]:
    """Yield (tap, products of the group's channels) of one output; outside of src there is 0."""
    batch, channel, *at = output
    groups = problem.groups
    group, row = divmod(channel, problem.oc // groups)
    weights = wei[group, row] if problem.has_groups else wei[channel]
    per_group = problem.ic // groups
    for tap in product(*(range(size) for size in problem.window.kernel)):
        place = [_seen(problem, axis, at[axis], tap[axis]) for axis in range(problem.spatial)]
        found = []
        for c in range(per_group):
            source = (batch, group * per_group + c, *(p for p in place if p is not None))
            weight = (c, *tap)
            found.append((0 if None in place else int(src[source]), int(weights[weight])))
        yield tap, found


def _seen(problem: ConvProblem | DeconvProblem, axis: int, output: int, tap: int) -> int | None:
    """Where a tap of one output lies in the source; None: outside, or between its strides."""
    stride, lo = problem.stride[axis], problem.padding_lo[axis]
    reach = tap * problem.dilation[axis]
    if problem.kind == "convolution":
        at = output * stride - lo + reach
    else:
        at, rest = divmod(output + lo - reach, stride)
        if rest:
            return None
    return at if 0 <= at < problem.src.dims[2 + axis] else None


def outputs(dims: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(dim) for dim in dims))


def full_range(rng: np.random.Generator, dims: tuple[int, ...], dtype: str) -> Any:
    """Values at and near the ends, where pairs saturate, and anything between."""
    info = np.iinfo({"u8": np.uint8, "s8": np.int8}[dtype])
    ends = np.array([info.min, info.min + 1, info.max - 1, info.max])
    drawn = rng.integers(info.min, info.max, dims, endpoint=True)
    return np.where(rng.random(dims) < 0.6, rng.choice(ends, dims), drawn).astype(info.dtype)
