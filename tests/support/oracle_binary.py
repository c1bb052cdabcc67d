"""Binary algorithms on tracked values; a comparison yields 1.0 or 0.0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from support.oracle_tracked import Tracked, add, divide, mul

if TYPE_CHECKING:
    from collections.abc import Callable

_COMPARISONS = {
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "eq": np.equal,
    "ne": np.not_equal,
}


def apply(alg: str, x: Tracked, y: Tracked) -> Tracked:
    """Apply alg(x, y), broadcasting y over x."""
    if alg in _COMPARISONS:
        return _compare(alg, x, y)
    return _ARITHMETIC[alg](x, y)


def _compare(alg: str, x: Tracked, y: Tracked) -> Tracked:
    value = _COMPARISONS[alg](x.value, y.value).astype(np.float64)
    room = x.error + y.error
    undecided = (room > 0) & (np.abs(x.value - y.value) <= room)
    return Tracked(value, undecided.astype(np.float64))


def _sub(x: Tracked, y: Tracked) -> Tracked:
    return add(x, Tracked(-y.value, y.error))


def _div(x: Tracked, y: Tracked) -> Tracked:
    if np.any(y.error):
        msg = "an inexact divisor has no bound here"
        raise NotImplementedError(msg)
    return divide(x, y.value)


def _max(x: Tracked, y: Tracked) -> Tracked:
    return Tracked(np.maximum(x.value, y.value), np.maximum(x.error, y.error))


def _min(x: Tracked, y: Tracked) -> Tracked:
    return Tracked(np.minimum(x.value, y.value), np.maximum(x.error, y.error))


_ARITHMETIC: dict[str, Callable[[Tracked, Tracked], Tracked]] = {
    "add": add,
    "mul": mul,
    "max": _max,
    "min": _min,
    "div": _div,
    "sub": _sub,
}
ALGS = frozenset(_ARITHMETIC) | frozenset(_COMPARISONS)
