"""The report: what a reader sees of a run that was made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyonednn_q.bench import report
from pyonednn_q.report.table import Column, Table
from support.bench_runs import row, run, samples

ROWS = [
    row("a", "f32", 40.0, times=2),
    row("a", "u8s8u8", 10.0, times=2),
    row("b", "f32", 20.0),
    row("b", "u8s8u8", 20.1, samples_us=samples(20.1)[::-1]),
]


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_a_table_that_explains_itself() -> None:
    text = report.text(run(*ROWS))
    found = lines(text)
    assert found[0].startswith("oneDNN 3.13.2 OMP, A CPU, AVX2, 2 threads")
    assert found[2].split() == [
        "line", "problem", "dtype", "us", "±", "GOPS", "peak", "paper", "bound", "over", "f32",
        "SQNR", "dB", "implementation",
    ]  # fmt: skip
    assert found[3].split()[:8] == ["a", "ip", "8x64", "64x64", "f32", "40.0", "1.0%", "50"]
    assert found[4].split() == [
        "u8s8u8", "10.0", "1.0%", "200", "50%", "39%", "compute", "4.00x", "38.5", "brgemm:avx2"
    ]  # fmt: skip
    assert "peak, 2 threads: f32 100, u8s8 400 GOPS" in text


def test_what_is_not_significant_is_no_number() -> None:
    assert "not significant" in lines(report.text(run(*ROWS)))[6]
    assert "not significant" in report.markdown(run(*ROWS))


def test_the_whole_network_is_summed() -> None:
    wanted = (
        "made (2 threads), every line as often as it occurs: f32 0.10 ms, u8s8u8 0.04 ms (2.49x)"
    )
    assert wanted in report.text(run(*ROWS))


def test_a_network_with_a_hole_has_no_sum() -> None:
    text = report.text(run(*ROWS, row("c", "f32", 5.0), row("c", "u8s8u8", None)))
    assert "f32 0.10 ms\n" in text or "f32 0.11 ms\n" in text
    assert "refused: no kernel" in text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"ops": 20_000_000, "nbytes": 100}, "compute"),
        ({"ops": 2000, "nbytes": 1_000_000}, "memory"),
        ({"ops": 2000, "nbytes": 1000}, "call"),
    ],
)
def test_the_highest_floor_is_the_bound(changes: dict[str, int], word: str) -> None:
    text = report.text(run(row("a", "f32", 100.0, **changes)))
    assert word in lines(text)[3].split()


def test_columns_appear_where_rows_differ() -> None:
    differing = run(row("a", "f32", 4.0, isa="AVX2"), row("a", "f32", 4.0, threads=1))
    head = lines(report.text(differing))[2].split()
    assert {"isa", "threads"} <= set(head)
    assert not {"tail", "layout", "cache", "over"} & set(head)


def test_doubts_and_notes_are_said() -> None:
    noted = run(row("a", "f32", 4.0, notes=("may saturate: no VNNI",)), warnings=("too loud",))
    text = report.text(noted)
    assert "brgemm:avx2 *" in text
    assert "* may saturate: no VNNI" in text
    assert lines(text)[-1] == "WARNING: too loud"


def test_two_lines_reproduce_each_row() -> None:
    text = report.text(run(*ROWS), repro=True)
    at = lines(text).index("ours a f32")
    assert lines(text)[at : at + 4] == [
        "ours a f32", "benchdnn a f32", "ours a u8s8u8", "benchdnn a u8s8u8"
    ]  # fmt: skip
    assert "ours" not in report.text(run(*ROWS))


def test_a_narrow_terminal_costs_columns_that_matter_less() -> None:
    full = report.text(run(*ROWS))
    width = max(map(len, lines(full)[2:7]))
    narrow = report.text(run(*ROWS), width=width - 1)
    assert "problem" not in lines(narrow)[2]
    assert "implementation" in lines(report.text(run(*ROWS), width=1))[2]


def test_markdown_has_every_column_and_intervals() -> None:
    text = report.markdown(run(*ROWS))
    table = [line for line in lines(text) if line.startswith("|")]
    assert len(table) == 2 + len(ROWS)
    assert len({line.count("|") for line in table}) == 1
    assert "op/byte" in table[0]
    assert "4.00x (" in table[3]


def test_one_threaded_run_says_thread() -> None:
    text = report.text(run(row("a", "f32", 4.0, threads=1, samples_us=samples(4.0))))
    assert "1 thread," in lines(text)[0]


def test_a_table_without_a_column() -> None:
    table = Table([Column("a"), Column("b")], [["1", "2"]])
    assert table.without("a").text() == "b\n2"
    assert table.without("c") == table
    assert Table([Column("a")], [["x|*"]]).markdown().endswith("| x\\|\\* |")


def test_each_type_is_compared_with_the_wider_ones() -> None:
    three = run(row("a", "f32", 40.0), row("a", "bf16", 20.0), row("a", "u8s8u8", 10.0))
    assert [line.count("x ") for line in lines(report.text(three))[3:6]] == [0, 1, 2]


DISTURBED = [
    *ROWS,
    row("c", "f32", 800.0, disturbed=11),
    row("c", "u8s8u8", 5.0),
]


def test_a_disturbed_line_is_in_no_total_and_named() -> None:
    """Twenty times the time of the others would make 2.49 times 0.9."""
    text = report.text(run(*DISTURBED))
    assert "f32 0.10 ms, u8s8u8 0.04 ms (2.49x)" in text
    assert "left out, being disturbed: c" in text
    assert "800.0!" in text
    assert "!, disturbed: more than a quarter" in text


def test_a_disturbed_line_has_no_ratio() -> None:
    for text in (report.text(run(*DISTURBED)), report.markdown(run(*DISTURBED))):
        (line,) = [line for line in lines(text) if "5.0 " in line and "u8s8u8" in line]
        assert "disturbed" in line
    assert "disturbed" not in report.text(run(*ROWS))


def test_a_suite_of_which_every_line_is_disturbed_has_no_sum() -> None:
    rows = [row(name, "f32", 5.0, disturbed=21) for name in "ab"]
    assert "made (2 threads), no line undisturbed\n" in report.text(run(*rows))


def test_a_total_that_is_not_significant_says_so() -> None:
    rows = [row(name, dtype, us) for name in "ab" for dtype, us in (("f32", 5.0), ("u8s8u8", 5.01))]
    rows = [
        replace(each, samples_us=each.samples_us[:: 1 - 2 * (each.dtype == "f32")]) for each in rows
    ]
    assert "u8s8u8 0.01 ms (not significant)" in report.text(run(*rows))


def test_both_peaks_are_said_and_how_the_second_is_made() -> None:
    text = report.text(run(*ROWS))
    assert "on paper: f32 128 (32 a cycle), u8s8 512 (128 a cycle) GOPS" in text
    assert "operations a cycle × 2 cores × 2.00 GHz, a clock that was measured" in text
    assert "that are computed, none of padding" in text


@pytest.mark.parametrize(
    "unnamed",
    [{"line": "", "suite": ""}, {"line": "ip 8x64 64x64"}],
    ids=["typed in", "of a suite"],
)
def test_problems_without_a_name_are_shown_once(unnamed: dict[str, Any]) -> None:
    typed = [replace(each, **unnamed) for each in ROWS[:2]]
    head, first, second = lines(report.text(run(*typed)))[2:5]
    assert "problem" not in head
    assert first.startswith("ip 8x64 64x64  f32")
    assert second.split()[0] == "u8s8u8"
