"""``bench --tune``: what is measured where another implementation surely is faster, or not."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pyonednn_q.bench import command, measure, probe, suite
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.progress import Progress
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Tail
from pyonednn_q.bench.trial import Trial
from pyonednn_q.bench.tuned import tuned

U8S8U8 = Precision.parse("u8s8u8")
CASE = Case(suite.find("conv 1x16x9x9 32x16x3x3 pad=1").lines[0].shape, U8S8U8)
FORMS = {
    "conv 2x16x9x9 32x16x1x1": ("matmul", "matmul 162x16 16x32"),
    "ip 3x16 32x16": ("1x1 convolution", "conv 1x16x1x3 32x16x1x1"),
    "ip 3x16x2x2 32x16x2x2": ("matmul", "matmul 3x64 64x32"),
    "matmul 5x16 16x32": ("1x1 convolution", "conv 1x16x1x5 32x16x1x1"),
    "matmul 2x5x16 1x16x32": ("inner product", "ip 10x16 32x16"),
}


@pytest.fixture
def sample() -> Sample:
    return Sample.of(CASE.shape, with_residual=False)


def summed_exactly(case: Case) -> Sample:
    """One weight of a channel is 127, all others 1 or -1: no pair needs more than 16 bits."""
    sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
    wei = np.where(sample.wei < 0, np.float32(-1), np.float32(1))
    first = (..., 0, slice(None)) if case.shape.kind == "matmul" else (..., *[0] * (wei.ndim - 1))
    wei[first] *= 127
    return replace(sample, wei=wei / np.float32(127))


def timed_as(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[Trial], float]) -> None:
    """Let every trial take the time that a function says."""
    monkeypatch.setattr(Trial, "seconds", lambda trial, _calls: seconds(trial))


def test_the_fastest_is_measured_and_computes_the_same(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Trial.of(CASE, sample)
    first = usual.prepared.impl
    timed_as(monkeypatch, lambda trial: 2e-4 if trial.prepared.impl == first else 1e-4)
    other = tuned(usual, sample)
    if other.prepared.impl == first:
        pytest.skip(f"{first} is the only implementation here that may be trusted")
    assert other.tuning == f"tuned: 2.00 times as fast as {first}"
    np.testing.assert_array_equal(other.real_result(), usual.real_result())


@pytest.mark.parametrize("tail", ["none", "relu", "sum_relu", "residual"])
@pytest.mark.parametrize("asked", FORMS)
def test_products_that_mean_the_same_are_tried(
    asked: str, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And compute the same."""
    name, text = FORMS[asked]
    case = Case(Shape.parse(asked), U8S8U8, Tail(tail))
    sample = summed_exactly(case)
    usual = Trial.of(case, sample)
    timed_as(monkeypatch, lambda trial: 1e-4 if trial.form.name == name else 2e-4)
    other = tuned(usual, sample)
    assert other.tuning == f"tuned: as {name}, 2.00 times as fast as {usual.prepared.impl}"
    assert (other.case, str(other.shape)) == (case, text)
    assert not usual.saturates
    wanted = usual.real_result()  # once: a sum reads what is there
    assert len(np.unique(wanted)) > 20
    np.testing.assert_array_equal(other.real_result(), wanted)


@pytest.mark.parametrize("others", [1.0e-4, 0.99e-4, 3e-4])
def test_what_is_not_surely_faster_changes_nothing(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, others: float
) -> None:
    usual = Trial.of(CASE, sample)
    first = usual.prepared.impl
    timed_as(monkeypatch, lambda trial: 1e-4 if trial.prepared.impl == first else others)
    assert tuned(usual, sample).prepared is usual.prepared
    assert tuned(usual, sample).tuning.startswith("tuned: stays, of ")


def test_the_option_reaches_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PEAK_PROBLEMS", ("matmul 16x16 16x16",))
    monkeypatch.setattr(probe, "SIZES_BYTES", (1 << 12, 1 << 14))
    monkeypatch.setattr(probe, "_PROBE_S", 1e-3)
    words = ["conv 1x16x9x9 32x16x3x3 pad=1", "--tune", "--repeat", "6", "--threads", "1"]
    request = command.request(command.parser().parse_args(words))
    assert request.tune
    rows = measure.measure(request, Progress(request.steps)).rows
    assert all(row.ours.endswith(" --tune") for row in rows)
    assert all(any(note.startswith("tuned: ") for note in row.notes) for row in rows)
    again = command.request(command.parser().parse_args(shlex.split(rows[0].ours)[2:]))
    assert again.tune
