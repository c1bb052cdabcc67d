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

The package onnx (here {onnx.__version__}) makes and ships cases for every operator: a model,
inputs, and the expected outputs with their tolerance. Each case runs through `pq.onnx.load`, `fuse`
and `Model.run` in up to five forms. The first is the case as it is. In two more forms, all inputs
but the first are constants, as axes and shapes often are, or all inputs are. Cases of one node also
run by the first and by the last opset with the same definition of the operator. Every form gives
the expected outputs or is refused by a typed error; nothing is wrong.

"""
OPERATOR = """

## Operators

This table has the cases of one node.

- **by**: *here*: an operator of this package; *NumPy*: our replacement of `onnx.reference`;
  *reference*: `onnx.reference`, which was compared with ONNX Runtime on drawn attributes.
- **refused**: the number of refused cases, and the reason.

"""
SEVERAL = """

## Models of several nodes

"""
WRONG = """

## Differences of `onnx.reference`

`onnx.reference` differs here from ONNX Runtime and from the standard's text. Its own cases do not
show this; drawn attributes do. Our replacements are in `onnx/reference_*.py`.

"""
ALONE = """

`onnx.reference` alone fails these of its own cases (ImageDecoder needs Pillow and was left out):

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
