"""The driver: apply rules to a sequence of items until none fires, and record every event.

At each place, from the left, the first rule that fires wins; then the scan steps back just far
enough to see every window that the change touches. So one sweep reaches the fixpoint, and the order
of events depends on nothing but the items and the rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyonednn_q.errors import Error
from pyonednn_q.expr.interval import ANYTHING, Interval, after
from pyonednn_q.rewrite.ends import Acc, Dst, Item
from pyonednn_q.rewrite.progress import falls
from pyonednn_q.rewrite.rule import Outcome, Policy, Refusal, Rewrite, Rule
from pyonednn_q.rewrite.ruleset import Candidate, RuleSet, Table
from pyonednn_q.rewrite.trace import Event, Trace

__all__ = ["LIMIT", "rewrite"]

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
        Tried in order.
    policy : {"bitwise", "real", "fast"}
        Which promises are enough.
    limit : int
        Rewrites after which the driver gives up on a rule that never ends.

    Returns
    -------
    items : tuple of Item
        Nothing in it matches a rule that would fire.
    trace : Trace
        What fired and what was refused.
    """
    with np.errstate(all="ignore"):
        sweep = _Sweep(items, rules.table(policy), limit)
        sweep.run()
    return tuple(sweep.items), Trace(tuple(sweep.events))


class _Sweep:
    """One run of the driver: the sequence, what is known at each place, and the events so far."""

    def __init__(self, items: Sequence[Item], table: Table, limit: int) -> None:
        self.items = list(items)
        self.table = table
        self.limit = limit
        self.events: list[Event] = []
        self.refusals: dict[tuple[str, str], list[tuple[Item, ...]]] = {}
        self.idle: dict[tuple[object, ...], object] = {}  # windows of run rules that did not fire
        self.known: list[Interval] = []  # what enters item 0, 1, ...; as far as anybody asked

    def run(self) -> None:
        fired = index = 0
        while index < len(self.items):
            if not self.step(index):
                index += 1
                continue
            fired += 1
            if fired > self.limit:
                msg = f"{self.events[-1].rule.name} still fires after {self.limit} rewrites"
                raise Error(msg)
            index = self.back_from(index)

    def step(self, index: int) -> bool:
        """Try every rule on the windows that begin here; tell whether one fired."""
        items = self.items
        second = type(items[index + 1]) if index + 1 < len(items) else type(None)
        for candidate in self.table[type(items[index]), second]:
            length, window = self.match(candidate, index)
            if not length:
                continue
            if not candidate.length:
                fired = self.step_run(candidate, index, length, window)
            else:
                args = (self.interval(index), *window) if candidate.ranged else window
                outcome = candidate.function(*args)
                fired = outcome is not None and self.settle(candidate.rule, index, length, outcome)
            if fired:
                return True
        return False

    def step_run(
        self, candidate: Candidate, index: int, length: int, window: Sequence[object]
    ) -> bool:
        """Try a run rule, the dearest kind, unless it has seen these very items."""
        items = self.items[index : index + length]
        key = (candidate.rule.name, *map(id, items))
        if key in self.idle:
            return False
        outcome = candidate.function(*window)
        if outcome is not None and self.settle(candidate.rule, index, length, outcome):
            return True
        self.idle[key] = items  # kept alive, or another item could get the same id
        return False

    def match(self, candidate: Candidate, index: int) -> tuple[int, Sequence[object]]:
        items, length, rest = self.items, candidate.length, candidate.rest
        if length:
            if rest:
                if index + length > len(items):
                    return 0, ()
                for offset, types in enumerate(rest, index + 2):
                    if type(items[offset]) not in types:
                        return 0, ()
            return length, items[index : index + length]
        closing = rest[0]
        for end in range(index + 1, len(items)):
            if type(items[end]) in closing:
                if end == index + 1:
                    break
                return end + 1 - index, (items[index], tuple(items[index + 1 : end]), items[end])
        return 0, ()

    def settle(self, rule: Rule, index: int, length: int, outcome: Outcome) -> bool:
        """Record an outcome; tell whether the sequence changed."""
        before = tuple(self.items[index : index + length])
        if isinstance(outcome, Refusal):
            # A run changes while its last item stays put; that is still the same refusal.
            about = before[-1:] if rule.has_run else before
            seen = self.refusals.setdefault((rule.name, outcome.reason), [])
            if about not in seen:
                seen.append(about)
                self.events.append(Event(rule, index, before, reason=outcome.reason))
            return False
        result = outcome if isinstance(outcome, Rewrite) else Rewrite(outcome or ())
        assert falls(before, result.items), f"{rule.name} makes no progress on {before}"
        event = Event(rule, index, before, result.items, note=result.note, rate=result.rate)
        self.events.append(event)
        self.items[index : index + length] = result.items
        del self.known[index + 1 if index else 0 :]
        return True

    def back_from(self, index: int) -> int:
        """Return the first place whose window may reach the change at this place."""
        start = index - self.table.look_back
        for types in self.table.openers:
            place = index - 1
            while place >= 0 and type(self.items[place]) not in types:
                place -= 1
            if place >= 0:
                start = min(start, place)
        return max(start, 0)

    def interval(self, index: int) -> Interval:
        """Return what is known of the value that enters an item."""
        known = self.known
        if not known:
            known.append(ANYTHING)
        while len(known) <= index:
            item = self.items[len(known) - 1]
            if isinstance(item, Acc):
                known.append(item.leaving)
            else:
                known.append(ANYTHING if isinstance(item, Dst) else after(item, known[-1]))
        return known[index]
