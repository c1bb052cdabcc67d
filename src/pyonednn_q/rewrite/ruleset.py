"""RuleSet: rules in order, prepared so that the driver meets only those that can match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pyonednn_q.errors import ArgumentError
from pyonednn_q.rewrite.rule import RUN, Outcome, Policy, Rule, permits

__all__ = ["Candidate", "RuleSet", "Table"]


class Candidate(NamedTuple):
    """A rule whose first two places match, with the rest of its pattern ready to test."""

    rule: Rule
    function: Callable[..., Outcome]
    length: int  # 0: a run
    rest: tuple[frozenset[type], ...]  # types of places 3 and on; of the closing place for a run
    ranged: bool


class Table(dict[tuple[type, type], tuple[Candidate, ...]]):
    """Candidates by the types of the first two items, filled as they are met."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__()
        self.rules = rules
        fixed = [len(rule.pattern) for rule in rules if not rule.has_run]
        self.look_back = max(fixed, default=1) - 1
        self.openers = tuple({frozenset(rule.pattern[0]) for rule in rules if rule.has_run})

    def __missing__(self, key: tuple[type, type]) -> tuple[Candidate, ...]:
        found = tuple(_candidate(rule) for rule in self.rules if _may_start(rule, *key))
        self[key] = found
        return found


class RuleSet:
    """Rules in the order in which they are tried. Names are unique.

    Parameters
    ----------
    rules : iterable of Rule
        First wins.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        names = [rule.name for rule in self.rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ArgumentError("rules", f"{', '.join(twice)} more than once", "unique names")
        self._tables: dict[Policy, Table] = {}

    def table(self, policy: Policy) -> Table:
        """Return the rules that a policy permits, by what they match."""
        if policy not in self._tables:
            permitted = tuple(rule for rule in self.rules if permits(policy, rule.exactness))
            self._tables[policy] = Table(permitted)
        return self._tables[policy]

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


def _may_start(rule: Rule, first: type, second: type) -> bool:
    pattern = rule.pattern
    if first not in pattern[0]:
        return False
    return len(pattern) == 1 or RUN in pattern[1] or second in pattern[1]


def _candidate(rule: Rule) -> Candidate:
    pattern = rule.pattern
    rest = tuple(frozenset(place) for place in pattern[2:])
    length = 0 if rule.has_run else len(pattern)
    return Candidate(rule, rule.function, length, rest, rule.ranged)
