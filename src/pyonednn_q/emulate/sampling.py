"""Bilinear resizing, and the place of the largest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import instance, integers, whole
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
    through_floats,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.requantize.rounding import shift_round
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

_ONE = 1 << 10  # TFLite's integer weights
_XNNPACK = 11  # bits of those of XNNPACK
_Size = tuple[int, ...]
_Weights = tuple[Array, Array, Array]


def resize_bilinear(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    size: tuple[int, int],
    *,
    src_q: QParams,
    dst_q: QParams,
    half_pixel: bool = False,
    dialect: str = "tflite",
) -> Array:
    """Return an image of another size, interpolated along both axes.

    Parameters
    ----------
    src : (N, C, H, W) tensor
        Codes of src_q's data type.
    size : (int, int)
        Height and width of the result.
    src_q, dst_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    half_pixel : bool
        Whether a pixel's value is that at its centre; if not, at its corner.
    dialect : str
        tflite (its reference kernel), tflite_optimised or xnnpack (all of which keep the
        parameters), onnxruntime, caffe2, tpu_mlir, or onednn (which has pixels by their centre
        only).

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    codes = choose(RESIZE_BILINEAR, dialect)
    instance("half_pixel", half_pixel, bool)
    x = checked("src", src, src_q)
    if x.codes.ndim != 4 or not x.codes.size:
        raise ShapeError("src", str(x.codes.shape), "(N, C, H, W), nothing empty")
    to = encoding("dst_q", dst_q)
    lengths = integers("size", size)
    if len(lengths) != 2:
        raise ShapeError("size", shown(size), "(H, W)")
    wanted_size = tuple(whole("size", length, 1, 2**20) for length in lengths)
    return codes(to, x, wanted_size, half_pixel)


def arg_max(src: Any, *, axis: int = 1) -> Array:  # noqa: ANN401
    """Return where along an axis the largest code is, the first of equals.

    Parameters
    ----------
    src : tensor
        Codes, u8 or s8, of any shape; the largest code stands for the largest real value.
    axis : int
        The dimension to search, which the result does not have.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.

    Examples
    --------
    >>> arg_max(np.array([[3, 7, 7]], np.uint8)).tolist()
    [1]
    """
    codes = plain("src", src)
    along = whole("axis", axis, -codes.ndim, codes.ndim - 1)
    if not codes.shape[along]:
        raise ShapeError("src", str(codes.shape), "something along the axis")
    return np.asarray(np.argmax(codes, axis=along))


