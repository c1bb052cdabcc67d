"""Draw an attempt from a seed: a call that makes sense, then up to three things wrong with it."""

from __future__ import annotations

import numpy as np

from support.calls.draw import random_call
from support.hostile import worse_calls, worse_settings, worse_tensors
from support.hostile.attempt import Attempt
from support.hostile.worse import WORSE, one_of

__all__ = ["attempt_of", "ways"]

_ROOMS = (worse_calls, worse_settings, worse_tensors)  # imported: they fill the register


def ways() -> tuple[str, ...]:
    """Return the names of everything that may be wrong with a call."""
    return tuple(WORSE)


def attempt_of(seed: int) -> Attempt:
    """Return the attempt of a seed; every fifth has nothing wrong."""
    rng = np.random.default_rng(seed)
    attempt = Attempt.of(random_call(rng), rng)
    for _ in range(int(one_of(rng, (0, 1, 1, 2, 3)))):
        name = one_of(rng, ways())
        try:
            is_done = WORSE[name](attempt, rng) is not False
        except MemoryError:  # of something that claims to be huge
            is_done = False
        if is_done:
            attempt.wrong.append(name)
    post = attempt.settings.get("post")
    if "out_that_overlaps" in attempt.wrong or ("out" in attempt.call and post is not None):
        attempt.twice = False  # a Sum in place, or weights that were written, would be others
    return attempt
