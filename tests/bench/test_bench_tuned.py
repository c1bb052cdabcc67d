"""``bench --tune``: rows measure what operators choose, and say it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pyonednn_q.bench import measure, probe, suite
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.tail import Tail
from pyonednn_q.bench.trial import Trial
from pyonednn_q.commands import bench as command
from pyonednn_q.commands import cli
from pyonednn_q.ops.gain import Tuning
from pyonednn_q.report.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.ops.form import Form
    from pyonednn_q.ops.planned import Planned
    from pyonednn_q.ops.tuning import Make

CASE = Case(
    suite.find("conv 1x16x9x9 32x16x3x3 padding=1").lines[0].shape, Precision.parse("u8s8u8")
)
WAY = "as asked on jit"


def tunings(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Let operators find that a way is twice as fast as the usual one, without timing anything."""
    monkeypatch.setattr(
        "pyonednn_q.ops.tunings.tune", lambda usual, *_: (usual, Tuning(way, WAY, 2.0))
    )
    monkeypatch.setattr("pyonednn_q.ops.tunings._KNOWN", {})


def test_operators_choose_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    tunings(monkeypatch, "matmul on brg")
    sample = Sample.of(CASE.shape, with_residual=False)
    assert Trial.of(CASE, sample).way.tuning == ""
    trial = Trial.of(CASE, sample, tune=True)
    assert trial.way.tuning == f"tuned: matmul on brg in place of {WAY}, 2.00 times as fast"


def test_what_is_not_surely_faster_is_said_to_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    tunings(monkeypatch, WAY)
    trial = Trial.of(CASE, Sample.of(CASE.shape, with_residual=False), tune=True)
    assert trial.way.tuning == f"tuned: {WAY} stays: nothing was surely faster"


FORMS = {
    "conv 2x16x9x9 32x16x1x1": ("matmul", "matmul 162x16 16x32"),
    "ip 3x16 32x16": ("1x1 convolution", "conv 1x16x1x3 32x16x1x1"),
    "matmul 5x16 16x32": ("1x1 convolution", "conv 1x16x1x5 32x16x1x1"),
    "matmul 2x5x16 1x16x32": ("inner product", "ip 10x16 32x16"),
}


def summed_exactly(case: Case) -> Sample:
    """One weight of a channel is 127, all others 1 or -1: no pair needs more than 16 bits."""
    sample = Sample.of(case.shape, with_residual=case.tail.has_residual)
    wei = np.where(sample.wei < 0, np.float32(-1), np.float32(1))
    first = (..., 0, slice(None)) if case.shape.kind == "matmul" else (..., *[0] * (wei.ndim - 1))
    wei[first] *= 127
    return replace(sample, wei=wei / np.float32(127))


@pytest.mark.parametrize("tail", ["none", "relu", "sum_relu", "residual"])
@pytest.mark.parametrize("asked", FORMS)
def test_arrays_are_put_to_products_that_mean_the_same(
    asked: str, tail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever form a tuned operator takes, it is fed the same numbers; the row says what ran."""
    name, text = FORMS[asked]
    case = Case(Shape.parse(asked), Precision.parse("u8s8u8"), Tail(tail))
    sample = summed_exactly(case)
    usual = Trial.of(case, sample)
    forced = Tuning(f"{name} on ", WAY, 2.0)

    def tune(_: Planned, make: Make, forms: Sequence[Form], _layout: str) -> Any:
        form = next(form for form in forms if form.name == name)
        return make(form, None), forced

    monkeypatch.setattr("pyonednn_q.ops.tunings.tune", tune)
    monkeypatch.setattr("pyonednn_q.ops.tunings._KNOWN", {})
    is_usual = usual.way.form.name == name  # products without VNNI
    other = usual if is_usual else Trial.of(case, sample, tune=True)
    assert (other.way.form.name, str(other.shape)) == (name, text)
    assert not usual.saturates
    wanted = usual.real_result()  # once: a sum reads what is there
    assert len(np.unique(wanted)) > 20
    if other is not usual:
        np.testing.assert_array_equal(other.real_result(), wanted)


def test_the_option_reaches_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PEAK_PROBLEMS", ("matmul 16x16 16x16",))
    monkeypatch.setattr(probe, "SIZES_BYTES", (1 << 12, 1 << 14))
    monkeypatch.setattr(probe, "_PROBE_S", 1e-3)
    words = ["conv 1x16x9x9 32x16x3x3 padding=1", "--tune", "--repeat", "6", "--threads", "1"]
    request = command.request(cli.parser("bench").parse_args(["bench", *words]))
    assert request.tune
    rows = measure.measure(request, Progress(request.steps)).rows
    assert all(row.ours.endswith(" --tune") for row in rows)
    assert all(any(note.startswith("tuned: ") for note in row.notes) for row in rows)
    again = command.request(cli.parser("bench").parse_args(shlex.split(rows[0].ours)[1:]))
    assert again.tune
