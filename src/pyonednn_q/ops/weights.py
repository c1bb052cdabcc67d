"""Weights: what an operator multiplies by, as oneDNN takes it: s8 codes without zero point.

    u8 codes less 128 are s8 codes, and their zero point less 128
    wei − zero_point are codes without zero point, where they fit into s8
    wei − zero_point + z fit for one z, where all channels lean to the same side: a matmul takes z
    wei − zero_point in parts, on a source whose channels are repeated, fit always

Parts are weights of nine bits as sums of s8 ones:

    Σ src · wei = Σ src · part_0 + Σ src · part_1 + ...        part_0 + part_1 + ... = wei

Weights less their zero point go from -255 to 255. The parts lie side by side along the input
channels, and so do copies of the channels that have a second part: one primitive adds up all of
them in its accumulator. Every product and sum is an integer, so zero points, padding, scales and
post-ops mean what they meant, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.acc.split import centred, terms
from pyonednn_q.argument import instance
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.native.arrays import aligned
from pyonednn_q.ops.arrays import as_array
from pyonednn_q.qparams import QParams

_LEAST = 2  # dimensions of a source
_FLOATS = (
    "real values: array.astype('float32'), or float16 or bfloat16; or int8 or uint8 codes, with "
    "wei_q and src_q"
)
_CODES = "int8 or uint8, with wei_q: src_q says that sums are of integers"
_BIAS = (
    "array.astype('float32') if these are real values, array.astype('int32') if they are units of "
    "the accumulator"
)


@dataclass(frozen=True, slots=True)
class Parts:
    """Input channels of a group that are repeated, and their places.

    Attributes
    ----------
    axis : int
        Axis of the source's channels: 1, or -1 for the columns of a matmul.
    groups, channels : int
        Groups, and channels of each.
    repeated : tuple of (int, int)
        First and last but one channel of each further part.
    """

    axis: int
    groups: int
    channels: int
    repeated: tuple[tuple[int, int], ...]

    @property
    def widened(self) -> int:
        """Channels of a group, with those that are repeated."""
        return self.channels + sum(stop - start for start, stop in self.repeated)

    def dims(self, src_dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return a source's dims with its channels repeated.

        Raises
        ------
        ShapeError
            Another number of channels, or none.
        """
        channels = self.groups * self.channels
        if len(src_dims) < _LEAST or src_dims[self.axis] != channels:
            where = "columns" if self.axis == -1 else "input channels"
            raise ShapeError("src", str(src_dims), f"{channels} {where}, as wei has")
        dims = list(src_dims)
        dims[self.axis] = self.groups * self.widened
        return tuple(dims)

    def of(self, src: Array) -> Array:
        """Return a source with its channels repeated, channels last in memory."""
        last = np.moveaxis(np.asarray(src), self.axis, -1)  # a matrix would stay one
        lead = last.shape[:-1]
        rows = last.reshape(math.prod(lead), self.groups, self.channels)
        wide = aligned((rows.shape[0], self.groups, self.widened), src.dtype)
        wide[..., : self.channels] = rows
        at = self.channels
        for start, stop in self.repeated:
            wide[..., at : at + stop - start] = rows[..., start:stop]
            at += stop - start
        return np.moveaxis(wide.reshape(*lead, self.groups * self.widened), -1, self.axis)


