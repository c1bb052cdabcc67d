"""All cases by rule name. A rule without one fails collection."""

from __future__ import annotations

from pyonednn_q.rewrite.catalogue import CATALOGUE
from support.rewriting import cases_ends, cases_pairs, cases_steps
from support.rewriting.case import Case

CASES: dict[str, Case] = {
    case.rule.name: case for case in (*cases_steps.CASES, *cases_pairs.CASES, *cases_ends.CASES)
}

_missing = {rule.name for rule in CATALOGUE} - set(CASES)
if _missing:
    message = f"rules without near-matches in support/rewriting: {', '.join(sorted(_missing))}"
    raise LookupError(message)
