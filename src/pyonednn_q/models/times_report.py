"""Report of a model's times: as text, Markdown or a page of HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyonednn_q.bench import run_page
from pyonednn_q.bench.columns import time
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.report import where
from pyonednn_q.bench.row import OURS
from pyonednn_q.bench.summary import paired_ratio
from pyonednn_q.models.model_times import AT_ONCE, WHOLE
from pyonednn_q.report.page import document, legend, wide
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import printable

if TYPE_CHECKING:
    from pyonednn_q.bench.row import Rival, Row
    from pyonednn_q.graph.graph import Graph
    from pyonednn_q.models.model_times import ModelTimes

__all__ = ["html", "markdown", "text"]

_F32 = "f32"


def text(times: ModelTimes) -> str:
    """Return the report as plain text."""
    parts = [f"{printable(times.title)}: {where(times.run)}"]
    for heading, table in _tables(times):
        parts += ["", heading, "", table.text()]
    return "\n".join([*parts, "", *_notes(times)])


def markdown(times: ModelTimes) -> str:
    """Return the report as Markdown."""
    parts = [f"{printable(times.title)}: {where(times.run)}"]
    for heading, table in _tables(times):
        parts += ["", f"**{heading}**", "", table.markdown()]
    return "\n".join([*parts, "", *(f"- {line}" for line in _notes(times))])


def html(times: ModelTimes, graph: Graph) -> str:
    """Return the report, and a drawing of the graph that ran, as a page that needs nothing else."""
    layers = [row for row in times.run.rows if row.line not in (WHOLE, AT_ONCE) and row.ops]
    parts: list[tuple[str, str]] = []
    for heading, table in _tables(times):
        parts.append((heading, wide(table)))
    bars = run_page.speedups(times.run, layers)
    if bars:
        parts.append(("Times faster than FP32, layer by layer", bars))
    if layers:
        parts.append(("Roofline", run_page.roofline(times.run, layers)))
    us = {node.name: node.us for node in times.nodes}
    parts.append(("Graph, with the time of each node", graph.drawing(us)))
    parts.append(("What it means", legend(_notes(times))))
    return document(f"pyonednn-q bench: {times.title}", where(times.run), parts)


def _tables(times: ModelTimes) -> Iterator[tuple[str, Table]]:
    yield "The whole model", _whole(times)
    if times.callers > 1:
        yield f"The whole model, {times.callers} callers at once", _at_once(times)
    yield "Where the time goes", _shares(times)
    layers = _layers(times)
    if layers.cells:
        yield "Layers, in their places", layers


def _whole(times: ModelTimes) -> Table:
    columns = [Column("runtime"), Column("form")]
    names = ("median ms", "±", "p90 ms", "p99 ms", "least ms", "calls/s", "times ours")
    columns += [Column(name, right=True) for name in names]
    rows = [row for row in times.run.rows if row.line == WHOLE]
    ours = rows[0].rival(OURS)
    assert ours is not None
    cells = []
    for row in rows:
        form = "FP32" if row.dtype == _F32 else _own_form(times)
        cells += [[each.name, form, *_measured(each, ours)] for each in row.rivals]
    return Table(columns, cells)


def _at_once(times: ModelTimes) -> Table:
    columns = [Column("runtime"), Column("form")]
    names = ("median ms", "p90 ms", "p99 ms", "calls/s", "of ours")
    columns += [Column(name, right=True) for name in names]
    rows = [row for row in times.run.rows if row.line == AT_ONCE]
    served = {
        (row.dtype, each.name): times.callers * 1e6 * len(each.samples_us) / sum(each.samples_us)
        for row in rows
        for each in row.rivals
    }
    ours = served[rows[0].dtype, OURS]
    cells = []
    for row in rows:
        form = "FP32" if row.dtype == _F32 else _own_form(times)
        for each in row.rivals:
            ordered, calls = sorted(each.samples_us), served[row.dtype, each.name]
            waits = [f"{_quantile(ordered, share) / 1e3:.3f}" for share in (0.5, 0.9, 0.99)]
            cells.append([each.name, form, *waits, f"{calls:.0f}", f"{calls / ours:.2f}"])
    return Table(columns, cells)


def _own_form(times: ModelTimes) -> str:
    """Return what the model itself is called: INT8 only where something computes codes."""
    computes = any(node.how.startswith(("INT8", "codes")) for node in times.nodes)
    return "INT8" if computes else "as it is"


def _measured(rival: Rival, ours: Rival) -> list[str]:
    if not rival.samples_us:
        return ["-"] * 7
    mark = "!" if rival.is_disturbed else ""
    ordered = sorted(rival.samples_us)
    spread = (ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4]) / 2
    ratio = "" if rival is ours else str(paired_ratio(rival.samples_us, ours.samples_us))
    median = rival.median_us
    return [
        f"{median / 1e3:.3f}{mark}",
        f"{spread / median:.1%}",
        *(f"{_quantile(ordered, share) / 1e3:.3f}" for share in (0.9, 0.99, 0.0)),
        f"{1e6 / median:.0f}",
        ratio,
    ]


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the least of sorted values that so many of them do not exceed."""
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


