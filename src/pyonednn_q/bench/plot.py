"""Plots of a run: speed-up per line, roofline, ISA ladder. matplotlib is the extra ``plot``."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run
from pyonednn_q.errors import ArgumentError
from pyonednn_q.shown import install, shown

__all__ = ["check", "panels", "save"]

_FORMATS = (".png", ".svg")
_INCHES = (9.0, 4.5)
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")

Axes = Any  # matplotlib is optional and brings no types that we ask for
Draw = Callable[[Axes, Run], None]


def save(run: Run, path: Path) -> None:
    """Draw what the run has rows for, into a .png or .svg file.

    Raises
    ------
    ArgumentError
        matplotlib is not installed, another format, or nothing was measured.
    """
    check(path)
    from matplotlib.figure import Figure

    draws = panels(run)
    if not draws:
        raise ArgumentError("plot", str(path), "a run in which something was measured")
    figure = Figure(figsize=(_INCHES[0], _INCHES[1] * len(draws)), layout="constrained")
    axes = figure.subplots(len(draws), squeeze=False)[:, 0]
    for draw, ax in zip(draws, axes, strict=True):
        draw(ax, run)
    about = run.metadata
    figure.suptitle(f"oneDNN {about['onednn']} {about['runtime']}, {about['cpu']}", fontsize=10)
    figure.savefig(path)


def check(path: Path) -> None:
    """Refuse, before anything is measured, a file that could not be drawn.

    Raises
    ------
    ArgumentError
        matplotlib is not installed, or another format.
    """
    if path.suffix not in _FORMATS:
        raise ArgumentError(
            "plot", shown(str(path)), f"a name that ends in {' or '.join(_FORMATS)}"
        )
    if find_spec("matplotlib") is None:
        wanted = f"matplotlib: {install('plot')}"
        raise ArgumentError("plot", str(path), wanted)


def panels(run: Run) -> list[Draw]:
    """Return what can be drawn of a run."""
    rows = measured(run)
    drawings: list[Draw] = []
    if any(ratios(run, row) for row in rows):
        drawings.append(_speedup)
    if any(run.limits_of(row) for row in rows):
        drawings.append(_roofline)
    if len({row.isa for row in rows}) > 1:
        drawings.append(_ladder)
    return drawings


def measured(run: Run) -> list[Row]:
    """Return the rows that have samples."""
    return [row for row in run.rows if row.samples_us]


def ratios(run: Run, row: Row) -> tuple[float, float, float] | None:
    """Return value and ends of a row's speed-up over the run's first floating-point type."""
    if not run.baselines or row.dtype == run.baselines[0]:
        return None
    ratio = run.over(row, run.baselines[0])
    return None if ratio is None else (ratio.value, ratio.lo, ratio.hi)


def totals(run: Run) -> dict[str, dict[str, float]]:
    """Return milliseconds by type and instruction set: of all lines, but of disturbed ones."""
    ms_by_way: dict[str, dict[str, float]] = {}
    left_out = {row.name for row in measured(run) if row.is_disturbed}
    for row in (row for row in measured(run) if row.name not in left_out):
        sums = ms_by_way.setdefault(way(row), {})
        sums[row.isa or "all"] = sums.get(row.isa or "all", 0.0) + row.times * row.median_us / 1e3
    return ms_by_way


def way(row: Row) -> str:
    """Return type and tail in a word."""
    return row.dtype + ("" if row.tail == "none" else f" {row.tail}")


def _speedup(ax: Axes, run: Run) -> None:
    last = measured(run)[-1].setting
    rows = [row for row in measured(run) if row.setting == last and ratios(run, row)]
    names = list(dict.fromkeys(row.name for row in rows))
    kinds = list(dict.fromkeys(way(row) for row in rows))
    width = 0.8 / len(kinds)
    for index, (kind, colour) in enumerate(zip(kinds, _colours(len(kinds)), strict=True)):
        for row in (row for row in rows if way(row) == kind):
            ratio = run.over(row, run.baselines[0])
            assert ratio is not None
            at = names.index(row.name) + (index - (len(kinds) - 1) / 2) * width
            error = [[max(ratio.value - ratio.lo, 0)], [max(ratio.hi - ratio.value, 0)]]
            look: dict[str, Any] = {"color": colour}
            if run.is_disturbed(row, run.baselines[0]):
                look, error = {"color": "none", "edgecolor": "#888888", "hatch": "////"}, [[0], [0]]
            elif not ratio.is_significant:
                look = {"color": "none", "edgecolor": colour, "linestyle": "--"}
            ax.bar(at, ratio.value, width, yerr=error, ecolor="#333333", capsize=1.5, **look)
        ax.bar(0, 0, color=colour, label=kind)
    ax.axhline(1, color="#333333", linewidth=0.8)
    ax.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    ax.set_ylabel(f"times faster than {run.baselines[0]}")
    marks = "outlined: not significant; hatched: disturbed"
    ax.set_title(f"Speed-up by line, with 95 % intervals ({marks})", fontsize=10)
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))  # on no bar


def _roofline(ax: Axes, run: Run) -> None:
    rows = [row for row in measured(run) if run.limits_of(row)]
    setting = rows[-1].setting
    rows = [row for row in rows if row.setting == setting]
    limits = run.limits_of(rows[-1])
    assert limits is not None
    types = list(dict.fromkeys(row.dtype for row in rows))
    ends = (limits.bandwidth_gbs[-1], limits.bandwidth_gbs[0])
    least = min(row.intensity for row in rows) / 2
    reach = np.geomspace(least, max(row.intensity for row in rows) * 2, 100)
    for dtype, colour in zip(types, _colours(len(types)), strict=True):
        dots = [row for row in rows if row.dtype == dtype]
        ax.loglog(
            [r.intensity for r in dots], [r.gops for r in dots], ".", color=colour, label=dtype
        )
        peak = limits.peak(Precision.parse(dtype))
        if peak is not None:
            for (_, rate), line in zip(ends, ("--", ":"), strict=True):
                roof = np.minimum(reach * rate, peak)
                ax.loglog(reach, roof, color=colour, linewidth=0.9, linestyle=line)
    ax.set_xlabel("operations per byte")
    ax.set_ylabel("GOPS")
    slopes = ", ".join(f"{rate:.0f} GB/s over {size >> 20} MiB" for size, rate in ends)
    ax.set_title(f"Roofline: measured peaks, {slopes}", fontsize=10)
    ax.legend(fontsize=8)


def _ladder(ax: Axes, run: Run) -> None:
    ms_by_way = totals(run)
    steps = list(dict.fromkeys(row.isa or "all" for row in measured(run)))
    for (kind, sums), colour in zip(ms_by_way.items(), _colours(len(ms_by_way)), strict=True):
        heights = [sums.get(step, math.nan) for step in steps]
        ax.plot(steps, heights, "o-", color=colour, label=kind)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.set_ylabel("ms, every line as often as it occurs, without disturbed ones")
    ax.set_title("By instruction set", fontsize=10)
    ax.tick_params(axis="x", labelsize=8)
    ax.legend(fontsize=8)


def _colours(count: int) -> list[str]:
    return [_COLOURS[index % len(_COLOURS)] for index in range(count)]
