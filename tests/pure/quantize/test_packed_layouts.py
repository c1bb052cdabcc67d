"""Readers of packed weights: arrays packed here, code after code, as each format says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.quantize import (
    from_awq,
    from_compressed_tensors,
    from_gptq,
    from_matmul_nbits,
    group_codes,
    to_matmul_nbits,
)

K, N, GROUP = 64, 24, 16
RNG = np.random.default_rng(0)
SCALE = RNG.uniform(0.01, 0.1, (K // GROUP, N)).astype(np.float16)


def weights(bits: int) -> tuple[Any, Any, Any]:
    """Return codes (K, N) and zero points (groups, N), and what they are worth."""
    codes = RNG.integers(0, 1 << bits, (K, N))
    points = RNG.integers(0, 1 << bits, SCALE.shape)
    points[0, :4] = 0, (1 << bits) - 1, 1, 1 << (bits - 1)
    wide = [np.repeat(each, GROUP, axis=0) for each in (SCALE.astype(float), points)]
    return codes, points, wide[0] * (codes - wide[1])


def words_of(rows: Any, bits: int) -> Any:
    """Return int32 words of codes side by side, the first in the lowest bits."""
    per_word = 32 // bits
    packed = np.zeros((len(rows), -(-rows.shape[1] // per_word)), np.uint32)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            code = np.uint32(int(rows[row, column]) << (column % per_word * bits))
            packed[row, column // per_word] |= code
    return packed.view(np.int32)


def same(read: tuple[Any, Any], real: Any, dtype: str) -> None:
    codes, wei_q = read
    assert (codes.dtype, codes.flags.c_contiguous) == (np.uint8, True)
    assert (wei_q.dtype, wei_q.axis, wei_q.block) == (dtype, 0, (GROUP,))
    np.testing.assert_array_equal(wei_q.dequantize(codes), real)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("v2", [False, True])
def test_gptq_has_words_along_k_and_zero_points_less_one(bits: int, v2: bool) -> None:
    codes, points, real = weights(bits)
    stored = points if v2 else (points - 1) % (1 << bits)
    qweight = words_of(codes.T, bits).T
    read = from_gptq(qweight, words_of(stored, bits), SCALE, bits=bits, v2=v2)
    same(read, real, "u8" if bits == 8 else "u4")
    groups = np.arange(K, dtype=np.int32) // GROUP
    same(
        from_gptq(qweight, words_of(stored, bits), SCALE, groups, bits=bits, v2=v2),
        real,
        read[1].dtype,
    )


def test_one_version_of_gptq_read_as_the_other_is_off_by_one() -> None:
    codes, points, real = weights(4)
    qweight = words_of(codes.T, 4).T
    read, wei_q = from_gptq(qweight, words_of(points, 4), SCALE, v2=False)
    off = wei_q.dequantize(read) - real
    assert (np.abs(off) > 0).all()  # each by a whole step: what a wrong version looks like
    assert np.array_equal(wei_q.zero_point, (points + 1) % 16)


def words_of_three_bits(rows: Any) -> Any:
    """Return words as AutoGPTQ packs rows: ten codes, one cut 2 + 1, ten, one cut 1 + 2, ten."""
    words = []
    for row in rows.reshape(len(rows), -1, 32).tolist():
        for codes in row:
            first = sum(code << 3 * at for at, code in enumerate(codes[:10]))
            first |= (codes[10] & 3) << 30
            second = codes[10] >> 2
            second |= sum(code << 3 * at + 1 for at, code in enumerate(codes[11:21]))
            second |= (codes[21] & 1) << 31
            third = codes[21] >> 1
            third |= sum(code << 3 * at + 2 for at, code in enumerate(codes[22:]))
            words += [first, second, third]
    return np.array(words, np.uint32).reshape(len(rows), -1).view(np.int32)


def test_gptq_has_32_codes_of_3_bits_in_3_words() -> None:
    rng = np.random.default_rng(3)
    codes, points = rng.integers(0, 8, (K, 32)), rng.integers(0, 8, (K // GROUP, 32))
    scale = rng.uniform(0.01, 0.1, points.shape).astype(np.float16)
    packed = words_of_three_bits(codes.T).T, words_of_three_bits((points - 1) % 8)
    assert packed[0].shape == (K * 3 // 32, 32)
    wide = [np.repeat(each, GROUP, axis=0) for each in (scale.astype(float), points)]
    same(from_gptq(*packed, scale, bits=3), wide[0] * (codes - wide[1]), "u4")


def test_groups_in_the_order_of_activations_are_sorted_or_refused() -> None:
    codes, points, _ = weights(4)
    order = np.random.default_rng(1).permutation(K) // GROUP
    real = SCALE.astype(float)[order] * (codes - points[order])
    qweight, along_channels = words_of(codes.T, 4).T, words_of(points, 4)
    tensors = words_of(codes.T, 4), SCALE.T, along_channels.T
    for read in (
        from_gptq(qweight, along_channels, SCALE, order, v2=True, sort_rows=True),
        from_compressed_tensors(*tensors, order, weight_shape=(N, K), sort_rows=True),
    ):
        same(read, real[np.argsort(order, kind="stable")], "u4")
    says = "got rows in the order of their activations; wanted .*sort_rows=True"
    with pytest.raises(ArgumentError, match=f"^g_idx: {says}"):
        from_gptq(qweight, along_channels, SCALE, order)
    with pytest.raises(ArgumentError, match=f"^weight_g_idx: {says}"):
        from_compressed_tensors(*tensors, order, weight_shape=(N, K))
    none = from_compressed_tensors(*tensors, np.full(K, -1), weight_shape=(N, K), sort_rows=True)
    assert np.array_equal(none[0], codes)
    with pytest.raises(ArgumentError, match=r"^g_idx: got groups of several sizes; wanted 16 rows"):
        from_gptq(qweight, along_channels, SCALE, order * 0, sort_rows=True)


def test_awq_has_the_columns_of_a_word_in_its_own_order() -> None:
    codes, points, real = weights(4)

    def packed(rows: Any) -> Any:
        words = np.zeros((len(rows), N // 8), np.uint32)
        for place, column in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            words |= rows[:, column::8].astype(np.uint32) << np.uint32(4 * place)
        return words.view(np.int32)

    same(from_awq(packed(codes), packed(points), SCALE), real, "u4")


@pytest.mark.parametrize("bits", [4, 8])
def test_compressed_tensors_store_signed_codes_and_zero_points_with_an_offset(bits: int) -> None:
    codes, points, real = weights(bits)
    offset = 1 << (bits - 1)
    signed = (points.T - offset).astype(np.int8)  # of the format: -8 to 7
    packed = words_of(codes.T, bits)  # signed codes, and the offset of the packer
    dtype = "u8" if bits == 8 else "u4"
    options: Any = {"weight_shape": (N, K), "bits": bits}
    same(from_compressed_tensors(packed, SCALE.T, signed, **options), real, dtype)
    along_channels = words_of(points, bits).T
    same(from_compressed_tensors(packed, SCALE.T, along_channels, **options), real, dtype)
    symmetric = np.repeat(SCALE.astype(float), GROUP, axis=0) * (codes - offset)
    indices = np.arange(K) // GROUP
    read = from_compressed_tensors(packed, SCALE.T, weight_g_idx=indices, **options)
    same(read, symmetric, dtype)
    channels, wei_q = from_compressed_tensors(packed, SCALE.T[:, :1], **options)
    assert wei_q.block == (K,)
    assert np.array_equal(channels, codes)


def test_rows_that_fill_no_word_are_cut() -> None:
    codes, points, _ = weights(4)
    inner, columns = 12, 5
    part, scale = codes[:inner, :columns], SCALE[:3, :columns]
    point = points[:3, :columns]
    read, wei_q = from_compressed_tensors(
        words_of(part.T, 4), scale.T, words_of(point, 4).T, weight_shape=np.array([5, 12])
    )
    wanted = np.repeat(scale.astype(float), 4, 0) * (part - np.repeat(point, 4, 0))
    np.testing.assert_array_equal(wei_q.dequantize(read), wanted)


def test_unsigned_zero_points_in_a_signed_format_are_refused() -> None:
    codes, points, _ = weights(4)
    packed = words_of(codes.T, 4)
    unsigned = points.T
    for wrong, error, says in (
        (unsigned.astype(np.int8), ArgumentError, r"got up to 15; wanted from -8 to 7"),
        (unsigned.astype(np.uint8), DTypeError, "got uint8; wanted int8"),
    ):
        with pytest.raises(error, match=f"^weight_zero_point: {says}"):
            from_compressed_tensors(packed, SCALE.T, wrong, weight_shape=(N, K))


def bytes_of(rows: Any, bits: int) -> Any:
    """Return bytes of codes side by side, the first in the lowest bits."""
    per_byte = 8 // bits
    packed = np.zeros((len(rows), -(-rows.shape[1] // per_byte)), np.uint8)
    for column in range(rows.shape[1]):
        packed[:, column // per_byte] |= (rows[:, column] << (column % per_byte * bits)).astype(
            "u1"
        )
    return packed


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matmul_nbits_has_blocks_of_columns(bits: int) -> None:
    codes, points, real = weights(bits)
    b = bytes_of(codes.T, bits).reshape(N, K // GROUP, GROUP * bits // 8)
    dtype = "u8" if bits == 8 else "u4"
    options: Any = {"k": K, "n": N, "bits": bits, "block_size": GROUP}
    flat = SCALE.T.reshape(-1)
    packed_points = bytes_of(points.T, bits)
    same(from_matmul_nbits(b, flat, packed_points, **options), real, dtype)
    same(
        from_matmul_nbits(b.reshape(-1), SCALE.T, packed_points.reshape(-1), **options), real, dtype
    )
    same(from_matmul_nbits(b, flat, points.T.astype(np.float32), **options), real, dtype)
    middle = np.repeat(SCALE.astype(float), GROUP, axis=0) * (codes - (1 << (bits - 1)))
    same(from_matmul_nbits(b, flat, **options), middle, dtype)
    with pytest.raises(ArgumentError, match=r"^zero_points: got .*; wanted whole numbers"):
        from_matmul_nbits(b, flat, points.T + 0.5, **options)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_what_is_written_as_matmul_nbits_is_read_as_the_same(bits: int, symmetric: bool) -> None:
    wei = RNG.standard_normal((48, 6))  # three blocks: an odd number of nibbles
    codes, wei_q = group_codes(wei, 16, bits, axis=-1, symmetric=symmetric)
    b, scales, points = to_matmul_nbits(codes, wei_q)
    offset = 1 << (bits - 1) if symmetric else 0
    want = bytes_of(codes.T.astype(int) + offset, bits)
    assert np.array_equal(b.reshape(6, -1), want)
    assert (b.shape, scales.shape, points is None) == ((6, 3, 2 * bits), (6, 3), symmetric)
    read, read_q = from_matmul_nbits(b, scales, points, k=48, n=6, bits=bits, block_size=16)
    assert np.array_equal(read_q.dequantize(read), wei_q.dequantize(codes))


def test_zero_points_of_an_odd_number_of_blocks_begin_with_a_byte() -> None:
    codes = RNG.integers(0, 16, (48, 2))
    points = RNG.integers(0, 16, (3, 2))
    read, wei_q = from_matmul_nbits(
        bytes_of(codes.T, 4), np.ones(6), bytes_of(points.T, 4), k=48, n=2, block_size=16
    )
    assert bytes_of(points.T, 4).shape == (2, 2)
    assert np.array_equal(wei_q.zero_point, points)
    assert np.array_equal(read, codes)


def test_scales_may_be_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    codes, _, _ = weights(4)
    scale = SCALE.T.astype(ml_dtypes.bfloat16)
    read = from_compressed_tensors(words_of(codes.T, 4), scale, weight_shape=(N, K))
    same(read, np.repeat(scale.astype(float).T, GROUP, axis=0) * (codes - 8), "u4")


WORDS = np.zeros((8, N), np.int32)
ZEROS = np.zeros((4, 3), np.int32)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: from_gptq(WORDS, ZEROS, SCALE[:, :5]), ShapeError, "^scales: got 4 groups of 5"),
        (lambda: from_gptq(WORDS, ZEROS, SCALE[:3]), ShapeError, "^scales: got 3 groups"),
        (lambda: from_gptq(WORDS, ZEROS[:2], SCALE), ShapeError, "^qzeros: got"),
        (lambda: from_gptq(WORDS, ZEROS, SCALE, bits=5), ArgumentError, "^bits: got 5"),
        (lambda: from_gptq(WORDS, ZEROS, SCALE, [0, 1]), ShapeError, "^g_idx: got"),
        (lambda: from_gptq(WORDS[0], ZEROS, SCALE), ShapeError, "^qweight: got"),
        (lambda: from_gptq(WORDS + 0.5, ZEROS, SCALE), ArgumentError, "^qweight: got"),
        (lambda: from_awq(WORDS[:, :3], ZEROS, SCALE * np.inf), ArgumentError, "^scale: got inf"),
        (
            lambda: from_awq(WORDS.astype(int) + 2**40, ZEROS, SCALE),
            DTypeError,
            "^qweight: got int64",
        ),
        (
            lambda: from_compressed_tensors(WORDS, SCALE, weight_shape=(8, 99)),
            ShapeError,
            "^weight_packed: got",
        ),
        (
            lambda: from_compressed_tensors(WORDS, SCALE, weight_shape=(8, 192, 1)),
            ShapeError,
            "^weight_shape: got",
        ),
        (
            lambda: from_matmul_nbits([[0]], [1.0], k=3, n=1, block_size=2),
            ShapeError,
            "^block_size: got 2; wanted a divisor of k, 3",
        ),
        (lambda: from_matmul_nbits([300], [1.0], k=2, n=1, block_size=2), DTypeError, "^b: got"),
        (lambda: from_matmul_nbits([1], [1.0, 2.0], k=2, n=1, block_size=2), ShapeError, "^scales"),
        (lambda: from_matmul_nbits([1, 2], [1.0], k=2, n=1, block_size=2), ShapeError, "^b: got"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
