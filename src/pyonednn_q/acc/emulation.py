"""The s32 sums of a machine without VNNI, exactly: 16-bit pairs, shifted sources, halved weights.

Padding, and what a deconvolution does not reach, are zeros, as in a kernel.

    u8 source   Σ over pairs of saturate16(x0·w0 + x1·w1)
    s8 source   the same of x + 128, less 128·Σ w; a convolution instead multiplies by weights
                halved (ties to even), which cannot saturate, and doubles the sum in f32

A source zero point is taken off afterwards, over the taps that lie inside. With VNNI, AMX or in a
reference loop the sums are exact. An s32 destination is that sum; for others `as_if` goes on with
a `Requantizer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.pairing import (
    EXACT,
    Pairing,
    Summation,
    Weighted,
    is_empty,
    is_int8,
    summations,
)
from pyonednn_q.acc.pairs import HI, LO, cuts, runs, walk
from pyonednn_q.argument import instance, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.primitive.isa import InstructionSet
from pyonednn_q.primitive.problem import InnerProductProblem, MatMulProblem
from pyonednn_q.primitive.tensor import Operation
from pyonednn_q.primitive.windowed import arranged
from pyonednn_q.requantize import statement
from pyonednn_q.requantize.value import Requantizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyonednn_q.acc.pairing import Windowed
    from pyonednn_q.primitive.problem import Problem


def sources(problem: Weighted, src: Array, way: Summation) -> Iterator[Array]:
    """Give the factors of each run: (batch, groups, positions, outputs), in the runs' order."""
    for values in _whole_sources(problem, src, way.pairing):
        for part in cuts(values.shape[2], way.block):
            yield values[:, :, part]


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
    places = [problem.reached(axis) for axis in range(problem.spatial)]

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


def as_if(
    problem: Problem,
    src: Array,
    wei: Array,
    isa: InstructionSet | str,
    *,
    src_zero_point: int = 0,
    impl: str | None = None,
    requantizer: Requantizer | None = None,
) -> Array:
    """Return the result of a machine with the given instruction set.

    Parameters
    ----------
    problem : Problem
        A convolution, deconvolution, inner product or matmul of 8-bit source and s8 weights. The
        data type of its destination makes no difference.
    src, wei : ndarray
        Codes of source and weights in the problem's data types and logical dimensions; weights of
        groups also as `Conv` takes them.
    isa : InstructionSet or str
        The machine's instruction set, or its name as in ``ONEDNN_MAX_CPU_ISA``.
    src_zero_point : int
        Code of the source that means real 0.
    impl : str, optional
        oneDNN's name of the implementation. Needed if several may be chosen on that instruction set
        and their sums of these data differ: see `acc.pairing`.
    requantizer : Requantizer, optional
        Arithmetic that converts sums to codes. None: the s32 sums are returned.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    instance("problem", problem, Operation)
    instance("src", src, np.ndarray)
    dense, wei = checked(problem, wei, src)
    if requantizer is not None:
        instance("requantizer", requantizer, Requantizer)
    zero_point = _zero_point(src_zero_point, dense)
    ways = summations(dense, isa, impl, src_zero_point=zero_point != 0)
    first, *others = (sums(dense, src, wei, way, zero_point) for way in ways)
    if any(not np.array_equal(first, other) for other in others):
        raise ArgumentError(
            "impl", str(impl), f"one that decides: {_choices(ways, InstructionSet.of(isa))}"
        )
    result = _in_32_bits(first)
    return result if requantizer is None else statement.apply(result, requantizer)


def _choices(ways: tuple[Summation, ...], isa: InstructionSet) -> str:
    names = " or ".join(way.text() for way in ways)
    if isa.vbmi is None and any(way.pairing in {Pairing.ROW, Pairing.COLUMN} for way in ways):
        names += "; an InstructionSet that tells vbmi may decide, too"
    return f"on {isa.text()} this problem's sums may pair by {names}"


def exact(problem: Problem, src: Array, wei: Array, *, src_zero_point: int = 0) -> Array:
    """Return the sums as whole numbers have them: what a machine with VNNI computes."""
    return as_if(problem, src, wei, "AVX512_CORE_VNNI", src_zero_point=src_zero_point)


def weighted(problem: Problem) -> Weighted:
    """Return the problem if it is one with 8-bit sums."""
    if not isinstance(problem, Weighted) or not is_int8(problem):
        wanted = "a convolution, deconvolution, inner product or matmul of u8 or s8 by s8"
        instance("problem", problem, Operation)
        raise ArgumentError("problem", problem.text(), wanted)
    return problem


def checked(problem: Problem, wei: Array, src: Array | None = None) -> tuple[Weighted, Array]:
    """Return the problem, if it is one with 8-bit sums, and its weights in its dims.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    dense = weighted(problem)
    instance("wei", wei, np.ndarray)
    wei = arranged(dense, wei)
    arrays = {"wei": wei} if src is None else {"src": src, "wei": wei}
    for name, array in arrays.items():
        spec = dense.tensors[name]
        wanted_dtype = dtypes.numpy_dtype(spec.dtype)
        if array.dtype != wanted_dtype:
            raise DTypeError(name, str(array.dtype), str(wanted_dtype))
        if array.shape != spec.dims:
            raise ShapeError(name, str(array.shape), str(spec.dims))
    return dense, wei


