"""Shapes: one line of text says everything, ours and benchdnn's, and both can be read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyonednn_q.bench import benchdnn
from pyonednn_q.bench.check import accumulate
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.errors import ArgumentError, ShapeError

TEXTS = [
    "conv 1x64x56x56 64x64x3x3 stride=2 padding=1",
    "conv 2x32x9x7 32x1x1x3x3 stride=2x1 padding=0:1x1 dilation=1x2",
    "conv 1x80x1500 384x80x3 padding=1",
    "conv 1x8x5x6x7 4x8x3x3x3 padding=1x0x1",
    "deconv 1x64x28x28 64x64x4x4 stride=2 padding=1",
    "deconv 1x17x13x13 33x17x3x3 stride=2 padding=1 out=26x26",
    "ip 8x512x7x7 1000x512x7x7",
    "matmul 128x768 768x3072",
    "matmul 12x128x64 12x64x128 wei=transposed",
    "matmul 2x3x5x7 2x3x7x4",
    "matmul 6x5x7 1x7x4",
]


@st.composite
def windowed(draw: st.DrawFn) -> Shape:
    kind = draw(st.sampled_from(("conv", "deconv")))
    spatial = draw(st.integers(1, 3))
    groups, oc, ic = (draw(st.integers(1, 4)) for _ in range(3))

    def each(lo: int, hi: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(lo, hi)) for _ in range(spatial))

    kernel, strides, dilation = each(1, 3), each(1, 3), each(1, 2)
    low, high = each(0, 2), each(0, 2)
    lengths = tuple(n + 5 for n in each(0, 4))
    lead = (groups, oc, ic) if draw(st.booleans()) else (oc, ic)
    channels = ic * groups if len(lead) == 3 else ic
    padding = tuple(zip(low, high, strict=True))
    batch = draw(st.integers(1, 3))
    return Shape(kind, (batch, channels, *lengths), (*lead, *kernel), strides, dilation, padding)


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_canonical(text: str) -> None:
    assert Shape.parse(text).text() == text


@given(windowed())
def test_text_reads_back(shape: Shape) -> None:
    assert Shape.parse(shape.text()) == shape


@given(windowed())
def test_benchdnn_reads_back(shape: Shape) -> None:
    again = benchdnn.parse(shape.kind, benchdnn.descriptor(shape))
    # The high padding is not part of a descriptor: what no window reaches is not there.
    assert again.dst == shape.dst
    assert replace(again, padding=shape.padding, out=shape.out) == shape
    assert [lo for lo, _ in again.padding] == [lo for lo, _ in shape.padding]
    assert benchdnn.descriptor(again) == benchdnn.descriptor(shape)


@pytest.mark.parametrize("text", [text for text in TEXTS if "transposed" not in text])
def test_benchdnn_reads_back_every_kind(text: str) -> None:
    shape = Shape.parse(text)
    again = benchdnn.parse(shape.kind, benchdnn.descriptor(shape))
    assert (again.src, again.wei, again.dst) == (shape.src, shape.wei, shape.dst)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        ("conv", "ic16oc32ih10kh3ph1", "conv 2x16x10x10 32x16x3x3 padding=1"),
        (
            "conv",
            "mb1_ic16_oc32_ih10_oh5_kh3_sh2",
            "conv 1x16x10x10 32x16x3x3 stride=2 padding=0:1",
        ),
        ("conv", "g4mb1ic8oc4iw9kw1", "conv 1x8x9 4x1x2x1"),
        ("conv", "mb1ic4oc4ih9iw5kh3kw1dh1", "conv 1x4x9x5 4x4x3x1 dilation=2"),
        ("deconv", "mb1ic4oc8ih5oh10kh4sh2ph1", "deconv 1x4x5x5 8x4x4x4 stride=2 padding=1"),
        ("ip", 'mb3ic7ih2oc5n"top"', "ip 3x7x2x2 5x7x2x2"),
        ("matmul", '3x4:4x5n"x"', "matmul 3x4 4x5"),
    ],
)
def test_benchdnn_fills_in_what_is_omitted(kind: str, text: str, wanted: str) -> None:
    assert benchdnn.parse(kind, text).text() == wanted


@pytest.mark.parametrize("text", ["", "mb1", "mb1ic4oc4xh3", "ic4oc4ih"])
def test_benchdnn_refuses_what_is_no_descriptor(text: str) -> None:
    with pytest.raises(ArgumentError, match="descriptor"):
        benchdnn.parse("conv", text)


def test_groups_are_said_by_number_or_by_the_weights() -> None:
    shape = Shape.parse("conv 1x32x9x9 64x16x3x3 padding=1 groups=2")
    assert shape == Shape.parse("conv 1x32x9x9 2x32x16x3x3 padding=1")
    assert shape == Shape.parse("conv 1x32x9x9 2x32x16x3x3 padding=1 groups=2")
    assert Shape.parse(shape.text()) == shape
    for bad in ("groups=3", "groups=2x1", "groups=0", "groups="):
        with pytest.raises(ArgumentError):
            Shape.parse(f"conv 1x32x9x9 64x16x3x3 {bad}")


@pytest.mark.parametrize(
    "text",
    [
        "conv",
        "pool 1x2x3x3 2x2x3x3",
        "conv 1x2x3x3 2x2x3x3 speed=2",
        "conv 1x2x3x3 2x2x3x3 stride",
        "conv 1x2x3x3 2x2x3x3 padding=1 padding=1",
        "conv 1x2x3x3 2x2x3x3 padding=a",
        "conv 1x2x3x3 2x2x3x3 stride=2x",
        "conv 1xAx3x3 2x2x3x3",
        "matmul 2x3 3x4 stride=2",
        "matmul 2x3 3x4 wei=transposed",
        "matmul 2x2x3 2x3x4 wei=packed",
        "conv 1x2x3x3 2x2x3x3 out=1x1",
    ],
)
def test_words_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        Shape.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "conv 1x3x5x5 4x2x3x3",
        "conv 1x2x2x2 2x2x3x3",
        "conv 0x2x5x5 2x2x3x3",
        "ip 2x3 4x5",
        "matmul 2x3 4x5",
        "deconv 1x2x5x5 2x2x3x3 stride=2 out=99x99",
    ],
)
def test_sizes_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(ShapeError):
        Shape.parse(text)


@pytest.mark.parametrize(
    ("text", "macs"),
    [
        ("conv 2x4x5x5 6x4x3x3 padding=1", 2 * 6 * 5 * 5 * 4 * 9),
        ("conv 1x8x5x5 4x1x2x3x3", 1 * 4 * 3 * 3 * 2 * 9),
        ("deconv 1x4x5x5 6x4x2x2 stride=2", 4 * 5 * 5 * 6 * 4),
        ("deconv 1x8x5x5 4x1x2x2x2 stride=2", 8 * 5 * 5 * 1 * 4),
        ("ip 3x4x2x2 5x4x2x2", 3 * 5 * 16),
        ("matmul 2x3x4 2x4x5", 2 * 3 * 4 * 5),
    ],
)
def test_multiplications(text: str, macs: int) -> None:
    assert Shape.parse(text).macs == macs
    assert Shape.parse(text).batched(3).macs == 3 * macs


def test_batched_shares_constant_weights_only() -> None:
    assert Shape.parse("matmul 12x8x4 12x4x8").batched(2).wei == (24, 4, 8)
    assert Shape.parse("matmul 8x4 4x8").batched(2).wei == (4, 8)
    assert Shape.parse("conv 1x4x5x5 4x4x3x3").batched(2).src == (2, 4, 5, 5)


def test_an_output_that_follows_anyway_is_not_kept() -> None:
    text = "deconv 1x64x28x28 64x64x4x4 stride=2 padding=1"
    assert Shape.parse(f"{text} out=56x56") == Shape.parse(text)


def test_problem_has_the_types_and_the_layout() -> None:
    precision = Precision.parse("u8s8f32")
    problem = Shape.parse("conv 1x4x5x5 6x4x3x3 padding=1").problem(precision, "dense")
    text = "convolution src:u8:1x4x5x5 wei:s8:6x4x3x3@any dst:f32:1x6x5x5 bias:f32:6 padding:1x1"
    assert problem.text() == text


def test_the_second_source_of_a_matmul_may_lie_transposed() -> None:
    shape = Shape.parse("matmul 2x3x4 2x4x5 wei=transposed")
    problem = shape.problem(Precision.parse("f32"), "channels_last")
    assert problem.wei.strides == (20, 1, 4)
    assert problem.bias is None


@pytest.mark.parametrize("kind", ["conv", "deconv"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
@given(data=st.data())
def test_products_are_those_that_a_sum_of_ones_counts(
    kind: str, spatial: int, data: st.DataObject
) -> None:
    """Products with padding are zeros of such a sum."""
    numbers = st.lists(st.integers(1, 4), min_size=spatial, max_size=spatial).map(tuple)
    sides = st.tuples(st.integers(0, 3), st.integers(0, 3))
    padding = st.lists(sides, min_size=spatial, max_size=spatial).map(tuple)
    src, kernel, stride, dilation = (data.draw(numbers) for _ in range(4))
    try:
        shape = Shape(kind, (2, 2, *src), (3, 2, *kernel), stride, dilation, data.draw(padding))
    except ShapeError:  # nothing of dst is left
        assume(condition=False)
    ones = accumulate(shape, np.ones(shape.src), np.ones(shape.wei))
    assert shape.products == ones.sum()
    assert shape.padded_ops == 2 * shape.macs >= shape.ops == 2 * shape.products


def test_without_padding_all_products_are_computed() -> None:
    for text in ("conv 1x64x56x56 64x64x1x1", "ip 2x64 8x64", "matmul 3x4 4x5"):
        shape = Shape.parse(text)
        assert shape.products == shape.macs
    padded = Shape.parse("conv 1x512x7x7 512x512x3x3 padding=1")
    assert padded.products / padded.macs == pytest.approx((19 / 21) ** 2, rel=1e-12)
