"""Integers asked for are the integers: s32 results beyond 2^24, with bias and zero points.

Expected values are sums in int64, written out here. Weights are such that every CPU multiplies them
exactly, and large and odd sums such that float32 could not hold them.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q.errors import ArgumentError
from pyonednn_q.ops.planned import prepare_plan

pytestmark = pytest.mark.executed

Array = np.ndarray[Any, Any]
CASES = [
    (src, zero_point, biased) for src in ("u8", "s8") for zero_point in (0, 3) for biased in (0, 1)
]


def unit(dtype: str, zero_point: int = 0) -> pq.QParams:
    return pq.QParams(1.0, zero_point, dtype)


def source(rng: np.random.Generator, dims: tuple[int, ...], dtype: str) -> Array:
    if dtype == "u8":
        return rng.integers(90, 256, dims).astype(np.uint8)
    return rng.integers(40, 128, dims).astype(np.int8)


def weights(rng: np.random.Generator, dims: tuple[int, ...]) -> Array:
    return rng.integers(40, 64, dims).astype(np.int8)


def counts(rng: np.random.Generator, biased: int, channels: int) -> Array | None:
    return rng.integers(-(10**7), 10**7, channels).astype(np.int32) if biased else None


def convolved(src: Array, wei: Array, padding: int, groups: int) -> Array:
    """The sums of a convolution with strides of 1, one tap after the other."""
    n, _, height, width = src.shape
    channels, inner, *kernel = wei.shape
    padded = np.pad(src.astype(np.int64), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    rows, columns = height + 2 * padding - kernel[0] + 1, width + 2 * padding - kernel[1] + 1
    dst = np.zeros((n, groups, channels // groups, rows, columns), np.int64)
    by_group = padded.reshape(n, groups, inner, *padded.shape[2:])
    factors = wei.astype(np.int64).reshape(groups, -1, inner, *kernel)
    for down, right in np.ndindex(*kernel):
        seen = by_group[..., down : down + rows, right : right + columns]
        dst += np.einsum("ngihw,goi->ngohw", seen, factors[..., down, right])
    return dst.reshape(n, channels, rows, columns)


def spread(src: Array, wei: Array, padding: int, groups: int) -> Array:
    """The sums of a deconvolution with strides of 1: from each place to all that it reaches."""
    n, _, height, width = src.shape
    channels, inner, *kernel = wei.shape
    dims = n, groups, channels // groups, height + kernel[0] - 1, width + kernel[1] - 1
    dst = np.zeros(dims, np.int64)
    by_group = src.astype(np.int64).reshape(n, groups, inner, height, width)
    factors = wei.astype(np.int64).reshape(groups, -1, inner, *kernel)
    for down, right in np.ndindex(*kernel):
        reached = dst[..., down : down + height, right : right + width]
        reached += np.einsum("ngihw,goi->ngohw", by_group, factors[..., down, right])
    inside = slice(padding, -padding or None)
    return dst.reshape(n, channels, *dims[3:])[:, :, inside, inside]


def check(got: Array, wanted: Array) -> None:
    assert got.dtype == np.int32
    # Nothing that goes through float32 could be equal.
    assert (np.rint(wanted.astype(np.float32)).astype(np.int64) != wanted).mean() > 0.2
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(("dtype", "zero_point", "biased"), CASES)
@pytest.mark.parametrize("rows", [1, 5])
def test_products(rows: int, dtype: str, zero_point: int, biased: int) -> None:
    rng = np.random.default_rng([rows, zero_point, biased])
    src, wei = source(rng, (rows, 6000), dtype), weights(rng, (6000, 33))
    bias = counts(rng, biased, 33)
    wanted = (src.astype(np.int64) - zero_point) @ wei.astype(np.int64)
    wanted = wanted + (0 if bias is None else bias)
    given: dict[str, Any] = {"src_q": unit(dtype, zero_point), "wei_q": unit("s8"), "dst": "s32"}
    layer = pq.MatMul(wei, bias, **given, policy="bitwise")
    check(layer(src), wanted)
    check(pq.InnerProduct(np.ascontiguousarray(wei.T), bias, **given)(src), wanted)
    check(pq.matmul(src, wei, bias, **given), wanted)
    check(pq.inner_product(src, np.ascontiguousarray(wei.T), bias, **given), wanted)
    out = np.full(wanted.shape, -1, np.int32)
    assert layer(src, out=out) is out
    check(out, wanted)
    strided = np.full((rows, 66), -1, np.int32)[:, ::2]
    layer(src, out=strided)
    check(strided, wanted)
    if zero_point or biased:
        assert "bias and zero points added to exact s32 sums, as integers" in notes(layer, src)


def notes(layer: Any, src: Array) -> tuple[str, ...]:
    found: tuple[str, ...] = layer.prepare(src.shape).notes
    return found


@pytest.mark.parametrize(("dtype", "zero_point", "biased"), CASES)
@pytest.mark.parametrize("groups", [1, 2])
def test_images(groups: int, dtype: str, zero_point: int, biased: int) -> None:
    rng = np.random.default_rng([groups, zero_point, biased, len(dtype)])
    src, wei = source(rng, (2, 768 * groups, 5, 4), dtype), weights(rng, (16, 768, 3, 3))
    bias = counts(rng, biased, 16)
    given: dict[str, Any] = {
        "src_q": unit(dtype, zero_point),
        "wei_q": unit("s8"),
        "dst": "s32",
        "padding": 1,
        "groups": groups,
    }
    shift = 0 if bias is None else bias.reshape(-1, 1, 1)
    real = src.astype(np.int64) - zero_point
    wanted = convolved(real, wei, 1, groups) + shift
    check(pq.Conv(wei, bias, **given)(src), wanted)
    check(pq.conv(src, wei, bias, **given), wanted)
    last = np.ascontiguousarray(src.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    check(pq.Conv(wei, bias, **given)(last), wanted)
    wanted = spread(real, wei, 1, groups) + shift
    check(pq.Deconv(wei, bias, **given)(src), wanted)
    check(pq.deconv(src, wei, bias, **given), wanted)


def test_one_channel_of_many_taps() -> None:
    rng = np.random.default_rng(5)
    src, wei = source(rng, (1, 1, 60, 60), "u8"), weights(rng, (8, 1, 57, 57))
    layer = pq.Conv(wei, src_q=unit("u8", 9), wei_q=unit("s8"), dst="s32")
    check(layer(src), convolved(src.astype(np.int64) - 9, wei, 0, 1))


def test_a_product_as_long_as_a_vocabulary() -> None:
    rng = np.random.default_rng(6)
    src, wei = source(rng, (2, 60_000), "u8"), weights(rng, (60_000, 16))
    bias = counts(rng, 1, 16)
    assert bias is not None
    layer = pq.MatMul(wei, bias, src_q=unit("u8", 128), wei_q=unit("s8"), dst="s32")
    wanted = (src.astype(np.int64) - 128) @ wei.astype(np.int64) + bias
    check(layer(src), wanted)


def test_weights_with_a_zero_point() -> None:
    """Less that, they are beyond s8, which a matmul's own zero point would carry."""
    rng = np.random.default_rng(7)
    src, wei = source(rng, (4, 9000), "u8"), rng.integers(0, 60, (9000, 16)).astype(np.int8)
    layer = pq.MatMul(wei, src_q=unit("u8", 5), wei_q=unit("s8", -100), dst="s32")
    check(layer(src), (src.astype(np.int64) - 5) @ (wei.astype(np.int64) + 100))


