"""Time of each node within the running model, and its error against the float model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import Error
from pyonednn_q.graph import kinds
from pyonednn_q.models.timed_form import TimedForm, node_samples
from pyonednn_q.onnx.float_form import float_form
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.fused_node import fused_nodes
from pyonednn_q.quantize.quality import quality

if TYPE_CHECKING:
    from pyonednn_q.graph.graph import Graph, Value
    from pyonednn_q.models.model_file import ModelFile
    from pyonednn_q.onnx.fused_node import FusedNode

__all__ = ["NodeMeasure", "node_measures"]

Values = dict[str, Array]


class NodeMeasure(NamedTuple):
    """Measured time and error of a node.

    Attributes
    ----------
    us : float
        Median microseconds in its place in the network; 0 of a view, which takes none.
    sqnr_db : float or None
        Power of the float model's values over that of the differences of its first output, in dB:
        what all quantizers up to there cost. Infinite where nothing differs; None where the float
        model has no such tensor.
    """

    us: float
    sqnr_db: float | None


def node_measures(file: ModelFile, inputs: Mapping[str, Array]) -> dict[str, NodeMeasure]:
    """Return measures of each node, by its first output.

    Parameters
    ----------
    file : ModelFile
        The model.
    inputs : mapping of str to ndarray
        Inputs of the run.

    Raises
    ------
    Error
        The model does not run on these inputs.
    """
    form = TimedForm.of("", file.graph, file.model, inputs)
    samples = node_samples([form])[form.dtype]
    graph, nodes = form.graph, fused_nodes(form.graph)
    floats = _float_values(file.graph, form.inputs, [name for n in nodes for name in _names(n)])
    ours: Values = {**graph.constants, **form.inputs}
    measures = {}
    for node, call in zip(nodes, form.model.calls, strict=True):
        ours.update(zip(node.outputs, call(ours), strict=True))
        theirs = next((floats[name] for name in _names(node) if name in floats), None)
        info = graph.tensors.get(node.output)
        sqnr = None if theirs is None else _sqnr(ours[node.output], info, theirs)
        measures[node.output] = NodeMeasure(median(samples.get(node.output, [0.0])), sqnr)
    return measures


def _names(node: FusedNode) -> tuple[str, ...]:
    """Return what a node's first output may be called in the float model, the likeliest first."""
    last = node.parts[-1]
    return (node.output, *(last.inputs[:1] if last.row is kinds.QUANTIZE else ()))


def _float_values(graph: Graph, inputs: Mapping[str, Array], names: Iterable[str]) -> Values:
    """Return the tensors of these names that the float model has; none if there is no such form."""
    try:
        source = float_form(graph)
        wanted = {name: source.tensors[name] for name in names if name in source.tensors}
        source = replace(source, outputs=MappingProxyType({**source.outputs, **wanted}))
        floats = {
            name: np.asarray(inputs[name], each.dtype) for name, each in source.inputs.items()
        }
        return float_model(source).run(floats)
    except Error:  # of an operator on codes without a float counterpart
        return {}


def _sqnr(values: Array, info: Value | None, theirs: Array) -> float | None:
    """Return the SQNR of values of ours; None of what is not real, or has other dims there."""
    q = None if info is None else info.qparams
    real = values if q is None else q.dequantize(values)
    arrays = (np.asarray(real), np.asarray(theirs))
    if not theirs.size or real.shape != theirs.shape or any(a.dtype.kind != "f" for a in arrays):
        return None
    return quality(theirs, real).sqnr if all(np.isfinite(a).all() for a in arrays) else None
