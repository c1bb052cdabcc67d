"""The table that `print(plan)` shows, and what notebooks show of it."""

from __future__ import annotations

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
from pyonednn_q.report.plan_fragment import TraceEvent, plan_fragment
from pyonednn_q.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyonednn_q.compose.became import Became
    from pyonednn_q.compose.record import Record
    from pyonednn_q.expr.steps import Chain
    from pyonednn_q.rewrite.rule import Exactness

Row = tuple[str, str, str, str]
_MAP = "what src's zero point adds up to at each place"
HEAD: Row = ("", "mask", "shape", "value")


def text(title: str, chain: Chain, rows: list[Row], verdict: str) -> str:
    """Return a plan as a table, under what is composed and above what came of it."""
    table = Table([Column(name) for name in HEAD], rows).text(margin="  ")
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
    """Return the number of values."""
    return "1" if vec.is_per_tensor else str(vec.channels)


def _summary(vec: Vec) -> str:
    """Return one value, or how the channels spread."""
    if vec.array is None:
        return number(vec.least)
    median = float(np.median(vec.array))
    least, greatest = vec.least + 0.0, vec.greatest + 0.0  # no -0
    return f"{least:.6g} .. {greatest:.6g} (median {median:.6g})"


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
    exactness: Exactness,
    became: Sequence[Became],
    records: Sequence[Record],
    benchdnn: str,
) -> str:
    """Return a plan as one element of HTML; without benchdnn's options where there are none."""
    events = [
        TraceEvent(
            *(record.rule, record.exactness, record.at, record.fired, record.identity),
            *(record.before, record.after, tuple(record.remarks())),
        )
        for record in records
    ]
    return plan_fragment(
        *(title, str(chain), HEAD, rows, verdict),
        promise=_PROMISES[exactness.rank],
        became=became,
        events=events,
        benchdnn=benchdnn,
    )
