"""ConvInteger and QLinearConv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.onnx import geometry, tensors
from pyonednn_q.onnx.convolutions import empty_result
from pyonednn_q.onnx.exact_sums import Options, qparams, rounded, sums
from pyonednn_q.onnx.tensors import Constant
from pyonednn_q.ops.conv import Conv

if TYPE_CHECKING:
    from collections.abc import Iterable

Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer


def conv_integer(
    x: Tensor,
    w: Tensor,
    x_zero_point: Tensor = None,
    w_zero_point: Tensor = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Iterable[int] | None = None,
    group: int = 1,
    kernel_shape: Iterable[int] | None = None,
    pads: Iterable[int] | None = None,
    strides: Iterable[int] | None = None,
) -> Array:
    """Return ONNX's ConvInteger: y[n, m] = Σ (x − x_zero_point) · (w[m] − w_zero_point[m]).

    Parameters
    ----------
    x : (N, C, spatial) tensor of uint8 or int8
        Codes. Padded places hold x_zero_point: they add 0.
    w : (M, C / group, spatial) tensor of uint8 or int8
        Codes.
    x_zero_point : scalar, optional
        Zero point of x, with its data type; 0 by default.
    w_zero_point : scalar or (M,) tensor, optional
        Zero point of w, with its data type; 0 by default.
    auto_pad, dilations, group, kernel_shape, pads, strides
        Attributes, as in `conv`.

    Returns
    -------
    (N, M, spatial) ndarray of int32
        Exact; sums beyond 32 bits saturate.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `conv`.

    Examples
    --------
    >>> x = np.arange(2, 11, dtype=np.uint8).reshape(1, 1, 3, 3)
    >>> conv_integer(x, np.ones((1, 1, 2, 2), np.uint8), np.uint8(1))[0, 0]
    array([[12, 16],
           [24, 28]], dtype=int32)
    """
    src, wei = tensors.codes("x", x), tensors.codes("w", w)
    window = (auto_pad, dilations, group, kernel_shape, pads, strides)
    how = geometry.convolution(("x", "w"), src.shape, wei.shape, *window)
    points = (
        tensors.content_or_none("x_zero_point", x_zero_point),
        tensors.content_or_none("w_zero_point", w_zero_point),
    )
    options = _options(src.dtype, points[0], wei.dtype, points[1], wei.shape[0], how.options)
    if not src.size:
        return empty_result(kinds.CONV_INTEGER.name, src, wei, how, np.dtype(np.int32))
    with tensors.named("x", "w", "w"):
        return sums(kinds.CONV_INTEGER.name, Conv, options, src, wei)


def qlinear_conv(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero_point: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor,
    B: Tensor = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Iterable[int] | None = None,
    group: int = 1,
    kernel_shape: Iterable[int] | None = None,
    pads: Iterable[int] | None = None,
    strides: Iterable[int] | None = None,
) -> Array:
    """Return ONNX's QLinearConv: y = saturate(rne(f32(acc) · M) + y_zero_point).

    acc is what `conv_integer` returns, and B; M = f32(f32(x_scale · w_scale) / y_scale), as ONNX's
    reference and ONNX Runtime have it.

    Parameters
    ----------
    x, w
        Source and weights, as in `conv_integer`.
    x_scale, y_scale : scalar of float32
        Real value of one step, above 0.
    x_zero_point : scalar
        Zero point of x, with its data type.
    w_scale : scalar or (M,) tensor of float32
        Real value of one step, above 0.
    w_zero_point : scalar or (M,) tensor
        Zero point of w, with its data type.
    y_zero_point : scalar of uint8 or int8
        Zero point of the result, in the result's data type; None: 0, in x's.
    B : (M,) tensor of int32, optional
        Bias, in units of x_scale · w_scale.
    auto_pad, dilations, group, kernel_shape, pads, strides
        Attributes, as in `conv`.

    Returns
    -------
    (N, M, spatial) ndarray
        Codes of the data type of y_zero_point.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `conv`.

    Examples
    --------
    >>> x = np.array([[[1, 2, 3]]], np.uint8)
    >>> one, zero = np.float32(0.5), np.uint8(0)
    >>> qlinear_conv(x, one, zero, x[..., :1], one, zero, one, np.uint8(5))
    array([[[5, 6, 7]]], dtype=uint8)
    """
    src, wei = tensors.codes("x", x), tensors.codes("w", w)
    window = (auto_pad, dilations, group, kernel_shape, pads, strides)
    how = geometry.convolution(("x", "w"), src.shape, wei.shape, *window)
    points = (
        tensors.content_or_none("x_zero_point", x_zero_point),
        tensors.content_or_none("w_zero_point", w_zero_point),
    )
    bias = tensors.bias("B", B, np.dtype(np.int32), wei.shape[0])
    options = _options(
        src.dtype,
        points[0],
        wei.dtype,
        points[1],
        wei.shape[0],
        how.options,
        tensors.content("x_scale", x_scale),
        tensors.content("w_scale", w_scale),
        tensors.content("y_scale", y_scale),
        tensors.content_or_none("y_zero_point", y_zero_point),
    )
    if not src.size:
        dtype = dtypes.numpy_dtype(options["dst_q"].dtype)
        return empty_result(kinds.QLINEAR_CONV.name, src, wei, how, dtype)
    with tensors.named("x", "w", "B"):
        return rounded(kinds.QLINEAR_CONV.name, Conv, options, src, wei, bias)


@tensors.by_content
def _options(
    src: np.dtype[Any],
    src_point: Constant | None,
    wei: np.dtype[Any],
    wei_point: Constant | None,
    channels: int,
    window: tuple[tuple[str, Any], ...],
    src_scale: Constant | None = None,
    wei_scale: Constant | None = None,
    dst_scale: Constant | None = None,
    dst_point: Constant | None = None,
) -> Options:
    """Return options of a convolution; with `dst_q`, where there are scales."""
    point = tensors.zero_point("x_zero_point", src_point, src, "x")
    point = tensors.one("x_zero_point", point)
    points = tensors.zero_point("w_zero_point", wei_point, wei, "w")
    points = tensors.per_tensor_or_channel("w_zero_point", points, channels)
    one = scales = np.ones((), np.float32)
    options = dict(window)
    if src_scale is not None and wei_scale is not None and dst_scale is not None:
        one = tensors.one("x_scale", tensors.scale("x_scale", src_scale.array))
        scales = tensors.scale("w_scale", wei_scale.array)
        scales = tensors.per_tensor_or_channel("w_scale", scales, channels)
        last = tensors.one("y_scale", tensors.scale("y_scale", dst_scale.array))
        tensors.multiplier(one, scales, last)  # which must be finite
        end, dtype = tensors.dst_point(dst_point, src)
        end = tensors.one("y_zero_point", end)
        options["dst_q"] = qparams((float(last),), (int(end),), dtype)
    options["src_q"] = qparams((float(one),), (int(point),), dtypes.from_numpy(src, "x"))
    options["wei_q"] = qparams(
        tuple(scales.reshape(-1).tolist()),
        tuple(points.reshape(-1).tolist()),
        dtypes.from_numpy(wei, "w"),
        0,
    )
    return options
