"""Random problems against the oracle: never a wrong answer, never a crash.

``--random-problems N`` sets how many (400 by default, 4 000 for the full run). A refusal by name is
an answer; so many of them that little is left to compare would fail too. Every case is rebuilt from
the seed in its name.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pyonednn_q import native
from pyonednn_q.errors import (
    KnownWrongError,
    ReferenceKernelError,
    SaturationError,
    UnsupportedError,
)
from support import random_cases

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20_26
REFUSALS = (KnownWrongError, SaturationError, ReferenceKernelError, UnsupportedError)


def test_random_problems(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    count = request.config.getoption("random_problems")
    rng = np.random.default_rng(SEED)
    tally: collections.Counter[str] = collections.Counter()
    for _ in range(count):
        case = random_cases.random_case(rng)
        try:
            call = native.prepare(
                case.problem,
                case.attr,
                wei=case.constants.get("wei"),
                bias=case.constants.get("bias"),
                values=case.values,
                allow_reference=True,
            )
        except REFUSALS as error:
            tally[type(error).__name__] += 1
            continue
        case.check(call(*case.inputs, out=case.out()))
        tally[call.kind] += 1
    for outcome, number in tally.items():
        record_property(outcome, number)
    compared = count - sum(tally[error.__name__] for error in REFUSALS)
    assert compared > 0.9 * count, tally
