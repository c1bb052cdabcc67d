"""The bench room on the real library: small problems, few samples; no statement about speed."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

from pyonednn_q import dtypes, native
from pyonednn_q.bench import check, measure, probe, processes, suite
from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.case import Case, Setting
from pyonednn_q.bench.check import accumulate
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.measure import F32, Request
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.shape import Shape
from pyonednn_q.bench.summary import sqnr_db
from pyonednn_q.bench.tail import Tail
from pyonednn_q.bench.trial import SATURATES, Trial
from pyonednn_q.commands import cli
from pyonednn_q.errors import LibraryError, UnsupportedError
from pyonednn_q.native import runtime
from pyonednn_q.native.timing import Budget
from pyonednn_q.report.progress import Progress

Array = NDArray[Any]

SHAPES = (
    "conv 1x32x9x9 32x32x3x3 padding=1",
    "conv 1x32x9x9 32x1x1x3x3 padding=1",
    "deconv 1x16x5x5 32x16x4x4 stride=2 padding=1",
    "ip 3x64 32x64",
    "matmul 5x64 64x32",
    "matmul 3x8x64 3x64x16 wei=transposed",
)
TAILS = ("none", "relu", "fq_u8", "fq_s8_per_channel", "sum_relu_fq", "gelu_tanh_fq", "residual")


def asked(*problems: str, dtypes: str = "f32,u8s8u8", tails: str = "none") -> Request:
    lines = tuple(line for problem in problems for line in suite.find(problem).lines)
    return Request(
        lines=lines,
        precisions=tuple(map(Precision.parse, dtypes.split(","))),
        tails=tuple(map(Tail, tails.split(","))),
        layouts=("channels_last",),
        settings=(Setting(1),),
        budget=Budget(rounds=6),
    )


def adds_to_deconvolutions() -> bool:
    """Tell whether int8 deconvolutions keep their kernel where they add a tensor."""
    isa = runtime.isa()
    return isa.has_vnni() and (runtime.version() >= (3, 8) or isa.has_avx512())


@pytest.fixture
def small_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probe with problems that take no time: what they show is not looked at."""
    monkeypatch.setattr(probe, "PEAK_PROBLEMS", ("matmul 16x16 16x16",))
    monkeypatch.setattr(probe, "SIZES_BYTES", (1 << 12, 1 << 14))
    monkeypatch.setattr(probe, "_PROBE_S", 1e-3)


@pytest.mark.usefixtures("small_probe")
def test_rows_say_what_ran_and_how_to_run_it_again() -> None:
    request = asked(*SHAPES[:2])
    made = measure.measure(request, Progress(request.steps))
    assert [row.dtype for row in made.rows] == ["f32", "u8s8u8"] * 2
    for row in made.rows:
        assert row.impl
        assert not row.refused
        assert len(row.samples_us) == 6
        assert min(row.samples_us) > 0
        assert row.problem in row.ours
        assert "--mode=P" in row.benchdnn
    assert [row.sqnr_db is None for row in made.rows] == [True, False] * 2
    ((setting, limits),) = made.limits
    assert setting == ("", 1)
    assert {name for name, _ in limits.peak_gops} == {"f32", "u8s8"}
    assert limits.call_us > 0
    assert Run.from_json(made.to_json()).rows == made.rows


