"""Golden traces: what happens to each named chain, as prose that a reviewer reads.

After a change that is meant: UPDATE_GOLDEN=1 pytest tests/pure/rewrite/test_traces.py, then read
the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pyonednn_q.expr.steps import Chain
from pyonednn_q.rewrite.catalogue import normalise
from support.rewriting.chains import count_post_ops
from support.rewriting.named import NAMED

GOLDEN = Path(__file__).parents[2] / "others" / "golden" / "traces"


def report(name: str) -> str:
    """Write the whole story of a named chain."""
    case = NAMED[name]
    result = normalise(case.chain, acc=case.acc, dst=case.dst, policy=case.policy)
    lines = [
        f"chain:    {case.acc} > {case.chain} > {case.dst}",
        f"becomes:  {' > '.join(map(str, (result.acc, *result.chain, result.dst)))}",
        f"post-ops: {count_post_ops(case.chain.steps)} -> {count_post_ops(result.chain.steps)}",
        f"promise:  {result.trace.exactness} (policy {case.policy})",
        "",
        result.trace.text(),
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", NAMED)
def test_trace_is_the_golden_one(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(report(name))
    assert report(name) == path.read_text(), "read the diff, then update with UPDATE_GOLDEN=1"


def test_every_golden_has_a_chain() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_post_ops_are_as_few_as_can_be(name: str) -> None:
    case = NAMED[name]
    result = normalise(case.chain, acc=case.acc, dst=case.dst, policy=case.policy)
    assert count_post_ops(result.chain.steps) == case.post_ops
    assert count_post_ops(result.chain.steps) <= count_post_ops(case.chain.steps)


def test_an_empty_chain_has_an_empty_trace() -> None:
    result = normalise(Chain())
    assert (len(result.chain), result.trace.text()) == (0, "")
