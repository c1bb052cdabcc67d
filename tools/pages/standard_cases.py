"""Write docs/reference/standard_cases.md: every case of the standard, operator by operator.

python tools/pages/standard_cases.py > docs/reference/standard_cases.md
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx

from pyonednn_q.graph.kinds import KINDS
from pyonednn_q.onnx.backend import OPERATORS
from pyonednn_q.onnx.reference_repairs import REPAIRED
from pyonednn_q.report.table import Column, Table

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.standard.cases import StandardCase, cases
from support.standard.verdict import StandardVerdict, judged

Judged = Iterable[tuple[StandardCase, StandardVerdict]]

HEAD = f"""\
# The standard's cases

Written by `tools/pages/standard_cases.py`; do not edit.
`tests/peers/onnx/test_standard_cases.py` runs all of it again.

The package onnx (here {onnx.__version__}) makes and ships cases for every operator: a model, inputs
and what they must give, as near as it says. Each runs through `pq.onnx.load`, `fuse` and
`Model.run` as it is; with all inputs but the first as constants, as models have axes and shapes;
with all of them as constants; and, of one node, by the first and the last opset that have the
operator the same. What comes out is right in all of these forms, or refused by a typed error;
nothing is wrong.

"""
OPERATOR = """

## Operators

Of cases of one node.

- **by**: *here*: an operator of this package; *NumPy*: what stands for `onnx.reference` here;
  *reference*: `onnx.reference`, compared with ONNX Runtime's results by drawn attributes.
- **refused**: how many cases, and why.

"""
SEVERAL = """

## Models of several nodes

"""
WRONG = """

## Otherwise in `onnx.reference`

Its own cases do not show this; drawn attributes do, beside ONNX Runtime and the standard's text.
What stands for it is in `onnx/reference_*.py`.

"""
ALONE = """

Alone, `onnx.reference` has these of its own cases otherwise (ImageDecoder needs Pillow, and is not
looked at):

"""

_OF_PILLOW = ("ImageDecoder",)


def page(results: Judged) -> Iterator[str]:
    """Give the parts of the page."""
    known = list(results)
    yield HEAD
    yield _sources(known)
    yield OPERATOR
    of_one = [each for each in known if len(each[0].operators) == 1]
    yield _operators(of_one)
    yield SEVERAL
    yield _several([each for each in known if each not in of_one])
    yield WRONG
    cells = [[f"`{name}`", words] for name, words in sorted(REPAIRED.items())]
    yield Table([Column("operator"), Column("there")], cells).markdown()
    yield ALONE
    yield _alone(known)


def _sources(known: list[tuple[StandardCase, StandardVerdict]]) -> str:
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for case, verdict in known:
        rows[case.source].update(["cases", "refused" if verdict.reason else "right"])
        rows[case.source].update(["forms"] * len(verdict.right))
    names = ("cases", "right", "refused", "forms")
    columns = [Column("cases from"), *(Column(name, right=True) for name in names[:3])]
    columns.append(Column("forms that are right", right=True))
    cells = [[source, *(str(counts[name]) for name in names)] for source, counts in rows.items()]
    return Table(columns, cells).markdown()


def _reasons(verdicts: Iterable[StandardVerdict]) -> str:
    """Return why cases are refused, and how many for each reason."""
    counts = Counter(each.reason for each in verdicts if each.reason)
    later = {
        words
        for each in verdicts
        if not each.reason
        for words in each.refused.values()
        if words not in counts
    }
    told = [f"{count}: {words}" for words, count in sorted(counts.items())]
    return "; ".join([*told, *(f"as constants: {words}" for words in sorted(later))])


def _operators(known: list[tuple[StandardCase, StandardVerdict]]) -> str:
    rows: defaultdict[str, list[StandardVerdict]] = defaultdict(list)
    for case, verdict in known:
        rows[case.operators[0]].append(verdict)
    cells = []
    for name, verdicts in sorted(rows.items()):
        right = sum(not each.reason for each in verdicts)
        cells.append(
            [f"`{name}`", str(len(verdicts)), str(right), _by(name, right), _reasons(verdicts)]
        )
    columns = [Column("operator"), Column("cases", right=True), Column("right", right=True)]
    return Table([*columns, Column("by"), Column("refused")], cells).markdown()


def _by(name: str, right: int) -> str:
    if not right:
        return ""
    row = KINDS.get(name)
    if name in OPERATORS:
        return "here"
    also = "here, " if row is not None and row.ours else ""
    return also + ("NumPy" if name in REPAIRED else "reference")


def _several(known: list[tuple[StandardCase, StandardVerdict]]) -> str:
    rows: defaultdict[str, list[StandardVerdict]] = defaultdict(list)
    for case, verdict in known:
        is_function = "_expanded" in case.name
        rows["functions that are written out" if is_function else case.source].append(verdict)
    cells = [
        [name, str(len(each)), str(sum(not v.reason for v in each)), _reasons(each)]
        for name, each in sorted(rows.items())
    ]
    columns = [Column("models"), Column("cases", right=True), Column("right", right=True)]
    return Table([*columns, Column("refused")], cells).markdown()


def _alone(known: list[tuple[StandardCase, StandardVerdict]]) -> str:
    failing = [
        (case, verdict) for case, verdict in known if verdict.alone and case.operators != _OF_PILLOW
    ]
    counts = Counter(
        (case.operators[0] if len(case.operators) == 1 else "several nodes", bool(verdict.reason))
        for case, verdict in failing
    )
    cells = [
        [f"`{name}`" if name != "several nodes" else name, str(count), "refused" if no else "right"]
        for (name, no), count in sorted(counts.items())
    ]
    columns = [Column("operator"), Column("cases", right=True), Column("here")]
    return Table(columns, cells).markdown() + "\n"


if __name__ == "__main__":
    sys.stdout.write("".join(page((case, judged(case)) for case in cases())))
