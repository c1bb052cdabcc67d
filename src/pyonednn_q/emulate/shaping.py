"""Concat and pad: codes moved, and made alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyonednn_q.argument import integers, items, one_of, real, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.emulate import onednn
from pyonednn_q.emulate.operands import (
    Arithmetic,
    Dialects,
    Encoding,
    Quantized,
    by_code,
    checked,
    choose,
    encoding,
    floats,
    through_floats,
)
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.requantize.rounding import round_real
from pyonednn_q.shown import shown

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
        Codes of the data types of `srcs_q`, of equal dims but along `axis`.
    srcs_q : sequence of QParams
        Scale, zero point and data type of each source: per tensor, u8 or s8.
    dst_q : QParams
        Scale, zero point and data type of the result: per tensor, u8 or s8.
    axis : int
        The dimension along which the tensors follow each other.
    dialect : str
        tflite, onnxruntime, caffe2, tpu_mlir or onednn.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    codes = choose(CONCAT, dialect)
    srcs, srcs_q = items("srcs", srcs, object), items("srcs_q", srcs_q, QParams)
    if not srcs or len(srcs) != len(srcs_q):
        got = f"{len(srcs)} tensors, {len(srcs_q)} parameters"
        raise ArgumentError("srcs", got, "as many of one as of the other, at least one")
    parts = [checked("src", src, q) for src, q in zip(srcs, srcs_q, strict=True)]
    dims, axis = _joined_dims(parts, axis)
    return codes(encoding("dst_q", dst_q), parts, dims, axis)


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
        Codes of src_q's data type, of any shape.
    padding : sequence of (int, int)
        (before, after) for every dimension: number of elements to add.
    src_q : QParams
        Scale, zero point and data type of src and of the result: per tensor, u8 or s8.
    value : float
        Real value of the border, for the mode "constant".
    mode : {"constant", "edge", "reflect"}
        Values of the border: `value`, the nearest element, or the elements mirrored at the edge.
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
    codes = choose(PAD, dialect)
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
    border = real("value", value)
    return np.pad(x.codes, sides, constant_values=codes(x.encoding, border))


def _joined_dims(parts: Sequence[Quantized], axis: int) -> tuple[tuple[int, ...], int]:
    """Return the dims of all parts one after the other, and which axis grows."""
    first = parts[0].codes.shape
    along = whole("axis", axis, -len(first), len(first) - 1) % len(first)
    shapes = [part.codes.shape for part in parts]
    if len({(*shape[:along], *shape[along + 1 :]) for shape in shapes}) > 1:
        raise ShapeError("srcs", ", ".join(map(str, shapes)), f"alike but for axis {axis}")
    return (*first[:along], sum(shape[along] for shape in shapes), *first[along + 1 :]), along


def _converted(convert: Callable[..., Array]) -> Callable[..., Array]:
    """Return what makes each part of one kind, if it is not, and joins them."""

    def codes(
        dst_q: Encoding, parts: Sequence[Quantized], _dims: tuple[int, ...], axis: int
    ) -> Array:
        alike = [x.codes if x.encoding == dst_q else convert(dst_q, x) for x in parts]
        return np.concatenate(alike, axis)

    return codes


def _tflite(dst_q: Encoding, x: Quantized) -> Array:
    if (x.encoding.dtype, dst_q.dtype) != ("u8", "u8"):
        wanted = "the parameters of dst_q: TFLite rescales only u8 to u8"
        raise ArgumentError("srcs_q", str(x.encoding), wanted)
    return _tflite_u8(dst_q, x)


@by_code
def _tflite_u8(dst_q: Encoding, x: Quantized) -> Array:
    ratio = np.float32(x.scale) * (np.float32(1) / np.float32(dst_q.scale))
    shift = -np.float32(x.zero_point) * ratio
    whole = round_real(x.codes.astype(np.float32) * ratio + shift, "half_away_from_zero")
    return dst_q.stored(whole + dst_q.zero_point)


def _real(x: Quantized) -> Array:
    return x.real


def _border(value: float) -> Array:
    return np.asarray(value, np.float32)


def _border_in_double(src_q: Encoding, value: float) -> Array:
    real_code = value / src_q.scale + src_q.zero_point
    return src_q.stored(round_real(real_code, "half_away_from_zero"))


CONCAT: Dialects = {
    "tflite": Arithmetic(
        "parameters alike: codes as they are; u8: half away(f32(q · ratio − z · ratio)) + z with "
        "ratio = f32(s_src · f32(1 / s_dst)); s8 refuses other scales",
        _converted(_tflite),
    ),
    **{
        dialect: Arithmetic(says, _converted(codes))
        for dialect, (says, codes) in through_floats(
            _real, "onnxruntime", "caffe2", "tpu_mlir", single_codes=True
        ).items()
    },
    "onednn": Arithmetic("f32(x · r) + z, even: a reorder of each into its slice", onednn.joined),
}

_BORDER = "codes as they are; the border is the value: "

PAD: Dialects = {
    "tflite": floats("tflite", _border, _BORDER),
    "onnxruntime": floats("onnxruntime", _border, _BORDER),
    "caffe2": floats("caffe2", _border, _BORDER),
    "tpu_mlir": Arithmetic(
        "codes as they are; the border is half away(value / s + z) in double", _border_in_double
    ),
    "onednn": floats("onednn", _border, "no primitive, in NumPy: " + _BORDER),
}
