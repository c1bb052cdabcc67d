"""What commands say: one meaning of --json, and errors in the words of the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.commands import bench, cli
from pyonednn_q.commands.option_table import rows_of
from pyonednn_q.errors import ArgumentError
from pyonednn_q.explain import presets
from support import bench_runs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return the JSON that a command prints."""
    assert cli.main(list(words)) == 0
    return json.loads(capsys.readouterr().out)


def test_lists_are_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    suites = printed(capsys, "bench", "--json")
    assert [each["lines"] for each in suites if each["suite"] == "resnet50"] == [24]
    titles = printed(capsys, "explain", "--list", "--json")
    assert titles == {
        file: {name: presets.get(name)["title"] for name in presets.names(file)}
        for file in presets.FILES
    }


def test_a_description_is_the_same_as_toml_and_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    described = printed(capsys, "explain", "relu", "--show", "--json")
    assert cli.main(["explain", "relu", "--show"]) == 0
    assert tomllib.loads(capsys.readouterr().out) == described


def test_a_run_is_printed_as_the_json_that_compare_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = bench_runs.run(bench_runs.row("a", "f32", 5.0))
    monkeypatch.setattr(bench, "measured", lambda *_: made)
    monkeypatch.setattr(bench, "request", lambda _: SimpleNamespace(peers=()))
    assert cli.main(["bench", "ip 1x8 8x8", "--json"]) == 0
    assert Run.from_json(capsys.readouterr().out).rows == made.rows


def test_a_comparison_is_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = bench_runs.run(bench_runs.row("a", "f32", 5.0), bench_runs.row("b", "f32", 5.0))
    after = bench_runs.run(bench_runs.row("a", "f32", 10.0), bench_runs.row("b", "f32", None))
    for name, made in (("a.json", before), ("b.json", after)):
        (tmp_path / name).write_text(made.to_json())
    words = ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--json"]
    assert cli.main(words) == 1
    told = json.loads(capsys.readouterr().out)
    ((row,), refused) = told["rows"], told["refused"]
    assert (row["verdict"], row["line"], row["ratio"]) == ("slower", "a", 2.0)
    assert refused == ["b f32 none"]


def test_a_value_of_an_option_without_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["bench", "ip 1x8 8x8", "--json", "run.json"])
    assert stopped.value.code == 2
    said = "unrecognized arguments: run.json (--json takes no value)"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "command", "said"),
    [
        (ArgumentError("dims", "'N'", "inputs of ['x', 'y']"), "run",
         "--dims: got 'N'; wanted inputs of 'x', 'y'"),
        (ArgumentError("x", "[?]", "lengths: dims={'x': (...)}, or a call"), "run",
         "x: got [?]; wanted lengths: --dims x=LENGTHS, or a call"),
        (ArgumentError("floats", "'no'", "layers of ('mm',)"), "quantize",
         "--floats: got 'no'; wanted layers of 'mm'"),
        (ArgumentError("model", "what", "another"), "run", "model: got what; wanted another"),
        (FileNotFoundError(2, "No such file or directory", "x.npz"), "why",
         "No such file or directory: 'x.npz'"),
    ],
)  # fmt: skip
def test_errors_have_the_words_of_the_command_line(
    error: Exception, command: str, said: str
) -> None:
    assert cli._told(error, command) == said


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("explain model.onnx --strict", "--strict"),
        ("explain relu --dims N=1", "--dims"),
        ("bench model.onnx --cold", "--cold"),
        ("bench resnet50 --callers 2", "--callers"),
    ],
)
def test_an_option_of_something_else_is_refused(
    line: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(line.split()) == 2
    assert f": {option}: got " in capsys.readouterr().err


def test_options_of_models_and_of_problems_are_told_apart() -> None:
    for command in ("explain", "bench"):
        assert {row.only for row in rows_of(command)} == {"", "model", "problem"}
