"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyonednn_q.argument import whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.graph import kinds
from pyonednn_q.native import passes
from pyonednn_q.onnx import tensors
from pyonednn_q.onnx.element_types import ElementType, chosen, element_type
from pyonednn_q.onnx.trace import record
from pyonednn_q.ops.arrays import as_array

Tensor = Any  # NumPy array, CPU tensor with __dlpack__, or buffer

_FLOATS = ("float32", "float16", "bfloat16")
_NO_SCALE = "float8_e8m0fnu"  # a power of two, which is no type to compute in
_SHORT = {"uint8": "u8", "int8": "s8"}
_LEAST_ROW = 16  # values with the same scale, which a loop of C++ is faster on than NumPy's


def quantize_linear(
    x: Tensor,
    y_scale: Tensor,
    y_zero_point: Tensor = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: Any = 0,  # noqa: ANN401
    precision: Any = 0,  # noqa: ANN401
    saturate: int = 1,
) -> Array:
    """Return ONNX's QuantizeLinear: y = saturate(rne(x / y_scale) + y_zero_point).

    Parameters
    ----------
    x : tensor of float32, float16, bfloat16 or int32
        Real values, of any shape, without NaN where y holds integers.
    y_scale : scalar, (D,) tensor or tensor of x's rank
        Real value of one step, above 0: for the tensor; for each of D places along `axis`; or for
        blocks of `block_size` along it.
    y_zero_point : tensor, optional
        Zero point, shaped like y_scale. Its data type is that of the result.
    axis : int
        Axis of the scales; ignored if there is one scale.
    block_size : int
        Values along `axis` that share a scale; the last block may be shorter. 0: no blocks.
    output_dtype, precision : int, dtype or str
        Data type of the result (default uint8), and data type in which x / y_scale is computed
        (default that of y_scale): a number of TensorProto, 0 for the default, or a dtype.
    saturate : int
        Whether float8 results beyond their range become the largest value; not 0 means yes.

    Returns
    -------
    ndarray
        Codes with x's shape: uint8, int8, uint16, int16; with ml_dtypes also integers of 4 and 2
        bits, a byte each, and floats of 8, 6 and 4 bits.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> x = np.float32([[0.5, 1.5, 2.5], [1, 2, 1000]])
    >>> quantize_linear(x, np.float32(1.0), np.uint8(1))
    array([[  1,   3,   3],
           [  2,   3, 255]], dtype=uint8)
    >>> quantize_linear(x, np.float32([1.0, 0.5]), axis=0)[1]
    array([  2,   4, 255], dtype=uint8)
    """
    values = as_array("x", x)
    if values.dtype.name not in (*_FLOATS, "int32"):
        raise DTypeError("x", str(values.dtype), f"{', '.join(_FLOATS)} or int32")
    point = None if y_zero_point is None else tensors.constant("y_zero_point", y_zero_point)
    stored = _stored(point, output_dtype)
    raw = tensors.constant("y_scale", y_scale)
    scales = tensors.scale("y_scale", raw)
    if point is not None and point.shape != scales.shape and (point.size, scales.size) != (1, 1):
        raise ShapeError("y_zero_point", str(point.shape), f"{scales.shape}, as y_scale has")
    single = "float32" if raw.dtype.name == _NO_SCALE else raw.dtype.name
    computed = chosen("precision", precision) or element_type("y_scale", single)
    if computed.name not in _FLOATS:
        raise DTypeError("precision", computed.name, ", ".join(_FLOATS))
    grid = _Grid("y_scale", values.shape, scales.shape, axis, block_size)
    saturate = whole("saturate", saturate)
    return _quantized(
        kinds.QUANTIZE.name, values, scales, point, grid, computed.dtype, stored, saturate
    )


