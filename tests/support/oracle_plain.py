"""The primitives without a reduction over channels, up to their post-op chain."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from support import oracle_binary, oracle_eltwise
from support.oracle_numbers import INTEGER_RANGES, as_float64, spread
from support.oracle_tracked import (
    UNIT,
    Tracked,
    add,
    divide_or_reciprocal,
    grid,
    mul,
    rounded,
    summed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyonednn_q.primitive.attr import Attr
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
    from pyonednn_q.primitive.tensor import TensorSpec
    from support.oracle_tracked import F64

    Arrays = Mapping[str, NDArray[Any]]

# Errors of a kernel's exp (relative) and log (absolute), in units of 2**-24.
_EXP_UNITS = oracle_eltwise.kernel_error("exp")
_LOG_UNITS = oracle_eltwise.kernel_error("log")


def _read(arrays: Arrays, name: str, spec: TensorSpec) -> F64:
    return as_float64(arrays[name], spec.dtype).reshape(spec.dims)


def _dequantized(name: str, spec: TensorSpec, attr: Attr, arrays: Arrays) -> Tracked:
    """Return scale * (value - zero_point), each only where the attribute asks for it."""
    x = Tracked.exact(_read(arrays, name, spec))
    zero_point = getattr(attr, f"{name}_zero_point", None)
    if zero_point is not None:
        values = as_float64(arrays[f"{name}_zero_point"], zero_point.dtype)
        shift = spread(values, zero_point.mask, zero_point.groups, spec.dims)
        x = rounded(x.value - shift, x.error)
    scale = getattr(attr, f"{name}_scale", None)
    if scale is not None:
        values = as_float64(arrays[f"{name}_scale"], scale.dtype)
        x = mul(x, Tracked.exact(spread(values, scale.mask, scale.groups, spec.dims)))
    return x


def reorder(problem: ReorderProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """src_scale * (src - src_zero_point); dst scale and zero point follow after the chain."""
    return _dequantized("src", problem.src, attr, arrays)


def eltwise(problem: EltwiseProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """alg(src)."""
    del attr
    x = Tracked.exact(_read(arrays, "src", problem.src))
    return oracle_eltwise.apply(problem.alg, x, problem.alpha, problem.beta)


def binary(problem: BinaryProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """alg(src_scale * src, src1_scale * src1), both broadcast to dst."""
    src = _dequantized("src", problem.src, attr, arrays)
    src1 = _dequantized("src1", problem.src1, attr, arrays)
    return oracle_binary.apply(problem.alg, src, src1)


def sum_of(problem: SumProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """Sum over i of scales[i] * src_i."""
    del attr
    total = Tracked.exact(np.zeros(problem.dst.dims))
    for index, (spec, scale) in enumerate(zip(problem.srcs, problem.scales, strict=True)):
        term = Tracked.exact(_read(arrays, f"src_{index}", spec))
        total = add(total, mul(term, Tracked.exact(np.float32(scale))))
    return total


def softmax(problem: SoftmaxProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """Softmax or log-softmax of the raw src; the src scale multiplies the result."""
    x = softmax_of(_read(arrays, "src", problem.src), problem.axis, log=problem.log)
    if attr.src_scale is not None:
        scale = as_float64(arrays["src_scale"], attr.src_scale.dtype).reshape(())
        x = mul(x, Tracked.exact(scale))
    return x


def softmax_of(src: F64, axis: int, *, log: bool = False) -> Tracked:
    """Softmax or log-softmax of float32 values, with the error of the kernels' exponentials."""
    terms = src.shape[axis]
    shifted = src - src.max(axis=axis, keepdims=True)
    total = np.exp(shifted).sum(axis=axis, keepdims=True)
    # Two kernel exponentials, a sum of `terms` numbers, a reciprocal, a product.
    relative = (2 * _EXP_UNITS + terms + 3) * UNIT
    if log:
        value = shifted - np.log(total)
        error = relative + _LOG_UNITS * UNIT + UNIT * (np.abs(shifted) + np.abs(value))
    else:
        value = np.exp(shifted) / total
        error = relative * value + 2.0**-126  # a kernel may flush subnormals
    return Tracked(value, error)


def pooling(problem: PoolingProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """Maximum or mean over a window; padding never wins and never adds."""
    src = _read(arrays, "src", problem.src)
    scale = getattr(attr, "src_scale", None)
    x = _pool(src, problem)
    if scale is not None:
        values = as_float64(arrays["src_scale"], scale.dtype).reshape(())
        x = mul(x, Tracked.exact(values))
    return x


def prelu(problem: PReluProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """Src where it is positive, wei * src elsewhere."""
    del attr
    src, wei = (_read(arrays, name, problem.tensors[name]) for name in ("src", "wei"))
    slopes = mul(Tracked.exact(src), Tracked.exact(np.broadcast_to(wei, src.shape)))
    positive = src > 0
    return Tracked(np.where(positive, src, slopes.value), np.where(positive, 0.0, slopes.error))


def resampling(problem: ResamplingProblem, attr: Attr, arrays: Arrays) -> Tracked:
    """The value of the nearest pixel, whose centre is not amid two."""
    del attr
    if problem.alg != "nearest":
        raise NotImplementedError(problem.alg)
    x = _read(arrays, "src", problem.src)
    for axis in range(2, x.ndim):
        before, after = x.shape[axis], problem.dst.dims[axis]
        at = (np.arange(after) + 0.5) * before / after - 0.5
        assert not np.any(at % 1 == 0.5)
        x = np.take(x, np.clip(np.rint(at).astype(int), 0, before - 1), axis)
    return Tracked.exact(x)


def _pool(src: F64, problem: PoolingProblem) -> Tracked:
    if problem.alg == "max":
        return Tracked.exact(_windows(src, problem, -np.inf).max(axis=0))
    windows = _windows(src, problem, 0.0)
    magnitude = np.abs(windows).sum(axis=0)
    terms = math.prod(problem.kernel)
    if problem.src.dtype in INTEGER_RANGES:
        total = Tracked.exact(windows.sum(axis=0))
    else:
        total = summed(windows.sum(axis=0), magnitude, terms, grid(src))
    if problem.alg == "avg_include_padding":
        count = np.asarray(float(terms))
    else:
        count = _windows(np.ones_like(src), problem, 0.0).sum(axis=0)
    return divide_or_reciprocal(rounded(total.value, total.error), count)


def _windows(src: F64, problem: PoolingProblem, outside: float) -> F64:
    """Stack what each kernel position sees: (taps, *dst dims)."""
    out = problem.dst.dims[2:]
    pads = [
        (lo, max(hi, (o - 1) * s + (k - 1) * d + 1 - lo - size))
        for lo, hi, o, s, k, d, size in zip(
            problem.padding_lo,
            problem.padding_hi,
            out,
            problem.stride,
            problem.kernel,
            problem.dilation,
            src.shape[2:],
            strict=True,
        )
    ]
    padded = np.pad(src, [(0, 0), (0, 0), *pads], constant_values=outside)
    views = []
    for tap in product(*(range(size) for size in problem.kernel)):
        window = [slice(None)] * 2
        for axis, position in enumerate(tap):
            start, stride = position * problem.dilation[axis], problem.stride[axis]
            window.append(slice(start, start + (out[axis] - 1) * stride + 1, stride))
        views.append(padded[tuple(window)])
    return np.stack(views)
