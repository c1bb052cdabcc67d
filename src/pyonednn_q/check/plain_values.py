"""Plain: what primitives without products of weights compute at a sample, before what follows.

    reorder      src_scale · (src − src_zero_point)
    eltwise      alg(src)                               as a step of the chain
    binary       src_scale · src, then alg with src1_scale · src1
    sum          Σ scales[i] · src_i
    softmax      src_scale · exp(src) / Σ exp(src)      or its logarithm
    prelu        src, then times wei where it is below 0
    pooling      the largest, or the mean, of a window: places beyond the edges never win or add,
                 and count where padding does
    resampling   src at (o + 1/2) · I / O − 1/2 along each dimension: the nearest, or between two

Read here once more, apart from what the hunt (tools/hunt/hunt_plain.py) and the tests compare with.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.check.meaning import summed_error
from pyonednn_q.check.places import Geometry, tap_sources
from pyonednn_q.dtypes import F32_LEAST, F32_UNIT, Array
from pyonednn_q.expr.algs import ALGS
from pyonednn_q.expr.steps import Binary, Eltwise, Leaf, PRelu, Round
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    EltwiseProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SoftmaxProblem,
    SumProblem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.check.sample import Slots
    from pyonednn_q.expr.steps import Step
    from pyonednn_q.primitive.problem import Problem

    F64 = NDArray[np.float64]
    Entering = tuple[F64, F64, tuple[Step, ...], dict[str, F64]]

_EXP = 2.0**-15  # in parts of the value: two exponentials, each off by a good ten times of measured


def terms_of(problem: Problem) -> int:
    """Return the number of elements of a source in a result."""
    if isinstance(problem, PoolingProblem):
        return math.prod(problem.kernel)
    if isinstance(problem, SoftmaxProblem):
        return problem.src.dims[problem.axis]
    return 1


def entering(
    problem: Problem,
    sample: Slots,
    arrays: Mapping[str, Array],
    scales: Mapping[str, Array],
    src_zero_point: Array,
) -> Entering:
    """Return what enters the chain at a sample: values, errors, steps before it, their operands.

    Parameters
    ----------
    problem : Problem
        One without products of weights.
    sample : Slots
        Sample of the places of its dst.
    arrays : mapping of str to ndarray
        Sources of the problem, by the names of its tensors.
    scales : mapping of str to ndarray
        Scales of src and src1, which broadcast to them; 1 where there is none.
    src_zero_point : ndarray
        Zero points, which broadcast to src.

    Raises
    ------
    KeyError
        The problem is of another kind.
    """
    if isinstance(problem, SumProblem):
        terms = [
            float(np.float32(scale)) * _read(sample, arrays[f"src_{at}"])
            for at, scale in enumerate(problem.scales)
        ]
        sizes = np.sum(np.abs(terms), axis=0)
        return np.sum(terms, axis=0), summed_error(sizes, len(terms)), (), {}
    if isinstance(problem, PoolingProblem):
        return (*_pooled(problem, sample, arrays["src"]), (), {})
    if isinstance(problem, ResamplingProblem):
        return (*_resampled(problem, sample, arrays["src"]), (), {})
    if isinstance(problem, SoftmaxProblem):
        x, error = _softmax(problem, sample, arrays["src"])
        scale = scales["src"].reshape(-1)[0]
        return x * scale, error * scale, (), {}
    x = _read(sample, arrays["src"])
    steps: tuple[Step, ...] = ()
    operands: dict[str, F64] = {}
    if isinstance(problem, ReorderProblem):
        x = (x - sample.take(src_zero_point)) * sample.take(scales["src"])
    elif isinstance(problem, EltwiseProblem):
        parameters = (problem.alpha, problem.beta)[: ALGS[problem.alg].parameters]
        steps = (Round() if problem.alg == "round" else Eltwise(problem.alg, *parameters),)
    elif isinstance(problem, BinaryProblem):
        x = x * sample.take(scales["src"])
        operands["src1"] = (_read(sample, arrays["src1"]) * sample.take(scales["src1"]))[np.newaxis]
        alg: Any = problem.alg
        steps = (Binary(alg, Leaf("src1")),)
    elif isinstance(problem, PReluProblem):
        steps = (PRelu(Vec(_read(sample, arrays["wei"]))),)
    else:
        raise KeyError(problem.kind)
    return x, F32_UNIT * np.abs(x), steps, operands


def _read(sample: Slots, array: Array) -> F64:
    return sample.take(array).astype(np.float64)


def _pooled(problem: PoolingProblem, sample: Slots, src: Array) -> tuple[F64, F64]:
    sides = tuple(zip(problem.padding_lo, problem.padding_hi, strict=True))
    window = Geometry(
        "convolution",
        problem.src.dims,
        (1, 1, *problem.kernel),
        problem.stride,
        sides,
        problem.dilation,
    )
    taps = np.unravel_index(np.arange(math.prod(problem.kernel)), problem.kernel)
    index = [at[:, np.newaxis] for at in sample.index[:2]]
    inside = np.ones((sample.count, len(taps[0])), bool)
    for axis, tap in enumerate(taps):
        at, valid = tap_sources(window, axis, sample.index[2 + axis])
        index.append(np.where(valid, at, 0)[:, tap])
        inside &= valid[:, tap]
    seen = src[tuple(index)].astype(np.float64)
    if problem.alg == "max":
        largest = np.where(inside, seen, -np.inf).max(axis=1)
        return largest, np.zeros_like(largest)
    seen = seen * inside
    whole = problem.alg == "avg_include_padding"
    count = np.full(sample.count, len(taps[0])) if whole else inside.sum(axis=1)
    with np.errstate(all="ignore"):
        mean = seen.sum(axis=1) / count
        error = summed_error(np.abs(seen).sum(axis=1), len(taps[0])) / count
    return mean, error + 2 * F32_UNIT * np.abs(mean)


def _softmax(problem: SoftmaxProblem, sample: Slots, src: Array) -> tuple[F64, F64]:
    index = [at[:, np.newaxis] for at in sample.index]
    own = index[problem.axis]
    length = problem.src.dims[problem.axis]
    index[problem.axis] = np.arange(length)[np.newaxis]
    row = src[tuple(index)].astype(np.float64)
    shifted = row - row.max(axis=1, keepdims=True)
    total = np.exp(shifted).sum(axis=1)
    mine = np.take_along_axis(shifted, own, axis=1)[:, 0]
    part = _EXP + (length + 4) * F32_UNIT
    if problem.log:
        value = mine - np.log(total)
        return value, part + F32_UNIT * (np.abs(mine) + np.abs(value))
    value = np.exp(mine) / total
    return value, part * value + F32_LEAST


def _resampled(problem: ResamplingProblem, sample: Slots, src: Array) -> tuple[F64, F64]:
    ends: list[list[Any]] = []
    shares: list[Any] = []
    error: Any = np.zeros(sample.count)
    for axis in range(2, len(problem.src.dims)):
        before, after = problem.src.dims[axis], problem.dst.dims[axis]
        out = sample.index[axis]
        at = (out + 0.5) * before / after - 0.5
        if problem.alg == "nearest":
            # Amid two pixels neither is nearer.
            error = np.where((2 * out + 1) * before % (2 * after) == 0, np.inf, error)
            ends.append([np.clip(np.rint(at).astype(int), 0, before - 1)])
            shares.append([np.ones(sample.count)])
        else:
            left = np.floor(at).astype(int)
            ends.append([np.clip(left + step, 0, before - 1) for step in (0, 1)])
            shares.append([1 - (at - left), at - left])
    value, sizes = np.zeros(sample.count), np.zeros(sample.count)
    for choice in product(*(range(len(end)) for end in ends)):
        index = [end[which] for end, which in zip(ends, choice, strict=True)]
        share = np.prod([part[which] for part, which in zip(shares, choice, strict=True)], axis=0)
        term = share * src[sample.index[:2] + tuple(index)].astype(np.float64)
        value, sizes = value + term, sizes + np.abs(term)
    if problem.alg == "linear":
        # Shares are computed in float32, from positions that are rounded, too.
        most = max(*problem.src.dims[2:], *problem.dst.dims[2:])
        error = F32_UNIT * (16 + 4 * most) * np.maximum(sizes, np.abs(value))
    return value, error