def test_scales_whose_ratio_is_1_are_integers() -> None:
    rng = np.random.default_rng(8)
    src, wei = source(rng, (4, 9000), "u8"), weights(rng, (9000, 16))
    bias = counts(rng, 1, 16)
    assert bias is not None
    src_q, wei_q = pq.QParams(0.3, 7, "u8"), pq.QParams(0.7, 0, "s8")
    dst_q = pq.QParams(0.3 * 0.7, -11, "s32")
    layer = pq.MatMul(wei, bias, src_q=src_q, wei_q=wei_q, dst_q=dst_q)
    check(layer(src), (src.astype(np.int64) - 7) @ wei.astype(np.int64) + bias - 11)


def test_what_leaves_32_bits_is_refused_or_saturates() -> None:
    wei = np.empty((140_000, 3), np.int8)
    wei[:] = 63, -63, 1
    src = np.full((1, 140_000), 255, np.uint8)
    asked: dict[str, Any] = {"src_q": unit("u8", 1), "wei_q": unit("s8"), "dst": "s32"}
    assert 254 * 63 * 140_000 > 2**31
    with pytest.raises(pq.errors.SaturationError, match="exceed 32 bits") as caught:
        pq.MatMul(wei, **asked)(src)
    assert caught.value.channels == (0, 1)
    layer = pq.MatMul(wei, **asked, saturation="allow")
    assert layer(src).tolist() == [[2**31 - 1, -(2**31), 254 * 140_000]]
    few, bias = np.ones((2, 3), np.int8), np.array([2**31 - 1, -(2**31), 5], np.int32)
    asked |= {"src_q": unit("u8", 3)}
    with pytest.raises(pq.errors.SaturationError, match="with the bias") as caught:
        pq.MatMul(few, bias, **asked)(np.zeros((2, 2), np.uint8))
    assert caught.value.channels == (0, 1)
    small = pq.MatMul(few[:, :2], bias[:2], **asked, saturation="allow")
    assert small(np.array([[9, 9], [0, 0]], np.uint8)).tolist() == [
        [2**31 - 1, -(2**31) + 12],
        [2**31 - 7, -(2**31)],
    ]


