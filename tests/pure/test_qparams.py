"""Quantization parameters: values, rounding, masks."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyonednn_q import dtypes
from pyonednn_q.errors import ArgumentError, DTypeError, ShapeError
from pyonednn_q.qparams import QParams, mask_from_axis

PER_CHANNEL = QParams([0.5, 0.25, 2.0], [1, 0, -3], "s8", axis=1)


@given(
    st.sampled_from(["u8", "s8", "s32"]),
    st.integers(-4, 4),
    st.data(),
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=20),
)
def test_quantize_is_exact_arithmetic_rounded_once(
    dtype: str, exponent: int, data: st.DataObject, eighths: list[int]
) -> None:
    qmin, qmax = dtypes.qmin(dtype), dtypes.qmax(dtype)
    zero_point = data.draw(st.integers(qmin, qmax))
    params = QParams(2.0**exponent, zero_point, dtype)
    got = params.quantize(np.array(eighths) / 8)
    assert got.dtype == dtypes.numpy_dtype(dtype)
    for value, q in zip(eighths, got, strict=True):
        # round() of a Fraction is exact and ties to even.
        wanted = round(Fraction(value, 8) / Fraction(2) ** exponent) + zero_point
        assert int(q) == min(max(wanted, qmin), qmax)


def test_the_zero_point_is_added_after_rounding() -> None:
    ties = np.array([0.5, 1.5, -0.5])
    assert QParams(1.0, 1, "u8").quantize(ties).tolist() == [1, 3, 1]
    # A primitive adds it before: the same ties, an odd zero point, other results.
    assert np.rint(ties + 1).tolist() == [2, 2, 0]


@given(st.sampled_from([PER_CHANNEL, QParams(0.5, 3, "u8"), QParams(2.0, -1, "s32")]))
def test_dequantized_values_quantize_back(params: QParams) -> None:
    info = np.iinfo(dtypes.numpy_dtype(params.dtype))
    ends = np.array([info.min, info.min + 1, 0, info.max - 1, info.max])
    q = np.stack([ends] * 3, axis=1).astype(info.dtype)
    np.testing.assert_array_equal(params.quantize(params.dequantize(q)), q)


def test_channels_broadcast_along_their_axis() -> None:
    q = np.array([[1, 2, 3], [5, 6, 7]], np.int8)
    real = [[0.0, 0.5, 12.0], [2.0, 1.5, 20.0]]
    assert PER_CHANNEL.dequantize(q).tolist() == real
    moved = QParams(PER_CHANNEL.scale, PER_CHANNEL.zero_point, "s8", axis=-2)
    assert moved.dequantize(q.T).tolist() == np.transpose(real).tolist()
    assert (PER_CHANNEL.channels, QParams(1.0, 0, "u8").channels) == (3, None)


def test_infinities_saturate_and_nan_is_refused() -> None:
    params = QParams(1.0, 0, "s8")
    assert params.quantize([np.inf, -np.inf, 1e308]).tolist() == [127, -128, 127]
    with pytest.raises(ArgumentError, match=r"^x: got NaN"):
        params.quantize([0.0, np.nan])


def test_equal_content_is_an_equal_value() -> None:
    same = QParams(np.array([0.5, 0.25, 2.0], np.float32), np.array([1, 0, -3], np.int8), "s8", 1)
    assert same == PER_CHANNEL
    assert hash(same) == hash(PER_CHANNEL)
    assert QParams(0.5, [1, 2], "s8", 0) == QParams([0.5, 0.5], [1, 2], "s8", 0)
    others = (
        QParams([0.5, 0.25, 2.0], [1, 0, -2], "s8", axis=1),
        QParams([0.5, 0.25, 2.5], [1, 0, -3], "s8", axis=1),
        QParams([0.5, 0.25, 2.0], [1, 0, -3], "s32", axis=1),
        QParams([0.5, 0.25, 2.0], [1, 0, -3], "s8", axis=0),
        None,
    )
    assert PER_CHANNEL not in others


def test_a_value_cannot_be_changed() -> None:
    scales = np.ones(3)
    params = QParams(scales, 0, "u8", 0)
    scales[0] = 7.0
    assert params == QParams([1.0, 1.0, 1.0], 0, "u8", 0)
    values: tuple[Any, ...] = (params, pickle.loads(pickle.dumps(params)))
    for value in values:
        assert value == params
        for array in (value.scale, value.zero_point):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, "x", [1.0, 0.0]])
def test_bad_scales_are_refused(scale: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^scale: got "):
        QParams(scale, 0, "u8", axis=0 if isinstance(scale, list) else None)


@pytest.mark.parametrize(
    ("zero_point", "dtype"), [(-1, "u8"), (256, "u8"), (128, "s8"), (0.0, "u8")]
)
def test_bad_zero_points_are_refused(zero_point: Any, dtype: str) -> None:
    with pytest.raises(ArgumentError, match=r"^zero_point: got "):
        QParams(1.0, zero_point, dtype)


def test_shapes_and_types_must_agree() -> None:
    with pytest.raises(DTypeError, match="an integer type"):
        QParams(1.0, 0, "f32")
    with pytest.raises(ShapeError, match="one value, or an axis"):
        QParams([1.0, 2.0], 0, "u8")
    for scale, zero_point in (([1.0, 2.0], [0, 0, 0]), (1.0, 0), ([], []), ([[1.0]], [[0]])):
        with pytest.raises(ShapeError, match="one value per channel"):
            QParams(scale, np.array(zero_point, int), "u8", axis=0)
    with pytest.raises(ShapeError, match="3 along axis 1"):
        PER_CHANNEL.quantize(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="3 along axis 1"):
        PER_CHANNEL.quantize(np.zeros(3))
    with pytest.raises(DTypeError, match="got u8; wanted s8"):
        PER_CHANNEL.dequantize(np.zeros((2, 3), np.uint8))


# kind, argument, axis, dimensions, groups, mask: the table of oneDNN's documentation.
MASKS = [
    ("convolution", "wei", 0, 4, 1, 0b1),
    ("convolution", "wei", 0, 5, 2, 0b11),
    ("deconvolution", "wei", 0, 5, 4, 0b11),
    ("deconvolution", "wei", 0, 5, 1, 0b1),
    ("convolution", "dst", 1, 4, 2, 0b10),
    ("inner_product", "wei", 0, 2, 1, 0b1),
    ("matmul", "wei", 1, 2, 1, 0b10),
    ("matmul", "wei", 2, 3, 1, 0b100),
    ("matmul", "src", 1, 3, 1, 0b10),
    ("convolution", "src", None, 4, 1, 0),
    ("convolution", "wei", None, 5, 2, 0),
]


@pytest.mark.parametrize(("kind", "arg", "axis", "ndims", "groups", "mask"), MASKS)
def test_masks_are_those_of_the_documentation(
    kind: str, arg: str, axis: int | None, ndims: int, groups: int, mask: int
) -> None:
    assert mask_from_axis(kind, axis, ndims, groups, arg) == mask
    if axis is not None:
        assert mask_from_axis(kind, axis - ndims, ndims, groups, arg) == mask


def test_masks_of_no_axis_are_refused() -> None:
    with pytest.raises(ArgumentError, match="0 in grouped weights"):
        mask_from_axis("convolution", 1, 5, groups=2)
    with pytest.raises(ArgumentError, match="one of 4 dimensions"):
        mask_from_axis("convolution", 4, 4)
    with pytest.raises(ArgumentError, match=r"^groups: got 2; wanted 1 for a matmul"):
        mask_from_axis("matmul", 0, 2, groups=2)


@pytest.mark.parametrize(("dtype", "holder"), [("s4", np.int8), ("u4", np.uint8)])
def test_codes_of_4_bits_may_lie_in_8(dtype: str, holder: type) -> None:
    lo, hi = (-8, 7) if dtype == "s4" else (0, 15)
    params = QParams(0.5, 3, dtype)
    codes: Any = np.arange(lo, hi + 1, dtype=holder)
    np.testing.assert_array_equal(params.dequantize(codes), 0.5 * (np.arange(lo, hi + 1) - 3.0))
    for beyond in {lo - 1, hi + 1} & set(range(np.iinfo(holder).min, np.iinfo(holder).max)):
        with pytest.raises(
            ArgumentError, match=f"^q: got {beyond}; wanted codes from {lo} to {hi}"
        ):
            params.dequantize(np.array([lo, beyond], holder))
    other = np.uint8 if dtype == "s4" else np.int8
    with pytest.raises(DTypeError, match=f"or its codes in {np.dtype(holder)}"):
        params.dequantize(codes.astype(other))
