"""Every wrong variant of a guard is noticed by the property of its rule."""

from __future__ import annotations

import pytest

from support.rewriting import cases_carry
from support.rewriting.cases import CASES
from support.rewriting.mutant import Mutant
from support.rewriting.mutants import MUTANTS
from support.rewriting.proof import survives


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_mutant_of_a_rule_is_killed(mutant: Mutant) -> None:
    case = CASES[mutant.rule]
    assert not survives(case, mutant.build(case.rule.function.__module__))


@pytest.mark.parametrize("mutant", cases_carry.MUTANTS, ids=str)
def test_mutant_of_the_table_is_killed(mutant: Mutant) -> None:
    with mutant.standing_in() as module:
        wrong = cases_carry.crossing(mutant.rule, module)
    assert not survives(cases_carry.CASES[mutant.rule], wrong)
