"""Checks of single arguments."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyonednn_q import argument
from pyonednn_q.errors import ArgumentError, ShapeError
from pyonednn_q.primitive.window import padding_sides
from support.hostile.nasty import NASTY, Angry, Lengthy


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


def test_numbers_are_real_ones_in_rows_of_equal_length() -> None:
    for good in (1, 2.5, [1, 2], [[1.0], [2.0]], range(3), np.float32(1), np.arange(3)):
        np.testing.assert_array_equal(argument.numbers("x", good), np.asarray(good))
    with pytest.raises(ArgumentError, match=r"^x: got .* wanted integers$"):
        argument.numbers("x", [1.5], "iu")
    for bad in ([[1], [2, 3]], "1", ["1"], [1j], None, {1}, Lengthy(), Angry(), iter([1])):
        with pytest.raises(ArgumentError, match=r"^x: got "):
            argument.numbers("x", bad)


def test_sequences_and_mappings_are_of_one_kind() -> None:
    assert argument.items("x", [1, 2], int) == (1, 2)
    assert argument.items("x", (i for i in "ab"), str) == ("a", "b")
    assert argument.named("x", None, int) == {}
    assert argument.named("x", {"a": 1}, int) == {"a": 1}
    with pytest.raises(ArgumentError, match=r"^x\[1\]: got str; wanted int$"):
        argument.items("x", [1, "2"], int)
    for bad in ("ab", b"ab", {1, 2}, {"a": 1}, 3, None, itertools.count(), Angry()):
        with pytest.raises(ShapeError, match=r"^x: got "):
            argument.items("x", bad, int)
    for other in ([("a", 1)], {1: 1}, {"a": "1"}, Angry()):
        with pytest.raises(ArgumentError, match=r"^x"):
            argument.named("x", other, int)


def test_files_have_names_that_a_file_can_have(tmp_path: Path) -> None:
    assert argument.path("x", "a/b") == Path("a/b")
    for bad in ("a\0b", "\ud800", 3, None, Angry()):
        with pytest.raises(ArgumentError, match=r"^x: got "):
            argument.path("x", bad)
    file = tmp_path / "latin1"
    file.write_bytes("é".encode("latin-1"))
    with pytest.raises(ArgumentError, match="text in UTF-8"):
        argument.content("x", file)


CHECKS: dict[str, Callable[[Any], object]] = {
    "flag": lambda value: argument.flag("x", value),
    "instance": lambda value: argument.instance("x", value, Path),
    "integers": lambda value: argument.integers("x", value),
    "items": lambda value: argument.items("x", value, object),
    "named": lambda value: argument.named("x", value, object),
    "numbers": lambda value: argument.numbers("x", value),
    "one_of": lambda value: argument.one_of("x", value, ("a", "b")),
    "path": lambda value: argument.path("x", value),
    "real": lambda value: argument.real("x", value),
    "whole": lambda value: argument.whole("x", value),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("name", CHECKS)
def test_whatever_comes_is_taken_or_refused_by_name(name: str) -> None:
    for make in NASTY:
        with contextlib.suppress(ArgumentError):
            CHECKS[name](make())
