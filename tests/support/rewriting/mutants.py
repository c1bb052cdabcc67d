"""All mutants. A rule without two of them fails collection."""

from __future__ import annotations

from collections import Counter

from support.rewriting import mutants_ends, mutants_pairs, mutants_steps
from support.rewriting.cases import CASES
from support.rewriting.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *mutants_steps.MUTANTS,
    *mutants_pairs.MUTANTS,
    *mutants_ends.MUTANTS,
)

_count = Counter(mutant.rule for mutant in MUTANTS)
_few = sorted(name for name in CASES if _count[name] < 2)
if _few or set(_count) - set(CASES):
    message = f"fewer than two mutants, or no such rule: {_few}, {sorted(set(_count) - set(CASES))}"
    raise LookupError(message)
