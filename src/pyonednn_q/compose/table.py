"""The table that `print(plan)` shows: attributes and post-ops in the order in which they act."""

from __future__ import annotations

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
    from pyonednn_q.compose.plan import Plan

__all__ = ["HEAD", "Row", "rows", "text", "verdict"]

Row = tuple[str, str, str, str]
_MAP = "what src's zero point adds up to at each place"
HEAD: Row = ("", "mask", "shape", "value")


def text(plan: Plan) -> str:
    """Return the plan as a table."""
    table = indent(Table([Column(name) for name in HEAD], rows(plan)).text(), "  ")
    return "\n".join([plan.facts.text(), f"chain: {plan.chain}", table, verdict(plan)])


def rows(plan: Plan) -> list[Row]:
    """Return name, mask, shape and value of everything that acts, in order."""
    post_ops = [_post_op(plan, index, op) for index, op in enumerate(plan.post_ops)]
    return [*_before(plan), *post_ops, *_after(plan)]


def verdict(plan: Plan) -> str:
    """Return one line: how many post-ops, how exact, how dear."""
    count = len(plan.post_ops)
    ops = "no post-op" if count == 0 else f"{count} post-op" + ("s" if count > 1 else "")
    if plan.exact_rounding:
        ops += "; the integers of ONNX"
    rate = f", at most {plan.rate:.3g} of results changed" if plan.rate else ""
    return f"{ops}; {plan.exactness}{rate}; estimated cost {plan.cost:.2f} of the bare primitive"


def _before(plan: Plan) -> list[Row]:
    rows = [_named(plan, name) for name in ("src_scale", "src_zero_point")]
    if not plan.wei_factor.is_all(1.0):
        rows.append(("wei factor", "", _shape(plan.wei_factor), _summary(plan.wei_factor)))
    rows += [_named(plan, name) for name in ("wei_scale", "wei_zero_point")]
    if plan.bias is not None:
        rows.append(("bias", "", _shape(plan.bias), f"{plan.bias_dtype} {_summary(plan.bias)}"))
    elif plan.bias_later is not None:
        rows.append(("bias", "", "", str(plan.bias_later).replace("x", "bias")))
    return [row for row in rows if row[0]]


def _after(plan: Plan) -> list[Row]:
    rows = [_named(plan, name) for name in ("dst_scale", "dst_zero_point")]
    rows = [row for row in rows if row[0]]
    rows.append(("store", "", "", plan.dst))
    if not plan.is_whole:
        rows.append(("left over", "", "", f"{plan.leftovers} > {plan.facts.dst}"))
        rows.append(("because", "", "", plan.because))
    if plan.sums:
        point = plan.facts.src_zero_point
        terms = [f"{-point:+d} · Σ wei"] if point else []
        terms += ["bias"] if plan.bias is not None or plan.bias_later is not None else []
        rows.append(("added", "", "", f"in s32: {' + '.join(terms)}" if terms else "nothing"))
    rows += [("chosen", "", "", str(choice)) for choice in plan.choices]
    rows += [("note", "", "", note) for note in plan.notes]
    return rows


def _named(plan: Plan, name: str) -> Row:
    structure = getattr(plan.attr, name)
    if structure is None:
        return ("", "", "", "")
    if name in plan.later:
        return (name, str(structure.mask), "1", "of each call")
    vec = dict(plan.constants)[name]
    return (name, str(structure.mask), _shape(vec), _summary(vec))


def _post_op(plan: Plan, index: int, op: PostOp) -> Row:
    name = f"post_op_{index}"
    label = f"{index} {_label(op)}"
    value = dict(plan.constants).get(name)
    leaf = dict(plan.operands).get(name)
    if isinstance(op, BinaryPostOp):
        shape = "x".join(map(str, op.src1.dims))
        if value is None:
            return (label, "", shape, _MAP if leaf == ACC_MAP else f"{leaf} of each call")
        return (label, "", shape, _summary(value))
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
    return "1" if vec.is_per_tensor else str(vec.channels)


def _summary(vec: Vec) -> str:
    """One value, or how the channels spread."""
    if vec.array is None:
        return number(vec.least)
    median = float(np.median(vec.array))
    least, greatest = vec.least + 0.0, vec.greatest + 0.0  # no -0
    return f"{least:.6g} .. {greatest:.6g} (median {median:.6g})"
