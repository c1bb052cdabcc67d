"""Weights as symmetric integers of 2 to 8 bits: per tensor, per channel, or per group of inputs.

    scale = top / qmax          top = the largest magnitude, or what `method` finds
    code  = clamp(round(wei / scale), qmin, qmax)

with the scale 1 where all weights are 0. half_range: qmax = 63, qmin = −64 (narrow −63) of 8 bits,
the training tool's answer to products that saturate without VNNI. Packed codes of 4 bits: two in a
byte, the first in the low four bits, as ONNX and oneDNN have them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import flag, instance, integers, numbers, one_of, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.fq_ranges import level_range
from pyonednn_q.quantize.thresholds import mse_threshold
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Granularity",
    "IntegerWeights",
    "bias_codes",
    "integer_weights",
    "pack4",
    "unpack4",
]

Granularity: TypeAlias = Literal["per_channel", "per_tensor", "per_group"]
_ROUNDINGS = ("even", "away")
_METHODS = ("max", "mse")


@dataclass(frozen=True, slots=True, eq=False)
class IntegerWeights:
    """Weights as integers with scales.

    Attributes
    ----------
    codes : ndarray of int8
        Codes, in the shape of the weights.
    scale : ndarray of float64
        Real value of one step: () per tensor, (C,) per channel, (C, K / group) per group of the K
        weights of a channel, in order.
    axis : int
        Axis of the output channels.
    bits : int
        Width of the codes.
    """

    codes: Array
    scale: Array
    axis: int
    bits: int

    @property
    def qparams(self) -> QParams:
        """QParams with zero point 0, for operators; there are none for groups."""
        if self.scale.ndim == 2:
            raise ArgumentError("qparams", "scales of groups", "weights per channel or per tensor")
        axis = self.axis if self.scale.ndim else None
        return QParams(self.scale, 0, "s8", axis=axis)

    def dequantize(self) -> Array:
        """Return scale · code in float64, in the shape of the weights."""
        rows = _channels_first(self.codes, self.axis)
        if self.scale.ndim == 2:
            groups = rows.reshape(len(rows), self.scale.shape[1], -1)
            values = (groups * self.scale[:, :, None]).reshape(rows.shape)
        else:
            values = rows * (self.scale[:, None] if self.scale.ndim else self.scale)
        return _channels_back(values, self.codes.shape, self.axis)


def integer_weights(
    wei: ArrayLike,
    bits: int = 8,
    *,
    granularity: Granularity = "per_channel",
    group: int | None = None,
    axis: int = 0,
    narrow: bool = True,
    half_range: bool = False,
    method: str = "max",
    rounding: str = "even",
    least_scale: float = 0.0,
) -> IntegerWeights:
    """Return weights as symmetric integers.

    Parameters
    ----------
    wei : array_like
        Real weights, finite, of at least one dimension.
    bits : int
        Width of the codes, 2 to 8.
    granularity : {"per_channel", "per_tensor", "per_group"}
        Part of the weights that shares a scale.
    group : int, optional
        Size of a group, for "per_group": the number of consecutive weights of a channel that share
        a scale; it must divide their number.
    axis : int
        Axis of the output channels: 0 of a convolution and an inner product, -1 of a matmul.
    narrow : bool
        Whether the lowest code is left out, so that the negative of each code exists.
    half_range : bool
        Whether to use half of the range of 8 bits, so that products with u8 sources cannot
        saturate.
    method : {"max", "mse"}
        Method that chooses the end of the range: the largest magnitude, or the least squared error
        on a grid (`mse_threshold`).
    rounding : {"even", "away"}
        Rounding of ties: to even, as oneDNN and ONNX; or away from 0, as TPU-MLIR.
    least_scale : float
        Smallest scale; TPU-MLIR uses 1e-5.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> found = integer_weights([[1.27, -0.5], [0.0, 0.0]])
    >>> found.codes.tolist(), found.scale.tolist()
    ([[127, -50], [0, 0]], [0.01, 1.0])
    """
    values = numbers("wei", wei).astype(np.float64)
    if not values.ndim or not values.size:
        raise ShapeError("wei", f"shape {values.shape}", "at least one channel of one weight")
    if not np.isfinite(values).all():
        raise ArgumentError("wei", "values that are not finite", "finite numbers")
    bits = whole("bits", bits, lo=2, hi=8)
    one_of("granularity", granularity, get_args(Granularity))
    one_of("method", method, _METHODS)
    one_of("rounding", rounding, _ROUNDINGS)
    flag("narrow", narrow)
    flag("half_range", half_range)
    if half_range and bits != 8:
        raise ArgumentError("half_range", f"{bits} bits", "8 bits")
    least = real("least_scale", least_scale)
    axis = whole("axis", axis)
    if not -values.ndim <= axis < values.ndim:
        raise ShapeError("axis", str(axis), f"one of {values.ndim} dimensions")
    rows = _channels_first(values, axis)
    parts = rows.reshape(-1, _shared(rows.shape, granularity, group))
    qmin, qmax = level_range(7 if half_range else bits, narrow=narrow)
    if method == "max":
        tops = np.abs(parts).max(axis=1)
    else:
        tops = np.array([mse_threshold(part, 7 if half_range else bits) for part in parts])
        tops = np.where(parts.any(axis=1), tops, 0.0)
    scale = np.maximum(np.where(tops > 0.0, tops / qmax, 1.0), least)
    scale = np.where(scale > 0.0, scale, 1.0)  # a denormal number, divided
    ratio = parts / scale[:, None]
    codes = np.rint(ratio) if rounding == "even" else np.trunc(ratio + np.copysign(0.5, ratio))
    whole_codes = np.clip(codes, qmin, qmax).astype(np.int8).reshape(rows.shape)
    shape = {"per_tensor": (), "per_channel": (len(rows),)}.get(granularity, (len(rows), -1))
    return IntegerWeights(
        _channels_back(whole_codes, values.shape, axis), scale.reshape(shape), axis, bits
    )


def bias_codes(
    wei: IntegerWeights, bias: ArrayLike, src_q: QParams, *, compensate: bool = False
) -> Array:
    """Return a bias in units of the accumulator, for dialects with an s32 bias.

    rne(bias / (src_scale · wei_scale)); with `compensate` half away(that − src_zp · Σ wei_q), which
    a runtime adds that multiplies codes without their zero point, as TPU-MLIR.

    Parameters
    ----------
    wei : IntegerWeights
        Weights, per channel or per tensor.
    bias : (C,) array_like
        Real values.
    src_q : QParams
        Scale and zero point of the source, per tensor.
    compensate : bool
        Whether to subtract the share of the source's zero point.

    Returns
    -------
    (C,) ndarray of int32

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> wei = integer_weights([[1.27, -0.5]])
    >>> bias_codes(wei, [1.0], QParams(0.1, 0, "u8"))
    array([1000], dtype=int32)
    """
    flag("compensate", compensate)
    instance("src_q", src_q, QParams)
    instance("wei", wei, IntegerWeights)
    if src_q.axis is not None or wei.scale.ndim == 2:
        raise ArgumentError("src_q", "scales of channels or groups", "one scale of the source")
    values = numbers("bias", bias).astype(np.float64)
    rows = _channels_first(wei.codes, wei.axis)
    if values.shape != (len(rows),):
        raise ShapeError("bias", f"shape {values.shape}", f"({len(rows)},)")
    exact = values / (src_q.scale * wei.scale)
    codes = np.rint(exact)
    if compensate:
        exact = exact - src_q.zero_point * rows.sum(axis=1, dtype=np.int64)
        codes = np.trunc(exact + np.copysign(0.5, exact))
    if not (np.abs(codes) < 2.0**31).all():
        raise ArgumentError("bias", "values beyond 32 bits, or not finite", "larger scales")
    return codes.astype(np.int32)


def pack4(codes: ArrayLike) -> Array:
    """Return 4-bit codes packed two in a byte, flat; the first one is in the low four bits.

    Parameters
    ----------
    codes : array_like of int
        Codes, signed or unsigned, from -8 to 15; also in the 4-bit types of ml_dtypes.

    Returns
    -------
    ((n + 1) // 2,) ndarray of uint8

    Raises
    ------
    ArgumentError
        Other values.

    Examples
    --------
    >>> pack4([1, -1, 7])
    array([241,   7], dtype=uint8)
    """
    flat = numbers("codes", codes, "iuV").ravel()
    if flat.dtype.kind == "V":  # int4 or uint4, or no codes
        if dtypes.from_numpy(flat.dtype, "codes") not in {"s4", "u4"}:
            raise DTypeError("codes", str(flat.dtype), "integers")
        flat = flat.astype(np.int8)
    if ((flat < -8) | (flat > 15)).any() or ((flat < 0).any() and (flat > 7).any()):
        raise ArgumentError("codes", f"{flat.min()} to {flat.max()}", "-8 to 7, or 0 to 15")
    halves = (flat.astype(np.int64) & 15).astype(np.uint8)
    padded = np.append(halves, np.zeros(halves.size % 2, np.uint8))
    return padded[::2] | (padded[1::2] << 4)


def unpack4(packed: ArrayLike, shape: tuple[int, ...], *, signed: bool = True) -> Array:
    """Return the codes that `pack4` packed, in their shape.

    Parameters
    ----------
    packed : (n,) array_like of uint8
        Two codes in each byte.
    shape : tuple of int
        Shape of the codes, with 2 n elements or one less.
    signed : bool
        Whether codes are -8 to 7; else 0 to 15.

    Raises
    ------
    DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> unpack4(pack4([1, -1, 7]), (3,))
    array([ 1, -1,  7], dtype=int8)
    """
    flag("signed", signed)
    flat = numbers("packed", packed, "u").ravel()
    if flat.dtype != np.uint8:
        raise DTypeError("packed", str(flat.dtype), "uint8")
    dims = integers("shape", shape)
    if min(dims, default=0) < 0 or (math.prod(dims) + 1) // 2 != flat.size:
        raise ShapeError("shape", shown(dims), f"dims of {2 * flat.size} codes, or one less")
    codes = np.stack([flat & 15, flat >> 4], axis=1).ravel()[: math.prod(dims)].reshape(dims)
    if not signed:
        return codes
    signed_codes = codes.astype(np.int8)
    return np.where(signed_codes > 7, signed_codes - np.int8(16), signed_codes)


def _shared(shape: tuple[int, ...], granularity: str, group: int | None) -> int:
    """Return the number of weights that share a scale."""
    if granularity != "per_group":
        if group is not None:
            raise ArgumentError("group", shown(group), "None, but with per_group")
        return math.prod(shape) if granularity == "per_tensor" else shape[1]
    size = whole("group", group, lo=1)
    if shape[1] % size:
        raise ShapeError("group", str(size), f"a divisor of {shape[1]} weights of a channel")
    return size


def _channels_first(values: Array, axis: int) -> Array:
    moved = np.moveaxis(values, axis, 0)
    return moved.reshape(len(moved), -1)


def _channels_back(rows: Array, shape: tuple[int, ...], axis: int) -> Array:
    dims = list(shape)
    channels = dims.pop(axis)
    return np.ascontiguousarray(np.moveaxis(rows.reshape(channels, *dims), 0, axis))
