"""From measured ranges to QParams, in each runtime's own convention.

With lo = min(lo, 0), hi = max(hi, 0), amax = max(−lo, hi):

    onnxruntime  asymmetric  (hi − lo)/(qmax − qmin) in float64, then float32; rne(qmin − lo/scale)
                 symmetric   2·amax/(qmax − qmin), s8 from −127; 0, of u8 128
    torch        asymmetric  (hi − lo)/(qmax − qmin) in float32, at least 2^-23; qmin −
                             rne(lo/scale)
                 symmetric   amax/((qmax − qmin)/2), s8 from −128; 0, of u8 128
    tflite       asymmetric  (hi − lo)/(qmax − qmin) in float64; qmin − lo/scale or qmax − hi/scale,
                             whichever is less in error, half away
                 symmetric   s8: amax/127; 0
    tpu_mlir     asymmetric  `affine_qparams` (0 need not lie in the range); symmetric: amax/127 or
                             of u8 hi/255
    onednn       symmetric   1/factor: amax/127 of s8, hi/255 of u8; 0
    nncf         `fq_from_range`, whose zero points are rounded here
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import broadcast, flag, numbers, one_of
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.fq_qparams import qparams_from_fq
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.fq_ranges import fq_from_range
from pyonednn_q.quantize.tpu_mlir import affine_qparams, symmetric_qparams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pyonednn_q.dtypes import DType

__all__ = ["Convention", "FactorCodes", "codes_by_factors", "qparams_by", "quantization_factor"]

Convention: TypeAlias = Literal["onnxruntime", "torch", "tflite", "tpu_mlir", "onednn", "nncf"]
_KINDS = ("activations", "weights")


def qparams_by(
    convention: Convention,
    lo: ArrayLike,
    hi: ArrayLike,
    dtype: DType = "u8",
    *,
    symmetric: bool = False,
    axis: int | None = None,
) -> QParams:
    """Return the QParams of a measured range, as a runtime computes them.

    Parameters
    ----------
    convention : {"onnxruntime", "torch", "tflite", "tpu_mlir", "onednn", "nncf"}
        Runtime whose formulas are used; see the head of this module.
    lo, hi : float or (C,) array_like
        Ends of the range in real units, lo <= hi, as `Estimator.range` returns them; (C,) with
        `axis`.
    dtype : {"u8", "s8"}
        Data type of the codes. TPU-MLIR's asymmetric ranges decide the type; another one is
        refused.
    symmetric : bool
        Whether the zero point is in the middle of the type; always so for "onednn".
    axis : int, optional
        Dimension of the channels in the tensor.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> [qparams_by(rule, -1.0, 1.55).zero_point for rule in ("torch", "tflite", "nncf")]
    [100, 100, 100]
    """
    one_of("convention", convention, get_args(Convention))
    dtype = dtypes.checked(dtype, "dtype", dtypes.INT8)
    flag("symmetric", symmetric)
    low, high = (numbers(name, end).astype(np.float64) for name, end in (("lo", lo), ("hi", hi)))
    if low.ndim > 1 or high.ndim > 1 or (axis is None and low.ndim + high.ndim):
        raise ShapeError("lo", f"shape {low.shape}", "one value, or with axis one per channel")
    shape = high.shape if high.ndim else low.shape
    if 0 in shape or (axis is not None and not shape):
        raise ShapeError("lo", f"shape {shape}", "with axis at least one channel")
    low, high = broadcast("lo", low, shape), broadcast("hi", high, shape)
    with np.errstate(over="ignore"):
        is_float32 = np.isfinite([low.astype(np.float32), high.astype(np.float32)]).all()
    if not is_float32 or (low > high).any():
        raise ArgumentError("lo", f"{low} and hi {high}", "finite ends, lo <= hi")
    if convention == "nncf":
        return _nncf(low, high, dtype, symmetric=symmetric, axis=axis)
    one = _ONE[convention]
    params = [one(a, b, dtype, symmetric) for a, b in zip(low.ravel(), high.ravel(), strict=True)]
    if axis is None:
        return params[0]
    kinds = {each.dtype for each in params}
    if len(kinds) > 1:
        raise DTypeError("dtype", "channels of u8 and of s8", "ranges that all do or do not hold 0")
    scales = np.array([each.scale for each in params])
    points = np.array([each.zero_point for each in params])
    return QParams(scales, points, params[0].dtype, axis=axis)


def _held(lo: float, hi: float) -> tuple[float, float, float]:
    low, high = min(float(lo), 0.0), max(float(hi), 0.0)
    return low, high, max(-low, high)


def _onnxruntime(lo: float, hi: float, dtype: str, symmetric: bool) -> QParams:
    low, high, largest = _held(lo, hi)
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    if symmetric:
        qmin = -127 if dtype == "s8" else qmin
        low, high = -largest, largest
    scale = (float(np.float32(high)) - float(np.float32(low))) / (qmax - qmin)
    if scale < np.finfo(np.float32).tiny:
        return QParams(1.0, 0, dtype)
    point = np.rint((qmin + qmax) / 2) if symmetric else np.rint(qmin - np.float32(low) / scale)
    return QParams(float(np.float32(scale)), int(point), dtype)


def _torch(lo: float, hi: float, dtype: str, symmetric: bool) -> QParams:
    low, high, largest = (np.float32(end) for end in _held(lo, hi))
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    least = np.finfo(np.float32).eps
    if symmetric:
        scale = max(largest / np.float32((qmax - qmin) / 2), least)
        return QParams(float(scale), 0 if dtype == "s8" else 128, dtype)
    scale = max((high - low) / np.float32(qmax - qmin), least)
    point = qmin - int(np.rint(low / scale))
    return QParams(float(scale), min(max(point, qmin), qmax), dtype)


def _tflite(lo: float, hi: float, dtype: str, symmetric: bool) -> QParams:
    low, high, largest = _held(lo, hi)
    if symmetric:
        if dtype != "s8":
            raise DTypeError("dtype", dtype, "s8 for a symmetric range")
        return QParams(largest / 127 or 1.0, 0, "s8")
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    if low == high:
        return QParams(1.0, 0, dtype)
    scale = (high - low) / (qmax - qmin)
    by_low, by_high = qmin - low / scale, qmax - high / scale
    nearer_low = abs(qmin) + abs(low / scale) < abs(qmax) + abs(high / scale)
    exact = by_low if nearer_low else by_high
    point = math.copysign(math.floor(abs(exact) + 0.5), exact)
    return QParams(scale, int(min(max(point, qmin), qmax)), dtype)


def _tpu_mlir(lo: float, hi: float, dtype: str, symmetric: bool) -> QParams:
    if symmetric:
        largest = max(-float(lo), float(hi))
        return symmetric_qparams(largest or 1.0, 127 if dtype == "s8" else 255)
    params = affine_qparams(float(lo), float(hi))
    if params.dtype != dtype:
        raise DTypeError("dtype", dtype, f"{params.dtype}, which this range has in TPU-MLIR")
    return params


def _onednn(lo: float, hi: float, dtype: str, symmetric: bool) -> QParams:  # noqa: ARG001
    if dtype == "u8" and lo < 0.0:
        raise DTypeError("dtype", "u8", "s8 for values below 0")
    return QParams(_held(lo, hi)[2] / dtypes.qmax(dtype) or 1.0, 0, dtype)


_ONE = {
    "onnxruntime": _onnxruntime,
    "torch": _torch,
    "tflite": _tflite,
    "tpu_mlir": _tpu_mlir,
    "onednn": _onednn,
}


def _nncf(low: Array, high: Array, dtype: str, *, symmetric: bool, axis: int | None) -> QParams:
    if symmetric:
        fq = fq_from_range(low, np.maximum(-low, high))
        if dtype == "u8" and (low < 0.0).any():
            raise DTypeError("dtype", "u8", "s8 for values below 0")
        if dtype == "s8" and not (low < 0.0).any():
            raise DTypeError("dtype", "s8", "u8 where no value is below 0")
    else:
        fq = fq_from_range(low, high, symmetric=False)
    params = qparams_from_fq(fq, dtype, axis=0 if axis is None else axis).qparams
    if axis is not None and params.axis is None:  # all channels agree
        scales = np.full(low.size, params.scale)
        return QParams(scales, params.zero_point, dtype, axis=axis)
    return params


def quantization_factor(values: ArrayLike, kind: str = "activations") -> float:
    """Return the factor from real values to codes in oneDNN's text: 255/R or 127/R.

    R is the largest magnitude; scales of oneDNN v3 are the reciprocals.

    Parameters
    ----------
    values : array_like
        Real values of the tensor; for activations, none below 0.
    kind : {"activations", "weights"}
        u8 codes, 255/R; or s8 codes, 127/R.

    Raises
    ------
    ArgumentError
        Values below 0 of activations; nothing but 0; values that are not finite.

    Examples
    --------
    >>> quantization_factor([15.0, 14.0, 11.0])
    17.0
    >>> round(quantization_factor([-5.1, 9.8], "weights"), 5)
    12.95918
    """
    one_of("kind", kind, _KINDS)
    real = numbers("values", values).astype(np.float64)
    if not real.size or not np.isfinite(real).all() or not real.any():
        raise ArgumentError("values", "no values but 0, or not finite", "finite values, some not 0")
    if kind == "activations" and (real < 0.0).any():
        raise ArgumentError("values", f"{real.min()}", "no value below 0, of activations")
    return float((255.0 if kind == "activations" else 127.0) / np.abs(real).max())


@dataclass(frozen=True, slots=True, eq=False)
class FactorCodes:
    """A layer's tensors as integers by oneDNN's factors, and the factors.

    Attributes
    ----------
    src : ndarray of uint8
    wei : ndarray of int8
    bias : ndarray of int32
        Real bias times both factors.
    src_factor, wei_factor : float
    """

    src: Array
    wei: Array
    bias: Array
    src_factor: float
    wei_factor: float


def codes_by_factors(src: ArrayLike, wei: ArrayLike, bias: ArrayLike) -> FactorCodes:
    """Return source, weights and bias as integers, as oneDNN's text on INT8 inference has them.

    src · Q_src, wei · Q_wei and bias · Q_src · Q_wei, each rounded to nearest even (the text's own
    figures are partly truncated: it prints −15 for −15.55, and [528, −1145, −1762]).

    Parameters
    ----------
    src, wei, bias : array_like
        Real values of any shapes; no value of `src` below 0.

    Raises
    ------
    ArgumentError
        Errors of `quantization_factor`; a bias beyond 32 bits.

    Examples
    --------
    >>> codes = codes_by_factors(
    ...     [15, 14, 15, 8, 11], [-5.1, 6.8, -1.2, 9.8], [2.4, -5.2, -8.0]
    ... )
    >>> codes.wei.tolist(), codes.bias.tolist()
    ([-66, 88, -16, 127], [529, -1146, -1762])
    """
    src_factor = quantization_factor(src)
    wei_factor = quantization_factor(wei, "weights")
    real = numbers("bias", bias).astype(np.float64)
    with np.errstate(over="ignore"):
        whole = np.rint(real * src_factor * wei_factor)
    if not (np.abs(whole) < 2.0**31).all():
        raise ArgumentError("bias", "values beyond 32 bits, or not finite", "a smaller bias")
    src_codes, wei_codes = (
        np.rint(numbers(name, values).astype(np.float64) * factor)
        for name, values, factor in (("src", src, src_factor), ("wei", wei, wei_factor))
    )
    return FactorCodes(
        src_codes.astype(np.uint8),
        wei_codes.astype(np.int8),
        whole.astype(np.int32),
        src_factor,
        wei_factor,
    )
