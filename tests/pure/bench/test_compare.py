"""Comparing two runs: verdicts, order, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyonednn_q.bench.bench_run import Run
from pyonednn_q.bench.comparison import compare
from pyonednn_q.commands import cli
from support.bench_runs import METADATA, row, run

BEFORE = run(*(row(name, "u8s8u8", 10.0) for name in "abcd"))
AFTER = run(
    row("a", "u8s8u8", 5.0),
    row("b", "u8s8u8", 10.0),
    row("c", "u8s8u8", 20.0, impl="gemm:jit"),
    row("d", "u8s8u8", 10.4),
    row("e", "u8s8u8", 1.0),
)


def written(folder: Path, name: str, made: Run) -> str:
    path = folder / f"{name}.json"
    path.write_text(made.to_json())
    return str(path)


def test_regressions_come_first() -> None:
    found = compare(BEFORE, AFTER)
    assert [(each.after.name, each.verdict) for each in found] == [
        ("c", "slower"),
        ("d", "same"),
        ("b", "not significant"),
        ("a", "faster"),
    ]
    assert [each.changed_kernel for each in found] == [True, False, False, False]


def test_the_threshold_decides_what_counts() -> None:
    def verdicts(threshold: float) -> dict[str, str]:
        found = compare(BEFORE, AFTER, threshold=threshold)
        return {each.after.name: each.verdict for each in found}

    assert verdicts(0.01)["d"] == "slower"
    assert verdicts(2.0)["c"] == "same"


def test_rows_of_another_case_or_setting_are_not_compared() -> None:
    others = run(
        row("a", "s8s8s8", 10.0), row("a", "u8s8u8", 10.0, threads=1),
        row("a", "u8s8u8", 10.0, tail="relu"), row("a", "u8s8u8", 10.0, problem="ip 1x1 1x1"),
    )  # fmt: skip
    assert compare(BEFORE, others) == ()


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = written(tmp_path, "a", BEFORE), written(tmp_path, "b", AFTER)
    assert cli.main(["compare", before, before]) == 0
    assert cli.main(["compare", before, after]) == 1
    assert cli.main(["compare", before, after, "--threshold", "90"]) == 1
    out = capsys.readouterr().out
    assert "1 slower, 1 faster, 1 same, 1 not significant (threshold 5%)" in out
    assert "brgemm:avx2 > gemm:jit" in out
    wide = written(tmp_path, "c", run(row("c", "u8s8u8", 11.0)))
    assert cli.main(["compare", before, wide, "--threshold", "50"]) == 0


def test_a_row_that_is_refused_now_is_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = run(row("a", "u8s8u8", None), row("b", "u8s8u8", 10.0))
    code = cli.main(["compare", written(tmp_path, "a", BEFORE), written(tmp_path, "b", gone)])
    assert code == 1
    assert "refused now: a u8s8u8 none" in capsys.readouterr().out


def test_another_machine_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run(*BEFORE.rows, metadata=METADATA | {"onednn": "3.7.2"})
    assert cli.main(["compare", written(tmp_path, "a", BEFORE), written(tmp_path, "b", other)]) == 0
    assert "WARNING: onednn: 3.13.2 before, 3.7.2 after" in capsys.readouterr().out


def test_no_answer_is_an_exit_code_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = written(tmp_path, "a", BEFORE)
    (tmp_path / "broken.json").write_text("{")
    assert cli.main(["compare", before, str(tmp_path / "missing.json")]) == 2
    assert cli.main(["compare", before, str(tmp_path / "broken.json")]) == 2
    assert cli.main(["compare", before, written(tmp_path, "b", run(row("x", "f32", 1.0)))]) == 2
    assert "missing.json" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--threshold", "-1"], ["--confidence", "100"], []])
def test_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["compare", "a.json", *(["b.json", *words] if words else [])])
    assert caught.value.code == 2