def _shares(times: ModelTimes) -> Table:
    columns = [Column("how")]
    columns += [Column(name, right=True) for name in ("nodes", "us", "share")]
    total = sum(node.us for node in times.nodes) or 1.0
    cells = [
        [how, str(count), time(us), f"{us / total:.1%}"]
        for how, (count, us) in times.shares.items()
    ]
    cells.append(["all nodes", str(len(times.nodes)), time(total), "100.0%"])
    return Table(columns, cells)


def _layers(times: ModelTimes) -> Table:
    run = times.run
    total = sum(node.us for node in times.nodes) or 1.0
    columns = [Column("layer"), Column("problem"), Column("dtype")]
    names = ("us", "share", "FP32 us", "over FP32", "GOPS", "op/byte", "roof us", "of roof")
    columns += [Column(name, right=True) for name in names]
    columns += [Column("bound"), Column("implementation")]
    cells = []
    for row in run.rows:
        if row.line in (WHOLE, AT_ONCE) or row.dtype == _F32:
            continue
        like, over = run.twin(row, _F32), run.over(row, _F32)
        floats = ["", ""] if like is None or over is None else [time(like.median_us), str(over)]
        cells.append(
            [
                row.line,
                row.problem,
                row.dtype,
                time(row.median_us),
                f"{row.median_us / total:.1%}",
                *floats,
                f"{row.gops:.0f}",
                f"{row.intensity:.0f}",
                *_roof(times, row),
                row.impl,
            ]
        )
    return Table(columns, [list(map(printable, row)) for row in cells])


def _roof(times: ModelTimes, row: Row) -> list[str]:
    """Return the least time that the machine allows, the part of it reached, and what bounds it."""
    limits = times.run.limits_of(row)
    if limits is None:
        return ["-", "-", "-"]
    floors = limits.floors_us(row.ops, row.nbytes, Precision.parse(row.dtype))
    del floors["call"]  # within a network there is none
    bound = max(floors, key=lambda name: floors[name])
    return [time(floors[bound]), f"{floors[bound] / row.median_us:.0%}", bound]


def _notes(times: ModelTimes) -> Iterator[str]:
    yield (
        "the whole model: every runtime called from Python on the same arrays, in turn in one "
        "process, on as many threads; ±: half the distance of the quartiles; p90, p99: what so "
        "many hundredths of the calls do not exceed; calls/s: by the median, each of a whole "
        f"batch; times ours: over our {_own_form(times)} form"
    )
    if times.callers > 1:
        yield (
            "callers at once: threads of one process, which call without a pause; they share our "
            "network, and have a session each of another runtime; calls/s: of all callers, by "
            "what a call takes on average; of ours: against our "
            f"{_own_form(times)} form"
        )
    yield (
        "FP32: the same model with quantizers left out, weights and tensors as floats; layers: "
        "medians in their places in the network, with the caches as they are there"
    )
    yield (
        "roof: the least time by the peak and the bandwidth that were measured on this machine; of "
        "roof: the part of it that is reached"
    )
    yield f"memory of a call: {times.memory}"
    pythonic = [node.name for node in times.nodes if node.calls_python]
    if pythonic:
        names, share = ", ".join(map(printable, pythonic)), f"{times.python_share:.1%} of the time"
        yield f"for {len(pythonic)} nodes Python is entered, {share}: {names}"
    if times.left:
        names = ", ".join(map(printable, times.left))
        yield f"not in the program, as values decide dims there, but one by one behind it: {names}"
    yield from (f"not measured: {name}: {printable(why)}" for name, why in times.refused)
    if any(rival.is_disturbed for row in times.run.rows for rival in row.rivals):
        yield "!: more than a quarter of the samples were disturbed by something else"
