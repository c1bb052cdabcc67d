"""Checks of single arguments."""

from __future__ import annotations

import numpy as np
import pytest

from pyonednn_q.compose import argument
from pyonednn_q.compose.window import padding_sides
from pyonednn_q.errors import ArgumentError, ShapeError


def test_integers_take_what_counts() -> None:
    assert argument.integers("dims", [1, np.int64(2), True]) == (1, 2, 1)
    for bad in ([1.0], ["1"], [None]):
        with pytest.raises(ShapeError, match=r"^dims: got .* sequence of integers"):
            argument.integers("dims", bad)
    with pytest.raises(ShapeError):
        argument.integers("dims", 3)  # type: ignore[arg-type]
    for unordered in ({1, 2}, frozenset([1]), {1: 2}):
        with pytest.raises(ShapeError, match=r"^dims: got .* sequence of integers"):
            argument.integers("dims", unordered)
        with pytest.raises(ShapeError, match=r"^padding: got "):
            padding_sides(unordered, 2)


def test_real_numbers_must_survive_f32() -> None:
    assert argument.real("alpha", np.float32(0.5)) == 0.5
    largest = float(np.finfo(np.float32).max)
    assert argument.real("alpha", largest) == largest
    for bad in (largest * 1.01, float("nan"), float("inf"), "1", None, [1.0]):
        with pytest.raises(ArgumentError, match=r"^alpha: got "):
            argument.real("alpha", bad)


def test_infinity_passes_where_it_means_something() -> None:
    assert argument.real("alpha", -np.inf, infinite=True) == -np.inf
    for bad in (1e39, float("nan")):
        with pytest.raises(ArgumentError):
            argument.real("alpha", bad, infinite=True)


def test_whole_numbers_keep_their_limits() -> None:
    assert argument.whole("mask", np.uint8(3), lo=0, hi=3) == 3
    for bad in (-1, 4, 1.0, "1"):
        with pytest.raises(ArgumentError, match=r"^mask: got "):
            argument.whole("mask", bad, lo=0, hi=3)


def test_instances_and_choices_are_named() -> None:
    argument.instance("x", 1, int, str)
    with pytest.raises(ArgumentError, match=r"^x: got float; wanted int, str$"):
        argument.instance("x", 1.0, int, str)
    with pytest.raises(ArgumentError, match=r"^x: got 'c'; wanted one of a, b$"):
        argument.one_of("x", "c", ("a", "b"))
