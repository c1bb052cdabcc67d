"""Places: sums at places equal a convolution that is written another way."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pyonednn_q.check.meaning import Meaning
from pyonednn_q.check.places import MOST_GATHERED, MOST_MACS, Geometry, Places
from pyonednn_q.expr.steps import Affine, Chain, Round
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from support.oracle_convolution import convolve, deconvolve

RNG = np.random.default_rng(2)
WINDOWS: list[dict[str, Any]] = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": (2, 1), "padding": ((1, 2), (0, 1))},
    {"stride": (3, 2), "padding": (2, 1), "dilation": 2},
    {"padding": (1, 0, 2, 1)},
]
MAKE: dict[Any, Any] = {"convolution": ConvProblem, "deconvolution": DeconvProblem}
BY_TAPS: dict[Any, Any] = {"convolution": convolve, "deconvolution": deconvolve}


def numbers(dims: tuple[int, ...]) -> Any:
    return RNG.integers(-9, 10, dims).astype(np.float64)


def sums_by_taps(
    kind: Any, src: Any, wei: Any, groups: int = 1, **window: Any
) -> tuple[Geometry, Any]:
    """Geometry of a call, and its sums, written another way."""
    geometry = Geometry.of(kind, src.shape, wei.shape, groups=groups, **window)
    if groups > 1:
        wei = wei.reshape(groups, -1, *wei.shape[1:])
    sides = geometry.padding
    named = {"stride": geometry.stride, "dilation": geometry.dilation, "padding": sides}
    problem = MAKE[kind].of(src.shape, wei.shape, **named)
    assert problem.dst.dims == geometry.dst
    return geometry, BY_TAPS[kind](src, wei, problem)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("wei", "groups"), [((6, 4, 3, 2), 1), ((6, 2, 3, 2), 2), ((4, 1, 3, 2), 4)]
)
@pytest.mark.parametrize("kind", MAKE)
def test_windows(kind: str, wei: tuple[int, ...], groups: int, window: dict[str, Any]) -> None:
    src, weights = numbers((2, 4, 9, 8)), numbers(wei)
    geometry, expected = sums_by_taps(kind, src, weights, groups, **window)
    places = Places.of(geometry)
    assert places.count == expected.size // geometry.channels
    np.testing.assert_array_equal(places.sums(src, weights), places.take(expected))


@pytest.mark.parametrize("dims", [(7,), (3, 4, 5)])
@pytest.mark.parametrize("kind", MAKE)
def test_other_numbers_of_dimensions(kind: str, dims: tuple[int, ...]) -> None:
    src, weights = numbers((1, 4, *dims)), numbers((3, 4, *(2,) * len(dims)))
    geometry, expected = sums_by_taps(kind, src, weights, padding=1, stride=2)
    places = Places.of(geometry)
    np.testing.assert_array_equal(places.sums(src, weights), places.take(expected))


def test_a_window_is_read_as_operators_document_it() -> None:
    sides = ((1, 1), (2, 2))
    of: Any = {"stride": (2, 3), "dilation": 2}
    for padding, wanted in (((1, 2), sides), (sides, sides), (3, ((3, 3), (3, 3)))):
        found = Geometry.of("convolution", (1, 4, 9, 9), (2, 4, 3, 3), padding=padding, **of)
        assert (found.stride, found.dilation, found.padding) == ((2, 3), (2, 2), wanted)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((5, 6), (6, 7)),
        ((2, 5, 6), (2, 6, 7)),
        ((2, 5, 6), (1, 6, 7)),
        ((2, 5, 6), (6, 7)),
        ((1, 3, 2, 4), (2, 3, 4, 5)),
    ],
)
def test_products(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    src, wei = numbers(one), numbers(other)
    places = Places.of(Geometry("matmul", one, other))
    assert places.geometry.dst == (src @ wei).shape
    np.testing.assert_array_equal(places.sums(src, wei), places.take(src @ wei))


def test_inner_products() -> None:
    src, wei = numbers((3, 4, 2, 2)), numbers((5, 4, 2, 2))
    expected = np.einsum("nchw,ochw->no", src, wei)
    places = Places.of(Geometry("inner_product", src.shape, wei.shape))
    np.testing.assert_array_equal(places.sums(src, wei), expected)


@pytest.mark.parametrize("dims", [(1, 64, 224, 224), (16, 256, 56, 56)])
def test_large_problems_are_looked_at_in_places(dims: tuple[int, ...]) -> None:
    geometry = Geometry.of("convolution", dims, (64, dims[1], 3, 3), padding=1)
    places = Places.of(geometry)
    assert places.count < math.prod(dims[:1] + dims[2:])
    corners = 8
    met = dims[1] * 9
    allowed = min(MOST_GATHERED // met, MOST_MACS // (met * 64))
    assert allowed <= places.count <= allowed + corners
    ends = {tuple(int(index[i]) for index in places.index) for i in range(places.count)}
    assert {(0, 0, 0), (dims[0] - 1, dims[2] - 1, dims[3] - 1)} <= ends
    assert places.at(0, 5) == (0, 5, 0, 0)
    assert len(ends) == places.count


def test_places_of_an_array() -> None:
    geometry = Geometry.of("convolution", (2, 4, 5, 4), (3, 4, 1, 1))
    dst = numbers(geometry.dst)
    places = Places.of(geometry)
    taken = places.take(dst)
    for place in range(places.count):
        assert [dst[places.at(place, channel)] for channel in range(3)] == list(taken[place])


def band(chain: Chain, dst: str, **more: Any) -> Any:
    src, wei = np.array([[3, 1, 0, 0]]), np.array([[1, 2, 3], [0, 1, -9], [0, 0, 0], [0, 0, 0]])
    given = {"dst_scale": np.array([2.0]), "dst_zero_point": 1, **more}
    places = Places.of(Geometry("matmul", src.shape, wei.shape))
    return Meaning(chain, dst, **given).band(places, src, wei)


def test_a_tie_leaves_both_neighbours_and_nothing_else_does() -> None:
    """3/2 and 7/2 lie between two codes; 0 has one code."""
    found = band(Chain(), "u8")
    assert found.low.tolist() == [[2.0, 4.0, 1.0]]
    assert found.high.tolist() == [[3.0, 5.0, 1.0]]
    assert found.wrong(np.array([[2, 5, 1]])).tolist() == [[False, False, False]]
    assert found.wrong(np.array([[1, 6, 2]])).tolist() == [[True, True, True]]


def test_declared_levels_widen_the_band() -> None:
    found = band(Chain(Affine(1.0, 0.5), Round()), "s8", levels=1)
    assert (found.high - found.low >= 2).all()
    assert band(Chain(), "u8", bias=np.array([0.0, 0.0, 400.0])).low.max() == 201.0
    assert band(Chain(), "u8", bias=np.array([0.0, 0.0, 900.0])).high.max() == 255.0


def test_integers_that_are_asked_for_have_no_band() -> None:
    src, wei = np.full((1, 1000), 255), np.full((1000, 1), 127)
    counts = np.array([2.0**24 + 1])
    places = Places.of(Geometry("matmul", src.shape, wei.shape))
    meaning = Meaning(Chain(), "s32", src_zero_point=np.array([3]), bias=counts, bias_in_acc=True)
    found = meaning.band(places, src, wei)
    assert found.low == found.high == 252 * 127 * 1000 + 2**24 + 1
    for more in ({"in_float32": True}, {"bias_in_acc": False}, {"scale": np.array([0.5])}):
        loose = replace(meaning, **more).band(places, src, wei)
        assert loose.low < loose.high


def test_another_arithmetic_is_as_near_as_it_says() -> None:
    src, wei = np.array([[10]]), np.array([[1]])
    places = Places.of(Geometry("matmul", (1, 1), (1, 1)))
    given: Any = {"scale": np.array([0.125]), "bias": np.array([40.0]), "bias_in_acc": True}
    for levels, ends in ((0.5, (6, 6)), (1.0, (6, 7)), (1.25, (5, 7))):
        meaning = Meaning(Chain(), "s8", distance=(levels, 0.0, 0.0), **given)
        found = meaning.band(places, src, wei)
        assert (float(found.low[0, 0]), float(found.high[0, 0])) == ends
    far = Meaning(Chain(), "s8", distance=(0.5, 0.5, 0.1), **given).band(places, src, wei)
    assert (far.low, far.high) == (np.ceil(6.25 - 8.625), np.floor(6.25 + 8.625))


@pytest.mark.parametrize("turns", [1, 8])
@pytest.mark.parametrize("wei", [(512, 1024), (3, 512, 1024)])
def test_places_of_products_are_as_many_as_turns_allow(wei: tuple[int, ...], turns: int) -> None:
    places = Places.of(Geometry("matmul", (*wei[:-2], 4096, 512), wei), turns)
    allowed = MOST_MACS // turns // (512 * 1024)
    corners = 2 ** (len(wei) - 1)
    assert allowed <= places.count <= allowed + corners
