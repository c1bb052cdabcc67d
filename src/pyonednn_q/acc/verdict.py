"""Whether a layer's sums are exact on a machine without VNNI: the verdict, the proof, the counts.

The verdict needs no data. It is never optimistic: a channel that is not flagged is exact for every
source of the given range. And it is tight: for a flagged channel, `witness` builds a source for
which it is wrong.

Examples
--------
>>> import numpy as np
>>> from pyonednn_q.primitive.problem import MatMulProblem
>>> wei = np.array([[100, 64, 127], [100, 64, -128]], np.int8)
>>> problem = MatMulProblem.of((1, 2), wei.shape)
>>> verdict = saturation(problem, wei, "AVX2")
>>> print(verdict.text())
AVX2: 1 of 3 output channels saturates
  0: sums of pairs from 0 to 51000, beyond [-32768, 32767]
>>> example = witness(verdict, wei, 0)
>>> example.src, example.exact, example.computed
(array([[255, 255]], dtype=uint8), 51000, 32767)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.emulation import checked, sums
from pyonednn_q.acc.pairing import EXACT, summations
from pyonednn_q.acc.pairs import (
    HI,
    LO,
    inexact_channels,
    of_wei,
    reachable_pairs,
)
from pyonednn_q.acc.witness import Witness, of_odd_weight, of_pair
from pyonednn_q.argument import instance, integers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.tensor import Operation
from pyonednn_q.report.told import Told
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.acc.pairing import Summation, Weighted
    from pyonednn_q.primitive.problem import Problem

__all__ = ["ChannelVerdict", "Counts", "Verdict", "Witness", "counts", "saturation", "witness"]


@dataclass(frozen=True, slots=True)
class ChannelVerdict:
    """Largest and smallest sums that can occur in one output channel.

    Attributes
    ----------
    channel : int
        Index of the output channel over all groups; the column of a matmul.
    reason : {None, "saturation", "odd weights"}
        Cause of wrong results; None: the channel is exact for every source.
    lo, hi : int
        The least and the greatest sum of two products that a source can give; 0 where none are
        paired.
    """

    channel: int
    reason: str | None
    lo: int
    hi: int

    def text(self) -> str:
        """Return the verdict in a line."""
        if self.reason == "odd weights":
            return f"{self.channel}: odd weights lose their last bit"
        beyond = f", beyond [{LO}, {HI}]" if self.reason else ""
        return f"{self.channel}: sums of pairs from {self.lo} to {self.hi}{beyond}"


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Told):
    """Exactness of each output channel on a machine.

    Attributes
    ----------
    problem : Problem
        Problem that was judged.
    isa : InstructionSet
        The instruction set of the machine.
    source : tuple of int
        (lo, hi): the least and the greatest code of the source, zero point included.
    ways : tuple of Summation
        Ways in which kernels may add there; a channel is flagged if any of them can be wrong.
    channels : tuple of ChannelVerdict
        One for each output channel.
    """

    problem: Weighted
    isa: InstructionSet
    source: tuple[int, int]
    ways: tuple[Summation, ...]
    channels: tuple[ChannelVerdict, ...]

    @property
    def flagged(self) -> tuple[int, ...]:
        """Channels that are inexact for some source."""
        return tuple(c.channel for c in self.channels if c.reason is not None)

    @property
    def is_exact(self) -> bool:
        """Whether every channel is exact for every source."""
        return not self.flagged

    def text(self) -> str:
        """Return the verdict, and a line for each flagged channel."""
        if self.is_exact:
            return f"{self.isa.text()}: all {len(self.channels)} output channels are exact"
        bad = [channel for channel in self.channels if channel.reason is not None]
        does = "saturates" if bad[0].reason == "saturation" else "is not exact"
        if len(bad) > 1:
            does = "saturate" if bad[0].reason == "saturation" else "are not exact"
        head = f"{self.isa.text()}: {len(bad)} of {len(self.channels)} output channels {does}"
        return "\n".join([head, *(f"  {channel.text()}" for channel in bad)])


def saturation(
    problem: Problem,
    wei: Array,
    isa: InstructionSet | str,
    *,
    impl: str | None = None,
    src_range: tuple[int, int] | None = None,
    src_zero_point: bool | None = None,
) -> Verdict:
    """Return which output channels are exact on a machine, for every source of a range.

    Parameters
    ----------
    problem : Problem
        A convolution, deconvolution, inner product or matmul of 8-bit source and s8 weights.
    wei : ndarray of int8
        Codes of the weights in the problem's logical dimensions; those of groups also as `Conv`
        takes them.
    isa : InstructionSet or str
        The machine's instruction set, or its name as in ``ONEDNN_MAX_CPU_ISA``.
    impl : str, optional
        oneDNN's name of the implementation. None: any implementation that may be chosen there.
    src_range : tuple of int, optional
        The lowest and highest stored value of the source, zero point included; None: all of its
        type.
    src_zero_point : bool, optional
        Whether the source has a zero point other than 0; None: either.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    (verdict,) = saturations(
        problem, wei, [isa], impl=impl, src_range=src_range, src_zero_point=src_zero_point
    )
    return verdict


