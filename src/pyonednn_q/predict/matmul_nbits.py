"""matmul_nbits: what onnxruntime's MatMulNBits computes on AVX512 with VNNI, bit for bit, in NumPy.

Accuracy level 4, of blocks of 16 to 256, 4 or 8 bits; u is a code as it is stored:

    s[m, g] = max|src| / 127        q = rne(src · (127 / max|src|))        of each block of a row
    x[lane] = fma(f32(Σ q · u), s[m, g] · wei_scale[g, n], x[lane])        block after block
    z       = fma(s[m, g] · f32(Σ q), −wei_scale[g, n] · zero_point[g, n], z)
    dst     = (the lanes, added as `_folded` or `_halved` + bias) + z

So a zero point, 2^(bits − 1) where codes are symmetric, is taken off behind the sums, not before
them: two large numbers that nearly cancel, in float32. A block's exact sum is that of 8 or 16
lanes, which are added at the end; which inputs meet in a lane follows from the size of a block.

Levels 0 and 1, of 4 bits: weights become float32, f32(u − zero_point) · wei_scale. One row is 16
lanes, x[lane] = fma(src, wei, x[lane]), folded; several rows are one sum each, input after input.

Found by probing onnxruntime 1.31.1 (1.32 is the same) and its published sources;
`tests/others/oracles` compares.
Other CPUs have other lanes: the same codes of sources and exact sums, other last bits. Not known:
levels 0 and 1 of 8 bits, blocks that are cut short, and codes of 2 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.argument import instance, numbers, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError, NoModelError, ShapeError
from pyonednn_q.expr.evaluate import fma32
from pyonednn_q.qparams import QParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["LEVELS", "SIZES", "block_codes", "matmul_nbits"]

F32 = np.float32

LEVELS = (0, 1, 4)  # of accuracy: unset, float32, int8
SIZES = (16, 32, 64, 128, 256)  # of blocks that it takes
_INT8 = 4
_COLUMNS = 4  # that are folded together; those left over are halved
_AT_ONCE = 64  # columns, so that products of large layers fit into memory
_NAME, _ISA = "MatMulNBits", "AVX512 with VNNI"

# Of a block's quads, Σ of 4 neighbours: which two are added before they become a lane's float32.
_PAIRS = ((0, 2), (1, 3), (4, 6), (5, 7))
# Lanes of four blocks of 32, of two of 64, and of eight of 16 (two a block).
_OF_32 = ((0, 1, 4, 5), (8, 9, 12, 13), (2, 3, 6, 7), (10, 11, 14, 15))
_OF_16 = tuple((4 * (at % 4) + 2 * (at // 4), 4 * (at % 4) + 2 * (at // 4) + 1) for at in range(8))
_OF_64 = tuple(tuple(4 * at + 2 * odd + block for at in range(4) for odd in (0, 1))
               for block in (0, 1))  # fmt: skip
_PAIRS_OF_64 = tuple((4 * at + odd, 4 * at + 2 + odd) for at in range(4) for odd in (0, 1))


def block_codes(src: Array, size: int) -> tuple[Array, Array]:
    """Return s8 codes of rows, and their scales, of each block by its own range.

    Parameters
    ----------
    src : (M, K) ndarray of float32
        Finite values.
    size : int
        Size of a block, which divides K.

    Returns
    -------
    codes : (M, K / size, size) ndarray of int64
    scale : (M, K / size) ndarray of float32
    """
    parts = src.reshape(len(src), -1, size)
    most = np.abs(parts).max(axis=2)
    with np.errstate(divide="ignore"):
        factor = np.where(most > 0.0, F32(127.0) / most, F32(0.0)).astype(F32)
    return np.rint(parts * factor[..., None]).astype(np.int64), most / F32(127.0)


def matmul_nbits(
    src: ArrayLike,
    wei: ArrayLike,
    wei_q: QParams,
    bias: ArrayLike | None = None,
    *,
    accuracy_level: int = 4,
) -> NDArray[np.float32]:
    """Return the product of float rows and weights in blocks, rounded as in onnxruntime.

    Parameters
    ----------
    src : (M, K) array_like of float32
        Source rows.
    wei : (K, N) array_like of int
        Codes of the weights.
    wei_q : QParams
        Scales and zero points, (K / block, N), of blocks along axis 0. onnxruntime stores signed
        codes and zero points plus 2^(bits - 1).
    bias : (N,) array_like of float32, optional
        Bias.
    accuracy_level : {0, 1, 4}
        Attribute of the node.

    Returns
    -------
    (M, N) ndarray of float32

    Raises
    ------
    ArgumentError, ShapeError
        Naming the argument.
    NoModelError
        The arithmetic is not known: see the head of this module.

    Examples
    --------
    >>> wei_q = QParams([[0.5]], 0, "s4", axis=0, block=(16,))
    >>> src = np.zeros((1, 16), np.float32)
    >>> src[0, :2] = 12.7, -3.0
    >>> wei = np.full((16, 1), 2, np.int8)
    >>> matmul_nbits(src, wei, wei_q), matmul_nbits(src, wei, wei_q, accuracy_level=1)
    (array([[9.700001]], dtype=float32), array([[9.7]], dtype=float32))
    """
    instance("wei_q", wei_q, QParams)
    level = whole("accuracy_level", accuracy_level)
    if level not in LEVELS:
        raise ArgumentError("accuracy_level", str(level), f"one of {LEVELS}")
    rows, codes = numbers("src", src).astype(F32), numbers("wei", wei, "iu").astype(np.int64)
    if rows.ndim != 2 or codes.ndim != 2 or rows.shape[1] != len(codes):
        raise ShapeError("src", f"{rows.shape} with wei {codes.shape}", "(M, K) with (K, N)")
    if not np.isfinite(rows).all():
        raise ArgumentError("src", "values that are not finite", "finite numbers")
    if not wei_q.block or wei_q.axis not in {0, -2}:
        raise ArgumentError("wei_q", str(wei_q.axis), "groups along axis 0")
    size, scale = wei_q.block[0], np.asarray(wei_q.scale).astype(F32)
    if len(codes) % size or scale.shape != (len(codes) // size, codes.shape[1]):
        raise ShapeError("wei_q", f"scales {scale.shape}", f"those of groups in {codes.shape}")
    is_wide = wei_q.dtype in {"s8", "u8"}
    _check_known(size, level, is_wide=is_wide)
    offset = -dtypes.qmin(wei_q.dtype)
    stored = codes + offset
    points = np.broadcast_to(np.asarray(wei_q.zero_point) + offset, scale.shape)
    added = None if bias is None else numbers("bias", bias).astype(F32)
    if added is not None and added.shape != codes.shape[1:]:
        raise ShapeError("bias", str(added.shape), f"{codes.shape[1:]}, a number for each column")
    if level != _INT8:
        return _of_floats(rows, stored, scale, points, added)
    quantized = block_codes(rows, size)
    parts = []
    for start in range(0, codes.shape[1], _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        left = codes.shape[1] // _COLUMNS * _COLUMNS - start
        own = None if added is None else added[some]
        parts.append(
            _of_codes(*quantized, stored[:, some], scale[:, some], points[:, some], own, left,
                      is_wide=is_wide)
        )  # fmt: skip
    return np.concatenate(parts, axis=1)


def _check_known(size: int, level: int, *, is_wide: bool) -> None:
    if size not in SIZES:
        raise NoModelError(_NAME, _ISA, f"blocks of {size}: it takes {SIZES}")
    if is_wide and level != _INT8:
        raise NoModelError(_NAME, _ISA, f"8 bits at accuracy level {level}: sums of its own GEMM")


def _of_codes(
    codes: Array,
    src_scale: Array,
    wei: Array,
    scale: Array,
    points: Array,
    bias: Array | None,
    left: int,
    *,
    is_wide: bool,
) -> Array:
    """Return columns at level 4; those from `left` on are not folded."""
    rows, blocks, size = codes.shape
    quads = np.einsum(
        "mgqi,ngqi->mngq",
        codes.reshape(rows, blocks, size // 4, 4),
        wei.T.reshape(-1, blocks, size // 4, 4),
    )
    both = src_scale[:, None, :] * scale.T[None]
    pairs = None
    if size == 16:
        pairs = np.einsum(
            "mgpi,ngpi->mngp",
            codes.reshape(rows, blocks, 8, 2),
            wei.T.reshape(-1, blocks, 8, 2),
        )
    lanes = _lanes(quads, pairs, both, size)
    folded, halved = _folded(lanes), _halved(lanes)
    if size >= 64 and not (size == 64 and is_wide):
        # Rows go in pairs; the lanes of a pair are halved, those of a last row are folded.
        alone = np.arange(rows) == (rows - 1 if rows % 2 else -1)
        folded = np.where(alone[:, None], folded, halved)
    x = np.where(np.arange(wei.shape[1]) < left, folded, halved)
    if bias is not None:
        x = x + bias
    sums = src_scale * codes.sum(axis=2).astype(F32)
    factors = -(scale * points.astype(F32))
    z = np.zeros(x.shape, F32)
    for at in range(blocks):
        z = fma32(sums[:, at : at + 1], factors[at], z)
    return np.asarray(x + z, F32)


def _lanes(quads: Array, pairs: Array | None, both: Array, size: int) -> Array:
    """Return the sums of lanes, 8 or 16 of them, of quads (M, N, blocks, size / 4)."""
    blocks = quads.shape[2]
    x = np.zeros((*quads.shape[:2], 16), F32)
    if size >= 128:
        for at in range(blocks):
            for part in range(0, size // 4, 32):
                two = quads[:, :, at, part : part + 16] + quads[:, :, at, part + 16 : part + 32]
                x = fma32(two.astype(F32), both[:, :, at, None], x)
        return x
    if size == 64:
        together, at_once = (_OF_64, _PAIRS_OF_64), 2
    elif size == 32:
        together, at_once = (_OF_32, _PAIRS), 4
    else:
        together, at_once = (_OF_16, _PAIRS[:2]), 8
    done = blocks // at_once * at_once
    for start in range(0, done, at_once):
        x = fma32(*_met(quads[:, :, start:], both[:, :, start:], *together), x)
    if size < 64:
        x = x[..., :8] + x[..., 8:]
    rest = quads if pairs is None else pairs
    for at in range(done, blocks):
        x = fma32(rest[:, :, at].astype(F32), both[:, :, at, None], x)
    return x


def _met(
    quads: Array,
    both: Array,
    lanes: tuple[tuple[int, ...], ...],
    pairs: tuple[tuple[int, int], ...],
) -> tuple[Array, Array]:
    """Return what blocks that go together add to 16 lanes: whole sums, and their scales."""
    sums, scales = np.zeros((2, *quads.shape[:2], 16), F32)
    for block, own in enumerate(lanes):
        for lane, (one, other) in zip(own, pairs, strict=True):
            sums[..., lane] = quads[:, :, block, one] + quads[:, :, block, other]
            scales[..., lane] = both[:, :, block]
    return sums, scales


def _of_floats(
    src: Array, wei: Array, scale: Array, points: Array, bias: Array | None
) -> NDArray[np.float32]:
    """Return products at levels 0 and 1."""
    size = len(wei) // len(scale)
    known = (np.repeat(each, size, axis=0) for each in (points, scale))
    point, factor = known
    real = (wei - point).astype(F32) * factor
    columns = real.shape[1]
    if len(src) == 1:
        lanes = np.zeros((1, columns, 16), F32)
        for at in range(0, len(real), 16):
            lanes = fma32(src[:, None, at : at + 16], real[at : at + 16].T[None], lanes)
        is_folded = np.arange(columns) < columns // _COLUMNS * _COLUMNS
        x = np.where(is_folded, _folded(lanes), _halved(lanes))
    else:
        x = np.zeros((len(src), columns), F32)
        for at in range(len(real)):
            x = fma32(src[:, at : at + 1], real[at], x)
    return np.asarray(x if bias is None else x + bias, F32)


def _folded(lanes: Array) -> Array:
    """Add lanes as four columns at once do: ((0 + 1) + 2) + 3 of each four, then those."""
    fours = lanes.reshape(*lanes.shape[:-1], -1, 4)
    sums = ((fours[..., 0] + fours[..., 1]) + fours[..., 2]) + fours[..., 3]
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return np.asarray(sums[..., 0])


def _halved(lanes: Array) -> Array:
    """Add lanes half by half."""
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return np.asarray(lanes[..., 0])
