"""The operators on oneDNN's primitives: which primitive, with which attributes.

All scales meet in one float32 ratio r, divided in float64 and rounded once, so that a result does
not depend on the kernel; v below is what the primitive itself gives, x a code less its zero point.

    one value       binary sub gives x; post-ops; linear fma(v, r, z_dst)
    two             binary add of a · r_a and b · r_b; linear adds the zero points as one constant
    means           pooling of codes: f32(sum) · f32(1 / n); linear fma(v, r, z_dst − r · z_src)
    softmax         reorder to float32: x · s; softmax; linear fma(v, 1 / s_dst, z_dst)
    resampling      of codes, in float32; linear as means
    prelu           reorder to float32: x; prelu; as one value
    concat          reorder of each source into its slice: f32(x · r) + z_dst

Then a clip to the codes' range, since some kernels store through 16 bits; rounding is to even.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes, native
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError
from pyonednn_q.primitive.attr import Attr, Scale, ZeroPoint
from pyonednn_q.primitive.post_ops import EltwisePostOp, PostOp
from pyonednn_q.primitive.problem import (
    BinaryProblem,
    PoolingProblem,
    PReluProblem,
    ReorderProblem,
    ResamplingProblem,
    SoftmaxProblem,
)
from pyonednn_q.primitive.tensor import TensorSpec
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.emulate.operands import Encoding, Quantized
    from pyonednn_q.primitive.problem import Problem
    from pyonednn_q.primitive.window import Window

_Values = tuple[tuple[str, float], ...]
_REGISTER = 32  # bytes, which the kernels below AVX-512 load at once, or do not take the problem


def linear(alpha: float, beta: float) -> EltwisePostOp:
    """Return the post-op alpha · v + beta, of one rounding."""
    return EltwisePostOp("linear", alpha, beta)


def codes(dst_q: Encoding, src: Quantized, *post_ops: PostOp, by: float | None = None) -> Array:
    """Return codes of a function of single values.

    Parameters
    ----------
    dst_q : Encoding
        Scale, zero point and data type of the result.
    src : Quantized
        The tensor that the function is of.
    *post_ops : PostOp
        The function, of codes less the zero point.
    by : float, optional
        Unit of the function's values; by default the scale of `src`.
    """
    flat = (1, src.codes.size)
    problem = BinaryProblem(
        TensorSpec.dense(flat, _dtype(src.codes)),
        TensorSpec.dense((1, 1), "f32"),
        TensorSpec.dense(flat, dst_q.dtype),
        "sub",
    )
    store = _store(_ratio(src.scale if by is None else by, dst_q.scale), dst_q.zero_point, dst_q)
    point = np.full((1, 1), src.zero_point, np.float32)
    call = _prepared(problem, Attr(post_ops=(*post_ops, *store)))
    dst: Array = call(src.codes.reshape(flat), point).reshape(src.codes.shape)
    return dst


def added(dst_q: Encoding, a: Quantized, b: Quantized) -> Array:
    """Return codes of a + b, broadcast against each other."""
    dims = np.broadcast_shapes(a.codes.shape, b.codes.shape) or (1,)
    if a.codes.shape != dims:
        a, b = b, a
    left = np.ascontiguousarray(np.broadcast_to(a.codes, dims))
    ndim = len(dims)
    right = b.codes.reshape((1,) * (ndim - b.codes.ndim) + b.codes.shape)
    # The kernels repeat one value, or one for each channel.
    if right.shape not in {(1,) * ndim, (1, *dims[1:2], *(1,) * (ndim - 2))}:
        right = np.ascontiguousarray(np.broadcast_to(right, dims))
    problem = BinaryProblem(
        TensorSpec.dense(dims, _dtype(left)),
        TensorSpec.dense(right.shape, _dtype(right)),
        TensorSpec.dense(dims, dst_q.dtype),
        "add",
    )
    ratios = [_ratio(x.scale, dst_q.scale) for x in (a, b)]
    shift = dst_q.zero_point - ratios[0] * a.zero_point - ratios[1] * b.zero_point
    attr = Attr(src_scale=Scale(), src1_scale=Scale(), post_ops=_store(1.0, shift, dst_q))
    values = (("src_scale", ratios[0]), ("src1_scale", ratios[1]))
    dst: Array = _prepared(problem, attr, values)(left, right)
    return dst.reshape(np.broadcast_shapes(a.codes.shape, b.codes.shape))


def prelu(dst_q: Encoding, src: Quantized, slope: Array) -> Array:
    """Return codes of x above 0 and slope · x below; slopes are float32 that broadcast."""
    dims = src.codes.shape
    problem = PReluProblem(
        TensorSpec.dense(dims, "f32"),
        TensorSpec.dense(slope.shape, "f32"),
        TensorSpec.dense(dims, "f32"),
    )
    values = native.prepare(problem, wei=slope)(_reals(src._replace(scale=1.0)))
    return _quantized(values, src.scale, dst_q)


def largest(src: Array, dims: tuple[int, ...], window: Window) -> Array:
    """Return the largest code of every window."""
    return _pooled("max", src, dims, window)


def means(
    dst_q: Encoding, src: Quantized, dims: tuple[int, ...], window: Window, *, whole: bool
) -> Array:
    """Return codes of the mean of every window, over what lies in the tensor or over all of it."""
    if dst_q.dtype != _dtype(src.codes):
        wanted = f"{_dtype(src.codes)}, as src: oneDNN's pooling of codes keeps their type"
        raise DTypeError("dst_q", dst_q.dtype, wanted)
    array = src.codes
    if whole and src.zero_point and any((*window.padding_lo, *window.padding_hi)):
        # Padding is real 0, the primitive's is code 0.
        sides = [(0, 0), (0, 0), *zip(window.padding_lo, window.padding_hi, strict=True)]
        array = np.pad(array, sides, constant_values=src.zero_point)
        none = (0,) * len(sides[2:])
        window = dataclasses.replace(window, padding_lo=none, padding_hi=none)
    alg = "avg_include_padding" if whole else "avg_exclude_padding"
    attr = Attr(post_ops=_rescale(src, dst_q))
    return _pooled(alg, array, dims, window, attr)


def softmax(dst_q: Encoding, src: Quantized, axis: int, beta: float) -> Array:
    """Return codes of the softmax of beta · x."""
    step = float(np.float32(src.scale) * np.float32(beta))
    if not (np.isfinite(step) and step > 0):
        raise ArgumentError("beta", shown(beta), "a positive number: a reorder multiplies by it")
    spec = TensorSpec.dense(src.codes.shape, "f32")
    problem = SoftmaxProblem(spec, TensorSpec.dense(spec.dims, dst_q.dtype), axis)
    attr = Attr(post_ops=_store(_ratio(1.0, dst_q.scale), dst_q.zero_point, dst_q))
    return _prepared(problem, attr)(_reals(src._replace(scale=step)))


def resized(dst_q: Encoding, src: Quantized, size: tuple[int, ...]) -> Array:
    """Return codes of another spatial size, linear along every dimension."""
    dims = (*src.codes.shape[:2], *size)
    problem = ResamplingProblem(
        TensorSpec.channels_last(src.codes.shape, _dtype(src.codes)),
        TensorSpec.channels_last(dims, dst_q.dtype),
        "linear",
    )
    return _prepared(problem, Attr(post_ops=_rescale(src, dst_q)))(src.codes)


def joined(dst_q: Encoding, parts: Sequence[Quantized], dims: tuple[int, ...], axis: int) -> Array:
    """Return codes of all parts, each stored at its place along the axis."""
    dst = np.empty(dims, dtypes.numpy_dtype(dst_q.dtype))
    at = 0
    for part in parts:
        length = part.codes.shape[axis]
        index = (*[slice(None)] * axis, slice(at, at + length))
        place = dst[index]
        at += length
        ratio = _ratio(part.scale, dst_q.scale)
        _reorder(part, ratio, dst_q.zero_point, place, dst_q.dtype)
    return dst


def _reorder(src: Quantized, ratio: float, zero_point: int, place: Array, dtype: str) -> None:
    if not place.size:
        return
    strides = tuple(step // place.itemsize for step in place.strides)
    problem = ReorderProblem(
        TensorSpec.dense(src.codes.shape, _dtype(src.codes)),
        TensorSpec(place.shape, dtype, strides),
    )
    points = {"src": src.zero_point, "dst": zero_point}
    shifts = {name: point for name, point in points.items() if point}
    attr = Attr(
        src_scale=Scale(),
        src_zero_point=ZeroPoint() if "src" in shifts else None,
        dst_zero_point=ZeroPoint() if "dst" in shifts else None,
    )
    values = tuple((f"{name}_zero_point", float(point)) for name, point in shifts.items())
    _prepared(problem, attr, (("src_scale", ratio), *values))(src.codes, out=place)


def _reals(src: Quantized) -> Array:
    """Return x · scale in float32."""
    dst = np.empty(src.codes.shape, np.float32)
    _reorder(src, src.scale, 0, dst, "f32")
    return dst


def _quantized(values: Array, by: float, dst_q: Encoding) -> Array:
    """Return codes of float32 values that are in units of `by`."""
    flat = (1, values.size)
    problem = BinaryProblem(
        TensorSpec.dense(flat, "f32"),
        TensorSpec.dense((1, 1), "f32"),
        TensorSpec.dense(flat, dst_q.dtype),
        "add",
    )
    attr = Attr(post_ops=_store(_ratio(by, dst_q.scale), dst_q.zero_point, dst_q))
    nothing = np.zeros((1, 1), np.float32)
    dst: Array = _prepared(problem, attr)(values.reshape(flat), nothing).reshape(values.shape)
    return dst


def _pooled(
    alg: str, src: Array, dims: tuple[int, ...], window: Window, attr: Attr | None = None
) -> Array:
    """Pool, with channels of zeros beside a source that is too small for some kernels."""
    channels, dtype = dims[1], _dtype(src)
    if math.prod(map(min, src.shape, dims)) < _REGISTER:
        sides = [(0, _REGISTER if axis == 1 else 0) for axis in range(src.ndim)]
        src = np.pad(src, sides)
    problem = PoolingProblem(
        TensorSpec.channels_last(src.shape, dtype),
        TensorSpec.channels_last((dims[0], src.shape[1], *dims[2:]), dtype),
        alg,
        window.kernel,
        window.stride,
        window.dilation,
        window.padding_lo,
        window.padding_hi,
    )
    dst: Array = _prepared(problem, attr)(src)
    return dst if src.shape[1] == channels else np.ascontiguousarray(dst[:, :channels])


def _rescale(src: Quantized, dst_q: Encoding) -> tuple[EltwisePostOp, ...]:
    """Return post-ops that make codes of `dst_q` of those of `src`; none where they are alike."""
    if (src.scale, src.zero_point) == (dst_q.scale, dst_q.zero_point):
        return ()
    ratio = _ratio(src.scale, dst_q.scale)
    return _store(ratio, dst_q.zero_point - ratio * src.zero_point, dst_q)


def _store(ratio: float, shift: float, dst_q: Encoding) -> tuple[EltwisePostOp, ...]:
    ends = float(dtypes.qmin(dst_q.dtype)), float(dtypes.qmax(dst_q.dtype))
    return linear(ratio, float(np.float32(shift))), EltwisePostOp("clip", *ends)


def _ratio(scale: float, to: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        ratio = float(np.float32(scale / to))
    if not (np.isfinite(ratio) and ratio > 0):
        raise ArgumentError("dst_q", f"a scale of {to!r}", f"one that float32 relates to {scale!r}")
    return ratio


def _dtype(array: Array) -> str:
    return dtypes.from_numpy(array.dtype, "src")


@functools.lru_cache(maxsize=256)
def _prepared(problem: Problem, attr: Attr | None = None, values: _Values = ()) -> native.Prepared:
    arrays = {
        name: np.array([value], np.float32 if name.endswith("scale") else np.int32)
        for name, value in values
    }
    return native.prepare(problem, attr, values=arrays)
