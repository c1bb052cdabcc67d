"""Every difference between two results, by the arithmetic that explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from support.peers.arithmetic import Arithmetic, ours, real, real_point_last

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Statement = Callable[[Arithmetic], Array]

FOLDED = "our scales, bias and zero point are folded before float32 sees them"
POINT_LAST = "the peer adds its zero point after rounding: ties go the other way if it is odd"
FLOAT32 = "the peer's float32 operations round on the way"
UNEXPLAINED = "unexplained"


def explained(numbers: Arithmetic, theirs: Array, peer: Statement) -> Counter[str]:
    """Count the elements of a peer's result that are not ours, by what in its arithmetic did it.

    Both sides must be what their statements predict, in every element: then no difference is left
    without a cause. The causes are told apart on the way from our arithmetic to the peer's, past
    real numbers; an element that several of them moved is counted for each.
    """
    got = numbers.call.run()
    has_point_last = peer.__name__ == "onnx"
    path: Sequence[tuple[str, Array]] = (
        ("", ours(numbers)),
        (FOLDED, real(numbers)),
        (POINT_LAST, real_point_last(numbers) if has_point_last else real(numbers)),
        (FLOAT32, peer(numbers)),
    )
    assert got.dtype == theirs.dtype == path[0][1].dtype
    assert got.shape == theirs.shape == path[0][1].shape
    counts: Counter[str] = Counter()
    differ = got != theirs
    for (_, before), (name, after) in pairwise(path):
        counts[name] = int((differ & (before != after)).sum())
    counts[UNEXPLAINED] = int(((got != path[0][1]) | (theirs != path[-1][1])).sum())
    return +counts
