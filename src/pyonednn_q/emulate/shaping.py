"""Concat and pad: codes moved, and made alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.argument import integers, items, one_of, real, whole
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Quantized,
    by_table,
    checked,
    choose,
    parameters,
    stored,
    through_floats,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize.rounding import round_real
from pyonednn_q.shown import shown

if TYPE_CHECKING:
    pass

__all__ = ["concat", "pad"]

Array = np.ndarray[Any, Any]
_MODES = ("constant", "edge", "reflect")


def concat(
    srcs: Sequence[Any],
    *,
    srcs_q: Sequence[QParams],
    dst_q: QParams,
    axis: int = 1,
    dialect: str = "tflite",
) -> Array:
    """Return the tensors one after the other along an axis, all as codes of one kind.

    Parameters
    ----------
    srcs : sequence of tensors
        Codes.
    srcs_q : sequence of QParams
        One for each, per tensor, u8 or s8.
    dst_q : QParams
        Of the result.
    axis : int
        The dimension that grows.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    choose("concat", dialect)
    srcs, srcs_q = items("srcs", srcs, object), items("srcs_q", srcs_q, QParams)
    if not srcs or len(srcs) != len(srcs_q):
        got = f"{len(srcs)} tensors, {len(srcs_q)} parameters"
        raise ArgumentError("srcs", got, "as many of one as of the other, at least one")
    parts = [checked("src", src, q) for src, q in zip(srcs, srcs_q, strict=True)]
    dims, axis = _joined_dims(parts, axis)
    scale, zero_point = parameters("dst_q", dst_q)
    if dialect == "onednn":
        return onednn.joined(parts, dims, axis, dst_q)
    made = []
    for part, q in zip(parts, srcs_q, strict=True):
        if (q.dtype, part.scale, part.zero_point) == (dst_q.dtype, scale, zero_point):
            made.append(part.codes)
        elif dialect == "tflite":
            if (q.dtype, dst_q.dtype) != ("u8", "u8"):
                wanted = "the parameters of dst_q: TFLite rescales only u8 to u8"
                raise ArgumentError("srcs_q", str(q), wanted)
            made.append(by_table(part, lambda x: stored(_tflite(x, scale, zero_point), dst_q)))
        else:
            made.append(by_table(part, lambda x: through_floats(x.real, dst_q, dialect)))
    return np.concatenate(made, axis)


def pad(
    src: Any,  # noqa: ANN401 - NumPy, DLPack or a buffer
    padding: Sequence[tuple[int, int]],
    *,
    src_q: QParams,
    value: float = 0.0,
    mode: str = "constant",
    dialect: str = "tflite",
) -> Array:
    """Return codes with a border.

    Parameters
    ----------
    src : tensor
        Codes.
    padding : sequence of (int, int)
        Before and after, for every dimension.
    src_q : QParams
        Of src and of the result.
    value : float
        The border's real value; 0 is the zero point.
    mode : {"constant", "edge", "reflect"}
        The last two repeat or mirror codes and have no value.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> from pyonednn_q.qparams import QParams
    >>> pad(np.array([1, 2], np.uint8), [(1, 2)], src_q=QParams(0.5, 100, "u8"))
    array([100,   1,   2, 100, 100], dtype=uint8)
    """
    choose("pad", dialect)
    one_of("mode", mode, _MODES)
    x = checked("src", src, src_q)
    sides = [integers("padding", pair) for pair in items("padding", padding, object)]
    is_pairs = all(len(pair) == 2 and min(pair) >= 0 for pair in sides)
    if len(sides) != x.codes.ndim or not is_pairs:
        raise ShapeError(
            "padding", shown(padding), f"(before, after) for {x.codes.ndim} dimensions"
        )
    if mode != "constant":
        if mode == "reflect" and any(
            max(pair) >= size for pair, size in zip(sides, x.codes.shape, strict=True)
        ):
            raise ShapeError("padding", shown(padding), "less than the dimension, to be mirrored")
        return np.pad(x.codes, sides, "edge" if mode == "edge" else "reflect")
    border = np.asarray(real("value", value), np.float32)
    if dialect == "tpu_mlir":
        real_code = float(value) / x.scale + x.zero_point
        fill = stored(round_real(real_code, "half_away_from_zero"), src_q)
    else:
        fill = through_floats(border, src_q, dialect)
    return np.pad(x.codes, sides, constant_values=fill)


def _joined_dims(parts: Sequence[Quantized], axis: int) -> tuple[tuple[int, ...], int]:
    """Return the dims of all parts one after the other, and which axis grows."""
    first = parts[0].codes.shape
    along = whole("axis", axis, -len(first), len(first) - 1) % len(first)
    shapes = [part.codes.shape for part in parts]
    if len({(*shape[:along], *shape[along + 1 :]) for shape in shapes}) > 1:
        raise ShapeError("srcs", ", ".join(map(str, shapes)), f"alike but for axis {axis}")
    return (*first[:along], sum(shape[along] for shape in shapes), *first[along + 1 :]), along


def _tflite(x: Quantized, scale: float, zero_point: int) -> Array:
    ratio = np.float32(x.scale) * (np.float32(1) / np.float32(scale))
    shift = -np.float32(x.zero_point) * ratio
    return (
        round_real(x.codes.astype(np.float32) * ratio + shift, "half_away_from_zero") + zero_point
    )
