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

from pyonednn_q.bench import report, suite
from pyonednn_q.bench.arguments import choice, listed, pattern, single
from pyonednn_q.bench.case import LAYOUTS, Case
from pyonednn_q.bench.data import Sample
from pyonednn_q.bench.precision import Precision
from pyonednn_q.bench.tail import WORDS, Tail
from pyonednn_q.bench.trial import Trial
from pyonednn_q.errors import UnsupportedError
from pyonednn_q.inspection import Inspection, inspect
from pyonednn_q.inspection.layer_file import arrays_of, operator_of
from pyonednn_q.report.table import Column, Table

__all__ = ["add_arguments", "run"]

REFUSED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "what", nargs="+", metavar="WHAT", help="a problem, a suite, a .toml or a .npz file"
    )
    parser.add_argument(
        "--dtype",
        type=listed(Precision.parse),
        default=(Precision("u8", "s8", "u8"),),
        metavar="LIST",
        help="types of src, weights and dst (default: u8s8u8)",
    )
    parser.add_argument(
        "--tail",
        type=single(Tail),
        default=Tail("none"),
        help=f"what follows the products: none, or words joined by _, of {', '.join(WORDS)}",
    )
    parser.add_argument(
        "--layout",
        type=single(choice("layout", LAYOUTS)),
        default=LAYOUTS[0],
        metavar="LAYOUT",
        help=f"of the src and dst of convolutions: {', '.join(LAYOUTS)} (default: {LAYOUTS[0]})",
    )
    parser.add_argument(
        "--filter",
        type=pattern,
        metavar="REGEX",
        help="only lines whose name or problem has a match",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def run(options: argparse.Namespace) -> int:
    """Print one inspection in full, many as a table; 1 where something is refused."""
    inspections: list[tuple[str, str, Inspection | str]] = []
    for word in options.what:
        if word.endswith(".npz"):
            arrays = arrays_of(Path(word))
            inspections.append((word, "", inspect(operator_of(arrays), arrays["src"].shape)))
            continue
        for line in suite.chosen(word, options.filter):
            for precision in options.dtype:
                case = Case(line.shape, precision, options.tail, options.layout)
                inspections.append((line.label, precision.name, _inspected(case)))
    if options.json:
        report.write(json.dumps([_plain(*each) for each in inspections], indent=1))
    elif len(inspections) == 1 and isinstance(inspections[0][2], Inspection):
        report.write(str(inspections[0][2]))
    else:
        report.write(_table(inspections).text())
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
