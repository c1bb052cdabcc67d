"""Weights of language models as tools pack them: read as codes and QParams of groups.

    real[k, n] = scale[k // group, n] · (code[k, n] − zero_point[k // group, n])

whatever the layout. Each reader returns unsigned codes (K, N), in a byte each, and `QParams` (K /
group, N) with a block along axis 0, as `MatMul` takes them: all layouts store unsigned codes, and
differences are the same. The first code of a word lies in its lowest bits. The rest differs:

    layout                  words along          zero points
    GPTQ                    K                    less 1 ("gptq"), or as they are ("gptq_v2")
    AWQ                     N, in order 02461357 as codes
    compressed-tensors      K, of a column       as codes, in words along N; or signed, in bytes

Where a checkpoint's groups follow the order of activations (``desc_act``, a `g_idx` that jumps), a
reader told `sort_rows` returns the rows of codes by group: row i is input channel ``order[i]``,
``order = np.argsort(g_idx, kind="stable")``, and ``np.take(src, order, -1)`` goes with them.

Sources: checkpoints of AutoGPTQ, AutoAWQ and compressed-tensors ("pack-quantized").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.argument import flag, numbers
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.quantize.packed_codes import (
    Codes,
    as_matrix,
    codes_of_groups,
    scales_of,
    split_codes,
    width_of,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

__all__ = ["from_awq", "from_compressed_tensors", "from_gptq"]

_NO_GROUP = -1  # of compressed-tensors
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which column the nibbles of a word hold, from the lowest


def from_gptq(
    qweight: ArrayLike,
    qzeros: ArrayLike,
    scales: ArrayLike,
    g_idx: ArrayLike | None = None,
    *,
    bits: int = 4,
    v2: bool = False,
    sort_rows: bool = False,
) -> Codes:
    """Return codes and QParams of a layer of a GPTQ checkpoint.

    Parameters
    ----------
    qweight : (K * bits / 32, N) array_like of int32
        Packed codes; with 3 bits, three words hold 32 codes, two of which cross words.
    qzeros : (groups, N * bits / 32) array_like of int32
        Packed zero points, each stored minus 1 unless `v2`; with 4 bits, 15 then means 0.
    scales : (groups, N) array_like of float
    g_idx : (K,) array_like of int, optional
        Group of each row.
    bits : {2, 3, 4, 8}
        Width of the codes.
    v2 : bool
        Whether the checkpoint's format is "gptq_v2", which stores zero points unchanged.
    sort_rows : bool
        Whether to sort rows by group where `g_idx` (``desc_act``) makes groups that are not
        neighbouring rows; without it they are refused. The layer then takes
        ``np.take(x, np.argsort(g_idx, kind="stable"), -1)`` in place of ``x``.

    Returns
    -------
    (K, N) ndarray of uint8, QParams

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> word, zeros = [[0x76543210] * 8], [[0x77777777]]
    >>> codes, wei_q = from_gptq(word, zeros, [[0.5] * 8])
    >>> codes[:, 0], int(wei_q.zero_point[0, 0])
    (array([0, 1, 2, 3, 4, 5, 6, 7], dtype=uint8), 8)
    >>> g_idx = [0, 1] * 4
    >>> codes, _ = from_gptq(word, zeros * 2, [[0.5] * 8, [2.0] * 8], g_idx, sort_rows=True)
    >>> codes[:, 0], np.argsort(g_idx, kind="stable")
    (array([0, 2, 4, 6, 1, 3, 5, 7], dtype=uint8), array([0, 2, 4, 6, 1, 3, 5, 7]))
    """
    width = width_of(bits, (2, 3, 4, 8))
    flag("v2", v2)
    codes = _along_rows(words_of("qweight", qweight), width)
    scale = as_matrix("scales", scales_of("scales", scales))
    point = split_codes(words_of("qzeros", qzeros), width, 32).astype(np.int64)
    if not v2:
        point = (point + 1) % (1 << width)
    size = _group_size("scales", codes, scale, point[:, : codes.shape[1]], "qzeros")
    codes = _by_group("g_idx", g_idx, codes, size, sort_rows=sort_rows)
    return codes_of_groups(codes, scale, point[:, : codes.shape[1]], size, width)


def from_awq(qweight: ArrayLike, qzeros: ArrayLike, scales: ArrayLike) -> Codes:
    """Return codes and QParams of a layer of an AWQ checkpoint (version "gemm", 4 bits).

    Parameters
    ----------
    qweight : (K, N / 8) array_like of int32
        Packed codes. The nibbles of a word, from the lowest, are its columns 0, 2, 4, 6, 1, 3, 5
        and 7.
    qzeros : (groups, N / 8) array_like of int32
        Zero points, packed in the same way.
    scales : (groups, N) array_like of float

    Returns
    -------
    (K, N) ndarray of uint8, QParams

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> codes, wei_q = from_awq([[0x76543210]], [[0x08888888]], [[0.5] * 8])
    >>> codes, wei_q.zero_point
    (array([[0, 4, 1, 5, 2, 6, 3, 7]], dtype=uint8), array([[8, 8, 8, 8, 8, 8, 8, 0]]))
    """
    codes, point = (
        _in_awq_order(words_of(name, words))
        for name, words in (("qweight", qweight), ("qzeros", qzeros))
    )
    scale = as_matrix("scales", scales_of("scales", scales))
    size = _group_size("scales", codes, scale, point, "qzeros")
    return codes_of_groups(codes, scale, point, size, 4)


def from_compressed_tensors(
    weight_packed: ArrayLike,
    weight_scale: ArrayLike,
    weight_zero_point: ArrayLike | None = None,
    weight_g_idx: ArrayLike | None = None,
    *,
    weight_shape: Sequence[int] | Array,
    bits: int = 4,
    sort_rows: bool = False,
) -> Codes:
    """Return codes and QParams of a layer of a "pack-quantized" checkpoint.

    Its codes are signed, from -8 to 7 of 4 bits, and stored 8 more; so are packed zero points.
    Unpacked ones are signed, too: unsigned ones, from 0 to 15, would be 8 too many, and are refused
    where they show.

    Parameters
    ----------
    weight_packed : (N, K * bits / 32) array_like of int32
        Packed codes.
    weight_scale : (N, groups) array_like of float
        Scales; one column means one scale for each channel.
    weight_zero_point : array_like of int, optional
        (N * bits / 32, groups) int32, packed along the channels; or (N, groups) int8. Left out: 0.
    weight_g_idx : (K,) array_like of int, optional
        Group of each input channel, or -1 for all: groups must consist of neighbouring channels.
    weight_shape : (2,) array_like of int
        (N, K).
    bits : {4, 8}
        Width of the codes.
    sort_rows : bool
        Whether rows may be sorted by `weight_g_idx`: see `from_gptq`.

    Returns
    -------
    (K, N) ndarray of uint8, QParams

    Raises
    ------
    ArgumentError, DTypeError, ShapeError
        Naming the argument.

    Examples
    --------
    >>> codes, wei_q = from_compressed_tensors([[0x76543210]], [[0.5]], weight_shape=(1, 8))
    >>> wei_q.dequantize(codes).ravel()
    array([-4. , -3.5, -3. , -2.5, -2. , -1.5, -1. , -0.5])
    """
    width = width_of(bits, (4, 8))
    dims = numbers("weight_shape", weight_shape, "iu")
    if dims.shape != (2,) or dims.min() < 1:
        raise ShapeError("weight_shape", str(dims), "(N, K)")
    columns, inner = map(int, dims)
    codes = split_codes(words_of("weight_packed", weight_packed), width, 32)
    if len(codes) != columns or not 0 <= codes.shape[1] - inner < 32 // width:
        raise ShapeError(
            "weight_packed", f"codes {codes.shape}", f"({columns}, {inner}), filled to words"
        )
    codes = codes[:, :inner]
    scale = as_matrix("weight_scale", scales_of("weight_scale", weight_scale))
    point = _signed_points(weight_zero_point, scale.shape, width)
    size = _group_size("weight_scale", codes.T, scale.T, point.T, "weight_zero_point")
    rows = _by_group("weight_g_idx", weight_g_idx, codes.T, size, sort_rows=sort_rows)
    return codes_of_groups(rows, scale.T, point.T, size, width)


def _signed_points(points: object, shape: tuple[int, ...], width: int) -> Array:
    """Return zero points of signed codes as those of unsigned ones."""
    offset = 1 << (width - 1)
    if points is None:
        return np.full(shape, offset)
    values = as_matrix("weight_zero_point", numbers("weight_zero_point", points, "iu"))
    if values.dtype == np.uint8:
        wanted = "int8, or packed int32: codes are signed, and so are their zero points"
        raise DTypeError("weight_zero_point", "uint8", wanted)
    if values.dtype != np.int8:
        return _along_rows(words_of("weight_zero_point", values), width)[: shape[0]]
    if ((values < -offset) | (values >= offset)).any():
        wanted = f"from {-offset} to {offset - 1}: codes are signed, unsigned zero points are not"
        raise ArgumentError("weight_zero_point", f"up to {values.max()}", wanted)
    return values.astype(np.int64) + offset


def _group_size(name: str, codes: Array, scale: Array, point: Array, points: str) -> int:
    """Return the size of a group, of codes (K, N) and scales and zero points (groups, N)."""
    if scale.shape[1] != codes.shape[1] or not len(scale) or len(codes) % len(scale):
        wanted = f"a divisor of {len(codes)} of groups, and {codes.shape[1]} columns"
        raise ShapeError(name, f"{scale.shape[0]} groups of {scale.shape[1]}", wanted)
    if point.shape != scale.shape:
        raise ShapeError(points, f"{point.shape} zero points", f"{scale.shape}, as {name}")
    return len(codes) // len(scale)


def _by_group(name: str, g_idx: object, codes: Array, size: int, *, sort_rows: bool) -> Array:
    """Return rows of codes so that those of a group, which `g_idx` has of each, are neighbours."""
    flag("sort_rows", sort_rows)
    if g_idx is None:
        return codes
    groups = numbers(name, g_idx, "iu")
    if groups.shape != (len(codes),):
        raise ShapeError(name, str(groups.shape), f"({len(codes)},), a group for each row of codes")
    neighbours = np.arange(len(codes)) // size
    if (groups == neighbours).all() or (groups == _NO_GROUP).all():
        return codes
    if not np.array_equal(np.sort(groups), neighbours):
        raise ArgumentError(name, "groups of several sizes", f"{size} rows in each, as scales say")
    if not sort_rows:
        wanted = "groups of neighbours, or sort_rows=True, and a source whose columns are sorted"
        raise ArgumentError(name, "rows in the order of their activations", wanted)
    rows: Array = codes[np.argsort(groups, kind="stable")]
    return rows


def _along_rows(words: Array, width: int) -> Array:
    """Return the codes of columns of words."""
    rows: Array = split_codes(np.ascontiguousarray(words.T), width, 32).T
    return rows


def _in_awq_order(words: Array) -> Array:
    codes = split_codes(words, 4, 32).reshape(len(words), -1, len(_AWQ_ORDER))
    columns = np.empty_like(codes)
    columns[:, :, _AWQ_ORDER] = codes
    rows: Array = columns.reshape(len(words), -1)
    return rows
