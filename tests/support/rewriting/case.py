"""Case: how to steer Hypothesis towards one rule, and what its refusals sound like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyonednn_q.rewrite.driver import falls
from pyonednn_q.rewrite.rule import Outcome, Refusal, Rewrite, Rule
from support.rewriting.draws import Window
from support.rewriting.soundness import Near, check, check_float32


@dataclass(frozen=True)
class Case:
    """Near-matches of one rule.

    Attributes
    ----------
    rule : Rule
        Which one.
    build : callable
        Draws the arguments of the rule, most of them one step away from a border of its guards.
    reasons : tuple of str
        A piece of the text of every refusal; each must occur.
    handed_on : tuple of str
        Refusals that come from elsewhere and are met by other cases; these need not occur.
    near : Near or None
        Where the rule may differ, for rules that snap or approximate.
    same_float32 : bool
        Whether float32 must not notice, although the label does not promise it.
    progresses : bool
        Whether the measure must fall, as it must for a rule of the catalogue.
    """

    rule: Rule
    build: Callable[[Window], tuple[Any, ...]]
    reasons: tuple[str, ...] = ()
    handed_on: tuple[str, ...] = ()
    near: Near | None = None
    same_float32: bool = False
    progresses: bool = True

    def items(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the window as plain items: without the interval, runs spliced in."""
        parts = arguments[1:] if self.rule.ranged else arguments
        return tuple(i for part in parts for i in (part if isinstance(part, tuple) else (part,)))

    def try_out(self, arguments: tuple[Any, ...], rule: Rule | None = None) -> str | bool:
        """Apply the rule, or a variant of it, and check what it made of the window.

        Returns whether it fired, or the reason for which it refused.
        """
        outcome = answer(rule or self.rule, arguments)
        if outcome is None:
            return False
        if isinstance(outcome, Refusal):
            return outcome.reason
        new = outcome.items if isinstance(outcome, Rewrite) else outcome
        interval = arguments[0] if self.rule.ranged else None
        old = self.items(arguments)
        check(old, new, self.rule.exactness, interval=interval, near=self.near)
        if self.same_float32:
            check_float32(old, new, interval)
        assert not self.progresses or falls(old, new), f"no progress from {old} to {new}"
        return True


def answer(rule: Rule, arguments: tuple[Any, ...]) -> Outcome:
    """Apply a rule under the floating-point settings of the driver."""
    with np.errstate(all="ignore"):
        return rule(*arguments)
