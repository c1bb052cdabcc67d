"""Which output channels are exact without VNNI, whatever the source holds.

Without VNNI, a kernel multiplies unsigned source bytes by signed weight bytes and adds
neighbouring products in 16 bits, with saturation (vpmaddubsw), before it goes on in 32 bits. For a
pair of weights (w0, w1) and sources up to X, the sum of products lies in

    [−X · (w0⁻ + w1⁻), X · (w0⁺ + w1⁺)]        w⁺ = max(w, 0), w⁻ = max(−w, 0)

and both ends are reached. The pair is exact for every source if and only if the ends lie within
[−32768, 32767]. An s8 source is made unsigned first:

    matmul, inner product       by adding 128: as above, with X + 128
    convolution family          so too, but the kernel halves the weights (ties to even) and doubles
                                the result: nothing saturates, and an odd weight is not exact

Measured on 3.7.2 and 3.13.2; 256-bit AVX2-VNNI, AVX512-VNNI and AMX are exact. So are the reference
loops on any machine: ask only for the other implementations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.argument import whole
from pyonednn_q.compose.implementation import has_vnni
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from pyonednn_q.compose.problem import Problem

Array = np.ndarray[Any, Any]

LO, HI = -(2**15), 2**15 - 1
SAFE = 64  # 255 · (64 + 64) = 32640


def safe_by_range(wei: Array) -> bool:
    """Tell whether all weights are in [-64, 64], where no pair saturates however it is formed.

    Enough for u8 sources, and for s8 sources of matmul and inner product. Not for s8 sources of the
    convolution family, where weights must be even instead.
    """
    return wei.size == 0 or bool(wei.min() >= -SAFE and wei.max() <= SAFE)


def pair_overflow(
    wei: Array, problem: Problem, isa: str, *, src_max: int | None = None
) -> tuple[int, ...]:
    """Return the output channels that some source makes inexact on `isa`.

    Which pairs a kernel forms is known for convolution and deconvolution (neighbouring input
    channels (2k, 2k+1) of one group at one tap), matmul (neighbours along K) and inner product of
    two dimensions (likewise). It is not for an odd number of input channels per group beside
    several taps, where a kernel may run taps and channels together, nor for an inner product with
    spatial dimensions, whose order follows the layout: there, the two largest weights of a channel
    count as a pair, and a channel may be returned that would be exact.

    Parameters
    ----------
    wei : ndarray of int8
        In the logical dimensions of the problem's weights.
    problem : Problem
        Any; without weights, or with a source of other than 8 bits, nothing can saturate.
    isa : str
        The effective instruction set.
    src_max : int, optional
        The largest value that the stored source takes (zero point included); by default the largest
        of its type. Without effect where weights must be even.

    Returns
    -------
    tuple of int
        Rising. For grouped weights the index runs over all groups; for matmul it is the column.

    Raises
    ------
    DTypeError, ShapeError
        `wei` is not what the problem says.
    ArgumentError
        `src_max` is outside the source type.
    """
    if not isinstance(problem, (ConvProblem, DeconvProblem, InnerProductProblem, MatMulProblem)):
        return ()
    if problem.wei.dtype != "s8" or problem.src.dtype not in ("u8", "s8") or has_vnni(isa):
        return ()
    if wei.dtype != np.int8:
        raise DTypeError(argument="wei", got=str(wei.dtype), wanted="int8")
    if wei.shape != problem.wei.dims:
        raise ShapeError(argument="wei", got=str(wei.shape), wanted=str(problem.wei.dims))

    is_conv = isinstance(problem, (ConvProblem, DeconvProblem))
    if is_conv and problem.src.dtype == "s8":
        is_odd = _by_channel(wei, problem) % 2 == 1
        return _indices(np.any(is_odd, axis=(1, 2)))
    lo, hi = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    largest = hi if src_max is None else whole("src_max", src_max, lo=lo, hi=hi)
    largest -= lo
    if isinstance(problem, (ConvProblem, DeconvProblem)) and problem.is_depthwise:
        return ()
    weights = _by_channel(wei, problem)
    return _indices(_overflows(weights, largest, paired=_pairs_are_known(weights, problem)))


def _by_channel(wei: Array, problem: Problem) -> Array:
    """Weights as (output channel, tap, input channel), in 32 bits."""
    wide = wei.astype(np.int32)
    if isinstance(problem, MatMulProblem):
        return np.moveaxis(wide, -1, 0).reshape(problem.n, -1, problem.k)
    if isinstance(problem, InnerProductProblem):
        return wide.reshape(problem.oc, 1, -1)
    assert isinstance(problem, (ConvProblem, DeconvProblem))
    per_group = problem.ic // problem.groups
    return np.moveaxis(wide.reshape(problem.oc, per_group, -1), 1, 2)


def _pairs_are_known(weights: Array, problem: Problem) -> bool:
    if isinstance(problem, MatMulProblem):
        return True
    if isinstance(problem, InnerProductProblem):
        return problem.src.ndim == 2
    _, taps, channels = weights.shape
    return bool(taps == 1 or channels % 2 == 0)


def _overflows(weights: Array, largest: int, *, paired: bool) -> Array:
    """Per output channel: can a pair leave 16 bits, with sources from 0 to `largest`."""
    up, down = np.maximum(weights, 0), np.maximum(-weights, 0)
    most_up, most_down = (_largest_sum(side, paired=paired) for side in (up, down))
    too_high: Array = (largest * most_up > HI) | (-largest * most_down < LO)
    return too_high


def _largest_sum(weights: Array, *, paired: bool) -> Array:
    """Per output channel, the largest sum of a pair; unpaired weights may meet any other."""
    if not paired:
        flat = weights.reshape(len(weights), -1)
        worst: Array = np.sort(flat, axis=1)[:, -2:].sum(axis=1)
        return worst
    if weights.shape[2] % 2:
        weights = np.pad(weights, ((0, 0), (0, 0), (0, 1)))
    sums = weights[:, :, 0::2] + weights[:, :, 1::2]
    largest: Array = sums.max(axis=(1, 2), initial=0)
    return largest


def _indices(mask: object) -> tuple[int, ...]:
    return tuple(int(index) for index in np.flatnonzero(np.asarray(mask)))
