"""Where tensors lie: those that live at the same time lie apart, and little is lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pyonednn_q.native.arrays import LINE
from pyonednn_q.network.arena import arranged


def drawn(seed: int) -> dict[str, tuple[int, int, int]]:
    rng = np.random.default_rng(seed)
    tensors = {}
    for at in range(int(rng.integers(1, 40))):
        first = int(rng.integers(30))
        last = first + int(rng.integers(1, 8))
        tensors[f"t{at}"] = (int(rng.integers(1, 5000)), first, last)
    return tensors


@pytest.mark.parametrize("seed", range(200))
def test_what_lives_at_the_same_time_lies_apart(seed: int) -> None:
    tensors = drawn(seed)
    offsets, total = arranged(tensors)
    assert set(offsets) == set(tensors)
    for step in range(40):
        alive = sorted(
            (offsets[name], offsets[name] + nbytes)
            for name, (nbytes, first, last) in tensors.items()
            if first <= step <= last
        )
        assert all(one[1] <= other[0] for one, other in pairwise(alive))
        assert all(begin % LINE == 0 and end <= total for begin, end in alive)


def test_little_is_lost() -> None:
    lost = []
    for seed in range(200):
        tensors = drawn(seed)
        most = max(
            sum(
                -(-size // LINE) * LINE
                for size, first, last in tensors.values()
                if first <= step <= last
            )
            for step in range(40)
        )
        lost.append(arranged(tensors)[1] / most - 1)
    # No arrangement takes less than what lives at one time.
    assert min(lost) >= 0
    assert np.mean(lost) < 0.05