@pytest.mark.usefixtures("small_probe")
def test_weights_in_groups_are_rows_beside_the_others() -> None:
    types = "f32,u8s8f32,s8g16,s4g16,s4g24"
    request = asked("matmul 5x64 64x32", "ip 3x64 32x64", "conv 1x8x5x5 8x8x3x3", dtypes=types)
    made = measure.measure(request, Progress(request.steps))
    for first in (0, 5):
        _, int8, eight, four, refused = made.rows[first : first + 5]
        assert (eight.impl, four.impl) == ("ours:groups", "ours:groups")
        assert min(eight.samples_us + four.samples_us) > 0
        assert (eight.benchdnn, four.benchdnn) == ("", "")
        assert "--dtype s4g16" in four.ours
        assert four.nbytes < eight.nbytes
        assert int8.sqnr_db is not None
        assert eight.sqnr_db is not None
        assert four.sqnr_db is not None
        assert 30 < eight.sqnr_db < 60  # as INT8 above
        assert 15 < four.sqnr_db < 25  # 4 bits over 16 normal values
        assert "divides 64" in refused.refused
    assert all("matmul or an inner product" in row.refused for row in made.rows[12:])
    assert Run.from_json(made.to_json()).rows == made.rows


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("text", SHAPES)
def test_int8_is_near_fp32(text: str, tail: str) -> None:
    shape = Shape.parse(text)
    sample = Sample.of(shape, with_residual=True)
    exact = Trial.of(Case(shape, F32, Tail(tail)), sample).real_result()
    for dtype in ("u8s8u8", "u8s8f32", "s8s8s8"):
        case = Case(shape, Precision.parse(dtype), Tail(tail))
        if text.startswith("deconv") and tail == "residual" and not adds_to_deconvolutions():
            with pytest.raises(UnsupportedError, match="full_operand_of"):
                Trial.of(case, sample)
            continue
        trial = Trial.of(case, sample)
        if trial.saturates or (dtype == "s8s8s8" and not runtime.isa().has_vnni()):
            continue  # what saturates is near nothing
        # 8 bits over ±4 deviations leave about 37 dB of a normal value, and a residual clips.
        assert 30 < sqnr_db(exact, trial.real_result()) < 60


def test_a_sum_reads_the_residual() -> None:
    shape = Shape.parse(SHAPES[0])
    sample = Sample.of(shape, with_residual=True)
    without, with_sum = (
        Trial.of(Case(shape, F32, Tail(tail)), sample).real_result() for tail in ("none", "sum")
    )
    assert np.allclose(with_sum, without + sample.residual, atol=1e-4)


@pytest.mark.usefixtures("small_probe")
def test_what_no_kernel_takes_is_a_row_with_the_reason() -> None:
    request = replace(asked("deconv 1x17x5x5 33x17x2x2 stride=2 out=11x11"), layouts=("dense",))
    rows = measure.measure(request, Progress(request.steps)).rows
    int8 = rows[-1]
    assert (int8.dtype, int8.samples_us, int8.impl) == ("u8s8u8", (), "")
    assert "reference" in int8.refused


@pytest.mark.usefixtures("small_probe")
def test_a_type_that_numpy_lacks_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "_ml_dtypes", lambda: None)
    request = asked(SHAPES[4], dtypes="f32,bf16")
    refused = measure.measure(request, Progress(request.steps)).rows[1].refused
    assert "ml_dtypes" in refused


@pytest.mark.usefixtures("small_probe")
def test_cold_calls_are_timed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "FLUSH_BYTES", 1 << 16)
    request = replace(asked(SHAPES[4]), settings=(Setting(1, "cold"),))
    rows = measure.measure(request, Progress(request.steps)).rows
    assert {(row.cache, row.calls) for row in rows} == {("cold", 1)}


def test_the_sample_is_half_normal_and_has_results_of_deviation_one() -> None:
    shape = Shape.parse("matmul 200x300 300x100")
    sample = Sample.of(shape, with_residual=False)
    assert sample.src.min() >= 0
    assert float(np.mean(sample.src**2)) == pytest.approx(1.0, abs=0.02)
    result = Trial.of(Case(shape, F32), sample).real_result() - sample.bias
    assert float(result.std()) == pytest.approx(1.0, abs=0.05)


def test_every_line_of_a_suite_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "check", "tails", "--dtype", "f32,u8s8u8"]) == 0
    assert "WRONG" not in capsys.readouterr().out


@pytest.mark.slow
def test_every_line_of_every_suite_is_right() -> None:
    assert cli.main(["bench", "check"]) == 0


def test_a_wrong_value_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(shape: Shape, src: Array, wei: Array) -> Array:
        acc = accumulate(shape, src, wei)
        acc.flat[7] = 1000
        return acc

    monkeypatch.setattr(check, "accumulate", wrong)
    assert cli.main(["bench", "check", SHAPES[4], "--dtype", "u8s8s32"]) == 1
    assert "1 of 160 values" in capsys.readouterr().out


