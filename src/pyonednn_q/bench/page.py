"""The run as a page of HTML that needs nothing else: no network, no other file, no library.

Tables are sorted by a click, or by Enter, on a heading. Plots are SVG, see `drawing`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape

from pyonednn_q.argument import instance
from pyonednn_q.bench import plots, report
from pyonednn_q.bench.row import Row
from pyonednn_q.bench.run import Run
from pyonednn_q.bench.summary import Ratio
from pyonednn_q.tables import Column, Table, html_page

__all__ = ["document", "html", "wide"]

_STYLE = """
:root { color-scheme: light dark; --line: rgba(128,128,128,.35); --c0: #4477aa; --c1: #d9596a;
  --c2: #228833; --c3: #b59d2c; --c4: #3aa6c8; --c5: #aa3377; --c6: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 92rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.where, .legend { opacity: .8; }
.legend { font-size: .88rem; }
.legend p { margin: .3rem 0; }
.doubt { border-left: 4px solid #d08000; margin: .4rem 0; padding: .1rem .8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .84rem; }
th, td { border-bottom: 1px solid var(--line); padding: .22rem .5rem; text-align: left; }
td { white-space: nowrap; }
td:last-child { min-width: 13rem; overflow-wrap: anywhere; white-space: normal; }
.right { font-variant-numeric: tabular-nums; text-align: right; }
tbody tr:hover { background: rgba(128,128,128,.12); }
th button { all: unset; cursor: pointer; font-weight: 600; white-space: nowrap; }
th button:focus-visible { outline: 2px solid var(--c0); }
th button::after { content: "\\2195"; opacity: .3; padding-left: .3em; }
th[aria-sort=ascending] button::after { content: "\\2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: "\\2193"; opacity: 1; }
svg { display: block; height: auto; max-width: 100%; }
svg text { fill: currentColor; font-size: 12px; }
svg .axis { stroke: currentColor; stroke-width: 1; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .interval { stroke: currentColor; stroke-width: 1.3; }
svg .faint { stroke-dasharray: 4 3; stroke-width: 1.2; }
svg .hollow { fill: none; stroke-dasharray: 4 3; stroke-width: 1.5; }
pre { font-size: .8rem; overflow-x: auto; }
"""
_SCRIPT = """
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const number = text => parseFloat(text.replace(/^[^0-9.-]+/, ""));
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button"; button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = row => row.cells[column].textContent;
      const isNumber = head.classList.contains("right");
      const order = (a, b) => {
        if (!isNumber) return value(a).localeCompare(value(b), "en", {numeric: true});
        const [x, y] = [number(value(a)), number(value(b))];
        if (isNaN(x) || isNaN(y)) return (isNaN(x) - isNaN(y)) * (up ? 1 : -1);
        return x - y;
      };
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(a, b)));
    });
  });
}
"""


def html(run: Run) -> str:
    """Return the run as a page."""
    instance("run", run, Run)
    suites = dict.fromkeys(row.suite for row in run.rows if row.suite)
    title = "pyonednn-q bench" + (f": {', '.join(suites)}" if suites else "")
    return document(title, report.where(run), _parts(run), run.warnings)


def document(
    title: str, where: str, parts: Iterable[tuple[str, str]], doubts: Iterable[str] = ()
) -> str:
    """Return a page of parts in the look of all of them.

    Parameters
    ----------
    title, where : str
        What was measured, and where.
    parts : iterable of (str, str)
        Heading, and what stands below it: HTML.
    doubts : iterable of str
        What makes the numbers doubtful.
    """
    written = [f'<p class="where">{escape(where)}</p>']
    written += [f'<p class="doubt">{escape(doubt)}</p>' for doubt in doubts]
    written += [f"<h2>{escape(heading)}</h2>\n{part}" for heading, part in parts]
    return html_page(title, "\n".join(written), style=_STYLE, script=_SCRIPT)


def _parts(run: Run) -> Iterator[tuple[str, str]]:
    measured = [row for row in run.rows if row.samples_us]
    settings = {_where(row): row.setting for row in measured}
    for where, setting in settings.items():
        rows = [row for row in measured if row.setting == setting]
        bars = plots.speedups(run, rows)
        if bars:
            yield f"Times faster than {run.baselines[0]} ({where})", bars
    totals = _totals(run)
    if totals is not None:
        yield "Whole suites", wide(totals)
    yield "Lines", wide(report.rows(run, verbose=True))
    steps = report.ladder(run)
    if steps is not None:
        yield "By instruction set", wide(steps)
    for where, setting in settings.items():
        rows = [row for row in measured if row.setting == setting]
        if run.limits_of(rows[0]) is not None:
            yield f"Roofline ({where})", plots.roofline(run, rows)
    lines = "\n".join(f"<p>{escape(line)}</p>" for line in report.notes(run))
    yield "What it means", f'<div class="legend">\n{lines}\n</div>'
    commands = "\n".join(report.commands(run))
    details = f"<details><summary>commands</summary><pre>{escape(commands)}</pre></details>"
    yield "How to measure each line again", details


def _where(row: Row) -> str:
    threads = "1 thread" if row.threads == 1 else f"{row.threads} threads"
    return ", ".join(filter(None, [row.isa, threads, row.cache]))


def wide(table: Table) -> str:
    """Return a table that scrolls where it is wider than the page."""
    return f'<div class="wide">\n{table.html()}\n</div>'


def _totals(run: Run) -> Table | None:
    """Return the sums of suites, a row each type."""
    names = ("suite", "isa", "threads", "cache", "tail", "layout", "dtype")
    columns = [Column(name) for name in names]
    columns += [Column(name, right=True) for name in ("lines", "ms", "over the first")]
    columns.append(Column("left out, being disturbed"))
    cells = []
    for total in run.totals:
        for dtype, ms in total.ms.items():
            ratio = total.over_first.get(dtype)
            over = ""
            if ratio is not None:
                value, lo, hi = ratio
                over = str(Ratio(value, lo, math.inf if hi is None else hi))
                over += f" ({lo:.2f}..{math.inf if hi is None else hi:.2f})" if "x" in over else ""
            where = (total.isa or "all", str(total.threads), total.cache, total.tail, total.layout)
            sums = (f"{total.lines}", f"{ms:.3f}" if total.lines else "-", over)
            cells.append([total.suite, *where, dtype, *sums, ", ".join(total.left_out)])
    return Table(columns, cells) if cells else None
