"""Means and maxima of windows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import flag, integers
from pyonednn_q.dtypes import Array
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Arithmetic,
    Dialects,
    Encoding,
    Quantized,
    checked,
    choose,
    encoding,
    plain,
    searched,
    two_step,
    two_step_up,
)
from pyonednn_q.emulate.pool_windows import Pooling
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.requantize.multiplier import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)
from pyonednn_q.requantize.rounding import round_real, shift_round
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.primitive.window import Padding, PerDim
    from pyonednn_q.qparams import QParams

_VECTOR = 16  # channels that LiteRT's optimised mean takes at a time


def average_pool(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    kernel: PerDim,
    *,
    src_q: QParams,
    dst_q: QParams,
    stride: PerDim | None = None,
    padding: Padding = 0,
    count_padding: bool = False,
    dialect: str = "tflite",
) -> Array:
    """Return codes of the mean of every window.

    Parameters
    ----------
    src : (N, C, spatial) tensor
        Codes of src_q's data type.
    kernel, stride : int or sequence of int
        Size of the window and its step, in elements: one value, or one per spatial dimension. The
        step is that of the window's size by default.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    padding : int or sequence
        Elements of padding around src, in the forms that `Conv` takes; less than the kernel.
    count_padding : bool
        Whether padding, which is real 0, counts in the mean: then each sum is divided by the size
        of the whole kernel.
    dialect : str
        tflite, snps_caffe, onnxruntime, caffe2, tpu_mlir, which always counts padding, tosa or
        onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 1, "u8")
    >>> average_pool(np.array([[[3, 4, 8, 9]]], np.uint8), 2, src_q=q, dst_q=q)
    array([[[4, 9]]], dtype=uint8)
    """
    codes = choose(AVERAGE_POOL, dialect)
    flag("count_padding", count_padding)
    x = checked("src", src, src_q)
    to = encoding("dst_q", dst_q)
    pooling = Pooling(x.codes.shape, kernel, stride, padding)
    return codes(to, x, pooling, count_padding)


def mean(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    axes: Sequence[int] | None = None,
    *,
    src_q: QParams,
    dst_q: QParams,
    dialect: str = "tflite",
) -> Array:
    """Return codes of the mean along some dimensions, which stay as 1.

    Parameters
    ----------
    src : tensor
        Codes of src_q's data type, of any rank; (N, C, H, W) where the spatial dimensions of images
        are another kernel's than other dimensions.
    axes : sequence of int, optional
        Dimensions that are averaged over; the spatial ones, from the third on, by default.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    dialect : str
        tflite, the MEAN operator of its reference kernels, tflite_optimised (with keep_dims and on
        one thread, which decides where its vectors begin) or xnnpack.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> q = QParams(0.5, 1, "u8")
    >>> mean(np.array([[[3, 4, 8, 9]]], np.uint8), src_q=q, dst_q=QParams(0.25, 0, "u8"))
    array([[[10]]], dtype=uint8)
    """
    codes = choose(MEAN, dialect)
    x = checked("src", src, src_q)
    to = encoding("dst_q", dst_q)
    rank = x.codes.ndim
    along = tuple(range(2, rank)) if axes is None else integers("axes", axes)
    inside = all(-rank <= axis < rank for axis in along)
    if not along or not inside or len({axis % rank for axis in along}) < len(along):
        wanted = f"different dimensions of {x.codes.shape}"
        raise ShapeError("axes", shown(along), wanted)
    if not x.codes.size:
        raise ShapeError("src", str(x.codes.shape), "elements")
    return codes(to, x, along)


def max_pool(
    src: Any,  # noqa: ANN401
    kernel: PerDim,
    *,
    stride: PerDim | None = None,
    padding: Padding = 0,
    dialect: str = "tflite",
) -> Array:
    """Return the largest code of every window: the same in all dialects.

    Parameters
    ----------
    src, kernel, stride, padding
        Arguments of `average_pool`; u8 or s8. Padding is never the largest.
    dialect : str
        Dialect, as in `average_pool`; onednn runs its pooling.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    codes_of = choose(MAX_POOL, dialect)
    codes = plain("src", src)
    pooling = Pooling(codes.shape, kernel, stride, padding)
    return codes_of(codes, pooling)


def _largest(codes: Array, pooling: Pooling) -> Array:
    return pooling.largest(codes, int(np.iinfo(codes.dtype).min))


