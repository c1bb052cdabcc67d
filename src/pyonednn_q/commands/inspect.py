"""``pyonednn-q inspect``: which kernels run, in which layouts, and which copies surround them.

WHAT is a problem in quotes, a suite, a .toml file of problems, or a .npz file with the arrays of a
layer, as for ``why`` but without theirs. --filter chooses lines of a suite.

pyonednn-q inspect "conv 1x64x56x56 64x64x3x3 padding=1" --tail relu_fq
pyonednn-q inspect resnet50 --filter 3x3 --dtype f32,u8s8u8
pyonednn-q inspect layer.npz --json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pyonednn_q.bench import suite
from pyonednn_q.bench.case import Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.trial import Trial
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.inspection import Inspection, inspect
from pyonednn_q.inspection.layer_file import arrays_of, operator_of
from pyonednn_q.report.page import document, preformatted, wide
from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table

__all__ = ["run"]

REFUSED = 1


def run(options: argparse.Namespace) -> int:
    """Print one inspection in full, many as a table; 1 where something is refused."""
    inspections: list[tuple[str, str, Inspection | str]] = []
    for word in options.what:
        if word.endswith(".npz"):
            arrays = arrays_of(Path(word))
            inspections.append((word, "", inspect(operator_of(arrays), arrays["src"].shape)))
            continue
        for line in counted(suite.chosen(word, options.filter), f"inspecting {word}"):
            for precision in options.dtype:
                case = Case(line.shape, precision, options.tail, options.layout)
                inspections.append((line.label, precision.name, _inspected(case)))
    if options.json:
        print(json.dumps([_plain(*each) for each in inspections], indent=1))
    elif len(inspections) == 1 and isinstance(inspections[0][2], Inspection):
        print(str(inspections[0][2]))
    else:
        print(_table(inspections).text())
    if options.html is not None:
        whole = [each for each in inspections if isinstance(each[2], Inspection)]
        parts = [("Kernels", wide(_table(inspections)))]
        parts += [(f"{line} {dtype}", preformatted(str(each))) for line, dtype, each in whole]
        page = document("pyonednn-q inspect", " ".join(options.what), parts)
        options.html.write_text(page, "utf-8", "replace")
    return REFUSED if any(isinstance(each[2], str) for each in inspections) else 0


def _inspected(case: Case) -> Inspection | str:
    """Return the inspection of a case, or why no kernel takes it."""
    try:
        trial = Trial.of(case, Sample.of(case.shape, with_residual=case.tail.has_residual))
    except UnsupportedError as error:
        return str(error)
    return inspect(trial.way.prepared)


def _plain(line: str, dtype: str, inspection: Inspection | str) -> dict[str, object]:
    plain: dict[str, object] = {"line": line, "dtype": dtype}
    if isinstance(inspection, str):
        return {**plain, "refused": inspection}
    return {**plain, **json.loads(inspection.to_json())}


def _table(inspections: list[tuple[str, str, Inspection | str]]) -> Table:
    columns = [Column("line"), Column("dtype"), Column("implementation"), Column("attributes")]
    columns += [Column("copies us", right=True), Column("scratchpad", right=True), Column("notes")]
    cells = []
    for line, dtype, each in inspections:
        if isinstance(each, str):
            cells.append([line, dtype, "-", "", "", "", f"refused: {each}"])
            continue
        copies = sum(copy.us for copy in each.reorders)
        notes = "; ".join((*each.notes, *(str(guard) for guard in each.guards)))
        numbers = (f"{copies:.1f}", str(each.scratchpad_bytes))
        cells.append([line, dtype, each.implementation, each.attributes, *numbers, notes])
    return Table(columns, cells)
