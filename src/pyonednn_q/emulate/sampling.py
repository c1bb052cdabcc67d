"""Bilinear resizing, and the place of the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import instance, integers, whole
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    checked,
    choose,
    parameters,
    plain,
    stored,
    through_floats,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.requantize.rounding import shift_round
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from pyonednn_q.qparams import QParams

__all__ = ["arg_max", "resize_bilinear"]

Array = np.ndarray[Any, Any]
_ONE = 1 << 10  # TFLite's integer weights
_XNNPACK = 11  # bits of those of XNNPACK


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
        Codes.
    size : (int, int)
        Of the result.
    src_q, dst_q : QParams
        Per tensor, u8 or s8.
    half_pixel : bool
        Pixels have their value at their centre, not at their corner.
    dialect : str
        tflite (its reference kernel), tflite_optimised or xnnpack (all of which keep the
        parameters), onnxruntime, caffe2, tpu_mlir, or onednn (which has pixels by their centre
        only).

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    choose("resize_bilinear", dialect)
    instance("half_pixel", half_pixel, bool)
    x = checked("src", src, src_q)
    if x.codes.ndim != 4 or not x.codes.size:
        raise ShapeError("src", str(x.codes.shape), "(N, C, H, W), nothing empty")
    parameters("dst_q", dst_q)
    lengths = integers("size", size)
    if len(lengths) != 2:
        raise ShapeError("size", shown(size), "(H, W)")
    wanted_size = tuple(whole("size", length, 1, 2**20) for length in lengths)
    if dialect == "onednn":
        if not half_pixel:
            wanted = "True: oneDNN's resampling has values at the centres of pixels"
            raise ArgumentError("half_pixel", "False", wanted)
        return onednn.resized(x, wanted_size, dst_q)
    axes = zip(x.codes.shape[2:], wanted_size, strict=True)
    if dialect in {"tflite", "tflite_optimised", "xnnpack"} and src_q != dst_q:
        raise ArgumentError("dst_q", str(dst_q), "src_q: TFLite's kernel does not rescale")
    if dialect == "xnnpack":
        rows, columns = (_short_weights(*axis, half_pixel=half_pixel) for axis in axes)
        wide = _across_then_down(x.codes.astype(np.int64), rows, columns)
        return stored(shift_round(wide, 2 * _XNNPACK, "half_up"), dst_q)
    if dialect.startswith("tflite") and src_q.dtype == "s8":
        rows, columns = (_integer_weights(*axis, half_pixel=half_pixel) for axis in axes)
        wide = _mixed(x.codes.astype(np.int64), rows, columns, _ONE)
        return stored(shift_round(wide, 20, "half_away_from_zero"), dst_q)
    rows, columns = (_weights(*axis, half_pixel=half_pixel) for axis in axes)
    if dialect == "tflite":
        codes = _mixed(x.codes.astype(np.float32), rows, columns, np.float32(1))
        return stored(np.trunc(codes + np.float32(0.5)), dst_q)
    if dialect == "tflite_optimised":
        codes = _weighed(x.codes.astype(np.float32), rows, columns)
        return stored(np.trunc(codes + np.float32(0.5)), dst_q)
    return through_floats(_mixed(x.real, rows, columns, np.float32(1)), dst_q, dialect)


def arg_max(src: Any, *, axis: int = 1) -> Array:  # noqa: ANN401
    """Return where along an axis the largest code is, the first of equals.

    Parameters
    ----------
    src : tensor
        Codes, u8 or s8; what they stand for has the same order.
    axis : int
        The dimension that goes.

    Raises
    ------
    ArgumentError, DTypeError
        Naming the argument.
    """
    codes = plain("src", src)
    along = whole("axis", axis, -codes.ndim, codes.ndim - 1)
    if not codes.shape[along]:
        raise ShapeError("src", str(codes.shape), "something along the axis")
    return np.asarray(np.argmax(codes, axis=along))


def _integer_weights(length: int, wanted: int, *, half_pixel: bool) -> tuple[Array, Array, Array]:
    """Return the two neighbours of every place, and the second one's weight in 1024ths."""
    step = (_ONE * length + wanted // 2) // wanted
    at = np.arange(wanted, dtype=np.int64) * step
    if half_pixel:
        at = at + step // 2 - _ONE // 2
    low = np.maximum(at // _ONE, 0)
    high = np.minimum(-(-at // _ONE), length - 1)
    return low, np.maximum(high, 0), at - low * _ONE


def _weights(length: int, wanted: int, *, half_pixel: bool) -> tuple[Array, Array, Array]:
    step = np.float32(length) / np.float32(wanted)
    half = np.float32(0.5 if half_pixel else 0)
    at = (np.arange(wanted).astype(np.float32) + half) * step - half
    low = np.maximum(np.floor(at), 0)
    high = np.minimum(np.ceil(at), length - 1)
    return low.astype(np.int64), high.astype(np.int64), at - low.astype(np.float32)


def _short_weights(length: int, wanted: int, *, half_pixel: bool) -> tuple[Array, Array, Array]:
    """Return the two neighbours of every place, and the second one's weight in 2048ths."""
    step = np.float32(length) / np.float32(wanted)
    first = np.float32(0.5) * step - np.float32(0.5) if half_pixel else np.float32(0)
    at = np.clip(np.arange(wanted).astype(np.float32) * step + first, 0, length - 1)
    low = at.astype(np.int64)
    share = np.rint((at - low.astype(np.float32)) * np.float32(1 << _XNNPACK))
    return low, np.minimum(low + 1, length - 1), share.astype(np.int64)


def _across_then_down(
    values: Array, rows: tuple[Array, Array, Array], columns: tuple[Array, Array, Array]
) -> Array:
    top, bottom, down = rows
    left, right, across = columns
    made = (values[..., left] << _XNNPACK) + (values[..., right] - values[..., left]) * across
    above, below = made[:, :, top], made[:, :, bottom]
    return np.asarray((above << _XNNPACK) + (below - above) * down[:, np.newaxis])


def _mixed(
    values: Array,
    rows: tuple[Array, Array, Array],
    columns: tuple[Array, Array, Array],
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


def _weighed(
    values: Array, rows: tuple[Array, Array, Array], columns: tuple[Array, Array, Array]
) -> Array:
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
