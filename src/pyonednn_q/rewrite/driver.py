"""The driver: apply rules to a sequence of items until none fires, and record every event.

At each place, from the left, the first rule that fires wins; then the scan steps back just far
enough to see every window that the change touches. So one sweep reaches the fixpoint, and the order
of events depends on nothing but the items and the rules. Leading rules have a sweep to themselves,
before the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyonednn_q.errors import Error
from pyonednn_q.expr.interval import ANYTHING, Interval, after
from pyonednn_q.rewrite.ends import Acc, Dst, Item
from pyonednn_q.rewrite.progress import falls
from pyonednn_q.rewrite.rule import Outcome, Policy, Refusal, Rewrite, Rule
from pyonednn_q.rewrite.ruleset import Candidates, RuleSet
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
        Rules, in the order in which they are tried.
    policy : {"bitwise", "real", "fast"}
        Which rewrites may fire. "bitwise": those that promise BITWISE. "real": those of REAL too.
        "fast": those of BOUNDED too.
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
        """Return what is known of the value that enters an item."""
        intervals = self.known
        for item in self.items[len(intervals) - 1 : index]:
            if isinstance(item, Acc):
                intervals.append(item.leaving)
            else:
                intervals.append(ANYTHING if isinstance(item, Dst) else after(item, intervals[-1]))
        return intervals[index]
