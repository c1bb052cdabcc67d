"""What each run of a dense problem's sum multiplies, and how sums become a destination again.

Padding, and what a deconvolution does not reach, are zeros, as in a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.primitive.problem import InnerProductProblem, MatMulProblem
from pyonednn_q.saturation.pairing import Pairing
from pyonednn_q.saturation.runs import cuts, reached, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.saturation.pairing import Summation, Weighted, Windowed

Array = np.ndarray[Any, Any]


def sources(problem: Weighted, src: Array, way: Summation) -> Iterator[Array]:
    """Give what each run multiplies: (batch, groups, positions, outputs), in the runs' order."""
    for values in _whole_sources(problem, src, way.pairing):
        for part in cuts(values.shape[2], way.block):
            yield values[:, :, part]


def assembled(problem: Weighted, sums: Array) -> Array:
    """Return sums of (batch, groups, outputs per group, positions) in dst's dimensions."""
    if isinstance(problem, MatMulProblem):
        by_row: Array = np.moveaxis(sums[0], -1, -2).reshape(problem.dst.dims)
        return by_row
    if isinstance(problem, InnerProductProblem):
        return np.ascontiguousarray(sums[0, 0].T)
    whole: Array = sums.reshape(problem.dst.dims)
    return whole


def _whole_sources(problem: Weighted, src: Array, pairing: Pairing) -> Iterator[Array]:
    if isinstance(problem, MatMulProblem):
        every = np.broadcast_to(src, (*problem.batch, problem.m, problem.k))
        yield np.moveaxis(every, -1, -2).reshape(1, -1, problem.k, problem.m)
    elif isinstance(problem, InnerProductProblem):
        yield from _of_inner_product(src, pairing)
    else:
        yield from _of_window(problem, src, pairing)


def _of_window(problem: Windowed, src: Array, pairing: Pairing) -> Iterator[Array]:
    # One zero behind the end of each dimension: index -1 finds it.
    padded = np.pad(src, [(0, 0), (0, 0)] + [(0, 1)] * problem.spatial)
    split = padded.reshape(src.shape[0], problem.groups, -1, *padded.shape[2:])
    places = [reached(problem, axis) for axis in range(problem.spatial)]

    def at(tap: int) -> Array:
        taps = np.unravel_index(tap, problem.window.kernel)
        positions = np.ix_(*(place[:, offset] for place, offset in zip(places, taps, strict=True)))
        window: Any = (slice(None), slice(None), slice(None), *positions)
        return np.asarray(split[window]).reshape(*split.shape[:3], -1)

    for taps in walk(problem, pairing):
        yield np.concatenate([at(int(tap)) for tap in taps], axis=2)


def _of_inner_product(src: Array, pairing: Pairing) -> Iterator[Array]:
    table = src.reshape(*src.shape[:2], -1)  # (batch, channels, positions)
    if pairing is Pairing.CHANNELS:
        for at in range(table.shape[2]):
            yield table[:, :, at].T[None, None]
        return
    if pairing is Pairing.LAST:
        table = np.swapaxes(table, 1, 2)
    yield table.reshape(src.shape[0], -1).T[None, None]