def test_small_sums_stay_on_one_primitive() -> None:
    rng = np.random.default_rng(9)
    src, wei = source(rng, (4, 512), "u8"), weights(rng, (512, 16))
    bias = np.arange(16, dtype=np.int32)
    layer = pq.MatMul(wei, bias, src_q=unit("u8", 3), wei_q=unit("s8"), dst="s32")
    planned = layer.prepare(src.shape)
    assert not planned.plan.sums
    assert not planned.after
    wanted = (src.astype(np.int64) - 3) @ wei.astype(np.int64) + bias
    assert np.array_equal(layer(src), wanted)


@pytest.mark.parametrize("own", [True, False], ids=["weights known", "weights not known"])
@pytest.mark.parametrize("later", [False, True], ids=["bias", "bias later"])
def test_a_composed_chain(own: bool, later: bool) -> None:
    rng = np.random.default_rng(10)
    problem = pq.primitive.ConvProblem.of(
        (1, 768, 5, 5), (16, 768, 3, 3), dst="s32", padding=1, bias="f32" if later else None
    )
    src, wei = source(rng, (1, 768, 5, 5), "u8"), weights(rng, (16, 768, 3, 3))
    bias = counts(rng, 1, 16)
    assert bias is not None
    facts = pq.primitive.PrimitiveFacts.of(
        problem,
        wei=wei if own else None,
        src_zero_point=17,
        bias=None if later else bias.astype(np.float64),
        bias_in_acc=True,
        dst_zero_point=100,
    )
    plan = pq.compose_chain(pq.Chain(), facts, "bitwise")
    assert plan.sums
    assert "in s32: -17 · Σ wei + bias" in str(plan)
    planned = prepare_plan(plan, problem, wei=wei, bias=bias if later else None)
    wanted = convolved(src.astype(np.int64) - 17, wei, 1, 1) + bias.reshape(-1, 1, 1) + 100
    check(planned(src), wanted)
    again = prepare_plan(
        type(plan).from_json(plan.to_json()), problem, wei=wei, bias=bias if later else None
    )
    check(again(src), wanted)
    if later:
        with pytest.raises(ArgumentError, match=r"^bias: .* whole numbers: units of the accum"):
            prepare_plan(plan, problem, wei=wei, bias=bias + 0.5)


