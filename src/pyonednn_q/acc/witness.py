"""Sources that show a channel wrong: two values at the ends of their range, the rest kept quiet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.emulation import sums
from pyonednn_q.acc.pairing import EXACT
from pyonednn_q.acc.pairs import reachable_pairs
from pyonednn_q.dtypes import Array
from pyonednn_q.primitive.problem import (
    InnerProductProblem,
    MatMulProblem,
)

if TYPE_CHECKING:
    from pyonednn_q.acc.pairing import Summation, Weighted, Windowed

_Place = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """A source, and one output that it makes wrong.

    Attributes
    ----------
    src : ndarray
        Codes of the source in the problem's logical dimensions.
    position : tuple of int
        Index of the output in dst.
    exact, computed : int
        The s32 sum at that place: the exact one, and the one that the machine computes.
    """

    src: Array
    position: _Place
    exact: int
    computed: int


def of_pair(
    problem: Weighted, wei: Array, way: Summation, source: tuple[int, int], channel: int
) -> Witness | None:
    """Return a source that makes a pair of the channel saturate."""
    for pairs in reachable_pairs(problem, wei, way, source):
        for group, output in _rows(problem, channel):
            for at in np.flatnonzero(pairs.saturates[group, output]):
                view = _seen(problem, group, channel, pairs.places[at])
                witness = _shown(problem, wei, way, source, view)
                if witness is not None:
                    return witness
    return None


def of_odd_weight(
    problem: Weighted, wei: Array, way: Summation, source: tuple[int, int], channel: int
) -> Witness | None:
    """Return a source that makes a lost bit of the channel's weights count."""
    ((group, _),) = _rows(problem, channel)
    weights = problem.channel_rows(wei)[channel]
    for index in np.flatnonzero(weights % 2 == 1):
        view = _seen(problem, group, channel, np.array([index]))
        witness = None if view is None else _shown(problem, wei, way, source, view)
        if witness is not None:
            return witness
    return None


@dataclass(frozen=True, slots=True)
class _OutputView:
    """An output, and where it sees some weights: places in wei and in src, in that order."""

    dst: _Place
    wei: tuple[_Place, ...]
    src: tuple[_Place, ...]


def _rows(problem: Weighted, channel: int) -> list[tuple[int, int]]:
    """Return (group, output) of a channel in a run's weights; a matmul has one per batch."""
    if isinstance(problem, MatMulProblem):
        return [(group, channel) for group in range(math.prod(problem.batch))]
    return [divmod(channel, problem.oc // problem.groups)]


def _seen(problem: Weighted, group: int, channel: int, index: Array) -> _OutputView | None:
    """Return the first output that sees all of these weights inside the source."""
    if isinstance(problem, MatMulProblem):
        batch = tuple(int(i) for i in np.unravel_index(group, problem.batch or (1,)))
        batch = batch if problem.batch else ()
        of_src, of_wei = (
            tuple(0 if dim == 1 else i for i, dim in zip(batch, spec.dims, strict=False))
            for spec in (problem.src, problem.wei)
        )
        return _OutputView(
            (*batch, 0, channel),
            tuple((*of_wei, int(k), channel) for k in index),
            tuple((*of_src, 0, int(k)) for k in index),
        )
    # The weights of one output channel.
    dims = problem.wei.dims[2 if problem.has_groups else 1 :]
    places = [tuple(int(i) for i in np.unravel_index(int(at), dims)) for at in index]
    if isinstance(problem, InnerProductProblem):
        in_wei = tuple((channel, *place) for place in places)
        return _OutputView((0, channel), in_wei, tuple((0, *place) for place in places))
    return _seen_in_window(problem, group, channel, places)


def _seen_in_window(
    problem: Windowed, group: int, channel: int, places: list[_Place]
) -> _OutputView | None:
    outputs, inputs = [], []
    for axis in range(problem.spatial):
        at = problem.reached(axis)[:, [place[1 + axis] for place in places]]
        inside = np.flatnonzero((at >= 0).all(axis=1))
        if not len(inside):
            return None
        outputs.append(int(inside[0]))
        inputs.append(at[inside[0]])
    first = group * (problem.ic // problem.groups)
    row = divmod(channel, problem.oc // problem.groups) if problem.has_groups else (channel,)
    return _OutputView(
        (0, channel, *outputs),
        tuple((*row, *place) for place in places),
        tuple(
            (0, first + place[0], *(int(at[n]) for at in inputs)) for n, place in enumerate(places)
        ),
    )


def _shown(
    problem: Weighted, wei: Array, way: Summation, source: tuple[int, int], view: _OutputView | None
) -> Witness | None:
    """Try the ends for the places seen, and quiet values for all others, until it shows."""
    if view is None:
        return None
    lo, hi = source
    quiet = dict.fromkeys((lo, min(max(0, lo), hi), hi))
    weights = [int(wei[place]) + 128 * (way.shifted == "wei") for place in view.wei]
    dtype = dtypes.numpy_dtype(problem.src.dtype)
    for value, up in product(quiet, (True, False)):
        src = np.full(problem.src.dims, value, dtype)
        for place, weight in zip(view.src, weights, strict=True):
            src[place] = hi if (weight > 0) is up else lo
        exact = int(sums(problem, src, wei, EXACT)[view.dst])
        computed = int(sums(problem, src, wei, way)[view.dst])
        if exact != computed:
            return Witness(src, view.dst, exact, computed)
    return None
