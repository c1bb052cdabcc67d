"""Plots: what there is to draw, and that it is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyonednn_q.bench import plot
from pyonednn_q.bench.row import Row
from pyonednn_q.errors import ArgumentError
from support.bench_runs import row, run, samples

PAIR = [row("a", "f32", 40.0, times=3), row("a", "u8s8u8", 10.0, times=3)]
LADDER = [
    row(line, dtype, us, isa=isa)
    for isa, us in (("AVX2", 30.0), ("AVX512_CORE", 20.0))
    for line in "ab"
    for dtype in ("f32", "u8s8u8")
]


def titles(*rows: Row) -> list[str]:
    return [draw.__name__ for draw in plot.panels(run(*rows))]


def test_panels_follow_the_rows() -> None:
    assert titles(*PAIR) == ["_speedup", "_roofline"]
    assert titles(*LADDER) == ["_speedup", "_roofline", "_ladder"]
    assert titles(row("a", "f32", 40.0)) == ["_roofline"]
    assert titles(row("a", "f32", None)) == []


def test_totals_count_a_line_as_often_as_it_occurs() -> None:
    found = plot.totals(run(*PAIR, *LADDER))
    assert found["f32"] == pytest.approx({"all": 0.12, "AVX2": 0.06, "AVX512_CORE": 0.04})


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_file_is_drawn(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    path = tmp_path / f"run{suffix}"
    plot.save(run(*PAIR, *LADDER), path)
    assert path.stat().st_size > 5000


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="svg"):
        plot.save(run(*PAIR), tmp_path / "run.pdf")


def test_bars_say_what_is_not_significant_and_what_was_disturbed() -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    from matplotlib.figure import Figure

    alike = row("b", "u8s8u8", 20.0, samples_us=samples(20.0)[::-1])
    noisy = row("c", "u8s8u8", 5.0, disturbed=20)
    ax = Figure().subplots()
    floats = (row("b", "f32", 20.0), row("c", "f32", 20.0))
    plot.panels(run(*PAIR, *floats, alike, noisy))[0](ax, run(*PAIR, *floats, alike, noisy))
    bars = [bar for bar in ax.patches if bar.get_height()]
    assert [bar.get_facecolor()[3] for bar in bars] == [1.0, 0.0, 0.0]  # filled, empty, empty
    assert [bar.get_hatch() for bar in bars] == [None, None, "////"]


def test_disturbed_lines_are_in_no_total() -> None:
    assert plot.totals(run(*PAIR, row("b", "f32", 9e9, disturbed=20))) == plot.totals(run(*PAIR))