def test_a_line_that_does_not_run_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise UnsupportedError("refused", "choosing", "a problem", "no kernel")

    monkeypatch.setattr("pyonednn_q.ops.planned.prepare", refuse)
    assert cli.main(["bench", "check", SHAPES[4], "--dtype", "u8s8u8"]) == 1
    out = capsys.readouterr().out
    assert "matmul 5x64 64x32: 1 refused\nrefused: matmul 5x64 64x32 u8s8u8: no kernel" in out


def test_what_is_refused_in_one_type_is_not_dead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare = native.prepare

    def refuse_int8(problem: Any, *arguments: Any, **named: Any) -> object:
        if problem.wei.dtype == "s8":
            raise UnsupportedError("refused", "choosing", "a problem", "no kernel")
        return prepare(problem, *arguments, **named)

    monkeypatch.setattr("pyonednn_q.ops.planned.prepare", refuse_int8)
    assert cli.main(["bench", "check", SHAPES[4], "--dtype", "u8s8u8,f32"]) == 0
    assert "1 right, 1 refused" in capsys.readouterr().out


def test_an_instruction_set_has_a_process_of_its_own() -> None:
    if not runtime.isa().has("AVX2"):
        pytest.skip("this process may not use AVX2")
    request = replace(asked("matmul 5x64 64x32"), budget=Budget(rounds=6))
    made = processes.measure_at(request, "AVX2")
    assert made.metadata["isa"] == "AVX2"
    assert {row.isa for row in made.rows} == {"AVX2"}
    assert all("--isa AVX2" in row.ours for row in made.rows)
    assert all(row.benchdnn.startswith("ONEDNN_MAX_CPU_ISA=AVX2 ") for row in made.rows)
    saturates, *others = made.rows[1].notes
    assert saturates == SATURATES
    assert any("without VNNI a matmul runs on gemm" in note for note in others)


def test_a_process_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_CHILD", "raise SystemExit(3)")
    with pytest.raises(LibraryError, match="AVX2 ended with exit code 3"):
        processes.measure_at(asked(SHAPES[3]), "AVX2")


@pytest.mark.usefixtures("small_probe")
def test_the_command_measures_writes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    words = [SHAPES[3], SHAPES[4], "--tail", "relu", "--repeat", "6", "--threads", "1"]
    more = ["--csv", str(tmp_path / "run.csv"), "--html", str(tmp_path / "run.html")]
    assert cli.main(["bench", *words, "--save", str(path), "--repro", *more]) == 0
    out = capsys.readouterr().out
    made = Run.from_json(path.read_text())
    schema = json.loads((resources.files("pyonednn_q.bench") / "run.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(path.read_text()))
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 1 + len(made.rows)
    assert (tmp_path / "run.html").read_text().endswith("</html>\n")
    ((_, limits),) = made.limits
    assert limits.clock_ghz > 0.5
    assert dict(limits.paper_gops).keys() == dict(limits.peak_gops).keys()
    assert [row.tail for row in made.rows] == ["relu"] * 4
    assert all(row.ours in out and row.benchdnn in out for row in made.rows)
    assert all(math.isfinite(row.median_us) for row in made.rows)


@pytest.mark.parametrize("options", [[], ["--isa", "AVX2"]])
def test_an_interrupt_ends_a_measurement_quietly(options: list[str]) -> None:
    """Of its child, too, which the terminal interrupts with it."""
    terminal, theirs = os.openpty()  # where progress says how far it is
    with subprocess.Popen(
        [sys.executable, "-m", "pyonednn_q", "bench", "resnet50", *options],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        # Not earlier: right after the library was loaded (SYCL), 1 in 40 interrupts is lost.
        seen = b""
        while b"conv1" not in seen:
            seen += os.read(terminal, 4096)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(300) == 130
        assert process.stdout.read() == b""
        with contextlib.suppress(OSError):  # its end, on Linux
            while more := os.read(terminal, 4096):
                seen += more
    os.close(terminal)
    assert b"probing the machine" in seen
    assert b"Traceback" not in seen
    assert b"\x1b[?25h" in seen.rpartition(b"conv1")[2]  # the cursor is there again
