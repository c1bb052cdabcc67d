"""Whether a call has numbers so large or so small that float32 may lose what it makes of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.expr.vec import Vec
from support.hostile.attempt import Made, made

if TYPE_CHECKING:
    from support.hostile.attempt import Attempt

SMALL, LARGE = 1e-30, 1e30  # a product of two and a sum of thousands stays in float32


def reaches_far(attempt: Attempt, before: Mapping[str, Any]) -> bool:
    """Tell whether a constant of its settings, or a float that it is given, lies beyond both."""
    tensors = [value for value in before.values() if isinstance(value, np.ndarray)]
    numbers = [*_numbers(attempt.settings), *(x for x in tensors if x.dtype.kind == "f")]
    return any(map(_is_far, numbers))


def _is_far(value: Any) -> bool:
    with np.errstate(all="ignore"):
        size = np.abs(np.asarray(value, np.float64))
    known = size[np.isfinite(size) & (size > 0)]
    return bool(known.size) and (known.min() < SMALL or known.max() > LARGE)


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, Made):
        yield from _numbers([*value.given, *value.named.values()])
        value = made(value)
    if isinstance(value, Vec):
        yield value.values()
    elif isinstance(value, (int, float, np.ndarray, np.generic)):
        if np.asarray(value).dtype.kind in "iuf":
            yield value
    elif isinstance(value, Mapping):
        yield from _numbers(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value[:64]:
            yield from _numbers(item)
    elif dataclasses.is_dataclass(value):
        yield from _numbers([getattr(value, field.name) for field in dataclasses.fields(value)])
