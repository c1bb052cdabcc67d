"""Where each fault of the guard table ends: problems on both sides of every border."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyonednn_q.errors import ShapeError
from pyonednn_q.faults.guards import GUARDS, Guard, windows
from pyonednn_q.primitive.attr import Attr
from pyonednn_q.primitive.isa import Facts, InstructionSet
from pyonednn_q.primitive.problem import ConvProblem, DeconvProblem
from support.guard_borders import layer_layouts, layouts, lowered, plain, post_ops, products
from support.guard_borders import windows as window_borders
from support.guard_borders.make import PLAIN, Border, deconv
from support.guard_cases import WRONG
from support.guard_cases_hunted import HUNTED
from support.guard_cases_lowered import LOWERED
from support.guard_cases_plain import PLAIN_WRONG

BORDERS = [
    *(*window_borders.BORDERS, *lowered.BORDERS, *products.BORDERS, *post_ops.BORDERS),
    *(*plain.BORDERS, *layouts.BORDERS, *layer_layouts.BORDERS),
]


@pytest.mark.parametrize("border", BORDERS, ids=lambda border: border[0].__name__)
def test_a_condition_ends_where_the_fault_was_seen_to_end(border: Border) -> None:
    condition, wrong, right = border
    kinds = {kind for guard in GUARDS if guard.condition is condition for kind in guard.kinds}

    def strikes(problem: Any, attr: Attr) -> bool:
        return problem.kind in kinds and condition(problem, attr)

    assert [problem.text() for problem, attr in wrong if not strikes(problem, attr)] == []
    assert [problem.text() for problem, attr in right if strikes(problem, attr)] == []


def test_every_condition_has_borders() -> None:
    tested = {border[0] for border in BORDERS} | {windows.window_outside}
    assert {guard.condition for guard in GUARDS} == tested


def met(length: int, out: int, lo: int, stride: int, taps: range, spread: bool) -> bool:
    """Tell whether every place of dst meets some place of src through some tap."""
    for place in range(out):
        if spread:
            reached = [place + lo - tap for tap in taps]
        else:
            reached = [place * stride - lo + tap for tap in taps]
        if not any(0 <= at < length for at in reached):
            return False
    return True


def test_a_window_outside_is_one_that_meets_nothing() -> None:
    """Against all places and taps, one by one, on windows of one and two dimensions."""
    rng, seen = np.random.default_rng(0), {True: 0, False: 0}
    while min(seen.values()) < 60:
        count, cls = int(rng.integers(1, 3)), (ConvProblem, DeconvProblem)[rng.integers(2)]
        lengths, kernel, dilation, lo, hi = (
            [int(v) for v in rng.integers(least, most, count)]
            for least, most in ((1, 5), (1, 4), (1, 4), (0, 5), (0, 5))
        )
        stride = int(rng.integers(1, 3)) if cls is ConvProblem else 1
        try:
            problem = cls.of(
                (1, 2, *lengths),
                (2, 2, *kernel),
                stride=stride,
                dilation=dilation,
                padding=list(zip(lo, hi, strict=True)),
            )
        except ShapeError:
            continue
        meets = all(
            met(
                lengths[axis],
                problem.dst.dims[2 + axis],
                lo[axis],
                stride,
                range(0, kernel[axis] * dilation[axis], dilation[axis]),
                cls is DeconvProblem,
            )
            for axis in range(count)
        )
        assert windows.window_outside(problem, PLAIN) is not meets, problem.text()
        seen[meets] += 1
    assert not windows.window_outside(deconv((1, 2, 3), (2, 2, 1), stride=2), PLAIN)


# --- versions and names --------------------------------------------------------------------------

CASES = {case[0]: case[1:] for case in (*WRONG, *HUNTED, *LOWERED, *PLAIN_WRONG)}


def before(version: tuple[int, int, int]) -> tuple[int, int, int]:
    """The last version before another."""
    major, minor, patch = version
    return (major, minor, patch - 1) if patch else (major, minor - 1, 99)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_a_row_holds_from_its_first_version_to_its_last(guard: Guard) -> None:
    problem, attr, _, isa, impl = CASES[guard.id]

    def strikes(version: tuple[int, int, int]) -> bool:
        return guard.matches(problem, attr, Facts(version, InstructionSet.of(isa), "OMP"), impl)

    assert strikes(guard.since)
    assert not strikes(before(guard.since))
    if guard.until is None:
        assert strikes((4, 0, 0))
    else:
        assert strikes(before(guard.until))
        assert not strikes(guard.until)
    assert guard.matches(problem, attr, None, impl)
    assert guard.matches(problem, attr, None, "somebody else's") is (guard.impl is None)