def dequantize_linear(
    x: Tensor,
    x_scale: Tensor,
    x_zero_point: Tensor = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: Any = 0,  # noqa: ANN401
) -> Array:
    """Return ONNX's DequantizeLinear: y = (x − x_zero_point) · x_scale.

    Computed in float32 and rounded once to the data type of the result.

    Parameters
    ----------
    x : tensor
        Codes of a data type that `quantize_linear` returns, or int32.
    x_scale : scalar, (D,) tensor or tensor of x's rank
        Real value of one step: float32, float16, bfloat16 or float8e8m0.
    x_zero_point : tensor, optional
        Zero point, with the shape of x_scale and the data type of x; 0 by default.
    axis, block_size
        Attributes, as in `quantize_linear`.
    output_dtype : int, dtype or str
        Data type of the result: float32, float16 or bfloat16; by default that of x_scale.

    Returns
    -------
    ndarray
        Real values, shaped like x.

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> dequantize_linear(np.uint8([0, 3, 128]), np.float32(2), np.uint8(128))
    array([-256., -250.,    0.], dtype=float32)
    """
    codes = as_array("x", x)
    kind = element_type("x", codes.dtype)
    if kind.name in (*_FLOATS, _NO_SCALE):
        raise DTypeError("x", kind.name, "codes: integers, or floats of 8 bits and fewer")
    scales = tensors.constant("x_scale", x_scale)
    if scales.dtype.name not in (*_FLOATS, _NO_SCALE):
        raise DTypeError("x_scale", str(scales.dtype), f"{', '.join(_FLOATS)} or {_NO_SCALE}")
    stored = chosen("output_dtype", output_dtype) or element_type("x_scale", scales.dtype)
    if stored.name not in _FLOATS:
        raise DTypeError("output_dtype", stored.name, ", ".join(_FLOATS))
    grid = _Grid("x_scale", codes.shape, scales.shape, axis, block_size)
    record(kinds.DEQUANTIZE.name, (), "by NumPy")
    wide = np.int64 if kind.name == "int32" else np.float32  # of float32, 2^24 are whole
    real = codes.astype(wide)
    if x_zero_point is not None:
        point = tensors.constant("x_zero_point", x_zero_point)
        if point.dtype != codes.dtype:
            raise DTypeError("x_zero_point", str(point.dtype), f"{codes.dtype}, as x has")
        if point.shape != scales.shape and (point.size, scales.size) != (1, 1):
            raise ShapeError("x_zero_point", str(point.shape), f"{scales.shape}, as x_scale has")
        _check_float8(kind, "x_zero_point", point)
        real = real - grid.spread(point.astype(wide))
    with np.errstate(over="ignore", invalid="ignore"):
        product = real.astype(np.float32) * grid.spread(scales.astype(np.float32))
        return np.asarray(product.astype(stored.dtype))


def dynamic_quantize_linear(x: Tensor) -> tuple[Array, Array, Array]:
    """Return ONNX's DynamicQuantizeLinear: codes of x, and the scale and zero point found for them.

    y_scale = (max(x, 0) − min(x, 0)) / 255 and y_zero_point = rne(−min(x, 0) / y_scale), in
    float32; where x holds zeros only, y_scale is 1 / 255, as in ONNX's reference.

    Parameters
    ----------
    x : tensor of float32
        Finite values, of any shape but an empty one.

    Returns
    -------
    y : ndarray of uint8
        Codes, shaped like x: saturate(rne(x / y_scale) + y_zero_point).
    y_scale, y_zero_point : scalar arrays of float32 and uint8

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> y, y_scale, y_zero_point = dynamic_quantize_linear(np.float32([-1.0, 0.0, 1.55]))
    >>> y, bool(y_scale == np.float32(0.01)), y_zero_point.item()
    (array([  0, 100, 255], dtype=uint8), True, 100)
    """
    values = as_array("x", x)
    if values.dtype != np.float32:
        raise DTypeError("x", str(values.dtype), "float32")
    if not values.size:
        raise ShapeError("x", str(values.shape), "no empty dimension")
    with tensors.named("x", "x", "x"):
        lo, hi = (end[0] for end in passes.ranges(passes.as_rows(values)))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        length = np.float32(1) if hi == lo else hi - lo
        scale = np.float32(length / np.float32(255))
        zero_point = np.rint(np.clip(np.float32(0) - lo / scale, 0, 255)).astype(np.uint8)
    if not (np.isfinite(scale) and scale > 0):
        raise ArgumentError("x", f"values from {lo} to {hi}", "a range whose 255th is a float32")
    params = np.asarray(scale), np.asarray(zero_point)
    grid = _Grid("x", values.shape, (), 0, 0)
    stored = element_type("x", np.uint8)
    y = _quantized(kinds.DYNAMIC_QUANTIZE.name, values, *params, grid, values.dtype, stored, 1)
    return y, *params