def sums(
    problem: Weighted, src: Array, wei: Array, way: Summation, src_zero_point: int = 0
) -> Array:
    """Return the sums of one way of summing, as int64, the source's zero point taken off."""
    if is_empty(problem):
        return np.zeros(problem.dst.dims, np.int64)
    weights = np.rint(wei / 2).astype(np.int32) if way.halved else wei.astype(np.int32)
    total = _shifted(problem, src, weights, way)
    if src_zero_point:
        inside = np.full(src.shape, src_zero_point, np.int32)
        total = total - _plain(problem, inside, weights, EXACT)
    if way.halved:
        total = np.rint(total.astype(np.float32) * np.float32(2)).astype(np.int64)
    return total


def _shifted(problem: Weighted, src: Array, wei: Array, way: Summation) -> Array:
    """Sum with one side made unsigned, and take that off again.

    Where a tap is outside, a kernel adds 128 · w and takes it off: 128 alone saturates nothing.
    """
    if way.shifted is None or way.halved:
        return _plain(problem, src, wei, way)
    if way.shifted == "src":
        x, extra_x, w, extra_w = src.astype(np.int32) + 128, np.full(src.shape, 128), wei, wei
    else:
        x, extra_x, w, extra_w = src, src, wei + 128, np.full(wei.shape, 128)
    return _plain(problem, x, w, way) - _plain(problem, extra_x, extra_w, EXACT)


def _plain(problem: Weighted, src: Array, wei: Array, way: Summation) -> Array:
    """Return Σ x·w as int64, with what 16-bit pairs leave out of it."""
    total: Array | None = None
    for run, x in zip(runs(problem, wei, way), sources(problem, src, way), strict=True):
        # Below 2^53: a product of float64 matrices is exact.
        part = np.matmul(run.wei.astype(np.float64), x.astype(np.float64)).astype(np.int64)
        if way.pairing is not Pairing.NONE:
            part += _left_out(run.wei, x.astype(np.int32))
        total = part if total is None else total + part
    assert total is not None
    return problem.assembled(total)


def _left_out(wei: Array, src: Array) -> Array:
    """Return saturated less whole sums of all pairs: wei (G, O, K), src (B, G, K, P)."""
    batch, groups, length, positions = src.shape
    missing = np.zeros((batch, groups, wei.shape[1], positions), np.int64)
    for at in range(0, length - 1, 2):
        pair = wei[..., at : at + 2]
        largest = int(np.abs(src[:, :, at : at + 2]).max(initial=0))
        risky = largest * np.abs(pair).sum(-1) > HI
        for group, output in np.argwhere(risky):
            sums = np.tensordot(pair[group, output], src[:, group, at : at + 2], (0, 1))
            missing[:, group, output] += np.clip(sums, LO, HI) - sums
    return missing


def _zero_point(value: int, problem: Weighted) -> int:
    lo, hi = dtypes.qmin(problem.src.dtype), dtypes.qmax(problem.src.dtype)
    return whole("src_zero_point", value, lo=lo, hi=hi)


def _in_32_bits(sums: Array) -> Array:
    return sums.astype(np.int32)  # wraps around, as the registers do
