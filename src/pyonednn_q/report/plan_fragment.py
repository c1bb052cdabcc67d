"""A plan as one element of HTML, for notebooks and pages.

It needs nothing else: its style comes along, and colours are the page's own, thinned, so that it
reads on light and dark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from pyonednn_q.shown import shortened

__all__ = ["TraceEvent", "plan_fragment"]

_STYLE = """\
.onednn-plan { line-height: 1.45; max-width: 64em; }
.onednn-plan code, .onednn-plan td, .onednn-plan pre { font-family: ui-monospace, monospace; }
.onednn-plan code, .onednn-plan pre { background: none; color: inherit; font-size: .92em; }
.onednn-plan code, .onednn-plan pre { overflow-wrap: anywhere; white-space: pre-wrap; }
.onednn-plan table { border-collapse: collapse; margin: .6em 0; font-size: .92em; }
.onednn-plan table { display: block; overflow-x: auto; }
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
.onednn-plan .drawn { margin: .6em 0; overflow-x: auto; }
.onednn-plan .drawn svg { display: block; max-width: none; }
.onednn-plan .drawn text { fill: currentColor; font: 12px ui-monospace, monospace; }
.onednn-plan .drawn .head { font: 12px system-ui, sans-serif; opacity: .8; }
.onednn-plan .drawn rect { fill: rgba(128, 128, 128, .14); stroke: rgba(128, 128, 128, .7); }
.onednn-plan .drawn .free { fill: rgba(30, 150, 90, .2); stroke: rgb(30, 150, 90); }
.onednn-plan .drawn .paid { fill: rgba(200, 150, 20, .2); stroke: rgb(190, 140, 20); }
.onednn-plan .drawn .lost { fill: rgba(210, 80, 40, .22); stroke: rgb(210, 80, 40); }
.onednn-plan .drawn path { fill: none; stroke: rgba(128, 128, 128, .8); }
"""


# From left to right through a primitive; what has no place here is a post-op.
_ORDER = {"weights": 0, "wei_scale": 0, "bias": 1, "dst_scale": 3, "dst_zero_point": 4, "store": 5}
_ORDER |= {"left over": 6, "nothing": 7}
_LONG = re.compile(r"\d+\.\d{5,}(?:e[+-]\d+)?")  # numbers of more digits than tell something
_WIDE, _RIGHT, _HIGH, _MOST = 206, 276, 26, 26


class TraceEvent(NamedTuple):
    """A rule that fired or was refused, as text; `at` is the place in the chain."""

    rule: str
    label: str
    at: int
    fired: bool
    identity: str
    before: str
    after: str
    remarks: tuple[tuple[str, str], ...]


def plan_fragment(
    title: str,
    chain: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    verdict: str,
    *,
    promise: str,
    became: Sequence[tuple[str, str, Sequence[str]]],
    events: Sequence[TraceEvent],
    benchdnn: str,
) -> str:
    """Return a plan as one element of HTML; without benchdnn's options where there are none."""
    parts = [
        f"<style>\n{_STYLE}</style>",
        f"<div><strong>{escape(title)}</strong></div>",
        f'<div class="chain">chain: <code>{escape(chain)}</code></div>',
        _before_and_after(became),
        _table(heads, rows),
        f'<div title="{escape(promise)}">{escape(verdict)}</div>',
        _trace(events),
        _benchdnn(benchdnn) if benchdnn else "",
    ]
    return '<div class="onednn-plan">\n' + "\n".join(filter(None, parts)) + "\n</div>"


def _before_and_after(became: Sequence[tuple[str, str, Sequence[str]]]) -> str:
    """Return the steps of a chain on the left, and what carries them on the right."""
    if not became:
        return ""
    ends = list(dict.fromkeys(end for _, _, carried in became for end in carried))
    ends.sort(key=lambda end: _ORDER.get(end.partition(":")[0], 2))
    heads = [(0, "the chain"), (_RIGHT, "the primitive")]
    parts = [f'<text class="head" x="{x + 8}" y="14">{head}</text>' for x, head in heads]
    for at, (word, steps, carried) in enumerate(became):
        parts.append(_end(0, at, word, "", word if word == steps else f"{word}: {steps}"))
        for to in map(ends.index, carried):
            (x0, y0), (x1, y1) = (_WIDE, _y(at) + _HIGH / 2), (_RIGHT, _y(to) + _HIGH / 2)
            bend = (x1 - x0) / 2
            parts.append(f'<path d="M{x0} {y0}C{x0 + bend} {y0} {x1 - bend} {y1} {x1} {y1}"/>')
    for at, end in enumerate(ends):
        place = _ORDER.get(end.partition(":")[0], 2)
        look = {2: "paid", 6: "lost", 7: ""}.get(place, "free")
        parts.append(_end(_RIGHT, at, f"post-op {end}" if place == 2 else end, look, end))
    height = _y(max(len(became), len(ends)))
    size = f'viewBox="0 0 {_RIGHT + _WIDE} {height}" width="{_RIGHT + _WIDE}" height="{height}"'
    return f'<div class="drawn"><svg {size} role="img">{"".join(parts)}</svg></div>'


def _y(at: int) -> int:
    return 24 + at * (_HIGH + 8)


def _end(x: int, at: int, text: str, look: str, tip: str) -> str:
    kind = f' class="{look}"' if look else ""
    text = _LONG.sub(lambda number: f"{float(number[0]):.4g}", text)
    return (
        f"<g><title>{escape(tip)}</title>"
        f'<rect{kind} x="{x + 1}" y="{_y(at)}" width="{_WIDE - 2}" height="{_HIGH}" rx="4"/>'
        f'<text x="{x + 8}" y="{_y(at) + 17}">{escape(shortened(text, _MOST))}</text></g>'
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{cell}</th>' for cell in heads)
    body = "\n".join(map(_row, rows))
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(row: Sequence[str]) -> str:
    if row[0][:1].isdigit():
        kind = ' class="post-op"'
    else:
        kind = ' class="left-over"' if row[0] in {"left over", "because"} else ""
    return f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"


def _trace(events: Sequence[TraceEvent]) -> str:
    if not events:
        return '<div class="muted">nothing was rewritten</div>'
    fired = sum(event.fired for event in events)
    summary = f"trace: {fired} rewritten, {len(events) - fired} refused"
    told = "\n".join(map(_event, events))
    return f"<details>\n<summary>{summary}</summary>\n{told}\n</details>"


def _event(event: TraceEvent) -> str:
    mark = "fired" if event.fired else "refused"
    head = (
        f'<strong>{escape(event.rule)}</strong> <span class="label">{escape(event.label)}'
        f"</span> {mark} at {event.at}"
    )
    lines = [head, f'<span class="muted">{escape(event.identity)}</span>']
    lines.append(f"<code>{escape(event.before)}</code>")
    if event.fired:
        lines.append(f"→ <code>{escape(event.after)}</code>")
    lines += [f"{name}: {escape(text)}" for name, text in event.remarks]
    return f'<div class="event {mark}">' + "<br>".join(lines) + "</div>"


def _benchdnn(options: str) -> str:
    return f"<details>\n<summary>benchdnn</summary>\n<pre>{escape(options)}</pre>\n</details>"
