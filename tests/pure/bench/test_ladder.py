"""The ladder: a line per problem, a column per instruction set."""

from __future__ import annotations

from dataclasses import replace

from pyonednn_q.bench import report
from pyonednn_q.bench.report import ladder
from support.bench_runs import row, run

LADDER = run(
    row("a", "f32", 8.0, isa="AVX2"),
    row("a", "u8s8u8", 4.0, isa="AVX2", notes=("can saturate",)),
    row("a", "f32", 4.0, isa="AVX512_CORE_AMX"),
    row("a", "u8s8u8", 0.5, isa="AVX512_CORE_AMX"),
    row("b", "f32", 8.0, isa="AVX2"),
    row("b", "u8s8u8", None, isa="AVX2"),
    row("b", "f32", 4.0, isa="AVX512_CORE_AMX"),
    row("b", "u8s8u8", 4.0, isa="AVX512_CORE_AMX"),
)


def test_a_column_for_each_instruction_set() -> None:
    table = ladder(LADDER)
    assert table is not None
    assert [column.name for column in table.columns] == ["line", "AVX2", "AVX512_CORE_AMX"]
    assert table.cells == [
        ["a", "4.0 (2.00x) *", "0.5 (8.00x)"],
        ["b", "refused", "4.0 (~1)"],
    ]


def test_ways_that_differ_have_columns() -> None:
    more = run(*LADDER.rows, row("a", "u8s8u8", 1.0, isa="AVX2", tail="relu"))
    table = ladder(more)
    assert table is not None
    assert [column.name for column in table.columns][:2] == ["line", "tail"]
    assert table.cells[-1] == ["a", "relu", "1.0", "-"]


def test_no_ladder_of_one_step_or_of_floats() -> None:
    assert ladder(run(*LADDER.rows[:2])) is None
    assert ladder(run(LADDER.rows[0], LADDER.rows[2])) is None


def test_the_report_shows_it() -> None:
    for words in (report.text(LADDER), report.markdown(LADDER)):
        assert "us at each instruction set" in words
    assert "us at each instruction set" not in report.text(run(*LADDER.rows[:2]))


def test_a_disturbed_step_has_no_ratio() -> None:
    """Neither where the float was disturbed."""
    rows = [replace(each, disturbed=20) if each.dtype == "f32" else each for each in LADDER.rows]
    table = ladder(run(*rows))
    assert table is not None
    assert table.cells[0][1:] == ["4.0 (disturbed) *", "0.5 (disturbed)"]