def saturations(
    problem: Problem,
    wei: Array,
    isas: Iterable[InstructionSet | str],
    *,
    impl: str | None = None,
    src_range: tuple[int, int] | None = None,
    src_zero_point: bool | None = None,
) -> list[Verdict]:
    """Return the same for several machines: those that sum alike are looked at once."""
    dense, wei = checked(problem, wei)
    source = _range(dense, src_range)
    known: dict[tuple[Summation, ...], tuple[ChannelVerdict, ...]] = {}
    verdicts = []
    for isa in isas:
        ways = summations(dense, isa, impl, src_zero_point=src_zero_point)
        if ways not in known:
            known[ways] = _channels(dense, wei, ways, source)
        verdicts.append(Verdict(dense, InstructionSet.of(isa), source, ways, known[ways]))
    return verdicts


def _channels(
    dense: Weighted, wei: Array, ways: tuple[Summation, ...], source: tuple[int, int]
) -> tuple[ChannelVerdict, ...]:
    lows, highs = np.zeros((2, dense.oc), np.int64)
    odd, pairs = np.zeros((2, dense.oc), np.bool_)
    for way in ways:
        flagged = inexact_channels(dense, wei, way, source)
        if way.halved:
            odd |= flagged
            continue
        pairs |= flagged
        for pair in reachable_pairs(of_wei(dense), wei, way, source):
            lows = np.minimum(lows, _per_channel(dense, pair.lo, np.min))
            highs = np.maximum(highs, _per_channel(dense, pair.hi, np.max))
    rows = zip(map(_reason, pairs, odd), lows.tolist(), highs.tolist(), strict=True)
    return tuple(ChannelVerdict(at, *row) for at, row in enumerate(rows))


def witness(verdict: Verdict, wei: Array, channel: int) -> Witness | None:
    """Return a source, within the verdict's range, for which a flagged channel is wrong.

    None if the range is too narrow: in every source that was tried, other pairs compensated the
    error.

    Parameters
    ----------
    verdict, wei : Verdict and ndarray
        Result of `saturation`, and the weights that it is about.
    channel : int
        A flagged output channel.

    Raises
    ------
    ArgumentError
        The channel is not flagged.
    """
    instance("verdict", verdict, Verdict)
    channel = whole("channel", channel)
    if channel not in verdict.flagged:
        raise ArgumentError("channel", str(channel), f"one of {verdict.flagged}, the flagged ones")
    _, wei = checked(verdict.problem, wei)
    for way in verdict.ways:
        make = of_odd_weight if way.halved else of_pair
        if inexact_channels(verdict.problem, wei, way, verdict.source)[channel]:
            example = make(verdict.problem, wei, way, verdict.source, channel)
            if example is not None:
                return example
    return None


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of results that come out wrong for given data.

    Attributes
    ----------
    outputs, wrong : int
        Number of outputs, and of those whose sum is not exact.
    per_channel : tuple of int
        Number of wrong outputs in each output channel.
    largest : int
        The greatest |computed − exact| of the s32 sums.
    """

    outputs: int
    wrong: int
    per_channel: tuple[int, ...]
    largest: int

    @property
    def rate(self) -> float:
        """Wrong outputs per output."""
        return self.wrong / self.outputs if self.outputs else 0.0


def counts(
    problem: Problem,
    src: Array,
    wei: Array,
    isa: InstructionSet | str,
    *,
    impl: str | None = None,
) -> Counts:
    """Return the number of sums of given data that are not exact on a machine.

    If kernels may add in several ways on the instruction set, the way with most errors counts.

    Parameters
    ----------
    problem, src, wei : Problem, and ndarrays of u8 or s8
        A convolution, deconvolution, inner product or matmul, and codes in its dims.
    isa : InstructionSet or str
        Instruction set of the machine.
    impl : str, optional
        Name of the kernel. None: any that may be chosen.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    instance("problem", problem, Operation)
    instance("src", src, np.ndarray)
    dense, wei = checked(problem, wei, src)
    exact = sums(dense, src, wei, EXACT)
    by_way = [
        _count(dense, sums(dense, src, wei, way) - exact) for way in summations(dense, isa, impl)
    ]
    return max(by_way, key=lambda c: (c.wrong, c.largest))


def _count(problem: Weighted, error: Array) -> Counts:
    others = tuple(dim for dim in range(error.ndim) if dim != problem.channel_axis)
    per_channel = tuple(int(count) for count in np.count_nonzero(error, axis=others))
    return Counts(error.size, sum(per_channel), per_channel, int(np.abs(error).max(initial=0)))


def _reason(saturates: bool, loses_bits: bool) -> str | None:
    if saturates:
        return "saturation"
    return "odd weights" if loses_bits else None


def _range(problem: Weighted, src_range: tuple[int, int] | None) -> tuple[int, int]:
    lo, hi = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    if src_range is None:
        return lo, hi
    ends = integers("src_range", src_range)
    if len(ends) != 2:
        raise ShapeError("src_range", shown(src_range), "the lowest and the highest value")
    low = whole("src_range", ends[0], lo=lo, hi=hi)
    return low, whole("src_range", ends[1], lo=low, hi=hi)


def _per_channel(problem: Weighted, values: Array, most: Any) -> Array:  # noqa: ANN401 - a ufunc's reduction
    if values.shape[-1] == 0:
        return np.zeros(problem.oc, np.int64)
    # A matmul has a row for each batch.
    return np.asarray(most(most(values, axis=-1).reshape(-1, problem.oc), axis=0))
