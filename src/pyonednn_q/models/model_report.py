"""A model told: every node of it, as text, as JSON or as a page of HTML."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyonednn_q.dtypes import Array
from pyonednn_q.graph.change import traced
from pyonednn_q.graph.graph import Graph
from pyonednn_q.models.node_measures import node_measures
from pyonednn_q.models.node_report import NodeReport, of_nodes
from pyonednn_q.native import runtime
from pyonednn_q.report.progress import counted
from pyonednn_q.report.table import Column, Table
from pyonednn_q.report.told import Told
from pyonednn_q.shown import printable, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyonednn_q.models.model_file import ModelFile
    from pyonednn_q.models.node_measures import NodeMeasure

__all__ = ["ModelReport"]

SCHEMA = 1
_WIDE = 40  # characters of a name
_MEASURED = "us: median of a node in its place; SQNR: beside the float model, of all up to there"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelReport(Told):
    """Report of a model.

    Attributes
    ----------
    title : str
        Name of the file.
    summary : str
        Numbers of nodes and tensors, inputs and outputs.
    graph : Graph
        Graph that runs.
    nodes : tuple of NodeReport
        Report of each node of that.
    """

    title: str
    summary: str
    graph: Graph
    nodes: tuple[NodeReport, ...]

    @classmethod
    def of(cls, file: ModelFile, inputs: Mapping[str, Array] | None = None) -> ModelReport:
        """Tell all nodes of a model; with inputs, also what each takes, and its SQNR."""
        graph = file.model.graph
        measures: Mapping[str, NodeMeasure] = {}
        if inputs is not None:
            measures = node_measures(file, inputs)
        told = of_nodes(graph, measures)
        nodes = list(counted(told, "asking the library what it refused", len(graph.nodes)))
        return cls(file.path.name, repr(file.graph)[1:-1], graph, tuple(nodes))

    @property
    def counts(self) -> dict[str, int]:
        """Number of nodes that run in each way."""
        return dict(Counter(each.how for each in self.nodes))

    @property
    def us(self) -> float:
        """Microseconds of all nodes together; 0 where nothing was measured."""
        return sum(each.us or 0.0 for each in self.nodes)

    def about(self) -> list[str]:
        """Return what is said above the nodes, line by line."""
        originals = {name for each in self.nodes for name in each.originals}
        counts = ", ".join(f"{count} {how}" for how, count in self.counts.items())
        isa, version = runtime.isa().text(), ".".join(map(str, runtime.version()))
        where = f"oneDNN {version}, {isa}, {runtime.threading_runtime()}"
        return [
            self.summary,
            f"{len(originals)} nodes of the model are {len(self.nodes)} calls: {counts}",
            f"{where}, {runtime.get_num_threads()} threads",
            *([f"{self.us:.1f} us in all nodes; {_MEASURED}"] if self.us else []),
        ]

    def text(self, *, trace: bool = False) -> str:
        """Return a table of all nodes; with `trace`, all of each node behind it."""
        parts = [*map(printable, (self.title, *self.about())), "", self._table().text()]
        if trace:
            parts += ["", *map(printable, traced(self.graph.changes))]
            for at, each in enumerate(self.nodes, 1):
                parts += ["", f"{at} {printable(each.name)}"]
                parts += [f"  {word:<15} {printable(text)}" for word, text in each.lines()]
                if each.plan is not None:
                    lines = (*str(each.plan).splitlines(), *each.plan.explain().splitlines())
                    parts += [f"    {line}" for line in lines]
        else:
            parts += ["", "--trace tells all of each node, --html draws the graph"]
        return "\n".join(parts)

    def json(self) -> str:
        """Return all of it as JSON; `Plan.from_json` reads what stands under plan."""
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "title": self.title,
            "summary": self.summary,
            "library": ".".join(map(str, runtime.version())),
            "isa": runtime.isa().text(),
            "runtime": runtime.threading_runtime(),
            "threads": runtime.get_num_threads(),
            "counts": self.counts,
            "changes": [each._asdict() for each in self.graph.changes],
            "nodes": [each.plain() for each in self.nodes],
        }
        return json.dumps(content, indent=2, ensure_ascii=False)

    def _parts(self) -> Iterator[str | Table]:
        yield "\n".join(map(printable, (self.title, *self.about())))
        yield self._table()

    def _table(self) -> Table:
        names = ("node", "operators", "how", "post-ops", "exactness", "saturates")
        columns = [Column("", right=True), *map(Column, names)]
        columns += [Column("implementation"), Column("why not INT8")]
        if self.us:
            columns[4:4] = [Column("us", right=True), Column("SQNR dB", right=True)]
        cells = [
            [
                str(at),
                shortened(each.name, _WIDE),
                " + ".join(each.operators),
                each.how,
                *((f"{each.us or 0.0:.1f}", each.sqnr.removesuffix(" dB")) if self.us else ()),
                ", ".join(op.partition(":")[0] for op in each.post_ops) or "-",
                each.exactness or "-",
                each.saturates or ("never" if each.saturation else "-"),
                each.implementation or "-",
                each.why or "-",
            ]
            for at, each in enumerate(self.nodes, 1)
        ]
        return Table(columns, [list(map(printable, row)) for row in cells])
