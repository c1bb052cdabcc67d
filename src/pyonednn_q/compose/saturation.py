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

Measured on 3.7.2 and 3.13.2: the s32 results of every implementation on SSE4.1 and AVX2 equal
this model or the exact sum. 256-bit AVX2-VNNI, AVX512-VNNI and AMX are exact; so are depthwise u8
and, on any machine, reference loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.argument import whole
from pyonednn_q.compose.implementation import at_least, has_vnni
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
Weighted = ConvProblem | DeconvProblem | InnerProductProblem | MatMulProblem

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

    Which weights meet in a pair: neighbours (2k, 2k+1) among the input channels of one group at
    one tap of a convolution or deconvolution, along K of a matmul, along the source's memory of an
    inner product. Up to AVX2 this was compared value by value. With AVX512_CORE it is assumed,
    except for an odd number of channels beside several taps, which a kernel may run together, and
    for an inner product with spatial dimensions: there the two largest weights of a channel count
    as a pair, and a channel may be returned that would be exact.

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

    weights = _in_runs(wei, problem)
    if isinstance(problem, (ConvProblem, DeconvProblem)):
        if problem.src.dtype == "s8":
            return _indices(np.any(weights % 2 == 1, axis=(1, 2)))
        if problem.is_depthwise:
            return ()
    lo, hi = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    largest = (hi if src_max is None else whole("src_max", src_max, lo=lo, hi=hi)) - lo
    paired = _are_pairs_known(weights, problem, isa)
    too_high = largest * _largest_sums(np.maximum(weights, 0), paired=paired) > HI
    too_low = -largest * _largest_sums(np.maximum(-weights, 0), paired=paired) < LO
    return _indices(too_high | too_low)


def _in_runs(wei: Array, problem: Weighted) -> Array:
    """Weights in 32 bits as (output channel, run, position); pairs are neighbours within a run."""
    wide = wei.astype(np.int32)
    if isinstance(problem, MatMulProblem):
        return np.moveaxis(wide, -1, 0).reshape(problem.n, -1, problem.k)
    if isinstance(problem, InnerProductProblem):
        runs_by_channel = problem.src.ndim > 2 and problem.src.is_channels_last
        ordered = np.moveaxis(wide, 1, -1) if runs_by_channel else wide
        return ordered.reshape(problem.oc, 1, -1)
    per_group = problem.ic // problem.groups
    return np.moveaxis(wide.reshape(problem.oc, per_group, -1), 1, 2)


def _are_pairs_known(weights: Array, problem: Weighted, isa: str) -> bool:
    if isinstance(problem, MatMulProblem):
        return True
    compared = not at_least(isa, "AVX512_CORE")
    if isinstance(problem, InnerProductProblem):
        return problem.src.ndim == 2 or (compared and problem.src.strides is not None)
    _, taps, channels = weights.shape
    return compared or taps == 1 or channels % 2 == 0


def _largest_sums(weights: Array, *, paired: bool) -> Array:
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
