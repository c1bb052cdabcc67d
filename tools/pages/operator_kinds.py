"""Write docs/reference/operator_kinds.md: what becomes of each operator of ONNX.

python tools/pages/operator_kinds.py > docs/reference/operator_kinds.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from textwrap import fill

from pyonednn_q.graph.kind import Kind
from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.report.table import Column, Table

HEAD = """\
# Operator kinds

Written by `tools/pages/operator_kinds.py` from the table of kinds (`graph/kinds.py`); do not edit.

How the operators of a model run, by ONNX's names. Operators of other domains have the domain before
the name.

- **opset**: the first one that has the operator.
- **by**: the operator of this package, or operation of `pq.network`, that computes it; `Lookup`: a
  table of all codes, if it is between quantizers.
- **codes**: how it runs between quantizers: codes are *moved*, with the same scale, or *computed*.
- **in a chain**: the step that it becomes after a layer.
- **dims**: the rule for the dims of results (`graph/shape_rules.py` and `graph/move_rules.py` state
  the formulas); none: the package onnx infers them, if it is installed.
- **float error**: the rule by which `pyonednn-q diff` bounds the float32 error:
  [diff](../onnx_models.md#on-the-command-line).
- **dialects**: the [operator of other runtimes](quantized_operators.md) that `diff` tries if codes
  differ.

On floats, an operator runs as its class under *by*, as `FloatArithmetic` or `FloatMatMul`, or, if
oneDNN has the function, as `Elementwise`. An operator that picks elements by constants of the model
is a `Pick`. All others, and those that are not on this list, run by their definition in Python.

"""
FORMS = """

## Operators on codes

An operator on codes is read as the operator on real values between quantizers, and then runs as
above.

"""
DEFINITIONS = """

## By definition alone

These run through `onnx.reference`, or
[what stands for it here](../onnx_operators.md#what-others-compute), and were compared with ONNX
Runtime. Operators on no list of this page are refused.

"""


def _rows() -> tuple[list[Kind], list[Kind], list[Kind]]:
    """Return the kinds that we compute, those that are read as others, and the rest."""
    forms = [row for row in KINDS.values() if row.means or row.form]
    rest = [row for row in KINDS.values() if row not in forms]
    ours = [row for row in rest if _by(row) or row.chain or row.bound or row.moves]
    plain = [row for row in rest if row not in ours and row.compared]
    return ours, forms, plain


def _by(row: Kind) -> str:
    names = [row.ours, "Lookup" if row.is_table else ""]
    return ", ".join(f"`{name}`" for name in names if name)


def _on_codes(row: Kind) -> str:
    if row.moves == "nearest":
        return "moved, of the nearest; else computed"
    if row.moves:
        return "moved"
    return "computed" if row.on_codes or row.is_table or row.layer else ""


def _step(row: Kind) -> str:
    if row.step is not None:
        return str(row.step({}))
    return {"norm": "scale and shift"}.get(row.chain, row.chain)


def _table(rows: list[Kind]) -> str:
    names = ("operator", "opset", "by", "codes", "in a chain", "dims", "float error", "dialects")
    cells = [
        [
            f"`{row.name}`",
            str(row.since),
            _by(row),
            _on_codes(row),
            _step(row),
            row.dims.name if row.dims else "",
            row.bound.replace("_", " "),
            f"`{row.emulated}`" if row.emulated else "",
        ]
        for row in sorted(rows, key=lambda row: row.name)
    ]
    return Table([Column(name) for name in names], cells).markdown()


def page() -> Iterator[str]:
    """Give the parts of the page."""
    ours, forms, plain = _rows()
    yield HEAD
    yield _table(ours)
    yield FORMS
    cells = [
        [f"`{row.name}`", f"`{row.means}`" if row.means else "`QuantizeLinear`, `DequantizeLinear`"]
        for row in sorted(forms, key=lambda row: row.name)
    ]
    yield Table([Column("operator"), Column("read as")], cells).markdown()
    yield DEFINITIONS
    names = ", ".join(f"`{row.name}`" for row in sorted(plain, key=lambda row: row.name))
    yield fill(f"{names}.", 100, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write("".join(page()))
