"""Texts of plans that something changed: refused by a typed error, or plans all the same."""

from __future__ import annotations

import copy
import functools
import json
import operator
import random
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import numpy as np
import pytest

from pyonednn_q.compose.composer import compose
from pyonednn_q.compose.fields import fits
from pyonednn_q.compose.plan import Plan
from pyonednn_q.compose.primitive import PrimitiveFacts
from pyonednn_q.errors import ArgumentError, Error
from pyonednn_q.expr.chain import Chain
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, Sum

FACTS = PrimitiveFacts("convolution", 4, dst="u8", dst_scale=0.05, dst_zero_point=3)
CHAIN = Chain(
    Sum(0.5, 3),
    Eltwise("swish", 1.0),
    Affine(np.array([1.0, 2.0, 3.0, 4.0]), 0.5),
    Binary("add", Leaf("bias", "f32", "per_channel")),
    Clip(-1, np.inf),
)
SWAPS: tuple[Any, ...] = (None, True, 0, -1, 10**400, 1e400, "x", "", [], {}, [1, 2], {"is": []})
SWAPS += ("Sum", "u8", "gone")


def _places(plain: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    keys = plain if isinstance(plain, dict) else range(len(plain) if isinstance(plain, list) else 0)
    for key in keys:
        yield from _places(plain[key], (*at, key))


def _at(plain: Any, keys: Iterable[Any]) -> Any:
    return functools.reduce(operator.getitem, keys, plain)


def _changed(plain: Any, rng: random.Random) -> str:
    plain = copy.deepcopy(plain)
    *outer, last = rng.choice(list(_places(plain)))
    place = _at(plain, outer)
    swap = rng.choice(SWAPS)
    if swap == "gone":
        del place[last]
    else:
        place[last] = swap
    text = json.dumps(plain)
    return text[: rng.randrange(len(text))] if rng.random() < 0.05 else text


@pytest.mark.filterwarnings("error")
def test_a_changed_text_is_a_plan_or_refused() -> None:
    plain = json.loads(compose(CHAIN, FACTS).to_json())
    plans = refused = 0
    for seed in range(3000):
        try:
            plan = Plan.from_json(_changed(plain, random.Random(seed)))
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
        ("add", Literal["add", 1], True),
        (True, Literal["add", 1], False),
    ],
)
def test_fits(value: object, hint: Any, is_one: bool) -> None:
    assert fits(value, hint) is is_one


@pytest.mark.parametrize("name", ["mask", "scale"])
def test_the_field_is_named(name: str) -> None:
    plain = json.loads(compose(CHAIN, FACTS).to_json())
    *outer, last = next(place for place in _places(plain) if place[-1] == name)
    _at(plain, outer)[last] = "x"
    with pytest.raises(ArgumentError, match=rf"\.{name} of type str"):
        Plan.from_json(json.dumps(plain))
