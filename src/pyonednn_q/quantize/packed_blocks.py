"""Weights in blocks as com.microsoft.MatMulNBits of ONNX packs them, read and written.

    real[k, n] = scale[n, k // size] · (code[k, n] − zero_point[n, k // size])

Codes of a column lie one after another, the first in a byte's lowest bits; zero points of a column
alike, beginning with a byte, or they are real numbers; without them each is 2^(bits − 1). Source:
onnxruntime's contrib operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.packed_codes import (
    Codes,
    bytes_of,
    codes_of_groups,
    scales_of,
    sized,
    split_codes,
    width_of,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["block_parts", "from_matmul_nbits", "to_matmul_nbits"]

_MOST_POINT = 2**31 - 1


def from_matmul_nbits(
    b: ArrayLike,
    scales: ArrayLike,
    zero_points: ArrayLike | None = None,
    *,
    k: int,
    n: int,
    bits: int = 4,
    block_size: int = 32,
) -> Codes:
    """Return codes and QParams of a com.microsoft.MatMulNBits of ONNX.

    Parameters
    ----------
    b : (N, K / block_size, block_size * bits / 8) array_like of uint8
        Packed codes; also in a flat array.
    scales : (N * K / block_size,) array_like of float
        Scales; they may be negative, because onnxruntime's quantizer maps the weight of largest
        magnitude to the lowest code.
    zero_points : array_like, optional
        Packed uint8, where each column begins with a new byte; or whole numbers in the scales'
        type. Default: 2^(bits - 1).
    k, n, bits, block_size : int
        Attributes K, N, bits and block_size. An incomplete last block is refused.

    Returns
    -------
    (K, N) ndarray of uint8, QParams

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> codes, wei_q = from_matmul_nbits([[[0x21, 0x43]]], [0.5], k=4, n=1, block_size=4)
    >>> wei_q.dequantize(codes).ravel()
    array([-3.5, -3. , -2.5, -2. ])
    """
    inner, size = whole("k", k, lo=1), whole("block_size", block_size, lo=1)
    if inner % size:
        raise ShapeError("block_size", str(size), f"a divisor of k, {inner}: whole blocks")
    codes, scale, point = block_parts(b, scales, zero_points, inner, n, bits, size)
    if (np.abs(point) > _MOST_POINT).any():
        raise ArgumentError("zero_points", f"{np.abs(point).max()}", "whole numbers of 32 bits")
    if (point != np.rint(point)).any():
        wanted = "whole numbers: sums of codes have no other zero points"
        raise ArgumentError("zero_points", f"{point[point != np.rint(point)][0]}", wanted)
    point = point.astype(np.int64)
    return codes_of_groups(codes.reshape(-1, inner).T, scale.T, point.T, size, bits)


def block_parts(
    b: ArrayLike,
    scales: ArrayLike,
    zero_points: ArrayLike | None,
    k: int,
    n: int,
    bits: int,
    block_size: int,
) -> tuple[Array, Array, Array]:
    """Return the content of a com.microsoft.MatMulNBits of ONNX, unpacked.

    Parameters
    ----------
    b, scales, zero_points, k, n, bits, block_size
        Arguments of `from_matmul_nbits`; a last block may be cut short, and zero points any real
        numbers.

    Returns
    -------
    codes : (n, blocks, block_size) ndarray of uint8
        Codes, also those of a last block that is cut short.
    scale : (n, blocks) ndarray of float32
    zero_point : (n, blocks) ndarray of uint8 or float

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.
    """
    inner, columns = whole("k", k, lo=1), whole("n", n, lo=1)
    width, size = width_of(bits), whole("block_size", block_size, lo=1)
    blocks, per_byte = -(-inner // size), 8 // width
    packed = sized("b", bytes_of("b", b), columns * blocks * -(-size // per_byte))
    codes = split_codes(packed.reshape(columns * blocks, -1), width, 8)[:, :size]
    scale = sized("scales", scales_of("scales", scales), columns * blocks).reshape(columns, blocks)
    if zero_points is None:
        point = np.full(scale.shape, 1 << (width - 1), np.uint8)
    else:
        point = _block_points(zero_points, columns, blocks, width)
    return codes.reshape(columns, blocks, size), scale, point


def to_matmul_nbits(codes: ArrayLike, wei_q: QParams) -> tuple[Array, Array, Array | None]:
    """Return the inputs of a com.microsoft.MatMulNBits of ONNX for weights in groups.

    Parameters
    ----------
    codes : (K, N) array_like of int
        Codes, one in a byte.
    wei_q : QParams
        Scales and zero points: s4, u4, s8 or u8, with a block along axis 0.

    Returns
    -------
    b : (N, K / block, block * bits / 8) ndarray of uint8
        Packed codes; signed codes are stored plus 2^(bits - 1).
    scales : (N, K / block) ndarray of float32
    zero_points : (N, bytes) ndarray of uint8, or None
        Packed zero points; None if all are 2^(bits - 1), the operator's default.

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> wei_q = QParams([[0.5]], 0, "s4", axis=0, block=(4,))
    >>> packed, scales, points = to_matmul_nbits([[-7], [-6], [-5], [-4]], wei_q)
    >>> [hex(each) for each in packed.ravel()], points
    (['0x21', '0x43'], None)
    """
    instance("wei_q", wei_q, QParams)
    if len(wei_q.block) != 1 or wei_q.axis not in {0, -2} or wei_q.dtype not in _WIDTHS:
        raise ArgumentError("wei_q", f"{wei_q.dtype}, axis {wei_q.axis}", "groups along axis 0")
    bits, size = _WIDTHS[wei_q.dtype], wei_q.block[0]
    offset = -dtypes.qmin(wei_q.dtype)
    values = numbers("codes", codes, "iu").astype(np.int64) + offset
    dims = (np.shape(wei_q.scale)[0] * size, *np.shape(wei_q.scale)[1:])
    if values.shape != dims:
        raise ShapeError("codes", str(values.shape), f"{dims}, as wei_q has groups")
    if values.min() < 0 or values.max() >= 1 << bits:
        raise ArgumentError("codes", f"up to {values.max() - offset}", f"codes of {wei_q.dtype}")
    if size * bits % 8:
        raise ArgumentError("wei_q", f"groups of {size}", "groups that fill bytes")
    columns = dims[1]
    packed = _packed(values.T, bits).reshape(columns, -1, size * bits // 8)
    scales = np.ascontiguousarray(np.asarray(wei_q.scale).T, np.float32)
    points = np.asarray(wei_q.zero_point).T + offset
    is_usual = bool((points == 1 << (bits - 1)).all())
    return packed, scales, None if is_usual else _packed(points, bits)


_WIDTHS = {"s4": 4, "u4": 4, "s8": 8, "u8": 8}


def _packed(rows: Array, bits: int) -> Array:
    """Return rows of codes in bytes, the first in the lowest bits; each row fills whole ones."""
    codes, per_byte = rows.astype(np.uint8), 8 // bits
    codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % per_byte)))
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = codes.reshape(len(codes), -1, per_byte) << shifts
    return np.asarray(np.bitwise_or.reduce(parts, axis=2), np.uint8)


def _block_points(zero_points: object, columns: int, blocks: int, width: int) -> Array:
    """Return zero points of blocks: packed ones, or real ones."""
    values = numbers("zero_points", zero_points, "iuf")
    if values.dtype.kind != "f":
        of_column = -(-blocks * width // 8)
        packed = sized("zero_points", bytes_of("zero_points", values), columns * of_column)
        return split_codes(packed.reshape(columns, of_column), width, 8)[:, :blocks]
    return sized("zero_points", values.reshape(-1), columns * blocks).reshape(columns, blocks)
