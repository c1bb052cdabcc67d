"""The measure that every rewrite must lower, so that rewriting ends.

It is compared place by place, and only inside the window that a rule replaces:

1. weight: what the items would cost as post-ops. A per-channel constant costs four times a
   per-tensor one, which is what they were measured to add to a convolution.
2. length: number of items.
3. strangeness: sum of the kinds' ranks, affine 0 to binary 4: simpler kinds are preferred.
4. disorder: pairs out of the normal form (affine, round, clip).
5. detail: finite bounds, scales that are not 1, shifts that are not 0.
6. grain: channels whose shift is not a whole number.

All places but disorder are sums over items, and items outside the window stay, so a fall inside
is a fall of the whole. Disorder decides only where a window is permuted (equal length and
strangeness), and a permutation changes no pair with an item outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Item

__all__ = ["MEASURE", "PER_CHANNEL", "PER_TENSOR", "falls", "weight"]

PER_TENSOR = 1
PER_CHANNEL = 4

_INF = float("inf")
_RANK: dict[type, int] = {
    Affine: 0, Clip: 1, Round: 1, Eltwise: 2, Sum: 2, PRelu: 3, Binary: 4, Acc: 0, Dst: 0,
}  # fmt: skip
# The normal form's order; steps that nothing passes by a permutation have no place in it.
_PLACE: dict[type, int] = {Affine: 0, Round: 1, Clip: 2}


def falls(old: Sequence[Item], new: Sequence[Item]) -> bool:
    """Tell whether replacing old by new is progress."""
    # Place by place: the first two decide most rewrites, the last one reads every channel.
    for place in MEASURE:
        before, after = place(old), place(new)
        if before != after:
            return after < before
    return False


def weight(items: Sequence[Item]) -> int:
    """Cost of the items as post-ops."""
    total = 0
    for item in items:
        total += _WEIGHT[type(item)](item)
    return total


def strangeness(items: Sequence[Item]) -> int:
    """How far the kinds of the items are from the simplest."""
    return sum(map(_RANK.__getitem__, map(type, items)))


def disorder(items: Sequence[Item]) -> int:
    """How many pairs are out of the normal form."""
    places = [_PLACE.get(type(item), 1) for item in items]
    return sum(a > b for a, b in combinations(places, 2))


def detail(items: Sequence[Item]) -> int:
    """How many bounds, scales and shifts do something."""
    total = 0
    for item in items:
        if isinstance(item, Affine):
            total += (not item.scale.is_all(1.0)) + (not item.shift.is_all(0.0))
        elif isinstance(item, Clip):
            total += (item.lo.greatest > -_INF) + (item.hi.least < _INF)
    return total


def grain(items: Sequence[Item]) -> int:
    """How many channels have a shift that is not a whole number."""
    return sum(_grain(item.shift) for item in items if isinstance(item, (Affine, Acc)))


MEASURE = (weight, len, strangeness, disorder, detail, grain)


def _part(vec: Vec) -> int:
    return PER_TENSOR if vec.array is None else PER_CHANNEL


def _affine_weight(step: Affine) -> int:
    scale, shift = step.scale, step.shift
    has_scale = not (scale.array is None and scale.least == 1.0)
    has_shift = not (shift.array is None and shift.least == 0.0)
    if has_scale and has_shift and scale.array is None and shift.array is None:
        return PER_TENSOR  # one eltwise_linear
    return (_part(scale) if has_scale else 0) + (_part(shift) if has_shift else 0)


def _clip_weight(step: Clip) -> int:
    lo, hi = step.lo, step.hi
    if lo.array is None and hi.array is None:
        return PER_TENSOR
    low = _part(lo) if lo.greatest > -_INF else 0
    return low + (_part(hi) if hi.least < _INF else 0)


def _binary_weight(step: Binary) -> int:
    return PER_CHANNEL if isinstance(step.operand, Leaf) else _part(step.operand)


def _prelu_weight(step: PRelu) -> int:
    return _part(step.slope)


def _one(_: Item) -> int:
    return PER_TENSOR


def _nothing(_: Item) -> int:
    return 0


def _grain(vec: Vec) -> int:
    if vec.array is None:
        return int(not vec.least.is_integer())
    return int(np.count_nonzero(np.rint(vec.array) != vec.array))


_WEIGHT: dict[type, Callable[[Any], int]] = {
    Affine: _affine_weight,
    Clip: _clip_weight,
    Round: _one,
    Eltwise: _one,
    PRelu: _prelu_weight,
    Sum: _one,
    Binary: _binary_weight,
    Acc: _nothing,
    Dst: _nothing,
}
