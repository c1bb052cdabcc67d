"""Products of codes: sums that are exact in 32 bits, and codes that are rounded as ONNX rounds.

    acc = Σ (src − src_zero_point) · (wei − wei_zero_point) + bias          integers
    dst = saturate(rne(f32(acc) · M) + dst_zero_point)                      M, f32: all scales

Both are operators of ours: one that stores s32, and one with ``requantize="onnxruntime"``. Sums
that a kernel may lose (no VNNI, more than 32 bits) are those of ``requantize="exact"``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.split import centred
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import SaturationError, UnsupportedError
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.conv import Conv
from pyonednn_q.ops.functional import kept
from pyonednn_q.ops.weights import merged
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.ops.operator import Operator

Options = dict[str, Any]

_EXACT = {"dst_q": QParams(1.0, 0, "s32"), "requantize": "exact", "saturation": "allow"}
_ROUNDED = {"requantize": "onnxruntime", "saturation": "allow"}
_S32 = np.iinfo(np.int32)
_REFUSED: WeakSet[Operator] = WeakSet()  # whose sums a kernel would lose: found out once


# The same objects for the same values: what keeps operators finds those without comparing them.
@functools.lru_cache(maxsize=1024)
def qparams(
    scales: tuple[float, ...], points: tuple[int, ...], dtype: str, axis: int | None = None
) -> QParams:
    """Return the same object for the same scales and zero points.

    Parameters
    ----------
    scales, points : tuple of float, tuple of int
        One value each, or one per channel.
    dtype : str
        Data type of the codes.
    axis : int, optional
        Dimension of the channels, where there are several values.
    """
    scale = scales if len(scales) > 1 else scales[0]
    point = points if len(points) > 1 else points[0]
    return QParams(scale, point, dtype, axis=None if len(scales) == len(points) == 1 else axis)


def sums(
    operator: str, make: Callable[..., Operator], options: Options, src: Array, wei: Array
) -> Array:
    """Return acc as int32; beyond 32 bits it saturates.

    Parameters
    ----------
    operator : str
        ONNX's name of it.
    make : callable
        Class of our operator: `Conv` or `MatMul`.
    options : dict
        Options of the operator; `src_q`, `wei_q` and the window are read.
    src, wei : ndarray
        Codes in the dims that our operator takes.
    """
    ours = kept(make, wei, None, dst="s32", **options)
    if ours not in _REFUSED:
        try:
            return _run(operator, ours, options, {"dst": "s32"}, src, wei, None)
        except SaturationError:
            _REFUSED.add(ours)
    ours = kept(make, wei, None, **_EXACT, **options)
    return _run(operator, ours, options, _EXACT, src, wei, None)


def rounded(
    operator: str,
    make: Callable[..., Operator],
    options: Options,
    src: Array,
    wei: Array,
    bias: Array | None = None,
) -> Array:
    """Return dst.

    Parameters
    ----------
    operator, make, options, src, wei
        Arguments of `sums`; with `dst_q`.
    bias : (channels,) ndarray of int32, optional
        Bias in units of the sums.
    """
    ours = kept(make, wei, bias, **_ROUNDED, **options)
    return _run(operator, ours, options, _ROUNDED, src, wei, bias)


def _run(
    operator: str,
    ours: Operator,
    options: Options,
    asked: Options,
    src: Array,
    wei: Array,
    bias: Array | None,
) -> Array:
    groups, note = options.get("groups", 1), ""
    try:
        dst = ours(src)
    except SaturationError:
        raise
    except UnsupportedError:
        if groups == 1:
            raise
        ours = kept(_of_one_group, wei, bias, **asked, **options)
        dst = ours(src)
        note = f"{groups} groups as one, with zeros between them: no kernel of groups"
    record(operator, ((ours, src.shape),), note)
    return dst


def _of_one_group(
    wei: Array,
    bias: Array | None,
    *,
    groups: int,
    wei_q: QParams,
    **options: Any,  # noqa: ANN401 - of Conv
) -> Operator:
    """Return a convolution of one group: outside of its own, a channel has its zero point."""
    point = np.asarray(wei_q.zero_point)
    wide = centred(merged(centred(wei, point, 0), groups, groups), -point, 0)
    return Conv(wide.astype(wei.dtype), bias, wei_q=wei_q, **options)


def codes_of(acc: Array, multiplier: Array, zero_point: Array | int, dtype: str) -> Array:
    """Return saturate(rne(f32(acc) · multiplier) + zero_point), by NumPy.

    Parameters
    ----------
    acc : ndarray of int32
        Sums.
    multiplier, zero_point : array_like
        float32, and integers; they broadcast against `acc`.
    dtype : str
        Data type of the codes.
    """
    whole = np.rint(acc.astype(np.float32) * multiplier) + np.asarray(zero_point, np.float32)
    codes = np.clip(whole, dtypes.qmin(dtype), dtypes.qmax(dtype))
    return np.asarray(codes.astype(dtypes.numpy_dtype(dtype)))


def saturated(acc: Array) -> Array:
    """Return 64-bit integers as 32-bit integers."""
    return np.asarray(np.clip(acc, _S32.min, _S32.max).astype(np.int32))
