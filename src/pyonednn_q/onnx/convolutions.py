"""Conv, ConvTranspose, ConvInteger and QLinearConv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.errors import ShapeError, UnsupportedError
from pyonednn_q.onnx import geometry, tensors
from pyonednn_q.onnx.geometry import Sliding
from pyonednn_q.onnx.sums import CodeProduct, Rounding, rounded, sums
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.functional import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyonednn_q.ops.operator import Operator

Array = np.ndarray[Any, Any]
Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer


def conv(
    X: Tensor,
    W: Tensor,
    B: Tensor = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Iterable[int] | None = None,
    group: int = 1,
    kernel_shape: Iterable[int] | None = None,
    pads: Iterable[int] | None = None,
    strides: Iterable[int] | None = None,
) -> Array:
    """Return ONNX's Conv: Y[n, m] = Σ X · W[m] + B[m].

    Parameters
    ----------
    X : (N, C, spatial) tensor of float32, float16 or bfloat16
        The source, of one to three spatial dimensions.
    W : (M, C / group, spatial) tensor
        Of the data type of X.
    B : (M,) tensor, optional
        Of that data type.
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}
        NOTSET: `pads`. SAME: so that lengths are ceil(length / stride). VALID: none.
    dilations, strides : sequence of int, optional
        One per spatial dimension; 1 by default.
    group : int
        Of channels.
    kernel_shape : sequence of int, optional
        The spatial dims of W.
    pads : sequence of int, optional
        The low sides of all spatial dimensions, then the high ones; 0 by default.

    Returns
    -------
    (N, M, spatial) ndarray
        Of the data type of X. Sums are float32's.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    UnsupportedError
        No kernel of oneDNN takes it, with the reasons.

    Examples
    --------
    >>> X, W = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 3, 3), np.float32)
    >>> conv(X, W, auto_pad="SAME_UPPER")[0, 0]
    array([[4., 6., 6., 4.],
           [6., 9., 9., 6.],
           [6., 9., 9., 6.],
           [4., 6., 6., 4.]], dtype=float32)
    """
    src = tensors.floats("X", X)
    wei = tensors.floats("W", W, src)
    window = (auto_pad, dilations, group, kernel_shape, pads, strides)
    how = geometry.convolution(("X", "W"), src.shape, wei.shape, *window)
    bias = tensors.bias("B", B, src.dtype, wei.shape[0])
    return _of_floats("Conv", Conv, src, wei, bias, how)


def conv_transpose(
    X: Tensor,
    W: Tensor,
    B: Tensor = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Iterable[int] | None = None,
    group: int = 1,
    kernel_shape: Iterable[int] | None = None,
    output_padding: Iterable[int] | None = None,
    output_shape: Iterable[int] | None = None,
    pads: Iterable[int] | None = None,
    strides: Iterable[int] | None = None,
) -> Array:
    """Return ONNX's ConvTranspose: the convolution whose gradient spreads X.

    Parameters
    ----------
    X : (N, C, spatial) tensor of float32, float16 or bfloat16
        The source, of one to three spatial dimensions.
    W : (C, M / group, spatial) tensor
        Of the data type of X.
    B : (M,) tensor, optional
        Of that data type.
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}
        SAME: so that lengths are length · stride; also says on which side an odd number of places
        is padded once more.
    dilations, group, kernel_shape, pads, strides
        As of `conv`.
    output_padding : sequence of int, optional
        Places that are added at the end of each spatial dimension; 0 by default.
    output_shape : sequence of int, optional
        The spatial dims of the result, which `pads` then follow from. Where it is larger than what
        the kernel reaches, B alone, or 0, stands there.

    Returns
    -------
    (N, M, spatial) ndarray
        Of the data type of X. Sums are float32's.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        As `conv` raises them.

    Examples
    --------
    >>> X, W = np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32)
    >>> conv_transpose(X, W, strides=[2], output_padding=[1])[0, 0]
    array([1., 1., 2., 1., 1., 0.], dtype=float32)
    """
    src = tensors.floats("X", X)
    wei = tensors.floats("W", W, src)
    how = geometry.transposed(
        src.shape,
        wei.shape,
        auto_pad,
        dilations,
        group,
        kernel_shape,
        output_padding,
        output_shape,
        pads,
        strides,
    )
    bias = tensors.bias("B", B, src.dtype, wei.shape[1] * group)
    dst = _of_floats("ConvTranspose", _deconv_operator, src, wei, bias, how)
    return _grown(dst, bias, how)


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
        Of the data type of x; 0 by default.
    w_zero_point : scalar or (M,) tensor, optional
        Of the data type of w; 0 by default.
    auto_pad, dilations, group, kernel_shape, pads, strides
        As of `conv`.

    Returns
    -------
    (N, M, spatial) ndarray of int32
        Exact; sums beyond 32 bits saturate.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        As `conv` raises them.

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
    product = _product("ConvInteger", src, x_zero_point, wei, w_zero_point, how)
    if not src.size:
        return _empty("ConvInteger", src, wei, how, np.dtype(np.int32))
    with tensors.named("x", "w", "w"):
        return sums(product, src, wei)


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
        As of `conv_integer`.
    x_scale, y_scale : scalar of float32
        Real value of one step, above 0.
    x_zero_point : scalar
        Of the data type of x.
    w_scale : scalar or (M,) tensor of float32
        Real value of one step, above 0.
    w_zero_point : scalar or (M,) tensor
        Of the data type of w.
    y_zero_point : scalar of uint8 or int8
        Its data type is that of the result; None: x's, and 0.
    B : (M,) tensor of int32, optional
        In units of x_scale · w_scale.
    auto_pad, dilations, group, kernel_shape, pads, strides
        As of `conv`.

    Returns
    -------
    (N, M, spatial) ndarray
        Codes of the data type of y_zero_point.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        As `conv` raises them.

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
    product = _product("QLinearConv", src, x_zero_point, wei, w_zero_point, how)
    bias = tensors.bias("B", B, np.dtype(np.int32), wei.shape[0])
    factor = tensors.multiplier(
        tensors.one("x_scale", tensors.scale("x_scale", x_scale)),
        tensors.per_tensor_or_channel("w_scale", tensors.scale("w_scale", w_scale), wei.shape[0]),
        tensors.one("y_scale", tensors.scale("y_scale", y_scale)),
    )
    point, dtype = tensors.dst_point(y_zero_point, src.dtype)
    if not src.size:
        return _empty("QLinearConv", src, wei, how, dtypes.numpy_dtype(dtype))
    zero_point = int(tensors.one("y_zero_point", point))
    rounding = Rounding(tuple(factor.reshape(-1).tolist()), dtype, zero_point)
    with tensors.named("x", "w", "B"):
        return rounded(product, rounding, src, wei, bias)


def _product(
    operator: str,
    src: Array,
    src_point: Any,  # noqa: ANN401 - array_like
    wei: Array,
    wei_point: Any,  # noqa: ANN401
    how: Sliding,
) -> CodeProduct:
    point = tensors.zero_point("x_zero_point", src_point, src.dtype, "x")
    points = tensors.zero_point("w_zero_point", wei_point, wei.dtype, "w")
    points = tensors.per_tensor_or_channel("w_zero_point", points, wei.shape[0])
    return CodeProduct(
        operator,
        Conv,
        0,
        dtypes.from_numpy(src.dtype, "x"),
        dtypes.from_numpy(wei.dtype, "w"),
        int(tensors.one("x_zero_point", point)),
        tuple(points.reshape(-1).tolist()),
        how.options,
    )


def _of_floats(
    operator: str,
    make: Callable[..., Operator],
    src: Array,
    wei: Array,
    bias: Array | None,
    how: Sliding,
) -> Array:
    """Return a convolution of floats, by kernels of their data type, or else of float32."""
    if not src.size:
        return _empty(operator, src, wei, how, src.dtype)
    options = dict(how.options)
    with tensors.named("X", "W", "B"):
        made = kept(make, wei, bias, dst=dtypes.from_numpy(src.dtype), **options)
        try:
            dst = made(src)
        except UnsupportedError:
            if src.dtype == np.float32:
                raise
        else:
            record(operator, ((made, src.shape),))
            return dst
        wide = src.astype(np.float32)
        made = kept(make, wei.astype(np.float32), bias, dst="f32", **options)
        dst = made(wide).astype(src.dtype)
    record(operator, ((made, src.shape),), f"computed in float32: no kernel of {src.dtype}")
    return dst


def _deconv_operator(
    wei: Array,
    bias: Array | None,
    *,
    groups: int,
    **options: Any,  # noqa: ANN401 - of Deconv
) -> Operator:
    """Return a deconvolution of weights (C, M / group, spatial): ours have outputs first."""
    channels, outputs, *kernel = wei.shape
    by_group = wei.reshape(groups, channels // groups, outputs, *kernel).swapaxes(1, 2)
    outputs_first = by_group.reshape(groups * outputs, channels // groups, *kernel)
    return Deconv(outputs_first, bias, groups=groups, **options)


def _grown(dst: Array, bias: Array | None, how: Sliding) -> Array:
    """Return a result with the places that negative padding adds: what no kernel reaches."""
    if min(how.lo + how.hi) >= 0:
        return dst
    grown = np.zeros((*dst.shape[:2], *how.dst), dst.dtype)
    if bias is not None:
        grown += bias.reshape(-1, *(1,) * len(how.dst))
    starts = (max(-lo, 0) for lo in how.lo)
    inside = (slice(start, start + n) for start, n in zip(starts, dst.shape[2:], strict=True))
    at = (slice(None), slice(None), *inside)
    grown[at] = dst
    return grown


def _empty(operator: str, src: Array, wei: Array, how: Sliding, dtype: np.dtype[Any]) -> Array:
    """Return the result for a batch of nothing."""
    if src.shape[0] or not wei.size:
        raise ShapeError("X" if src.dtype.kind == "f" else "x", str(src.shape), "no empty channel")
    record(operator, (), "an empty batch")
    outputs = wei.shape[1] * how.groups if operator == "ConvTranspose" else wei.shape[0]
    return np.empty((0, outputs, *how.dst), dtype)
