"""The command line: what words ask for, and that a repro line asks for the same again."""

from __future__ import annotations

import itertools
import shlex

import pytest

from pyonednn_q.bench import benchdnn, processes, suite
from pyonednn_q.bench.case import LAYOUTS, Case, Setting, repro
from pyonednn_q.bench.measure import F32, Request
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.tail import Tail
from pyonednn_q.commands import bench as command
from pyonednn_q.commands import cli
from pyonednn_q.errors import ArgumentError
from pyonednn_q.native import runtime
from pyonednn_q.primitive.isa import InstructionSet


def asked(*words: str) -> Request:
    return command.request(cli.parser("bench").parse_args(["bench", *words, "--threads", "2"]))


def names(request: Request) -> list[str]:
    return [precision.name for precision in request.precisions]


@pytest.mark.parametrize("name", suite.names())
def test_a_repro_line_asks_for_exactly_the_row(name: str) -> None:
    ways = itertools.product(
        ("u8s8u8", "s8s8f32", "f32", "bf16bf16f32"), ("none", "sum_relu_fq_u8_per_channel")
    )
    for line, (dtype, tail) in itertools.product(suite.find(name).lines, ways):
        shape = line.shape.batched(2)
        layout = LAYOUTS[dtype == "s8s8f32" and shape.kind == "conv"]
        case = Case(shape, Precision.parse(dtype), Tail(tail), layout)
        setting = Setting(3, "cold" if tail == "none" else "warm", "AVX2" if tail != "none" else "")
        program, verb, *words = shlex.split(repro(case, setting))
        assert (program, verb) == ("pyonednn-q", "bench")
        options = cli.parser("bench").parse_args(["bench", *words])
        request = command.request(options)
        (again,) = request.lines
        assert [c for c in request.cases(again) if c.precision == case.precision] == [case]
        (found,) = request.settings
        assert options.isa == ((setting.isa,) if setting.isa else ())
        assert found == Setting(setting.threads, setting.cache)


@pytest.mark.parametrize("name", suite.names())
def test_benchdnn_descriptors_of_all_lines_read_back(name: str) -> None:
    for line in suite.find(name).lines:
        again = benchdnn.parse(line.shape.kind, benchdnn.descriptor(line.shape))
        assert (again.src, again.wei, again.dst) == (
            line.shape.src,
            line.shape.wei,
            line.shape.dst,
        )
        assert (again.stride, again.dilation) == (line.shape.stride, line.shape.dilation)


def test_defaults() -> None:
    request = asked("resnet50")
    assert names(request) == ["f32", "u8s8u8"]
    assert request.tails == (Tail("none"),)
    assert request.layouts == ("channels_last",)
    assert request.settings == (Setting(2),)
    assert len(request.lines) == len(suite.find("resnet50").lines)


def test_integers_alone_bring_what_they_are_compared_with() -> None:
    assert names(asked("dlrm", "--dtype", "s8s8s8,u8s8f32")) == ["f32", "s8s8s8", "u8s8f32"]
    assert names(asked("dlrm", "--dtype", "bf16,s8s8s8")) == ["bf16", "s8s8s8"]
    assert names(asked("dlrm", "--dtype", "f32")) == ["f32"]


def test_lists_multiply() -> None:
    request = asked(
        "conv 1x4x5x5 4x4x3x3", "matmul 2x3 3x4", "--tail", "relu,none", "--batch", "1,4",
        "--layout", "channels_last,dense",
    )  # fmt: skip
    assert [line.shape.src[0] for line in request.lines] == [1, 4, 2, 8]
    # Two types, two tails, two layouts; a matrix has one layout.
    assert [len(request.cases(line)) for line in request.lines] == [8, 8, 4, 4]
    assert request.cases(request.lines[0])[0].precision == F32


def test_a_filter_looks_at_names_and_problems() -> None:
    assert [line.name for line in asked("resnet50", "--filter", "^fc").lines] == ["fc"]
    found = asked("resnet50", "--filter", "7x7 stride").lines
    assert [line.name for line in found] == ["conv1"]
    with pytest.raises(ArgumentError, match="filter"):
        asked("resnet50", "--filter", "nothing")


def test_several_suites_and_settings() -> None:
    options = cli.parser("bench").parse_args(
        ["bench", "vgg16", "dlrm", "--threads", "1,2", "--cold"]
    )
    request = command.request(options)
    assert {line.suite for line in request.lines} == {"vgg16", "dlrm"}
    assert request.settings == (Setting(1, "cold"), Setting(2, "cold"))


@pytest.mark.parametrize(
    "words",
    [
        ["--dtype", "int8"], ["--tail", "softmax"], ["--layout", "blocked"], ["--batch", "0"],
        ["--threads", "two"], ["--isa", "AVX3"], ["--filter", "("], ["--repeat", "-1"],
    ],
)  # fmt: skip
def test_bad_values_are_errors_of_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["bench", "resnet50", *words])
    assert caught.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_unknown_suites_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "resnet51"]) == 2
    assert "resnet50" in capsys.readouterr().err


def test_nothing_asked_for_lists_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in suite.names())


def test_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "isa", lambda: InstructionSet("AVX512_CORE_VNNI"))
    assert processes.levels(["ladder"]) == ("AVX2", "AVX512_CORE", "AVX512_CORE_VNNI")
    assert processes.levels(["SSE41", "AVX2", "SSE41"]) == ("SSE41", "AVX2")
    with pytest.raises(ArgumentError, match="AVX512_CORE_VNNI"):
        processes.levels(["AVX512_CORE_AMX"])