def merged(wei: Array, groups: int, count: int) -> Array:
    """Return weights of fewer groups, with zeros between those of different ones.

    Kernels are slow on groups of a few channels, or have none.

    Parameters
    ----------
    wei : (OC, IC / groups, ...) ndarray
        Weights.
    groups : int
        Number of groups of channels.
    count : int
        Number of neighbours that become one group; it divides the groups.
    """
    wide = np.zeros((groups // count, count, len(wei) // groups, count, *wei.shape[1:]), wei.dtype)
    own = wei.reshape(groups // count, count, len(wei) // groups, *wei.shape[1:])
    for at in range(count):
        wide[:, at, :, at] = own[:, at]
    return wide.reshape(len(wei), count * wei.shape[1], *wei.shape[2:])


def split(
    wei: Array, in_axis: int, limits: tuple[int, int] = (-128, 127), *, whole: bool = False
) -> tuple[Array, tuple[tuple[int, int], ...]]:
    """Return s8 weights side by side along `in_axis`, and the channels of each further part.

    Parameters
    ----------
    wei : ndarray of int16
        Weights less their zero point.
    in_axis : int
        Axis of the input channels.
    limits : (int, int)
        Least and largest value of a part, both included.
    whole : bool
        Repeat all channels where some must be: kernels of groups want even numbers of them.

    Examples
    --------
    >>> split(np.array([[5, 200, -7], [0, -130, 255]], np.int16), 1)[0].tolist()
    [[5, 127, -7, 73, 0, 0], [0, -128, 127, -2, 127, 1]]
    """
    first, *further = terms(np.moveaxis(wei, in_axis, 0), limits)
    side_by_side, repeated = [first], []
    for term in further:
        needed = np.flatnonzero(term.reshape(len(term), -1).any(axis=1))
        start, stop = (0, len(term)) if whole else (int(needed[0]), int(needed[-1]) + 1)
        side_by_side.append(term[start:stop])
        repeated.append((start, stop))
    wide = np.concatenate(side_by_side)
    return np.ascontiguousarray(np.moveaxis(wide, 0, in_axis)), tuple(repeated)


_U8_TO_S8 = 128
_S8 = (-128, 127)
_GROUP = 8  # channels, the fewest that kernels of groups like on every CPU


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Codes or floats, and what they are worth.

    Attributes
    ----------
    values : ndarray
        s8 codes, or floats; in the caller's dims.
    dtype : str
        Their data type.
    scale : Vec
        Real value of a code of 1, per tensor or per output channel.
    zero_point : Vec
        Zero point of codes whose difference to it does not fit into s8; 0 otherwise.
    note : str
        Text about a change of the weights; empty if there was none.
    parts : Parts or None
        Input channels that the source must repeat.
    """

    values: Array
    dtype: str
    scale: Vec
    zero_point: Vec
    note: str = ""
    parts: Parts | None = None

    @property
    def dims(self) -> tuple[int, ...]:
        """Dims of the values."""
        dims: tuple[int, ...] = self.values.shape
        return dims

    @classmethod
    def of(
        cls,
        wei: Array,
        wei_q: QParams | None,
        axis: int,
        *,
        is_int8: bool,
        takes_zero_point: bool = False,
        groups: int = 1,
        limits: Callable[[], tuple[int, int]] = lambda: _S8,
    ) -> Weights:
        """Return weights as oneDNN takes them.

        Parameters
        ----------
        wei : ndarray
            Integers with `wei_q`, floats without.
        wei_q : QParams or None
            Per tensor, or along `axis`.
        axis : int
            Axis of the output channels.
        is_int8 : bool
            Whether the source is integer.
        takes_zero_point : bool
            Whether the primitive takes one zero point for the tensor.
        groups : int
            Number of groups of channels.
        limits : callable
            Returns what weights may hold where there is a choice: (least, greatest).

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Weights and `wei_q`, or weights and source, that do not go together.
        """
        wanted = _CODES if is_int8 else _FLOATS
        if wei_q is not None:
            instance("wei_q", wei_q, QParams)
            wanted = f"{dtypes.numpy_dtype(wei_q.dtype)}, as wei_q says"
        dtype = dtypes.from_numpy(wei.dtype, "wei", wanted)
        if wei_q is None:
            if is_int8:
                got = f"None for {dtype} weights"
                raise ArgumentError("wei_q", got, "QParams: src_q says that sums are of integers")
            if dtype not in {"f32", "bf16", "f16"}:
                raise DTypeError("wei", dtype, _FLOATS)
            if not np.isfinite(wei).all():
                raise ArgumentError("wei", "values that are not finite", "finite numbers")
            kept = wei if _is_of_bytes(wei) else wei.copy()  # the caller may write to his
            return cls(kept, dtype, Vec(1.0), Vec(0.0))
        if not is_int8:
            raise ArgumentError("src_q", "None", "QParams: wei_q says that sums are of integers")
        if dtype != wei_q.dtype:
            told = f"{wei_q.dtype}, as wei_q says"
            is_real = dtype in {"f32", "f64", "bf16", "f16"}
            told += f": wei_q.quantize(wei), or {_FROM_FLOAT}" if is_real else ""
            raise DTypeError("wei", dtype, told)
        if dtype not in {"u8", "s8"}:
            raise DTypeError("wei", dtype, "u8 or s8, and wei_q of that type")
        as_s8 = _as_s8(wei, wei_q, axis)
        if as_s8.zero_point.is_all(0.0):
            return as_s8
        ends = limits()
        common = _with_common_point(as_s8, axis, ends) if takes_zero_point else None
        return common or _in_parts(as_s8, axis, groups, ends)


_FROM_FLOAT = "from_float, which quantizes weights itself"


def _is_of_bytes(array: Array) -> bool:
    """Tell whether an array lies in bytes of Python, which nobody writes to."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, bytes)


def checked_bias(bias: object, channels: int) -> Array:
    """Return a copy of a bias as f32 if it holds real values, as s32 if units of the accumulator.

    Parameters
    ----------
    bias : (channels,) tensor
        Real values in f32, float64, f16 or bf16; or s32.
    channels : int
        Output channels.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Not a bias of this operator, or real values beyond float32.
    """
    array = as_array("bias", bias)
    if array.shape != (channels,):
        raise ShapeError("bias", str(array.shape), f"({channels},): one per output channel")
    if array.dtype != np.float64:
        name = dtypes.from_numpy(array.dtype, "bias", _BIAS)
        if name not in {"f32", "s32", "bf16", "f16"}:
            raise DTypeError("bias", name, _BIAS)
    with np.errstate(over="ignore"):
        copy: Array = array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
    if not np.isfinite(copy).all():
        raise ArgumentError("bias", "values that are not finite in f32", "finite numbers")
    return copy


def _as_s8(wei: Array, wei_q: QParams, axis: int) -> Weights:
    """Return s8 codes, less their zero point where they fit; refuse scales of other channels."""
    if wei_q.axis is not None:
        if wei_q.axis % wei.ndim != axis % wei.ndim:
            wanted = f"{axis % wei.ndim}, the output channels"
            raise ArgumentError("wei_q", f"axis {wei_q.axis}", wanted)
        if wei_q.channels != wei.shape[axis]:
            wanted = f"{wei.shape[axis]}: one per output channel"
            raise ShapeError("wei_q", f"{wei_q.channels} channels", wanted)
    scale = Vec(wei_q.scale)
    points = np.asarray(wei_q.zero_point, np.int16)
    notes = []
    wide = wei.astype(np.int16)
    if wei_q.dtype == "u8":
        wide, points = wide - _U8_TO_S8, points - _U8_TO_S8
        notes.append("u8 weights stored as s8, less 128")
    if points.any():
        whole = centred(wide, points, axis)
        if whole.size == 0 or (whole.min() >= -128 and whole.max() <= 127):
            notes.append("zero points of weights subtracted from them")
            wide, points = whole, np.zeros_like(points)
    zero_point = Vec(points.astype(np.float64) if points.ndim else float(points))
    return Weights(wide.astype(np.int8), "s8", scale, zero_point, "; ".join(notes))


def _with_common_point(weights: Weights, axis: int, limits: tuple[int, int]) -> Weights | None:
    """Return weights with one zero point for the tensor, if there is one that makes them fit."""
    values = weights.values
    fit = values.size == 0 or (limits[0] <= values.min() and values.max() <= limits[1])
    if weights.zero_point.is_per_tensor and fit:
        return weights
    whole = centred(values, weights.zero_point.values(), axis)
    least, greatest = limits[0] - int(whole.min()), limits[1] - int(whole.max())
    if least > greatest:
        return None
    common = min(max(0, least), greatest)
    if not _S8[0] <= common <= _S8[1]:
        return None
    note = "; ".join(filter(None, (weights.note, f"zero points of weights made one, {common}")))
    values = (whole + common).astype(np.int8)
    return Weights(values, "s8", weights.scale, Vec(float(common)), note)


def _in_parts(weights: Weights, axis: int, groups: int, limits: tuple[int, int]) -> Weights:
    """Return weights without zero point that a source with repeated channels is multiplied by."""
    in_axis, src_axis = (-2, -1) if axis == -1 else (1, 1)
    wei, is_grouped = centred(weights.values, weights.zero_point.values(), axis), groups > 1
    if is_grouped:
        few = [n for n in range(1, groups + 1) if not groups % n and n * wei.shape[1] <= _GROUP]
        count = max(few, default=1)
        wei, groups = merged(wei, groups, count), groups // count
    channels = wei.shape[in_axis]
    values, repeated = split(wei, in_axis, limits, whole=is_grouped)
    parts = Parts(src_axis, groups, channels, repeated)
    widened = f"{parts.widened} input channels a group instead of {channels}"
    split_note = f"wei - zero_point in {1 + len(repeated)} parts: {widened}"
    note = "; ".join(filter(None, (weights.note, split_note)))
    return Weights(values, "s8", weights.scale, Vec(0.0), note, parts)
