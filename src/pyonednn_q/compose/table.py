"""The table that `print(plan)` shows, and the same as HTML for notebooks.

The HTML is a fragment that needs nothing else: its style comes along, and colours are the page's
own, thinned, so that it reads on light and dark.
"""

from __future__ import annotations

from html import escape
from textwrap import indent
from typing import TYPE_CHECKING

import numpy as np

from pyonednn_q.expr.vec import Vec, number
from pyonednn_q.primitive.dense_facts import ACC_MAP
from pyonednn_q.primitive.post_ops import (
    BinaryPostOp,
    EltwisePostOp,
    PostOp,
    PReluPostOp,
    SumPostOp,
)
from pyonednn_q.tables import Column, Table

if TYPE_CHECKING:
    from pyonednn_q.compose.record import Record
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.rewrite.rule import Exactness

Row = tuple[str, str, str, str]
_MAP = "what src's zero point adds up to at each place"
HEAD: Row = ("", "mask", "shape", "value")


def text(title: str, chain: Chain, rows: list[Row], verdict: str) -> str:
    """Return a plan as a table, under what is composed and above what came of it."""
    table = indent(Table([Column(name) for name in HEAD], rows).text(), "  ")
    return "\n".join([title, f"chain: {chain}", table, verdict])


def verdict(count: int, as_onnx: str, exactness: Exactness, rate: float, cost: float) -> str:
    """Return one line: how many post-ops, how exact, how dear."""
    ops = "no post-op" if count == 0 else f"{count} post-op" + ("s" if count > 1 else "")
    changed = f", at most {rate:.3g} of results changed" if rate else ""
    return f"{ops}; {as_onnx}{exactness}{changed}; estimated cost {cost:.2f} of the bare primitive"


def attribute(name: str, mask: int, vec: Vec | None) -> Row:
    """Return the row of a scale or zero point; None: its value comes with each call."""
    if vec is None:
        return (name, str(mask), "1", "of each call")
    return (name, str(mask), _shape(vec), _summary(vec))


def constant(name: str, vec: Vec, dtype: str = "") -> Row:
    """Return the row of a constant that has no mask."""
    return (name, "", _shape(vec), f"{dtype} {_summary(vec)}".lstrip())


def post_op(index: int, op: PostOp, value: Vec | None, leaf: str | None) -> Row:
    """Return the row of a post-op, with its constant, or the name of its operand."""
    label = f"{index} {_label(op)}"
    if isinstance(op, BinaryPostOp):
        dims = "x".join(map(str, op.src1.dims))
        if value is None:
            return (label, "", dims, _MAP if leaf == ACC_MAP else f"{leaf} of each call")
        return (label, "", dims, _summary(value))
    if isinstance(op, PReluPostOp):
        assert value is not None
        return (label, str(op.mask), _shape(value), _summary(value))
    if isinstance(op, SumPostOp):
        read = f"scale {number(op.scale)}, zero_point {op.zero_point}"
        return (label, "", "", read + (f", read as {op.dtype}" if op.dtype else ""))
    if isinstance(op, EltwisePostOp) and (op.alpha or op.beta):
        return (label, "", "", f"alpha {number(op.alpha)}, beta {number(op.beta)}")
    return (label, "", "", "")


def _label(op: PostOp) -> str:
    if isinstance(op, EltwisePostOp):
        return f"eltwise {op.alg}"
    if isinstance(op, BinaryPostOp):
        return f"binary {op.alg}"
    return "sum" if isinstance(op, SumPostOp) else "prelu"


def _shape(vec: Vec) -> str:
    """Return how many values there are."""
    return "1" if vec.is_per_tensor else str(vec.channels)


def _summary(vec: Vec) -> str:
    """Return one value, or how the channels spread."""
    if vec.array is None:
        return number(vec.least)
    median = float(np.median(vec.array))
    least, greatest = vec.least + 0.0, vec.greatest + 0.0  # no -0
    return f"{least:.6g} .. {greatest:.6g} (median {median:.6g})"


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


def fragment(
    title: str,
    chain: Chain,
    rows: list[Row],
    verdict: str,
    *,
    exactness: Exactness,
    records: tuple[Record, ...],
    benchdnn: str,
) -> str:
    """Return a plan as one element of HTML; without benchdnn's options where there are none."""
    promise = escape(_PROMISES[exactness.rank])
    parts = [
        f"<style>\n{_STYLE}</style>",
        f"<div><strong>{escape(title)}</strong></div>",
        f'<div class="chain">chain: <code>{escape(str(chain))}</code></div>',
        _table(rows),
        f'<div title="{promise}">{escape(verdict)}</div>',
        _trace(records),
        _benchdnn(benchdnn) if benchdnn else "",
    ]
    return '<div class="onednn-plan">\n' + "\n".join(filter(None, parts)) + "\n</div>"


def _table(rows: list[Row]) -> str:
    head = "".join(f'<th scope="col">{cell}</th>' for cell in HEAD)
    body = "\n".join(map(_row, rows))
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(row: Row) -> str:
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


def _benchdnn(options: str) -> str:
    return f"<details>\n<summary>benchdnn</summary>\n<pre>{escape(options)}</pre>\n</details>"
