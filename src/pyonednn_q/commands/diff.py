"""``pyonednn-q diff``: which node of an ONNX model differs from onnxruntime's first, and why.

Every node runs on what onnxruntime computed before it, so that each difference is the node's own;
where a value differs, arithmetics that have a name are tried until one gives all of onnxruntime's.
Then the whole model runs on the inputs, and its outputs are compared.

pyonednn-q diff model.onnx --input x.npz

The exit code is 0 if every difference is explained, and 1 if one is not.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyonednn_q.commands.words import reading_of
from pyonednn_q.report.page import document, paragraphs, wide
from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.shown import printable

if TYPE_CHECKING:
    import argparse

    from pyonednn_q.models.node_difference import NodeDifference

__all__ = ["run"]

SCHEMA = 1
NOT_EXPLAINED = 1


def run(options: argparse.Namespace) -> int:
    """Print what differs; 1 where nothing explains it."""
    from pyonednn_q.models.model_file import arrays_of, inputs_of, read
    from pyonednn_q.models.node_difference import compared, differences
    from pyonednn_q.models.peer_sessions import onnxruntime_values

    arrays = None if options.input is None else arrays_of(options.input)
    file = read(options.model, arrays, **reading_of(options), as_written=True)
    inputs = inputs_of(file.graph.inputs, arrays, options.seed)
    file = file.chosen(inputs)
    outputs = file.run(inputs)
    nodes = file.model.nodes
    wanted = {name for node in nodes for name in (*node.reads, *node.outputs)}
    theirs = onnxruntime_values(file.graph, inputs, wanted)
    beside = differences(file.model, inputs, theirs)
    node_differences = list(counted(beside, "node by node beside onnxruntime", len(nodes)))
    ends = [compared(name, array, theirs[name]) for name, array in outputs.items()]
    if options.json:
        first = next((each.name for each in node_differences if each.differs), None)
        plain = {
            "schema": SCHEMA,
            "nodes": len(nodes),
            "first": first,
            "compared": [each.plain() for each in node_differences],
            "outputs": [
                {"name": e.name, "values": e.values, "equal": e.equal, "largest": e.largest}
                for e in ends
            ],
        }
        print(json.dumps(plain, indent=1))
    else:
        print(_text(len(nodes), node_differences, ends))
    if options.html is not None:
        lines = _outcome(len(nodes), node_differences)
        parts = [("Nodes", paragraphs(lines) + wide(_table(node_differences)))]
        parts.append(("Outputs", paragraphs(_of_outputs(ends))))
        page = document("pyonednn-q diff", options.model.name, parts)
        options.html.write_text(page, "utf-8", "replace")
    return NOT_EXPLAINED if any(each.unexplained for each in node_differences) else 0


def _text(count: int, node_differences: list[NodeDifference], ends: list[NodeDifference]) -> str:
    differing = [each for each in node_differences if each.differs]
    lines = _outcome(count, node_differences)
    lines += ["", _table(differing).text()] if differing else []
    return "\n".join([*lines, "", *_of_outputs(ends)])


def _outcome(count: int, node_differences: list[NodeDifference]) -> list[str]:
    """Return in lines how many nodes differ, and which is the first."""
    differing = [each for each in node_differences if each.differs]
    exact = len(node_differences) - len(differing)
    lines = [
        f"{count} nodes, {len(node_differences)} beside onnxruntime: {exact} equal in every bit"
    ]
    if differing:
        first = differing[0]
        arithmetic = first.arithmetic or "unexplained"
        lines.append(f"first that differs: {printable(first.name)}, {arithmetic}")
    return lines


def _table(node_differences: list[NodeDifference]) -> Table:
    columns = [Column("node"), Column("how"), Column("values", right=True)]
    columns += [Column(name, right=True) for name in ("differ", "by at most", "unexplained")]
    columns.append(Column("arithmetic"))
    cells = [
        [
            each.name,
            each.how,
            str(each.values),
            str(each.values - each.equal),
            f"{each.largest:.4g}",
            str(each.unexplained),
            ": ".join(
                filter(None, [each.arithmetic or ("none" if each.differs else ""), each.words])
            ),
        ]
        for each in node_differences
    ]
    return Table(columns, [list(map(printable, row)) for row in cells])


def _of_outputs(ends: list[NodeDifference]) -> list[str]:
    """Return a line for each output of the whole model."""
    lines = []
    for each in ends:
        apart = f"{each.values - each.equal} differ, by at most {each.largest:.4g}"
        same = "all equal" if not each.differs else apart
        lines.append(
            f"output {printable(each.name)} of the whole model: {each.values} values, {same}"
        )
    return [*lines, "differences are in codes, of floats in last places of the largest value"]
