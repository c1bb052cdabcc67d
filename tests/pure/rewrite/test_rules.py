"""Each rule keeps its promise on windows drawn close to the borders of its guards."""

from __future__ import annotations

import pytest

from pyonednn_q.rewrite.catalogue import CATALOGUE
from support.rewriting import cases_carry
from support.rewriting.cases import CASES
from support.rewriting.proof import prove


@pytest.mark.parametrize("name", [rule.name for rule in CATALOGUE])
def test_rule_keeps_its_promise(name: str) -> None:
    prove(CASES[name])


@pytest.mark.parametrize("name", cases_carry.CASES)
def test_step_lets_pass_what_the_table_says(name: str) -> None:
    prove(cases_carry.CASES[name])
