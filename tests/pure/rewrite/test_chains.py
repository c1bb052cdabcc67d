"""Whole chains, under every policy: the meaning is kept, rewriting ends, nothing gets dearer."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from pyonednn_q.rewrite.catalogue import CATALOGUE
from pyonednn_q.rewrite.driver import rewrite, weight
from pyonednn_q.rewrite.ends import Item
from pyonednn_q.rewrite.rule import Policy
from support.rewriting.chains import chains, count_post_ops, keep_promises

POLICIES: tuple[Policy, ...] = ("bitwise", "real", "fast")

random_chains = settings(
    max_examples=1000,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def check_chain(items: tuple[Item, ...]) -> list[Policy]:
    """Check everything that holds of a rewritten chain; return the policies that changed it."""
    rewrites = {policy: rewrite(items, CATALOGUE, policy) for policy in POLICIES}
    keep_promises(items, rewrites.values())
    for policy, (new, _) in rewrites.items():
        assert weight(new) <= weight(items)
        assert count_post_ops(new) <= count_post_ops(items)
        again, rest = rewrite(new, CATALOGUE, policy)
        assert not rest.fired, f"not a fixpoint: {rest.fired[0].lines()}"
        assert again == new
    return [policy for policy, (_, trace) in rewrites.items() if trace.fired]


def check_chains(how: settings, drawn_from: int = 0) -> None:
    """Check random chains under every policy; each must change more than half of them."""
    count = 0
    changed: Counter[Policy] = Counter()

    @seed(drawn_from)
    @how
    @given(chains)
    def holds(items: tuple[Item, ...]) -> None:
        nonlocal count
        count += 1
        changed.update(check_chain(items))

    holds()
    assert count >= how.max_examples
    assert all(changed[policy] > count / 2 for policy in POLICIES), (changed, count)


def test_meaning_is_kept() -> None:
    check_chains(random_chains)


@pytest.mark.slow
def test_meaning_is_kept_on_many_chains(request: pytest.FixtureRequest) -> None:
    """`--chain-seed` draws others: CI must not fail on what nobody changed."""
    option = request.config.getoption
    how = settings(random_chains, max_examples=option("--random-chains"), derandomize=False)
    check_chains(how, option("--chain-seed"))


@settings(random_chains, max_examples=50)
@given(chains)
def test_trace_is_deterministic(items: tuple[Item, ...]) -> None:
    first, second = (rewrite(items, CATALOGUE, "real") for _ in range(2))
    assert first[0] == second[0]
    assert first[1].text() == second[1].text()


@settings(random_chains, max_examples=50)
@given(chains)
def test_trace_replays(items: tuple[Item, ...]) -> None:
    new, trace = rewrite(items, CATALOGUE, "real")
    work = items
    for event in trace.fired:
        end = event.at + len(event.before)
        assert work[event.at : end] == event.before
        assert event.after is not None
        work = (*work[: event.at], *event.after, *work[end:])
    assert work == new
