"""float_model: a float graph on our own primitives, and its tensors on samples, as observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyonednn_q.argument import each
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.chain_reader import ChainReader
from pyonednn_q.onnx.choices import Bindings, Key, is_open
from pyonednn_q.onnx.float_layers import float_layer
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import passed, prepared
from pyonednn_q.onnx.quantized_form import with_norms_as_layers


def float_model(graph: Graph) -> Model:
    """Return a float graph as a model that runs.

    Parameters
    ----------
    graph : Graph
        Graph without quantizers.
    """
    return Model(passed(graph, (with_float_calls,)))


def with_float_calls(graph: Graph) -> Graph:
    """Make one call in float32 of each layer and what follows it, and of all other nodes.

    Parameters
    ----------
    graph : Graph
        Without quantizers. A layer's chain ends at an output of the graph.
    """
    view = GraphView(graph)
    chains = ChainReader(view)
    by_place: dict[int, FusedNode] = {}
    for node in reversed(graph.nodes):
        if node.row.layer and not view.is_taken(node):
            layer = float_layer(view, chains, node)
            if isinstance(layer, FusedNode):
                by_place[view.take(layer.parts)] = layer
    for place, node in enumerate(graph.nodes):
        if not view.is_taken(node):
            by_place[place] = FusedNode.as_it_is(node)
    return replace(graph, nodes=tuple(by_place[place] for place in sorted(by_place)))


def observed(
    graph: Graph, batches: Iterable[Any], names: Callable[[Graph], Iterable[str]]
) -> Iterator[dict[str, Array]]:
    """Yield tensors and inputs of a graph for each batch.

    Parameters
    ----------
    graph : Graph
        Graph of floats; behind `prepared` where its lengths are known.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs, as `calibrate` takes them. Read once, and not kept.
    names : callable
        Function from the graph of certain lengths to names of its tensors.

    Raises
    ------
    ArgumentError
        No batches, or inputs that are missing.
    """
    bindings = Bindings(graph)
    models: dict[Key, Model] = {}
    for batch in each("batches", batches):
        inputs = named_inputs(tuple(graph.inputs), batch)
        key, known = bindings.of(inputs)
        if key not in models:
            plain = with_norms_as_layers(prepared(known())) if is_open(graph) else graph
            wanted = {name: plain.tensors[name] for name in names(plain) if name not in inputs}
            # One alone: weights are as large as the model.
            models = {key: float_model(replace(plain, outputs=wanted))}
        yield {**inputs, **models[key].run(inputs)}
    if not models:
        raise ArgumentError("batches", "none", "one at least")
