"""The dialects: which constants and which arithmetic each runtime requantizes with.

A dialect turns three scales into a `Requantizer`. Scales become float32 first where the runtime
stores them so.

Examples
--------
Ties, where M = 1/4 and the zero point is 1:

>>> import numpy as np
>>> acc = np.array([-10, -6, -2, 2, 6, 10], np.int32)
>>> for name in ("tflite_2step", "tflite_1step", "onnxruntime", "onednn"):
...     scales = {"src_scale": 0.5, "wei_scale": 0.25, "dst_scale": 0.5}
...     print(name, requantize(acc, name, **scales, dst_zero_point=1))
tflite_2step [-2 -1  0  2  3  4]
tflite_1step [-1  0  1  2  3  4]
onnxruntime [-1 -1  1  1  3  3]
onednn [-2  0  0  2  2  4]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.requantize import statement
from pyonednn_q.requantize.catalogue import ALIASES, DIALECTS, Dialect
from pyonednn_q.requantize.value import Requantizer
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def dialect(name: str, argument: str = "dialect") -> Dialect:
    """Return the dialect with that name or alias.

    Parameters
    ----------
    name : str
        Name of a row of `DIALECTS`, or an alias.
    argument : str
        Name of the argument in the error message.

    Raises
    ------
    ArgumentError
        There is none; the message lists them.
    """
    instance(argument, name, str)
    row = DIALECTS.get(name, ALIASES.get(name))
    if row is None:
        raise ArgumentError(argument, shown(name), f"one of {', '.join(DIALECTS)}")
    return row


def requantizer(
    name: str,
    *,
    src_scale: ArrayLike,
    wei_scale: ArrayLike,
    dst_scale: ArrayLike,
    dst_zero_point: ArrayLike = 0,
    dst_dtype: str = "s8",
    bias: ArrayLike | None = None,
    lo: int | None = None,
    hi: int | None = None,
    axis: int = 1,
) -> Requantizer:
    """Return the arithmetic of a dialect for given scales.

    Parameters
    ----------
    name : str
        A name of `DIALECTS`, or an alias.
    src_scale, wei_scale, dst_scale : array_like of float
        Real value of one step of src, of the weights and of dst: finite and above 0. Each is one
        value, or of shape (C,), one per output channel.
    dst_zero_point : array_like of int
        The code of dst that stands for real 0: one value, or of shape (C,).
    dst_dtype : str
        Data type of the result: "u8", "s8" or "s32".
    bias : array_like, optional
        One value, or of shape (C,). Integers count units of the accumulator, worth src_scale ·
        wei_scale each. Real numbers are for oneDNN's dialects, which add in float32 after the
        scales; integers become f32(bias · src_scale · wei_scale) there. All other dialects add to
        the accumulator, and want integers.
    lo, hi : int, optional
        Least and greatest code of the result, where a fused activation clamps more than the data
        type does.
    axis : int
        The dimension of the accumulators that channels run along, when anything is per channel.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument; also where the dialect itself is not defined.
    """
    chosen = dialect(name)
    scale_of = {"src_scale": src_scale, "wei_scale": wei_scale, "dst_scale": dst_scale}
    scales = [_stored(key, value, chosen) for key, value in scale_of.items()]
    offsets = {
        "dst_zero_point": numbers("dst_zero_point", dst_zero_point),
        "bias": numbers("bias", 0 if bias is None else bias),
    }
    lengths = {array.shape for array in (*scales, *offsets.values()) if array.ndim}
    if len(lengths) > 1:
        wanted = "as many channels in each, or one value"
        raise ShapeError("wei_scale", f"constants of shapes {shown(sorted(lengths))}", wanted)
    dst_dtype = dtypes.checked(dst_dtype, "dst_dtype", ("u8", "s8", "s32"))
    try:
        constants = chosen.constants(*scales)
        if bias is not None and chosen.name.startswith("onednn"):
            # One scale for all three leaves units of dst: there is no factor after the bias.
            bias = _real(offsets["bias"], *scales[:2]) / (1.0 if "last" in constants else scales[2])
        vectors = (*constants.values(), *offsets.values())
        per_channel = any(np.ndim(vector) for vector in vectors)
        if dst_dtype == "s32" and chosen.name.startswith("onednn") and hi is None:
            hi = dtypes.F32_BELOW_S32
        return Requantizer(
            zero_point=dst_zero_point,
            dtype=dst_dtype,
            bias=bias,
            lo=lo,
            hi=hi,
            axis=axis if per_channel else None,
            **constants,
        )
    except ShapeError:
        raise
    except ArgumentError as error:
        if error.argument not in {"multiplier", "shift"}:
            raise
        # The caller gave scales.
        src, wei, dst = scales
        with np.errstate(over="ignore"):
            most = float(np.max(src * wei / dst))
        got = f"scales whose src · wei / dst is up to {most:.4g}"
        wanted = f"smaller ones, for which {name} has integers"
        raise ArgumentError("src_scale", got, wanted) from None


def requantize(
    acc: Array,
    name: str,
    *,
    src_scale: ArrayLike,
    wei_scale: ArrayLike,
    dst_scale: ArrayLike,
    dst_zero_point: ArrayLike = 0,
    dst_dtype: str = "s8",
    bias: ArrayLike | None = None,
    axis: int = 1,
) -> Array:
    """Return the codes that a dialect makes of accumulators, by its NumPy statement.

    `native.requantize` runs the same in C++.

    Parameters
    ----------
    acc : ndarray of int32
        Accumulators, of any shape.
    name, src_scale, wei_scale, dst_scale, dst_zero_point, dst_dtype, bias, axis
        Arguments of `requantizer`, with the same shapes and units.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    rule = requantizer(
        name,
        src_scale=src_scale,
        wei_scale=wei_scale,
        dst_scale=dst_scale,
        dst_zero_point=dst_zero_point,
        dst_dtype=dst_dtype,
        bias=bias,
        axis=axis,
    )
    return statement.apply(acc, rule)


def _real(bias: Array, src_scale: Array, wei_scale: Array) -> Array:
    """Return a bias in real numbers; integers are counts of the accumulator."""
    is_count = bias.dtype.kind in "iu"
    return np.asarray(bias * (src_scale * wei_scale) if is_count else bias)


def _stored(name: str, value: ArrayLike, chosen: Dialect) -> Array:
    array = numbers(name, value)
    if array.ndim > 1:
        raise ShapeError(name, f"shape {array.shape}", "one value, or one per channel")
    with np.errstate(over="ignore"):
        stored = array.astype(np.float32 if chosen.single_scales else np.float64)
    if not (np.isfinite(stored) & (stored > 0)).all():
        kind = "float32" if chosen.single_scales else "float64"
        raise ArgumentError(name, shown(value), f"values that are finite and positive in {kind}")
    return stored.astype(np.float64)


# oneDNN's largest s32: the largest float32 below 2^31.