def test_what_goes_through_float32_says_so() -> None:
    wei = np.full((4096, 8), 60, np.int8)
    src = np.full((3, 4096), 200, np.uint8)
    relu = pq.Chain(pq.Eltwise("relu"))
    layer = pq.MatMul(wei, src_q=unit("u8", 3), wei_q=unit("s8"), dst="s32", post=relu)
    (note,) = (one for one in notes(layer, src) if "float32" in one)
    # Up to 252 · 60 · 4096 = 61 931 520, below 2^26: every fourth number.
    assert "6.19e+07 are multiples of 4" in note
    off = np.abs(layer(src).astype(np.int64) - 197 * 60 * 4096)
    assert off.max() <= 2 * 3  # three steps: the sum, the zero point, the store
    dynamic = pq.MatMul(wei, src_q=pq.Dynamic("u8"), wei_q=unit("s8"), dst="s32")
    assert any("which has 24 bits" in note for note in notes(dynamic, src))


def test_requantization_begins_with_exact_sums() -> None:
    """M is 1 for `exact`: what it makes are the sums themselves."""
    rng = np.random.default_rng(11)
    for dtype in ("u8", "s8"):
        src, wei = source(rng, (1, 768, 5, 5), dtype), weights(rng, (16, 768, 3, 3))
        bias = counts(rng, 1, 16)
        layer = pq.Conv(
            wei,
            bias,
            src_q=unit(dtype, 5),
            wei_q=unit("s8"),
            dst_q=unit("s32"),
            padding=1,
            requantize="exact",
        )
        assert bias is not None
        wanted = convolved(src.astype(np.int64) - 5, wei, 1, 1) + bias.reshape(-1, 1, 1)
        check(layer(src), wanted)


def test_models_of_exact_sums() -> None:
    """Bit by bit, or a word that there is none: never the sums rounded, or not rounded."""
    rng = np.random.default_rng(12)
    src, wei = source(rng, (4, 6000), "u8"), weights(rng, (6000, 16))
    bias = counts(rng, 1, 16)
    layer = pq.MatMul(wei, bias, src_q=unit("u8", 3), wei_q=unit("s8"), dst="s32")
    try:
        got = pq.model_of(layer, src.shape).run(src)
    except pq.errors.NoModelError as error:
        assert "2^24" in str(error) or "nothing is proven" in str(error)  # noqa: PT017
    else:
        assert np.array_equal(got, layer(src))


def test_a_copy_has_primitives_of_its_own() -> None:
    rng = np.random.default_rng(13)
    src, wei = source(rng, (4, 6000), "u8"), weights(rng, (6000, 16))
    planned = pq.MatMul(wei, src_q=unit("u8", 3), wei_q=unit("s8"), dst="s32").prepare(src.shape)
    other = copy(planned)
    assert other.primitive is not planned.primitive
    check(other(src), (src.astype(np.int64) - 3) @ wei.astype(np.int64))


@pytest.mark.parametrize("carrier", ["attribute", "bias", "map"])
def test_whatever_carries_the_zero_point(carrier: Any) -> None:
    rng = np.random.default_rng(14)
    src, wei = source(rng, (4, 6000), "u8"), weights(rng, (6000, 16))
    given: dict[str, Any] = {"src_q": unit("u8", 3), "wei_q": unit("s8"), "dst": "s32"}
    wanted = (src.astype(np.int64) - 3) @ wei.astype(np.int64)
    check(pq.MatMul(wei, **given, zero_point=carrier, self_check=True)(src), wanted)
    check(pq.InnerProduct(np.ascontiguousarray(wei.T), **given, zero_point=carrier)(src), wanted)
    if carrier != "bias":
        image, kernel = source(rng, (1, 768, 5, 5), "u8"), weights(rng, (16, 768, 3, 3))
        layer = pq.Conv(kernel, **given, zero_point=carrier, padding=1, self_check=True)
        check(layer(image), convolved(image.astype(np.int64) - 3, kernel, 1, 1))
