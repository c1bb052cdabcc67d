"""Tensors of a float graph on samples, batch after batch, of any lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pyonednn_q.argument import each
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph.graph import Graph
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.choices import Bindings, Key, is_open
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import with_norms_as_layers

__all__ = ["observed"]

Array = np.ndarray[Any, Any]


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
        From the graph of certain lengths to names of its tensors.

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
