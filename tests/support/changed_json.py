"""JSON that something changed in one place: what readers must refuse by name, or take."""

from __future__ import annotations

import copy
import functools
import json
import operator
import random
from collections.abc import Iterable, Iterator
from typing import Any

SWAPS: tuple[Any, ...] = (None, True, 0, -1, 10**400, 1e400, "x", "", [], {}, [1, 2], {"is": []})
SWAPS += (
    "Sum",
    "u8",
    "gone",
    *({"is": "float", "value": value} for value in ("nan", "inf", "-inf")),
)


def places(plain: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    keys = plain if isinstance(plain, dict) else range(len(plain) if isinstance(plain, list) else 0)
    for key in keys:
        yield from places(plain[key], (*at, key))


def place(plain: Any, keys: Iterable[Any]) -> Any:
    return functools.reduce(operator.getitem, keys, plain)


def changed(plain: Any, rng: random.Random) -> str:
    plain = copy.deepcopy(plain)
    *outer, last = rng.choice(list(places(plain)))
    outermost = place(plain, outer)
    swap = rng.choice(SWAPS)
    if swap == "gone":
        del outermost[last]
    else:
        outermost[last] = swap
    text = json.dumps(plain)
    return text[: rng.randrange(len(text))] if rng.random() < 0.05 else text
