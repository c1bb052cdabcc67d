"""Weights: what an operator multiplies by, as oneDNN takes it: s8 codes without zero point.

    u8 codes less 128 are s8 codes, and their zero point less 128
    wei − zero_point are codes without zero point, where they fit into s8

Both are exact. What does not fit keeps its zero point, which a matmul takes as an attribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.compose.argument import instance
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.expr.vec import Vec
from pyonednn_q.qparams import QParams

__all__ = ["Weights"]

Array = np.ndarray[Any, Any]

_U8_TO_S8 = 128


@dataclass(frozen=True, slots=True)
class Weights:
    """Codes or floats, and what they are worth.

    Attributes
    ----------
    values : ndarray
        s8 codes, or floats; in the caller's dims.
    dtype : str
        Their data type.
    scale : Vec
        What a code is worth, per tensor or per output channel.
    zero_point : Vec
        Of codes whose difference to it does not fit into s8; 0 otherwise.
    note : str
        What was changed.
    """

    values: Array
    dtype: str
    scale: Vec
    zero_point: Vec
    note: str = ""

    @classmethod
    def of(cls, wei: Array, wei_q: QParams | None, axis: int, *, is_int8: bool) -> Weights:
        """Return weights as oneDNN takes them.

        Parameters
        ----------
        wei : ndarray
            Integers with `wei_q`, floats without.
        wei_q : QParams or None
            Per tensor, or along `axis`.
        axis : int
            Of the output channels.
        is_int8 : bool
            Whether the source is integer.

        Raises
        ------
        ArgumentError, DTypeError, ShapeError
            Weights and `wei_q`, or weights and source, that do not go together.
        """
        dtype = dtypes.from_numpy(wei.dtype, "wei")
        if wei_q is None:
            if is_int8:
                got = f"None for {dtype} weights"
                raise ArgumentError("wei_q", got, "QParams: src_q says that sums are of integers")
            if dtype not in {"f32", "bf16", "f16"}:
                raise DTypeError("wei", dtype, "f32, bf16 or f16; or wei_q, and src_q with it")
            if not np.isfinite(wei).all():
                raise ArgumentError("wei", "values that are not finite", "finite numbers")
            return cls(wei.copy(), dtype, Vec(1.0), Vec(0.0))  # the caller may write to his
        instance("wei_q", wei_q, QParams)
        if not is_int8:
            raise ArgumentError("src_q", "None", "QParams: wei_q says that sums are of integers")
        if dtype != wei_q.dtype:
            raise DTypeError("wei", dtype, f"{wei_q.dtype}, as wei_q says")
        if dtype not in {"u8", "s8"}:
            raise DTypeError("wei", dtype, "u8 or s8")
        _check_axis(wei, wei_q, axis)
        return _as_s8(wei, wei_q, axis)


def _check_axis(wei: Array, wei_q: QParams, axis: int) -> None:
    if wei_q.axis is None:
        return
    if wei_q.axis % wei.ndim != axis % wei.ndim:
        wanted = f"{axis % wei.ndim}, the output channels"
        raise ArgumentError("wei_q", f"axis {wei_q.axis}", wanted)
    if wei_q.channels != wei.shape[axis]:
        wanted = f"{wei.shape[axis]}: one per output channel"
        raise ShapeError("wei_q", f"{wei_q.channels} channels", wanted)


def _as_s8(wei: Array, wei_q: QParams, axis: int) -> Weights:
    scale = Vec(wei_q.scale)
    points = np.asarray(wei_q.zero_point, np.int16)
    notes = []
    wide = wei.astype(np.int16)
    if wei_q.dtype == "u8":
        wide, points = wide - _U8_TO_S8, points - _U8_TO_S8
        notes.append("u8 weights stored as s8, less 128")
    if points.any():
        aligned = [1] * wei.ndim
        aligned[axis] = -1
        centred = wide - (points.reshape(aligned) if points.ndim else points)
        if centred.size == 0 or (centred.min() >= -128 and centred.max() <= 127):
            notes.append("zero points of weights subtracted from them")
            wide, points = centred, np.zeros_like(points)
    zero_point = Vec(points.astype(np.float64) if points.ndim else float(points))
    return Weights(wide.astype(np.int8), "s8", scale, zero_point, "; ".join(notes))