class _Grid:
    """Map from values of a tensor to their scale."""

    def __init__(
        self, name: str, shape: tuple[int, ...], scales: tuple[int, ...], axis: int, block_size: int
    ) -> None:
        self.shape, self.scales = shape, scales
        self.block = whole("block_size", block_size, lo=0)
        self.is_one = math.prod(scales) == 1 and not (self.block and len(scales) == len(shape))
        self.axis = 0
        if self.is_one:
            return
        rank = len(shape)
        self.axis = whole("axis", axis, -rank, rank - 1) % rank if rank else 0
        wanted: tuple[int, ...] = (shape[self.axis],) if rank else ()
        if self.block:
            blocks = -(-shape[self.axis] // self.block)
            wanted = (*shape[: self.axis], blocks, *shape[self.axis + 1 :])
        if scales != wanted:
            along = f"blocks of {self.block}" if self.block else "one value, or one"
            raise ShapeError(name, str(scales), f"{wanted}: {along} along axis {self.axis}")

    @property
    def rows(self) -> int | None:
        """Into how many rows of equal length and one scale each the tensor falls, if it does."""
        if self.is_one:
            return 1
        length = math.prod(self.shape[self.axis + 1 :])
        if self.block:
            if length != 1 or self.shape[self.axis] % self.block:
                return None
            length = self.block
        size = math.prod(self.shape)
        return size // length if length >= _LEAST_ROW else None

    def spread(self, values: Array) -> Array:
        """Return scales, or their zero points, so that they broadcast against the tensor."""
        if values.size == 1 and self.is_one:
            return values.reshape(())
        if values.size == 1:
            values = np.broadcast_to(values.reshape(()), self.scales)
        if not self.block:
            return values.reshape(-1, *(1,) * (len(self.shape) - self.axis - 1))
        repeated = np.repeat(values, self.block, axis=self.axis)
        whole_blocks: Array = np.take(repeated, range(self.shape[self.axis]), axis=self.axis)
        return whole_blocks


def _quantized(
    operator: str,
    values: Array,
    scales: Array,
    point: Array | None,
    grid: _Grid,
    computed: np.dtype[Any],
    stored: ElementType,
    saturate: int,
) -> Array:
    """Return codes of values, by a loop of C++ where it has one."""
    is_usual = values.dtype == computed == np.float32 and stored.name in _SHORT and values.size
    if is_usual and grid.rows is not None and scales.min() >= np.finfo(np.float32).tiny:
        record(operator, (), "by a pass of ours")
        points = np.zeros((), np.int32) if point is None else point.astype(np.int32)
        return _by_rows(values, scales, points, grid, _SHORT[stored.name])
    record(operator, (), "by NumPy")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        quotient = values.astype(computed) / grid.spread(scales.astype(computed))
    return _as_codes(quotient, None if point is None else grid.spread(point), stored, saturate)


def _by_rows(values: Array, scales: Array, points: Array, grid: _Grid, dtype: str) -> Array:
    rows = grid.rows
    assert rows is not None
    of_rows = [scales, points]
    if not grid.is_one and not grid.block:
        lead = grid.shape[: grid.axis + 1]
        of_rows = [np.broadcast_to(each, lead) for each in of_rows]
    row_scales, row_points = (np.broadcast_to(each.reshape(-1), (rows,)) for each in of_rows)
    with tensors.named("x", "x", "x"):
        return passes.quantize(
            passes.as_rows(values, rows),
            np.ascontiguousarray(row_scales, np.float32),
            np.ascontiguousarray(row_points, np.int32),
            dtype,
        )


def _stored(point: Array | None, output_dtype: Any) -> ElementType:  # noqa: ANN401
    """Return the data type of a result."""
    kind = None if point is None else element_type("y_zero_point", point.dtype)
    asked = chosen("output_dtype", output_dtype)
    if kind is not None and asked is not None and kind != asked:
        raise DTypeError("output_dtype", asked.name, f"{kind.name}, as y_zero_point has")
    stored = kind or asked or element_type("output_dtype", np.uint8)
    if stored.name in (*_FLOATS, "int32", _NO_SCALE):
        name = "output_dtype" if kind is None else "y_zero_point"
        raise DTypeError(name, stored.name, "integers of 16 bits and fewer, floats of 8 and fewer")
    if point is not None:
        _check_float8(stored, "y_zero_point", point)
    return stored


def _as_codes(quotient: Array, point: Array | None, stored: ElementType, saturate: int) -> Array:
    dtype = stored.dtype
    if stored.lo is None or stored.hi is None:
        if point is not None and not stored.is_float8:
            quotient = quotient + point.astype(quotient.dtype)
        if stored.is_float8 and saturate:
            largest = float(_largest(dtype))
            quotient = np.clip(quotient.astype(np.float32), -largest, largest)
        return np.asarray(quotient.astype(dtype))
    if np.isnan(quotient).any():
        raise ArgumentError("x", "NaN", "numbers, as codes are integers")
    # 16-bit integers, and sums of two, are exact in float32.
    rounded = np.rint(quotient.astype(np.float32))
    codes = rounded if point is None else rounded + point.astype(np.float32)
    return np.asarray(np.clip(codes, stored.lo, stored.hi).astype(dtype))


def _largest(dtype: np.dtype[Any]) -> Any:  # noqa: ANN401 - a float of 8 bits
    """Return the largest finite value of a type of 8 bits."""
    every = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    return every[np.isfinite(every)].max()


def _check_float8(kind: ElementType, name: str, point: Array) -> None:
    if kind.is_float8 and point.astype(np.float32).any():
        raise ArgumentError(name, "another than 0", f"0, of {kind.name}")
