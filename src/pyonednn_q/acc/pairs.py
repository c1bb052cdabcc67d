"""Output channels that are exact without VNNI, whatever the source holds.

A run is a stretch of the sum whose neighbours may meet in a 16-bit addition: the channels of one
tap, a row of taps, K.

Without VNNI, a kernel multiplies unsigned source bytes by signed weight bytes and adds
neighbouring products in 16 bits, with saturation (vpmaddubsw), before it goes on in 32 bits. For a
pair of weights (w0, w1) and sources up to X, the sum of products lies in

    [−X · (w0⁻ + w1⁻), X · (w0⁺ + w1⁺)]        w⁺ = max(w, 0), w⁻ = max(−w, 0)

and both ends are reached. The pair is exact for every source if and only if the ends lie within
[−32768, 32767]. Which weights meet, what is shifted and what is halved is said in
`acc.pairing`; where weights are halved nothing saturates, and an odd weight is not exact.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.pairing import EXACT, Pairing, Weighted, Windowed, summations
from pyonednn_q.argument import whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import DTypeError, ShapeError
from pyonednn_q.primitive.problem import (
    InnerProductProblem,
    MatMulProblem,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.acc.pairing import Summation
    from pyonednn_q.primitive.isa import InstructionSet
    from pyonednn_q.primitive.problem import Problem


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


LO, HI = -(2**15), 2**15 - 1
SAFE = 64  # 255 · (64 + 64) = 32640


def safe_by_range(wei: Array) -> bool:
    """Tell whether all weights are in [-64, 64], where no pair saturates however it is formed.

    Enough for u8 sources. Not for all s8 ones: convolutions want even weights, and a matrix product
    in one column may add 128 to the weights. Values that are not integers are never safe: who
    reads them refuses them.
    """
    is_whole = wei.dtype.kind in "iu"
    return wei.size == 0 or bool(is_whole and wei.min() >= -SAFE and wei.max() <= SAFE)


def exact_range(isa: InstructionSet) -> tuple[int, int]:
    """Return the range of weights for which products with any u8 source are summed exactly."""
    return (-128, 127) if isa.has_vnni() else (-SAFE, SAFE)


def pair_overflow(
    problem: Problem,
    wei: Array,
    isa: InstructionSet | str,
    *,
    src_max: int | None = None,
    impl: str | None = None,
    src_zero_point: bool | None = None,
) -> tuple[int, ...]:
    """Return the output channels that some source makes inexact on `isa`.

    Parameters
    ----------
    problem : Problem
        Any; without weights, or with a source of other than 8 bits, nothing can saturate.
    wei : ndarray of int8
        Codes of the weights in the problem's logical dimensions.
    isa : InstructionSet or str
        The machine's instruction set, or its name as in ``ONEDNN_MAX_CPU_ISA``.
    src_max : int, optional
        The largest value that the stored source takes (zero point included); by default the largest
        of its type. Without effect where weights must be even.
    impl : str, optional
        The implementation that runs. Without it, all ways of summing that the instruction set
        leaves open are looked at: a channel may be returned that would be exact.
    src_zero_point : bool, optional
        Whether the source has a zero point other than 0; None: not known.

    Returns
    -------
    tuple of int
        Indices of output channels, rising. For grouped weights they count over all groups; for a
        matmul they are columns.

    Raises
    ------
    DTypeError, ShapeError
        `wei` is not what the problem says.
    ArgumentError
        `src_max` is outside the source type.
    """
    ways = summations(problem, isa, impl, src_zero_point=src_zero_point)
    if ways == (EXACT,) or not isinstance(problem, Weighted):
        return ()
    spec = problem.wei
    if wei.dtype != np.int8:
        raise DTypeError(argument="wei", got=str(wei.dtype), wanted="int8")
    if wei.shape != spec.dims:
        raise ShapeError(argument="wei", got=str(wei.shape), wanted=str(spec.dims))
    src = problem.src.dtype
    lo, hi = dtypes.qmin(src), dtypes.qmax(src)
    most = hi if src_max is None else whole("src_max", src_max, lo=lo, hi=hi)
    flagged = [inexact_channels(problem, wei, way, (lo, most)) for way in ways]
    return tuple(int(index) for index in np.flatnonzero(np.any(flagged, axis=0)))


def inexact_channels(
    problem: Weighted, wei: Array, way: Summation, source: tuple[int, int]
) -> Array:
    """Tell which output channels some source within (lo, hi) makes inexact."""
    if way.halved and isinstance(problem, Windowed):
        return _with_odd_weights(problem, wei)
    flagged = np.zeros(problem.oc, np.bool_)
    if way.shifted != "wei" and safe_by_range(wei):
        return flagged
    for pairs in reachable_pairs(of_wei(problem), wei, way, source):
        flagged |= by_channel(problem, np.asarray(pairs.saturates.any(axis=-1)))
    return flagged


def of_wei(problem: Weighted) -> Weighted:
    """Return a matmul without the batches that its source alone has: they meet the same weights."""
    if not isinstance(problem, MatMulProblem) or problem.batch == problem.wei.dims[:-2]:
        return problem
    *batch, inner, _ = problem.wei.dims
    types = {name: problem.tensors[name].dtype for name in ("src", "wei", "dst")}
    return MatMulProblem.of((*batch, 1, inner), problem.wei.dims, **types)


class Pairs(NamedTuple):
    """The pairs of one run: (groups, outputs, pairs), and where their weights are."""

    lo: Array
    hi: Array
    places: Array

    @property
    def saturates(self) -> Array:
        """Whether an end of a pair's sums leaves 16 bits."""
        return np.asarray((self.lo < LO) | (self.hi > HI))


def reachable_pairs(
    problem: Weighted, wei: Array, way: Summation, source: tuple[int, int]
) -> Iterator[Pairs]:
    """Give, run by run, the ends between which sums of pairs lie for sources within (lo, hi).

    Pairs of which no output sees both are left out: alone, no product leaves 16 bits.
    """
    if way.pairing is Pairing.NONE:
        return
    lo, hi = (value + 128 * (way.shifted == "src") for value in source)
    for run in runs(problem, wei, way):
        weights = run.wei + 128 * (way.shifted == "wei")
        first, second = weights[..., 0:-1:2], weights[..., 1::2]
        index = np.stack([run.places[0:-1:2], run.places[1::2]], axis=-1)
        lowest = np.minimum(first * lo, first * hi) + np.minimum(second * lo, second * hi)
        highest = np.maximum(first * lo, first * hi) + np.maximum(second * lo, second * hi)
        together = problem.meets_together(index)
        yield Pairs(lowest[..., together], highest[..., together], index[together])


def by_channel(problem: Weighted, flags: Array) -> Array:
    """Return (groups, outputs) flags per output channel; a matmul's column counts in any batch."""
    return np.asarray(flags.reshape(-1, problem.oc).any(axis=0))


def _with_odd_weights(problem: Windowed, wei: Array) -> Array:
    """Tell which output channels have an odd weight that is used."""
    odd = (wei % 2 == 1) & problem.taps_seen
    return np.asarray(problem.channel_rows(odd).any(axis=1))