def _integer_weights(length: int, wanted: int, *, half_pixel: bool) -> _Weights:
    """Return the two neighbours of every place, and the second one's weight in 1024ths."""
    step = (_ONE * length + wanted // 2) // wanted
    at = np.arange(wanted, dtype=np.int64) * step
    if half_pixel:
        at = at + step // 2 - _ONE // 2
    low = np.maximum(at // _ONE, 0)
    high = np.minimum(-(-at // _ONE), length - 1)
    return low, np.maximum(high, 0), at - low * _ONE


def _weights(length: int, wanted: int, *, half_pixel: bool) -> _Weights:
    step = np.float32(length) / np.float32(wanted)
    half = np.float32(0.5 if half_pixel else 0)
    at = (np.arange(wanted).astype(np.float32) + half) * step - half
    low = np.maximum(np.floor(at), 0)
    high = np.minimum(np.ceil(at), length - 1)
    return low.astype(np.int64), high.astype(np.int64), at - low.astype(np.float32)


def _short_weights(length: int, wanted: int, *, half_pixel: bool) -> _Weights:
    """Return the two neighbours of every place, and the second one's weight in 2048ths."""
    step = np.float32(length) / np.float32(wanted)
    first = np.float32(0.5) * step - np.float32(0.5) if half_pixel else np.float32(0)
    at = np.clip(np.arange(wanted).astype(np.float32) * step + first, 0, length - 1)
    low = at.astype(np.int64)
    share = np.rint((at - low.astype(np.float32)) * np.float32(1 << _XNNPACK))
    return low, np.minimum(low + 1, length - 1), share.astype(np.int64)


def _across_then_down(values: Array, rows: _Weights, columns: _Weights) -> Array:
    top, bottom, down = rows
    left, right, across = columns
    mixed = (values[..., left] << _XNNPACK) + (values[..., right] - values[..., left]) * across
    above, below = mixed[:, :, top], mixed[:, :, bottom]
    return np.asarray((above << _XNNPACK) + (below - above) * down[:, np.newaxis])


def _mixed(
    values: Array,
    rows: _Weights,
    columns: _Weights,
    one: Any,  # noqa: ANN401 - 1 in the units of the weights
) -> Array:
    top, bottom, down = rows
    left, right, across = columns
    down = down[:, np.newaxis]
    above, below = values[:, :, top], values[:, :, bottom]
    mixed = above[..., left] * (one - down) * (one - across)
    mixed = mixed + below[..., left] * down * (one - across)
    mixed = mixed + above[..., right] * (one - down) * across
    return np.asarray(mixed + below[..., right] * down * across)


def _weighed(values: Array, rows: _Weights, columns: _Weights) -> Array:
    """Mix with one weight for each corner, as the optimised kernel does, row by row."""
    one = np.float32(1)
    top, bottom, down = rows
    left, right, across = columns
    down = down[:, np.newaxis]
    above, below = values[:, :, top], values[:, :, bottom]
    mixed = above[..., left] * ((one - down) * (one - across))
    mixed = mixed + above[..., right] * ((one - down) * across)
    mixed = mixed + below[..., left] * (down * (one - across))
    return np.asarray(mixed + below[..., right] * (down * across))


def _both(
    x: Quantized, size: _Size, weights: Callable[..., _Weights], half: bool
) -> list[_Weights]:
    """Return the weights along height and width."""
    axes = zip(x.codes.shape[2:], size, strict=True)
    return [weights(*axis, half_pixel=half) for axis in axes]


def _keeps(dst_q: Encoding, x: Quantized) -> None:
    if x.encoding != dst_q:
        raise ArgumentError("dst_q", str(dst_q), "src_q: TFLite's kernel does not rescale")


def _tflite(dst_q: Encoding, x: Quantized, size: _Size, half_pixel: bool) -> Array:
    if dst_q.dtype == "s8":
        return _in_integers(dst_q, x, size, half_pixel)
    _keeps(dst_q, x)
    rows, columns = _both(x, size, _weights, half_pixel)
    codes = _mixed(x.codes.astype(np.float32), rows, columns, np.float32(1))
    return dst_q.stored(np.trunc(codes + np.float32(0.5)))


def _tflite_optimised(dst_q: Encoding, x: Quantized, size: _Size, half_pixel: bool) -> Array:
    if dst_q.dtype == "s8":
        return _in_integers(dst_q, x, size, half_pixel)
    _keeps(dst_q, x)
    rows, columns = _both(x, size, _weights, half_pixel)
    codes = _weighed(x.codes.astype(np.float32), rows, columns)
    return dst_q.stored(np.trunc(codes + np.float32(0.5)))


def _in_integers(dst_q: Encoding, x: Quantized, size: _Size, half_pixel: bool) -> Array:
    _keeps(dst_q, x)
    rows, columns = _both(x, size, _integer_weights, half_pixel)
    wide = _mixed(x.codes.astype(np.int64), rows, columns, _ONE)
    return dst_q.stored(shift_round(wide, 20, "half_away_from_zero"))


def _xnnpack(dst_q: Encoding, x: Quantized, size: _Size, half_pixel: bool) -> Array:
    _keeps(dst_q, x)
    rows, columns = _both(x, size, _short_weights, half_pixel)
    wide = _across_then_down(x.codes.astype(np.int64), rows, columns)
    return dst_q.stored(shift_round(wide, 2 * _XNNPACK, "half_up"))


def _real(x: Quantized, size: _Size, half_pixel: bool) -> Array:
    rows, columns = _both(x, size, _weights, half_pixel)
    return _mixed(x.real, rows, columns, np.float32(1))


def _onednn(dst_q: Encoding, x: Quantized, size: _Size, half_pixel: bool) -> Array:
    if not half_pixel:
        wanted = "True: oneDNN's resampling has values at the centres of pixels"
        raise ArgumentError("half_pixel", "False", wanted)
    return onednn.resized(dst_q, x, size)


RESIZE_BILINEAR: Dialects = {
    "tflite": Arithmetic(
        "parameters alike, on codes: s8 by integer weights of 10 bits per axis, half away; u8 in "
        "float32, each code times its weights one after the other, + 0.5 cut off: the reference "
        "kernel",
        _tflite,
    ),
    "tflite_optimised": Arithmetic(
        "the same; u8: each code times the product of its weights", _tflite_optimised
    ),
    "xnnpack": Arithmetic(
        "parameters alike, on codes: weights of 11 bits per axis, across and then down, one shift "
        "by 22, half up",
        _xnnpack,
    ),
    **through_floats(_real, "onnxruntime", "caffe2", "tpu_mlir"),
    "onednn": Arithmetic(
        "codes: fma(right, w_right, left · w_left) in both rows, these mixed alike, then "
        "fma(v, r, z_dst − r · z_src), even: resampling; pixels by their centre",
        _onednn,
    ),
}
