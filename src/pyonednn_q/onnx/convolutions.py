"""Conv and ConvTranspose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ShapeError, UnsupportedError
from pyonednn_q.graph import kinds
from pyonednn_q.onnx import geometry, tensors
from pyonednn_q.onnx.geometry import Sliding
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.conv import Conv, Deconv
from pyonednn_q.ops.functional import kept
from pyonednn_q.primitive.windowed import swapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyonednn_q.ops.operator import Operator

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
        Weights, with the data type of X.
    B : (M,) tensor, optional
        Bias, with that data type.
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}
        Rule of padding. NOTSET: by `pads`. SAME: so that lengths are ceil(length / stride). VALID:
        no padding.
    dilations, strides : sequence of int, optional
        One per spatial dimension; 1 by default.
    group : int
        Number of groups of channels.
    kernel_shape : sequence of int, optional
        The spatial dims of W.
    pads : sequence of int, optional
        The low sides of all spatial dimensions, then the high ones; 0 by default.

    Returns
    -------
    (N, M, spatial) ndarray
        Result, with the data type of X. Sums are float32's.

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
    return _of_floats(kinds.CONV.name, Conv, src, wei, bias, how)


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
        Weights, with the data type of X.
    B : (M,) tensor, optional
        Bias, with that data type.
    auto_pad : {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}
        Rule of padding. SAME: so that lengths are length · stride; UPPER and LOWER name the side
        that gets the larger half of an odd number.
    dilations, group, kernel_shape, pads, strides
        Attributes, as in `conv`.
    output_padding : sequence of int, optional
        Places that are added at the end of each spatial dimension; 0 by default.
    output_shape : sequence of int, optional
        Spatial dims of the result; `pads` follow from them. Places that the kernel does not reach
        hold B, or 0.

    Returns
    -------
    (N, M, spatial) ndarray
        Result, with the data type of X. Sums are float32's.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError, UnsupportedError
        Errors of `conv`.

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
    bias = tensors.bias("B", B, src.dtype, wei.shape[1] * how.groups)
    dst = _of_floats(kinds.CONV_TRANSPOSE.name, _deconv_operator, src, wei, bias, how)
    return _grown(dst, bias, how)


def _of_floats(
    operator: str,
    make: Callable[..., Operator],
    src: Array,
    wei: Array,
    bias: Array | None,
    how: Sliding,
) -> Array:
    """Return a float convolution by kernels of its data type, or of float32 if there are none."""
    if not src.size:
        return empty_result(operator, src, wei, how, src.dtype)
    options = dict(how.options)
    with tensors.named("X", "W", "B"):
        layer = kept(make, wei, bias, dst=dtypes.from_numpy(src.dtype), **options)
        try:
            dst = layer(src)
        except UnsupportedError:
            if src.dtype == np.float32:
                raise
        else:
            record(operator, ((layer, src.shape),))
            return dst
        wide = src.astype(np.float32)
        layer = kept(make, wei.astype(np.float32), bias, dst="f32", **options)
        dst = layer(wide).astype(src.dtype)
    record(
        operator,
        ((layer, src.shape),),
        f"computed in float32: no kernel of {src.dtype}",
    )
    return dst


def _deconv_operator(
    wei: Array,
    bias: Array | None,
    *,
    groups: int,
    **options: Any,  # noqa: ANN401 - of Deconv
) -> Operator:
    """Return a deconvolution of weights (C, M / group, spatial): ours have outputs first."""
    return Deconv(swapped(wei, groups), bias, groups=groups, **options)


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


def empty_result(
    operator: str, src: Array, wei: Array, how: Sliding, dtype: np.dtype[Any]
) -> Array:
    """Return the result for a batch of nothing."""
    if src.shape[0] or not wei.size:
        raise ShapeError("X" if src.dtype.kind == "f" else "x", str(src.shape), "no empty channel")
    record(operator, (), "an empty batch")
    outputs = wei.shape[1] * how.groups if operator == kinds.CONV_TRANSPOSE.name else wei.shape[0]
    return np.empty((0, outputs, *how.dst), dtype)
