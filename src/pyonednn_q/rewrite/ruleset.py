"""RuleSet: rules in order, prepared so that the driver meets only those that can match."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from pyonednn_q.errors import ArgumentError
from pyonednn_q.rewrite.rule import RUN, Pattern, Policy, Rule, permits

__all__ = ["Candidate", "Candidates", "RuleSet"]


_Kinds: TypeAlias = tuple[type, ...]


# A rule that may match where a table was asked, how many items it takes (0: a run), and the types
# of the item that closes the run. Not a named tuple: the driver unpacks these all the time.
Candidate: TypeAlias = tuple[Rule, int, tuple[type, ...]]


class Candidates(dict[_Kinds, tuple[Candidate, ...]]):
    """Candidates by the types of the next items, as many as `width`; filled as they are met."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__()
        self.rules = rules
        self.width = max((len(rule.pattern) for rule in rules), default=1)
        self.openers = tuple({rule.pattern[0] for rule in rules if rule.has_run})

    def __missing__(self, kinds: _Kinds) -> tuple[Candidate, ...]:
        candidates = tuple(
            _candidate(rule) for rule in self.rules if _may_match(rule.pattern, kinds)
        )
        self[kinds] = candidates
        return candidates


class RuleSet:
    """Rules in the order in which they are tried. Names are unique.

    Parameters
    ----------
    rules : iterable of Rule
        Rules; of two that match, the first is applied.
    leading : iterable of Rule
        Those of them that have a sweep of their own, before any other rule is tried.
    """

    def __init__(self, rules: Iterable[Rule], leading: Iterable[Rule] = ()) -> None:
        self.rules = tuple(rules)
        self.leading = tuple(leading)
        names = [rule.name for rule in self.rules]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ArgumentError("rules", f"{', '.join(twice)} more than once", "unique names")
        self._tables: dict[Policy, tuple[Candidates, ...]] = {}

    def tables(self, policy: Policy) -> tuple[Candidates, ...]:
        """Return the rules that a policy permits, by what they match: one table per sweep."""
        if policy not in self._tables:
            sweeps = (self.leading, self.rules) if self.leading else (self.rules,)
            self._tables[policy] = tuple(
                Candidates(tuple(rule for rule in rules if permits(policy, rule.exactness)))
                for rules in sweeps
            )
        return self._tables[policy]

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(self.rules + other.rules, self.leading + other.leading)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


def _may_match(pattern: Pattern, kinds: _Kinds) -> bool:
    if len(pattern) > len(kinds) or kinds[0] not in pattern[0]:
        return False
    if pattern[1:2] == ((RUN,),):
        # What closes the run may come later, but not before there is something in it.
        return kinds[1] not in pattern[2]
    return all(map(operator.contains, pattern, kinds))


def _candidate(rule: Rule) -> Candidate:
    return (rule, 0, rule.pattern[2]) if rule.has_run else (rule, len(rule.pattern), ())
