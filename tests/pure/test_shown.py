"""Values as short texts, and messages that stay short whatever came."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import pyonednn_q as pq
from pyonednn_q import errors
from pyonednn_q.shown import LONGEST, shortened, shown
from support.frames import calls_of
from support.hostile.nasty import NASTY, Angry, Lying, Wordy

MOST_CALLS = 1000  # to show a value: 208 of the nastiest; what walks through a large one makes more


def own_list() -> list[Any]:
    values: list[Any] = [1]
    values.append(values)
    return values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (1.5, "1.5"),
        ("text", "'text'"),
        ([1, "a", None], "[1, 'a', None]"),
        ((1,), "(1,)"),
        ({"a": (1, 2)}, "{'a': (1, 2)}"),
        (own_list(), "[1, [1, [...]]]"),
        (2**200, "an integer of 201 bits"),
        (np.arange(3), "array([0, 1, 2])"),
        (np.zeros((2, 300), np.int8), "an array (2, 300) of int8"),
        (np.ma.masked_array([1, 2], [False, True]), "a MaskedArray (2,) of int64"),
        (Angry(), "an Angry"),
        (Lying(), "a Lying"),
        (Wordy, "the class Wordy"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # not a name that lies
)
def test_values_are_shown_as_far_as_they_help(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_whatever_comes_is_shown_at_once_and_shortly() -> None:
    for make in NASTY:
        value = make()
        assert calls_of(partial(shown, value)) < MOST_CALLS
        text = shown(value)
        assert 0 < len(text) < 500
        assert len(shortened(value, 60)) <= 60


def test_a_text_that_is_cut_keeps_its_ends() -> None:
    assert shortened("a" * 50 + "z" * 50, 40) == "a" * 25 + " ... " + "z" * 10
    assert shortened("x" * 40, 40) == "x" * 40


MANY = tuple(
    (f"implementation {i}", "it refuses for a reason that takes some words") for i in range(99)
)
LONG = "long " * 1000


@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentError(LONG, LONG, LONG),
        errors.ShapeError("x", LONG, "short"),
        errors.OneDNNError(LONG, LONG, LONG, LONG),
        errors.UnsupportedError("refused", "create", LONG, LONG, explain=lambda: MANY),
        errors.NoModelError(LONG, LONG, LONG),
        errors.SelfCheckError(LONG, "brg", (0,) * 12, 1.0, (2.0, 3.0), 1, 2),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_message_is_longer_than_it_may_be(error: pq.Error) -> None:
    assert len(str(error)) <= LONGEST


def test_of_many_reasons_the_first_are_told_and_how_many_there_are() -> None:
    near = errors.Variant(("dst f32",), "problem", "", "brg_conv")
    error = errors.UnsupportedError(
        "refused", "create", "a problem", explain=lambda: MANY, suggest=lambda: (near,)
    )
    lines = str(error).splitlines()
    assert lines[1] == "  implementation 0: it refuses for a reason that takes some words"
    assert lines[-3:] == [
        f"  and {99 - (len(lines) - 4)} more, in reasons",
        "nearest variants that run here:",
        "  dst f32: brg_conv",
    ]
    assert len(error.reasons) == 99
