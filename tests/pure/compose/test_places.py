"""Places: sums at places equal a convolution that is written another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.compose.meaning import Meaning
from pyonednn_q.compose.places import MOST_GATHERED, MOST_MACS, Places
from pyonednn_q.compose.problem import (
    ConvProblem,
    DeconvProblem,
    InnerProductProblem,
    MatMulProblem,
)
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Affine, Round
from support.oracle_convolution import convolve, deconvolve

RNG = np.random.default_rng(2)
WINDOWS: list[dict[str, Any]] = [
    {},
    {"strides": 2, "padding": 1},
    {"dilation": (2, 1), "padding": ((1, 2), (0, 1))},
    {"strides": (3, 2), "padding": (2, 1), "dilation": 2},
]


def numbers(dims: tuple[int, ...]) -> Any:
    return RNG.integers(-9, 10, dims).astype(np.float64)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("wei", [(6, 4, 3, 2), (2, 3, 2, 3, 2), (4, 1, 1, 3, 2)])
@pytest.mark.parametrize("make", [ConvProblem, DeconvProblem])
def test_windows(make: Any, wei: tuple[int, ...], window: dict[str, Any]) -> None:
    problem = make.of((2, 4, 9, 8), wei, **window)
    src, weights = numbers(problem.src.dims), numbers(problem.wei.dims)
    by_taps = convolve if make is ConvProblem else deconvolve
    places = Places.of(problem)
    assert places.are_all
    expected = by_taps(src, weights, problem)
    np.testing.assert_array_equal(places.sums(src, weights), places.take(expected))


@pytest.mark.parametrize("dims", [(7,), (3, 4, 5)])
def test_other_numbers_of_dimensions(dims: tuple[int, ...]) -> None:
    for make, by_taps in ((ConvProblem, convolve), (DeconvProblem, deconvolve)):
        problem: Any = make.of((1, 4, *dims), (3, 4, *(2,) * len(dims)), padding=1, strides=2)
        src, weights = numbers(problem.src.dims), numbers(problem.wei.dims)
        places = Places.of(problem)
        expected = by_taps(src, weights, problem)
        np.testing.assert_array_equal(places.sums(src, weights), places.take(expected))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((5, 6), (6, 7)),
        ((2, 5, 6), (2, 6, 7)),
        ((2, 5, 6), (1, 6, 7)),
        ((1, 3, 2, 4), (2, 3, 4, 5)),
    ],
)
def test_products(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    problem = MatMulProblem.of(one, other)
    src, wei = numbers(one), numbers(other)
    places = Places.of(problem)
    np.testing.assert_array_equal(places.sums(src, wei), places.take(src @ wei))


def test_inner_products() -> None:
    problem = InnerProductProblem.of((3, 4, 2, 2), 5)
    src, wei = numbers(problem.src.dims), numbers(problem.wei.dims)
    expected = np.einsum("nchw,ochw->no", src, wei)
    np.testing.assert_array_equal(Places.of(problem).sums(src, wei), expected)


@pytest.mark.parametrize("dims", [(1, 64, 224, 224), (16, 256, 56, 56)])
def test_large_problems_are_looked_at_in_places(dims: tuple[int, ...]) -> None:
    problem = ConvProblem.of(dims, (64, dims[1], 3, 3), padding=1)
    places = Places.of(problem)
    assert not places.are_all
    corners = 8
    assert 16 <= places.count <= corners + max(16, MOST_GATHERED // (dims[1] * 9))
    assert places.count * (problem.macs // (dims[0] * dims[2] * dims[3])) <= 1.1 * MOST_MACS
    ends = {tuple(int(index[i]) for index in places.index) for i in range(places.count)}
    assert {(0, 0, 0), (dims[0] - 1, dims[2] - 1, dims[3] - 1)} <= ends
    assert places.at(0, 5) == (0, 5, 0, 0)
    assert len(ends) == places.count


def test_places_of_an_array() -> None:
    problem = ConvProblem.of((2, 4, 5, 4), (3, 4, 1, 1))
    dst = numbers(problem.dst.dims)
    places = Places.of(problem)
    taken = places.take(dst)
    for place in range(places.count):
        assert [dst[places.at(place, channel)] for channel in range(3)] == list(taken[place])


def band(chain: Chain, dst: str, **more: Any) -> Any:
    problem = MatMulProblem.of((1, 4), (4, 3))
    src, wei = np.array([[3, 1, 0, 0]]), np.array([[1, 2, 3], [0, 1, -9], [0, 0, 0], [0, 0, 0]])
    fields = {"scale": np.ones(1), "dst_scale": np.array([2.0]), "bias": None, "chain": chain}
    points = {"src_zero_point": 0, "wei_zero_point": 0, "dst_zero_point": 1, "bias_in_acc": False}
    meaning = Meaning(**{**fields, **points, "dst": dst, **more})
    return meaning.band(Places.of(problem), src, wei)


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
