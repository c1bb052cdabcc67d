"""Products of codes: sums that are exact in 32 bits, and codes that are rounded as ONNX rounds.

    acc = Σ (src − src_zero_point) · (wei − wei_zero_point) + bias          integers
    dst = saturate(rne(f32(acc) · M) + dst_zero_point)                      M, f32: all scales

One primitive computes dst where float32 holds all of its sums, whatever the source: where for every
output channel

    255 · max(Σ w⁺, Σ w⁻) + 255 · K · |z| + |bias| <= 2^24                  w, z: stored weights

Elsewhere exact sums are stored first, and a pass of ours rounds them. On a CPU without VNNI, whose
kernels add two products in 16 bits, weights less their zero point are taken apart where they must
be, into 64 · high + low with |high| <= 4 and -32 <= low <= 31, and both products are exact.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import F32_WHOLE
from pyonednn_q.errors import SaturationError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.native.passes import requantize
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.functional import kept
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize import requantizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyonednn_q.ops.operator import Operator
    from pyonednn_q.requantize.value import Requantizer

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

_TAKEN_APART = 64
_SAME = QParams(1.0, 0, "s8")
_LEAST_NORMAL = 2.0**-126  # of float32
_S32 = np.iinfo(np.int32)
_ROUNDED = "exact s32 sums, rounded by a pass of ours"


@dataclass(frozen=True, slots=True, eq=False)
class CodeProduct:
    """A product of codes as an operator of ONNX says it. Made by `code_product`, one for each.

    Attributes
    ----------
    operator : str
        ONNX's name of it.
    make : callable
        Returns our operator for weights, bias, and options as those of `Conv`.
    axis : int
        Of the output channels in the weights: 0, or -1 for the columns of a product.
    src, wei : str
        Data types, "u8" or "s8".
    src_point : int
        Zero point of the source.
    wei_points : tuple of int
        Of the weights: one, or one per output channel.
    window : tuple
        Pairs of option and value, of a convolution.
    is_dense : bool
        Whether groups are one for the kernel, with zeros between them.
    """

    operator: str
    make: Callable[..., Operator]
    axis: int
    src: str
    wei: str
    src_point: int
    wei_points: tuple[int, ...]
    window: tuple[tuple[str, Any], ...] = ()
    is_dense: bool = False

    @property
    def groups(self) -> int:
        """Of channels."""
        return int(dict(self.window).get("groups", 1))

    @property
    def options(self) -> Options:
        """Of a convolution, as our operator takes them."""
        options = dict(self.window)
        return {**options, "groups": 1} if self.is_dense else options


@functools.lru_cache(maxsize=1024)
def code_product(
    operator: str,
    make: Callable[..., Operator],
    axis: int,
    types: tuple[str, str],
    src_point: int,
    wei_points: tuple[int, ...],
    window: tuple[tuple[str, Any], ...] = (),
    is_dense: bool = False,
) -> CodeProduct:
    """Return the same object for the same product: it is found by what it is, not what it holds."""
    return CodeProduct(operator, make, axis, *types, src_point, wei_points, window, is_dense)


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """How codes are made of sums. Made by `rounding_by`, one for each.

    Attributes
    ----------
    multiplier : tuple of float
        M, float32 numbers: one, or one per output channel.
    dst : str
        Data type of the codes.
    zero_point : int
        Of the codes.
    """

    multiplier: tuple[float, ...]
    dst: str
    zero_point: int

    @property
    def is_normal(self) -> bool:
        """Whether kernels take the multipliers as they are."""
        return min(self.multiplier) >= _LEAST_NORMAL


@functools.lru_cache(maxsize=1024)
def rounding_by(multiplier: tuple[float, ...], dst: str, zero_point: int) -> Rounding:
    """Return the same object for the same rounding."""
    return Rounding(multiplier, dst, zero_point)


def sums(product: CodeProduct, src: Array, wei: Array, bias: Array | None = None) -> Array:
    """Return acc as int32; beyond 32 bits it saturates.

    Parameters
    ----------
    product : CodeProduct
        What is multiplied.
    src, wei : ndarray
        Codes in the dims that our operator takes.
    bias : (channels,) ndarray of int32, optional
        In units of the sums.
    """
    return _sums(product, src, wei, bias, ())


def rounded(
    product: CodeProduct, rounding: Rounding, src: Array, wei: Array, bias: Array | None = None
) -> Array:
    """Return dst.

    Parameters
    ----------
    product, rounding : CodeProduct and Rounding
        What is multiplied, and how codes are made of the sums.
    src, wei, bias
        As of `sums`.
    """
    if rounding.is_normal:
        operator = kept(_rounding_operator, wei, bias, **_rounding_options(product, rounding))
        if operator.settings.exact_rounding:
            try:
                dst = operator(src)
            except UnsupportedError:  # no kernel for the shape with these post-ops, or no VNNI
                pass
            else:
                record(product.operator, ((operator, src.shape),))
                return dst
    acc = _sums(product, src, wei, bias, (_ROUNDED,))
    channels = -1 if product.axis == -1 else 1
    if rounding.is_normal:
        return requantize(acc, _requantizer(rounding, channels))
    factor = np.array(rounding.multiplier, np.float32)
    if factor.size > 1 and channels == 1:
        factor = factor.reshape(-1, *(1,) * (acc.ndim - 2))
    return codes_of(acc, factor, rounding.zero_point, rounding.dst)


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
    """Return integers of 64 bits as such of 32."""
    return np.asarray(np.clip(acc, _S32.min, _S32.max).astype(np.int32))


def _sums(
    product: CodeProduct, src: Array, wei: Array, bias: Array | None, notes: tuple[str, ...]
) -> Array:
    try:
        return _sums_by_groups(product, src, wei, bias, notes)
    except UnsupportedError:
        if product.groups == 1 or product.is_dense:
            raise
    said = f"{product.groups} groups as one, with zeros between them: no kernel of groups"
    return _sums_by_groups(_dense(product), src, wei, bias, (said, *notes))


def _dense(product: CodeProduct) -> CodeProduct:
    return code_product(
        product.operator,
        product.make,
        product.axis,
        (product.src, product.wei),
        product.src_point,
        product.wei_points,
        product.window,
        True,
    )


def _sums_by_groups(
    product: CodeProduct, src: Array, wei: Array, bias: Array | None, notes: tuple[str, ...]
) -> Array:
    operator = kept(_sums_operator, wei, bias, **_sums_options(product))
    try:
        acc = operator(src)
    except SaturationError:
        return _sums_taken_apart(product, src, wei, bias, notes)
    record(product.operator, ((operator, src.shape),), *notes)
    return acc


def _sums_taken_apart(
    product: CodeProduct, src: Array, wei: Array, bias: Array | None, notes: tuple[str, ...]
) -> Array:
    options = _sums_options(product)
    high = kept(_high_operator, wei, None, **options)
    low = kept(_low_operator, wei, None, **options)
    total = high(src).astype(np.int64) * _TAKEN_APART + low(src)
    if bias is not None:
        aligned = -1 if product.axis == -1 else (-1, *(1,) * (total.ndim - 2))
        total += bias.reshape(aligned)
    why = "sums beyond 32 bits saturate" if runtime.isa().has_vnni() else "no VNNI"
    said = f"weights as {_TAKEN_APART} · high + low: {why}"
    record(product.operator, ((high, src.shape), (low, src.shape)), said, *notes)
    return saturated(total)


def _sums_operator(
    wei: Array,
    bias: Array | None,
    *,
    product: CodeProduct,
    **options: Any,  # noqa: ANN401 - of CodeProduct.make
) -> Operator:
    return product.make(_widened(wei, product), bias, dst="s32", **options)


def _rounding_operator(
    wei: Array,
    bias: Array | None,
    *,
    product: CodeProduct,
    dst_q: QParams,
    **options: Any,  # noqa: ANN401 - of CodeProduct.make
) -> Operator:
    """Return what rounds by itself if float32 holds all of its sums; else of sums, unused."""
    operator = product.make(wei, bias, dst_q=dst_q, exact_rounding=True, **options)
    if _largest(operator) <= F32_WHOLE:
        return operator
    return _sums_operator(wei, bias, product=product, **options)


def _high_operator(
    wei: Array,
    bias: Array | None,
    *,
    product: CodeProduct,
    **options: Any,  # noqa: ANN401 - of CodeProduct.make
) -> Operator:
    high = (_centred(wei, product) + _TAKEN_APART // 2) // _TAKEN_APART
    options["wei_q"] = _SAME
    return product.make(high.astype(np.int8), bias, dst="s32", **options)


def _low_operator(
    wei: Array,
    bias: Array | None,
    *,
    product: CodeProduct,
    **options: Any,  # noqa: ANN401 - of CodeProduct.make
) -> Operator:
    half = _TAKEN_APART // 2
    low = (_centred(wei, product) + half) % _TAKEN_APART - half
    options["wei_q"] = _SAME
    return product.make(low.astype(np.int8), bias, dst="s32", **options)


def _widened(wei: Array, product: CodeProduct) -> Array:
    """Return weights of one group: outside of its own, a channel has its zero point."""
    if not product.is_dense:
        return wei
    outputs, inputs, *kernel = wei.shape
    groups = product.groups
    points = np.array(product.wei_points).reshape(-1, *(1,) * (wei.ndim - 1))
    wide = np.empty((outputs, groups * inputs, *kernel), wei.dtype)
    wide[...] = points
    for group in range(groups):
        rows = slice(group * outputs // groups, (group + 1) * outputs // groups)
        wide[rows, group * inputs : (group + 1) * inputs] = wei[rows]
    return wide


def _centred(wei: Array, product: CodeProduct) -> Array:
    wei = _widened(wei, product)
    points = np.array(product.wei_points, np.int16)
    if product.axis == 0:
        points = points.reshape(-1, *(1,) * (wei.ndim - 1))
    return np.asarray(wei.astype(np.int16) - points)


def _largest(operator: Operator) -> int:
    """Return how far from 0 any sum can be on its way, with whatever zero point of the source."""
    values = operator.weights.values.astype(np.int64)
    inner = -2 if operator.axis == -1 else tuple(range(1, values.ndim))
    above = np.maximum(values, 0).sum(axis=inner)
    below = np.maximum(-values, 0).sum(axis=inner)
    taps = values.shape[-2] if operator.axis == -1 else values[0].size
    point = int(np.abs(operator.weights.zero_point.values()).max())
    added = 0 if operator.bias is None else int(np.abs(operator.bias.astype(np.int64)).max())
    most = int(np.maximum(above, below).max())
    return 255 * (most + int(taps) * point) + added


# The same objects for the same call: what keeps operators finds those without comparing them.


@functools.lru_cache(maxsize=1024)
def _sums_options(product: CodeProduct) -> Options:
    src_q = QParams(1.0, product.src_point, product.src)
    return {
        "product": product,
        "src_q": src_q,
        "wei_q": _wei_q(product, (1.0,)),
        **product.options,
    }


@functools.lru_cache(maxsize=1024)
def _rounding_options(product: CodeProduct, rounding: Rounding) -> Options:
    return {
        **_sums_options(product),
        "wei_q": _wei_q(product, rounding.multiplier),
        "dst_q": QParams(1.0, rounding.zero_point, rounding.dst),
    }


@functools.lru_cache(maxsize=1024)
def _requantizer(rounding: Rounding, axis: int) -> Requantizer:
    several = len(rounding.multiplier) > 1
    return requantizer(
        "onnxruntime",
        src_scale=1.0,
        wei_scale=rounding.multiplier if several else rounding.multiplier[0],
        dst_scale=1.0,
        dst_zero_point=rounding.zero_point,
        dst_dtype=rounding.dst,
        axis=axis,
    )


def _wei_q(product: CodeProduct, scales: tuple[float, ...]) -> QParams:
    points = product.wei_points
    if len(points) == 1 and len(scales) == 1:
        return QParams(scales[0], points[0], product.wei)
    scale = scales if len(scales) > 1 else scales[0]
    point = points if len(points) > 1 else points[0]
    return QParams(scale, point, product.wei, axis=product.axis)