def _largest_onednn(codes: Array, pooling: Pooling) -> Array:
    return onednn.largest(codes, (*codes.shape[:2], *pooling.out), pooling.window)


def _tflite(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    scale, zero_point = dst_q.scale, dst_q.zero_point
    if (x.scale, x.zero_point) != (scale, zero_point):
        wanted = "the parameters of src_q: TFLite's AveragePool does not rescale"
        raise ArgumentError("dst_q", f"scale {scale!r}, zero point {zero_point}", wanted)
    inside = pooling.counts(x.codes.shape)
    outside = pooling.size - inside if whole else 0
    sums = pooling.sums(x.codes.astype(np.int64)) + outside * zero_point
    return dst_q.stored(_nearest(sums, inside + outside))


def _snps(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    if (x.scale, x.zero_point) == (dst_q.scale, dst_q.zero_point):
        return _tflite(dst_q, x, pooling, whole)
    sums = two_step(pooling.sums(x.shifted), x.scale / dst_q.scale)
    return dst_q.stored(_nearest(sums, _count(x, pooling, whole)) + dst_q.zero_point)


def _mean(dst_q: Encoding, x: Quantized, axes: tuple[int, ...]) -> Array:
    """Put the division by n into the multiplier: up to 32 bits left, then whole numbers by n."""
    n = math.prod(x.codes.shape[axis] for axis in axes)
    multiplier, exponent = quantize_multiplier(x.scale / dst_q.scale)
    left = min(n.bit_length() - 1, 32, 31 + int(exponent))
    sums = x.shifted.sum(axis=axes, keepdims=True)
    scaled = multiply_by_quantized_multiplier(
        sums, (int(multiplier) << left) // n, int(exponent) - left
    )
    return dst_q.stored(scaled + dst_q.zero_point)


def _mean_optimised(dst_q: Encoding, x: Quantized, axes: tuple[int, ...]) -> Array:
    """Sum the codes as they are, and round the share of the zero point on its own."""
    if x.codes.ndim != 4 or {axis % 4 for axis in axes} != {2, 3}:
        return _mean(dst_q, x, axes)
    f32, (_, channels, height, width) = np.float32, x.codes.shape
    factor = float(f32(x.scale) / (f32(height * width) * f32(dst_q.scale)))
    share = f32(x.zero_point) * f32(x.scale) / f32(dst_q.scale)
    shift = dst_q.zero_point - int(share + np.copysign(f32(0.5), share))
    sums = x.codes.astype(np.int64).sum(axis=axes, keepdims=True)
    whole = channels - channels % _VECTOR
    parts = two_step_up(sums[:, :whole], factor), two_step(sums[:, whole:], factor)
    return dst_q.stored(np.concatenate(parts, axis=1) + shift)


def _mean_xnnpack(dst_q: Encoding, x: Quantized, axes: tuple[int, ...]) -> Array:
    f32, n = np.float32, math.prod(x.codes.shape[axis] for axis in axes)
    factor = f32(x.scale) / f32(dst_q.scale) * (f32(1) / f32(n))
    shift = f32(dst_q.zero_point) - f32(x.zero_point * n) * factor
    sums = x.codes.astype(np.int64).sum(axis=axes, keepdims=True)
    return dst_q.stored(np.rint(sums.astype(f32) * factor + shift))


def _onnxruntime(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    if pooling.is_global(x.codes.shape):
        return _one_factor(dst_q, x, pooling, whole, "half_to_even")
    means = pooling.sums(x.real) / _count(x, pooling, whole).astype(np.float32)
    return dst_q.stored(np.rint(means / np.float32(dst_q.scale) + np.float32(dst_q.zero_point)))


def _caffe2(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    return _one_factor(dst_q, x, pooling, whole, "half_away_from_zero")


def _one_factor(
    dst_q: Encoding,
    x: Quantized,
    pooling: Pooling,
    whole: bool,
    halves: str,
) -> Array:
    count = _count(x, pooling, whole).astype(np.float32)
    factor = np.float32(x.scale) / (np.float32(dst_q.scale) * count)
    sums = pooling.sums(x.shifted).astype(np.float32)
    return dst_q.stored(round_real(sums * factor, halves) + dst_q.zero_point)


def _count(x: Quantized, pooling: Pooling, whole: bool) -> Array:
    return np.asarray(pooling.size) if whole else pooling.counts(x.codes.shape)


def _tpu_mlir(dst_q: Encoding, x: Quantized, pooling: Pooling, _whole: bool) -> Array:
    sums, count = pooling.sums(x.shifted), pooling.size
    factor, ratio = x.scale / (dst_q.scale * count), x.scale / dst_q.scale
    if x.zero_point == dst_q.zero_point == 0:
        return dst_q.stored(searched(sums, factor))
    shift = dst_q.zero_point - ratio * x.zero_point
    codes = sums + count * x.zero_point
    return dst_q.stored(round_real(codes * factor + shift, "half_away_from_zero"))


def _tosa(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    """Multiply by 2^(30 + k) / count, with 2^k the power of two that is not less, and shift."""
    if x.scale != dst_q.scale:
        wanted = f"{x.scale!r}, that of src_q: TOSA's AVG_POOL2D does not rescale"
        raise ArgumentError("dst_q", f"scale {dst_q.scale!r}", wanted)
    count = _count(x, pooling, whole)
    k = np.frexp(count - 1)[1].astype(np.int64)
    multiplier = ((2**30 + 1) << k) // count
    means = shift_round(pooling.sums(x.shifted) * multiplier, 30 + k, "half_up")
    return dst_q.stored(means + dst_q.zero_point)


def _onednn(dst_q: Encoding, x: Quantized, pooling: Pooling, whole: bool) -> Array:
    dims = (*x.codes.shape[:2], *pooling.out)
    return onednn.means(dst_q, x, dims, pooling.window, whole=whole)


def _nearest(sums: Array, count: Array) -> Array:
    """Divide integers, halves away from zero."""
    size = (2 * np.abs(sums) + count) // (2 * count)
    return np.asarray(np.where(sums < 0, -size, size))


_LARGEST = "the largest code"

MAX_POOL: Dialects = {
    dialect: Arithmetic(_LARGEST, _largest)
    for dialect in ("tflite", "onnxruntime", "caffe2", "tpu_mlir", "tosa")
} | {"onednn": Arithmetic(_LARGEST + ": pooling", _largest_onednn)}

AVERAGE_POOL: Dialects = {
    "tflite": Arithmetic(
        "scales alike: mean of codes without padding, half away from zero", _tflite
    ),
    "snps_caffe": Arithmetic(
        "scales alike: as tflite; else the sum of x times s_src / s_dst by D2, then over n, half "
        "away, + z (SNPS-Caffe's TFLite method)",
        _snps,
    ),
    "onnxruntime": Arithmetic(
        "over the whole image: f32(sum of x) · f32(s_src / (s_dst · n)), even, + z; else the mean "
        "in f32, even(mean / s + z)",
        _onnxruntime,
    ),
    "caffe2": Arithmetic(
        "f32(sum of x) · f32(s_src / (s_dst · n)), half away from zero (SNPS-Caffe)", _caffe2
    ),
    "tpu_mlir": Arithmetic(
        "zero points 0: sum · multiplier of 7 bits, shifted half up; else "
        "half away(sum of codes · s_src / (s_dst · k) + z_dst − s_src / s_dst · z_src)",
        _tpu_mlir,
    ),
    "tosa": Arithmetic(
        "scales alike: sum of x · (2^30 + 1) · 2^k // n >> (30 + k), 2^k the power of two not "
        "below n, half up, + z",
        _tosa,
    ),
    "onednn": Arithmetic(
        "f32(sum of codes) · f32(1 / n), then fma(mean, r, z_dst − r · z_src), even: pooling; src "
        "and dst of one type",
        _onednn,
    ),
}

MEAN: Dialects = {
    "tflite": Arithmetic(
        "sum of x times s_src / s_dst / n by D2, n divided into the 31-bit multiplier, whole "
        "numbers, + z: the reference kernel",
        _mean,
    ),
    "tflite_optimised": Arithmetic(
        "over both spatial dimensions of an image, in f32: sum of codes · s_src / (n · s_dst) by "
        "U2, of the last channels, up to 15, by D2, + z_dst − half away(z_src · s_src / s_dst); "
        "else as tflite",
        _mean_optimised,
    ),
    "xnnpack": Arithmetic(
        "f32: q = s_src / s_dst · (1 / n), even(sum of codes · q + (z_dst − n · z_src · q))",
        _mean_xnnpack,
    ),
}
