"""The sums of a dense problem, run by run: which products a kernel adds, in which order.

A run is a stretch of the sum whose neighbours may meet in a 16-bit addition: the channels of one
tap, a row of taps, K.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyonednn_q.primitive.problem import ConvProblem, InnerProductProblem, MatMulProblem
from pyonednn_q.saturation.pairing import Pairing

if TYPE_CHECKING:
    from pyonednn_q.saturation.pairing import Summation, Weighted, Windowed

Array = np.ndarray[Any, Any]


class Stretch(NamedTuple):
    """A stretch of the sum.

    `wei` is (groups, outputs, positions); `places` names each position in the weights of one output
    channel, flattened as they are given.
    """

    wei: Array
    places: Array


def runs(problem: Weighted, wei: Array, way: Summation) -> list[Stretch]:
    """Return the weights in 32 bits, run by run; batches of a matmul count as groups."""
    return [part for run in _whole_runs(problem, wei, way) for part in _cut(run, way.block)]


def cuts(length: int, block: int | None) -> list[slice]:
    """Return the stretches into which a run falls where neighbours are parted."""
    step = length if block is None else block
    return [slice(at, min(at + step, length)) for at in range(0, length, max(step, 1))]


def walk(problem: Windowed, pairing: Pairing) -> list[Array]:
    """Return the taps of each run, as numbers in row-major order."""
    kernel = problem.window.kernel
    taps = np.arange(math.prod(kernel))
    if pairing is Pairing.ROW:
        return list(taps.reshape(-1, kernel[-1]))
    if pairing is Pairing.COLUMN:
        return [np.ascontiguousarray(taps.reshape(kernel).T).ravel()]
    if pairing is Pairing.TAPS:
        return [taps]
    return list(taps[:, None])


def reached(problem: Windowed, axis: int) -> Array:
    """Return which source each output sees through each tap, along one dimension; -1: none."""
    outputs = np.arange(problem.dst.dims[2 + axis])[:, None]
    taps = np.arange(problem.window.kernel[axis])[None] * problem.dilation[axis]
    stride, lo = problem.stride[axis], problem.padding_lo[axis]
    if isinstance(problem, ConvProblem):
        at, hit = outputs * stride - lo + taps, np.array(True)
    else:
        ahead = outputs + lo - taps
        at, hit = ahead // stride, ahead % stride == 0
    return np.where(hit & (at >= 0) & (at < problem.src.dims[2 + axis]), at, -1)


def _whole_runs(problem: Weighted, wei: Array, way: Summation) -> list[Stretch]:
    wide = wei.astype(np.int32)
    if isinstance(problem, MatMulProblem):
        every = np.broadcast_to(wide, (*problem.batch, problem.k, problem.n))
        table = np.moveaxis(every, -1, -2).reshape(-1, problem.n, problem.k)
        return [Stretch(table, np.arange(problem.k))]
    if isinstance(problem, InnerProductProblem):
        return _of_inner_product(problem, wide, way.pairing)
    groups, per_group = problem.groups, problem.oc // problem.groups
    channels, taps = problem.ic // groups, math.prod(problem.window.kernel)
    # Channels last, as kernels have it: within a tap they follow each other.
    table = np.swapaxes(wide.reshape(groups, per_group, channels, taps), 2, 3)
    index = np.arange(channels * taps).reshape(channels, taps).T
    return [
        Stretch(table[:, :, some].reshape(groups, per_group, -1), index[some].ravel())
        for some in walk(problem, way.pairing)
    ]


def _of_inner_product(problem: InnerProductProblem, wide: Array, pairing: Pairing) -> list[Stretch]:
    channels, positions = problem.src.dims[1], math.prod(problem.src.dims[2:])
    table = wide.reshape(1, problem.oc, channels, positions)
    index = np.arange(channels * positions).reshape(channels, positions)
    if pairing is Pairing.CHANNELS:
        return [Stretch(table[..., at], index[:, at]) for at in range(positions)]
    if pairing is Pairing.LAST:
        table, index = np.swapaxes(table, 2, 3), index.T
    return [Stretch(table.reshape(1, problem.oc, -1), index.ravel())]


def _cut(run: Stretch, block: int | None) -> list[Stretch]:
    return [Stretch(run.wei[..., part], run.places[part]) for part in cuts(len(run.places), block)]
