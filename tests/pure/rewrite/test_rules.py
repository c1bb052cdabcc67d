"""Each rule keeps its promise on windows drawn close to the borders of its guards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.errors import NoSuchExample

from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.rule import Refusal
from support.rewriting.case import Case, answer
from support.rewriting.cases import CASES
from support.rewriting.draws import windows

LEAST_FIRING_RATE = 0.10

steered = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
search = settings(steered, max_examples=5000, phases=(Phase.generate,))


def outcomes(case: Case) -> Counter[str | bool]:
    """Run the property; count what the rule answered."""
    counts: Counter[str | bool] = Counter()

    @steered
    @given(windows(case.build))
    def prove(arguments: tuple[Any, ...]) -> None:
        counts[case.try_out(arguments)] += 1

    prove()
    return counts


def refuses_with(case: Case, text: str) -> bool:
    """Look for a window that the rule refuses with this text."""

    def refused(arguments: tuple[Any, ...]) -> bool:
        outcome = answer(case.rule, arguments)
        return isinstance(outcome, Refusal) and text in outcome.reason

    try:
        find(windows(case.build), refused, settings=search)
    except NoSuchExample:
        return False
    return True


@pytest.mark.parametrize("name", [rule.name for rule in CATALOGUE])
def test_rule_keeps_its_promise(name: str) -> None:
    case = CASES[name]
    counts = outcomes(case)
    rate = counts[True] / counts.total()
    assert rate >= LEAST_FIRING_RATE, f"fired in {rate:.1%} of {counts.total()} windows"
    said = [reason for reason in counts if isinstance(reason, str)]
    for reason in said:
        assert any(known in reason for known in case.reasons), f"unknown refusal {reason!r}"
    for known in case.reasons:
        met = any(known in reason for reason in said) or refuses_with(case, known)
        assert met, f"never refused with {known!r}"
