"""proof: run the property of a case, or look for a window on which a wrong rule shows itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.errors import NoSuchExample

from pyonednn_q.rewrite.rule import Refusal, Rule
from support.rewriting.case import Case, answer
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
search = settings(steered, max_examples=5000, phases=(Phase.generate,), report_multiple_bugs=False)


def prove(case: Case) -> float:
    """Run the property; return the firing rate.

    Fails where the rule breaks its promise, fires too rarely to be tested, refuses for a reason
    that the case does not list, or never for one that it lists.
    """
    counts: Counter[str | bool] = Counter()

    @steered
    @given(windows(case.build))
    def keeps_its_promise(arguments: tuple[Any, ...]) -> None:
        counts[case.try_out(arguments)] += 1

    keeps_its_promise()
    rate = counts[True] / counts.total()
    assert rate >= LEAST_FIRING_RATE, f"fired in {rate:.1%} of {counts.total()} windows"
    said = [reason for reason in counts if isinstance(reason, str)]
    for reason in said:
        known_reasons = (*case.reasons, *case.handed_on)
        assert any(known in reason for known in known_reasons), f"unknown refusal {reason!r}"
    for known in case.reasons:
        met = any(known in reason for reason in said) or _refuses_with(case, known)
        assert met, f"never refused with {known!r}"
    return rate


def _refuses_with(case: Case, text: str) -> bool:
    def refused(arguments: tuple[Any, ...]) -> bool:
        outcome = answer(case.rule, arguments)
        return isinstance(outcome, Refusal) and text in outcome.reason

    try:
        find(windows(case.build), refused, settings=search)
    except NoSuchExample:
        return False
    return True


def survives(case: Case, wrong: Rule) -> bool:
    """Tell whether a wrong variant passes everything that the property of the right one checks."""

    @search
    @given(windows(case.build))
    def keeps_its_promise(arguments: tuple[Any, ...]) -> None:
        case.try_out(arguments, wrong)

    try:
        keeps_its_promise()
    except (AssertionError, ValueError):
        # Unsound, without progress, or refused by a constructor: all of that is noticed.
        return False
    return True
