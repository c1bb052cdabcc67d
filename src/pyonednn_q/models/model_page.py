"""A model's report as a page of HTML: the graph, and what is told of each node by a click."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyonednn_q.argument import instance
from pyonednn_q.models.model_report import ModelReport
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.report.graph_drawing import Box
from pyonednn_q.report.graph_page import graph_page, section

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Value
    from pyonednn_q.models.node_report import NodeReport

__all__ = ["page"]

_LOOKS = {
    "int8": "INT8",
    "codes": "codes moved, quantizers",
    "computed": "codes computed between layers",
    "float": "as ONNX has it",
    "end": "inputs and outputs",
}
_OF_HOW = {
    "reference": "float",
    "floats": "float",
    "codes computed": "computed",
    "codes moved": "codes",
    "quantizer": "codes",
}


def page(report: ModelReport) -> str:
    """Return the page of a model."""
    instance("report", report, ModelReport)
    return graph_page(report.title, report.about(), _LOOKS, list(_parts(report)))


def _parts(report: ModelReport) -> Iterator[tuple[Box, str]]:
    """Yield a box and what is told of it: of inputs, nodes, outputs."""
    graph = report.graph
    makers: dict[str, int] = {}
    count = 0
    for name, info in graph.inputs.items():
        makers[name] = count
        count += 1
        yield (
            Box("input", name, "end", f"{name}: {info}", (), _made(info)),
            section(name, [("input", str(info))]),
        )
    for node, each in zip(fused_nodes(graph), report.nodes, strict=True):
        reads = tuple(makers[name] for name in node.reads if name in makers)
        makers.update((name, count) for name in node.outputs if name)
        count += 1
        title = " + ".join(each.operators)
        look = _OF_HOW.get(each.how, "int8" if each.how.startswith("INT8") else "float")
        leaves = _made(graph.tensors.get(node.output) or graph.outputs.get(node.output))
        tip = f"{each.name}: {each.how}"
        share = (each.us or 0.0) / (report.us or 1.0)
        box = Box(title, each.name, look, tip, reads, leaves, each.measured, share)
        yield box, _of_node(each)
    for name, info in graph.outputs.items():
        reads = (makers[name],) if name in makers else ()
        yield (
            Box("output", name, "end", f"{name}: {info}", reads),
            section(name, [("output", str(info))]),
        )


def _of_node(each: NodeReport) -> str:
    plan = "" if each.plan is None else each.plan._repr_html_()
    return section(each.name, each.lines(), plan)


def _made(info: Value | None) -> str:
    """Return the data type and dims of a tensor, as they stand on its ways."""
    if info is None:
        return ""
    return f"{info.dtype} {'×'.join(map(str, info.dims or ()))}".rstrip()
