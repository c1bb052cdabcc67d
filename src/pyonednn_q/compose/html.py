"""The plan as HTML, for notebooks: the table of `print(plan)`, and the trace to unfold.

A fragment that needs nothing else: its style comes along, and colours are the page's own, thinned,
so that it reads on light and dark.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pyonednn_q.compose import table
from pyonednn_q.errors import ArgumentError

if TYPE_CHECKING:
    from pyonednn_q.compose.plan import Plan
    from pyonednn_q.compose.record import Record

__all__ = ["fragment"]

_STYLE = """\
.onednn-plan { line-height: 1.45; max-width: 64em; }
.onednn-plan code, .onednn-plan td, .onednn-plan pre { font-family: ui-monospace, monospace; }
.onednn-plan code, .onednn-plan pre { background: none; color: inherit; font-size: .92em; }
.onednn-plan code, .onednn-plan pre { overflow-wrap: anywhere; white-space: pre-wrap; }
.onednn-plan table { border-collapse: collapse; margin: .6em 0; font-size: .92em; }
.onednn-plan th, .onednn-plan td { border-bottom: 1px solid rgba(128, 128, 128, .35); }
.onednn-plan th, .onednn-plan td { padding: .2em .9em .2em 0; text-align: left; }
.onednn-plan tr { background: none !important; }
.onednn-plan tr.post-op td { background: rgba(128, 128, 128, .12); }
.onednn-plan tr.left-over td { background: rgba(220, 120, 0, .22); }
.onednn-plan td, .onednn-plan .chain { color: inherit; }
.onednn-plan .label { border: 1px solid; border-radius: .3em; font-size: .8em; padding: 0 .35em; }
.onednn-plan .muted { opacity: .72; }
.onednn-plan summary { cursor: pointer; margin: .3em 0; }
.onednn-plan .event { border-left: 3px solid; margin: .5em 0; padding-left: .7em; }
.onednn-plan .fired { border-color: rgb(30, 150, 90); }
.onednn-plan .refused { border-color: rgb(200, 120, 20); }
"""

_PROMISES = {
    0: "equal float32 values for every finite input",
    1: "equal in real arithmetic, ties included; float32 may differ in the last bit",
    2: "differs by that many levels at most, at the stated rate",
}


def fragment(plan: Plan) -> str:
    """Return the plan as one element of HTML."""
    promise = escape(_PROMISES[plan.exactness.rank])
    parts = [
        f"<style>\n{_STYLE}</style>",
        f"<div><strong>{escape(plan.facts.text())}</strong></div>",
        f'<div class="chain">chain: <code>{escape(str(plan.chain))}</code></div>',
        _table(plan),
        f'<div title="{promise}">{escape(table.verdict(plan))}</div>',
        _trace(plan.records),
        _benchdnn(plan),
    ]
    return '<div class="onednn-plan">\n' + "\n".join(filter(None, parts)) + "\n</div>"


def _table(plan: Plan) -> str:
    head = "".join(f'<th scope="col">{cell}</th>' for cell in table.HEAD)
    body = "\n".join(_row(row) for row in table.rows(plan))
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(row: table.Row) -> str:
    if row[0][:1].isdigit():
        kind = ' class="post-op"'
    else:
        kind = ' class="left-over"' if row[0] in {"left over", "because"} else ""
    return f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"


def _trace(records: tuple[Record, ...]) -> str:
    if not records:
        return '<div class="muted">nothing was rewritten</div>'
    fired = sum(record.fired for record in records)
    summary = f"trace: {fired} rewritten, {len(records) - fired} refused"
    events = "\n".join(map(_event, records))
    return f"<details>\n<summary>{summary}</summary>\n{events}\n</details>"


def _event(record: Record) -> str:
    mark = "fired" if record.fired else "refused"
    head = (
        f'<strong>{escape(record.rule)}</strong> <span class="label">{escape(record.exactness)}'
        f"</span> {mark} at {record.at}"
    )
    lines = [head, f'<span class="muted">{escape(record.identity)}</span>']
    lines.append(f"<code>{escape(record.before)}</code>")
    if record.fired:
        lines.append(f"→ <code>{escape(record.after)}</code>")
    lines += [f"{name}: {escape(text)}" for name, text in record.remarks()]
    return f'<div class="event {mark}">' + "<br>".join(lines) + "</div>"


def _benchdnn(plan: Plan) -> str:
    try:
        options = plan.benchdnn()
    except ArgumentError:  # it has no word for everything
        return ""
    return f"<details>\n<summary>benchdnn</summary>\n<pre>{escape(options)}</pre>\n</details>"
