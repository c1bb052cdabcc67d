"""Samples beside processes that keep every CPU busy: a disturbance that was planted."""

from __future__ import annotations

import pytest

import disturbance
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.trial import Trial
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import TAKEN_AGAIN, Budget

pytestmark = pytest.mark.executed

ROUNDS = 40


def test_a_planted_disturbance_is_seen() -> None:
    shapes = [Shape.parse(text) for text in disturbance.PROBLEMS]
    precision = Precision.parse("u8s8u8")
    trials = [
        Trial.of(Case(shape, precision), Sample.of(shape, with_residual=False)) for shape in shapes
    ]
    with disturbance.busy(2):
        raw = disturbance.timed(trials, Budget(rounds=ROUNDS), 0)
        mended = disturbance.timed(trials, Budget(rounds=ROUNDS), TAKEN_AGAIN)
    assert sum(timed.disturbed for timed in raw) > ROUNDS // 4
    assert [timed.taken_again for timed in raw] == [0, 0, 0]
    assert 0 < sum(timed.taken_again for timed in mended) <= 3 * TAKEN_AGAIN * ROUNDS
    assert all(len(timed.samples_us) == ROUNDS for timed in mended)


def test_the_clock_is_that_of_a_processor() -> None:
    assert 0.5e9 < runtime.extension().clock_hz() < 8e9
