"""Ten thousand lives of a primitive, and memory that stays where it was."""

from __future__ import annotations

from functools import partial
from statistics import median

import pytest

from support.children import child
from support.lives import PLANTED, pages_kept_by

ROUND = 1_000
ROUNDS = 8
WARM = 2_000


@pytest.mark.stress
def test_memory_is_flat_over_ten_thousand_prepares() -> None:
    # In a process of their own: what hundreds of other tests left to the allocator is not theirs.
    with child() as ask:
        ask(partial(pages_kept_by, leak=False), WARM)
        kept = [ask(partial(pages_kept_by, leak=False), ROUND) for _ in range(ROUNDS)]
        planted = ask(partial(pages_kept_by, leak=True), ROUND)
    # A leak is in every round; an allocator's own arena in a few of them.
    assert median(kept) < ROUND // PLANTED, f"pages more after each {ROUND} lives: {kept}"
    assert planted >= ROUND // PLANTED
