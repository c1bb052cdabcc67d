"""The driver: rules applied until none fires, under a measure that every rewrite must lower.

At each place, from the left, the first rule that fires wins; then the scan steps back just far
enough to see every window that the change touches. So one sweep reaches the fixpoint, and the order
of events depends on nothing but the items and the rules. Leading rules have a sweep to themselves,
before the others.

The measure is compared place by place, and only inside the window that a rule replaces:

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

from pyonednn_q.errors import Error
from pyonednn_q.expr.interval import ANYTHING, Interval, after
from pyonednn_q.expr.steps import Affine, Binary, Clip, Eltwise, Leaf, PRelu, Round, Sum
from pyonednn_q.expr.vec import Vec
from pyonednn_q.rewrite.ends import Acc, Dst, Item
from pyonednn_q.rewrite.rule import (
    Candidates,
    Event,
    Outcome,
    Policy,
    Refusal,
    Rewrite,
    Rule,
    RuleSet,
    Trace,
)

LIMIT = 10_000


def rewrite(
    items: Sequence[Item], rules: RuleSet, policy: Policy = "real", *, limit: int = LIMIT
) -> tuple[tuple[Item, ...], Trace]:
    """Rewrite to the fixpoint.

    Parameters
    ----------
    items : sequence of Item
        Steps, with an `Acc` in front and a `Dst` behind where they are known.
    rules : RuleSet
        Rules, in the order in which they are tried.
    policy : {"bitwise", "real", "fast"}
        Rewrites that may fire. "bitwise": those that promise BITWISE. "real": those of REAL too.
        "fast": those of BOUNDED too.
    limit : int
        Rewrites after which the driver gives up on a rule that never ends.

    Returns
    -------
    items : tuple of Item
        Items in which no rule would fire.
    trace : Trace
        Rules that fired or were refused.
    """
    with np.errstate(all="ignore"):
        sweep = _Sweep(items, limit)
        for table in rules.tables(policy):
            sweep.run(table)
    return tuple(sweep.items), Trace(tuple(sweep.events))


class _Sweep:
    """One run of the driver: the sequence, what is known at each place, and the events so far."""

    def __init__(self, items: Sequence[Item], limit: int) -> None:
        self.items = list(items)
        self.kinds: list[type] = list(map(type, items))
        self.limit = limit
        self.events: list[Event] = []
        self.refusals: dict[tuple[str, str], list[tuple[Item, ...]]] = {}
        self.known: list[Interval] = [ANYTHING]  # what enters item 0, 1, ...; as far as asked

    def run(self, table: Candidates) -> None:
        """Sweep from the left until none of these rules fires."""
        fired = index = 0
        while index < len(self.items):
            if not self.step(table, index):
                index += 1
                continue
            fired += 1
            if fired > self.limit:
                msg = f"{self.events[-1].rule.name} still fires after {self.limit} rewrites"
                raise Error(msg)
            index = self.back_from(table, index)

    def step(self, table: Candidates, index: int) -> bool:
        """Try every rule on the windows that begin here; tell whether one fired."""
        items = self.items
        for rule, length, closing in table[tuple(self.kinds[index : index + table.width])]:
            end = index + length if length else self.closed(closing, index + 2)
            if not end:
                continue
            window: Sequence[object] = items[index:end]
            if not length:
                window = (window[0], tuple(window[1:-1]), window[-1])
            args = (self.interval(index), *window) if rule.ranged else window
            outcome = rule.function(*args)
            if outcome is not None and self.settle(rule, index, end, outcome):
                return True
        return False

    def closed(self, closing: tuple[type, ...], index: int) -> int:
        """Return the end of the run that an item of these types closes, from a place on, or 0."""
        for end in range(index, len(self.kinds)):
            if self.kinds[end] in closing:
                return end + 1
        return 0

    def settle(self, rule: Rule, index: int, end: int, outcome: Outcome) -> bool:
        """Record an outcome; tell whether the sequence changed."""
        before = tuple(self.items[index:end])
        if isinstance(outcome, Refusal):
            # A run changes while its last item stays put; that is still the same refusal.
            about = before[-1:] if rule.has_run else before
            refused = self.refusals.setdefault((rule.name, outcome.reason), [])
            if about not in refused:
                refused.append(about)
                self.events.append(Event(rule, index, before, None, outcome.reason))
            return False
        if isinstance(outcome, Rewrite):
            new, note, rate = outcome.items, outcome.note, outcome.rate
        else:
            new, note, rate = outcome or (), "", 0.0
        assert falls(before, new), f"{rule.name} makes no progress on {before}"
        self.events.append(Event(rule, index, before, new, "", note, rate))
        self.items[index:end] = new
        self.kinds[index:end] = map(type, new)
        del self.known[index + 1 :]
        return True

    def back_from(self, table: Candidates, index: int) -> int:
        """Return the first place whose window may reach the change at this place."""
        start = index + 1 - table.width
        for opener in table.openers if start > 0 else ():
            nearest = (place for place in range(index - 1, -1, -1) if self.kinds[place] in opener)
            start = min(start, next(nearest, start))
        return max(start, 0)

    def interval(self, index: int) -> Interval:
        """Return bounds of the value that enters an item."""
        intervals = self.known
        for item in self.items[len(intervals) - 1 : index]:
            if isinstance(item, Acc):
                intervals.append(item.leaving)
            else:
                intervals.append(ANYTHING if isinstance(item, Dst) else after(item, intervals[-1]))
        return intervals[index]


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
        cost = _WEIGHT[type(item)]
        total += cost if isinstance(cost, int) else cost(item)
    return total


def strangeness(items: Sequence[Item]) -> int:
    """Return the distance of the kinds of the items from the simplest."""
    return sum(map(_RANK.__getitem__, map(type, items)))


def disorder(items: Sequence[Item]) -> int:
    """Return the number of pairs that are out of the normal form."""
    places = [_PLACE.get(type(item), 1) for item in items]
    return sum(a > b for a, b in combinations(places, 2))


def detail(items: Sequence[Item]) -> int:
    """Return the number of bounds, scales and shifts that do something."""
    total = 0
    for item in items:
        if isinstance(item, Affine):
            total += (not item.scale.is_all(1.0)) + (not item.shift.is_all(0.0))
        elif isinstance(item, Clip):
            total += (item.lo.greatest > -_INF) + (item.hi.least < _INF)
    return total


def grain(items: Sequence[Item]) -> int:
    """Return the number of channels whose shift is not a whole number."""
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


def _grain(vec: Vec) -> int:
    if vec.array is None:
        return int(not vec.least.is_integer())
    return int(np.count_nonzero(np.rint(vec.array) != vec.array))


_WEIGHT: dict[type, int | Callable[[Any], int]] = {
    Affine: _affine_weight,
    Clip: _clip_weight,
    Round: PER_TENSOR,
    Eltwise: PER_TENSOR,
    PRelu: _prelu_weight,
    Sum: PER_TENSOR,
    Binary: _binary_weight,
    Acc: 0,
    Dst: 0,
}
