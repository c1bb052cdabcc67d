"""Texts of plans that something changed: refused by a typed error, or plans all the same."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from pyonednn_q.argument import fits
from pyonednn_q.compose.codec import loads
from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.plan import Plan
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.expr.steps import Affine, Binary, Chain, Clip, Eltwise, Leaf, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.primitive.dense_facts import PrimitiveFacts
from support.changed_json import changed, place, places

FACTS = PrimitiveFacts("convolution", 4, dst="u8", dst_scale=0.05, dst_zero_point=3)
CHAIN = Chain(
    Sum(0.5, 3),
    Eltwise("swish", 1.0),
    Affine(np.array([1.0, 2.0, 3.0, 4.0]), 0.5),
    Binary("add", Leaf("bias", "f32", "per_channel")),
    Clip(-1, np.inf),
)


@pytest.mark.filterwarnings("error")
def test_a_changed_text_is_a_plan_or_refused() -> None:
    plain = json.loads(compose(CHAIN, FACTS).to_json())
    plans = refused = 0
    for seed in range(3000):
        try:
            plan = Plan.from_json(changed(plain, random.Random(seed)))
        except Error:
            refused += 1
            continue
        plans += 1
        assert Plan.from_json(plan.to_json()) == plan
        assert str(plan)
        assert plan.explain()
    assert plans > 150
    assert refused > 1000


@pytest.mark.parametrize(
    ("value", "hint", "is_one"),
    [
        (1, float, True),
        (True, int, False),
        (1.5, int, False),
        (10**400, float, False),
        (None, None | int, True),
        ((1, 2, 3), tuple[int, int, int], True),
        ((1, 2), tuple[int, int, int], False),
        ((1, "2"), tuple[int, ...], False),
        ({"a": "b"}, Mapping[str, str], True),
        ({"a": 1}, Mapping[str, str], False),
        ("add", Literal["add", 1], True),
        (True, Literal["add", 1], False),
    ],
)
def test_fits(value: object, hint: Any, is_one: bool) -> None:
    assert fits(value, hint) is is_one


@pytest.mark.parametrize("name", ["mask", "scale"])
def test_the_field_is_named(name: str) -> None:
    plain = json.loads(compose(CHAIN, FACTS).to_json())
    *outer, last = next(keys for keys in places(plain) if keys[-1] == name)
    place(plain, outer)[last] = "x"
    with pytest.raises(ArgumentError, match=rf"^text: got \w+\.{name}: 'x'; wanted a"):
        Plan.from_json(json.dumps(plain))


def test_an_unknown_field_is_named() -> None:
    plain = json.loads(compose(Chain(), FACTS).to_json())
    plain["value"]["facts"]["extra"] = 1
    wanted = r"^text: got PrimitiveFacts\.extra; wanted a field of that class"
    with pytest.raises(ArgumentError, match=wanted):
        Plan.from_json(json.dumps(plain))


@pytest.mark.parametrize(
    ("worse", "message"),
    [
        ({"is": "Vec"}, r"Vec without value; wanted all its fields"),
        ({"is": "Vec", "value": 1.0, "axis": 1}, r"Vec\.axis; wanted a field of that class"),
        ({"is": "Chain"}, r"Chain without steps; wanted all its fields"),
        ({"is": "Chain", "steps": 7}, r"Chain\.steps: 7; wanted a list of steps"),
        ({"is": "Interval", "lo": 1.0, "hi": "x"}, r"Interval\.lo: 1\.0; wanted Vec"),
        ({"is": "Exactness", "rank": 2, "levels": "x"}, r"Exactness\.levels: 'x'; wanted an int"),
    ],
)
def test_what_no_constructor_takes_is_told_in_our_words(
    worse: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=f"^text: got {message}"):
        loads(json.dumps({"schema": 1, "value": worse}))


def test_no_text_is_refused_in_pythons_words() -> None:
    plain = json.loads(compose(CHAIN, FACTS).to_json())
    refused: list[ArgumentError] = []
    for seed in range(1000):
        try:
            Plan.from_json(changed(plain, random.Random(seed)))
        except ArgumentError as error:
            refused.append(error)
    of_python = [e for e in refused if isinstance(e.__cause__, (TypeError, AttributeError))]
    assert len(of_python) > 10
    assert not [str(e) for e in of_python if str(e.__cause__) in str(e)]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_constants_of_a_plan_are_finite(value: str) -> None:
    plain = json.loads(compose(Chain(), replace(FACTS, src_scale=0.5, bias=Vec(1.0))).to_json())
    swap = {"is": "Vec", "value": {"is": "float", "value": value}}
    for index, (name, _) in enumerate(plain["value"]["constants"]):
        worse = json.loads(json.dumps(plain))
        worse["value"]["constants"][index] = [name, swap]
        with pytest.raises(ArgumentError, match=r"finite numbers|NaN"):
            Plan.from_json(json.dumps(worse))
    worse = json.loads(json.dumps(plain))
    worse["value"]["bias"] = swap
    with pytest.raises(ArgumentError, match=r"finite numbers|NaN"):
        Plan.from_json(json.dumps(worse))


def test_values_in_values_without_end_are_refused() -> None:
    for deep in ("[" * 100_000, '{"schema": 1, "value": ' + "[" * 900 + "]" * 900 + "}"):
        with pytest.raises(ArgumentError, match="text: got "):
            Plan.from_json(deep)
