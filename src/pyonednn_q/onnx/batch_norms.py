"""renormalized: batch norms whose statistics are those of samples, as a training step makes them.

    for each batch, every norm at once, each from values normalized by the norms before it:
    y      = (x - mean_b) / sqrt(var_b + epsilon) · scale + shift
    mean  <- mean · momentum + mean_b · (1 - momentum)
    var   <- var · momentum + var_b · n / (n - 1) · (1 - momentum)      n: values of a channel

That is what PyTorch says of a BatchNorm that trains, and NNCF's batch norm adaptation is a pass of
those: `momentum` here is one less PyTorch's. It adapts a network that has its quantizers; here the
float network is adapted, and ranges are here behind that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numpy as np

from pyonednn_q.argument import each, instance, whole
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.choices import Bindings, Key, is_open
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import prepared, settled
from pyonednn_q.ops.shapes import Shapes

__all__ = ["has_norms", "renormalized", "with_norms_of"]

_MEAN, _VAR = 3, 4  # inputs of a BatchNormalization
_TRAINS_SINCE = 14  # the opset whose BatchNormalization says what it does in training
_MOMENTUM = 0.9
DEFAULT_SAMPLES = 2000  # the training tool's


class _Training(NamedTuple):
    """A model whose batch norms normalize by their batch, and what it says of them."""

    model: Model
    moments: Mapping[str, tuple[str, str, int]]  # mean, variance and values of a channel, by result


def renormalized(graph: Graph, batches: Iterable[Any], samples: int = DEFAULT_SAMPLES) -> Graph:
    """Return a float graph whose batch norms have the statistics of samples.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs, as for `calibrate`, several samples in each; every batch is one step of adaptation.
    samples : int
        Largest number of samples to read, in whole batches; at least 1.

    Returns
    -------
    Graph
        Graph for `calibrate`. Norms with one value for each channel and batch (they have no
        variance), and norms whose statistics are not constants, are unchanged.

    Raises
    ------
    ArgumentError
        No batches; a graph with quantizers.
    """
    instance("graph", graph, Graph)
    whole("samples", samples, lo=1)
    if any(node.row.is_quantizer for node in graph.nodes):
        raise ArgumentError("graph", "quantizers", "a graph of floats")
    return with_norms_of(graph, each("batches", batches), samples, 0)[0]


def has_norms(graph: Graph) -> bool:
    """Tell whether there is a batch norm in a graph."""
    return any(node.row is kinds.BATCH_NORM for node in graph.nodes)


def with_norms_of(
    graph: Graph, batches: Iterator[Any], samples: int, keep: int | None
) -> tuple[Graph, Iterator[Any], tuple[str, ...]]:
    """Return a float graph whose batch norms have statistics of samples; the batches again; notes.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.
    batches : iterator
        Batches, read as far as needed.
    samples : int
        Number of samples to read, in whole batches.
    keep : int or None
        Number of samples that later readers need; None: all. No more are held in memory.
    """
    base = settled(graph)
    bindings = Bindings(base)
    models: Shapes[Key, _Training] = Shapes()
    held: list[Any] = []
    statistics: dict[str, tuple[Array, Array]] = {}
    skipped: set[str] = set()
    seen = 0
    for batch in batches:
        inputs = named_inputs(tuple(graph.inputs), batch)
        if keep is None or seen < keep:
            held.append(batch)
        key, known = bindings.of(inputs)
        if (training := models.get(key)) is None:
            plain = prepared(known()) if is_open(base) else base
            training = models.add(key, _training(plain, skipped), 0)
            statistics = {**_known(plain, training.moments), **statistics}
        values = training.model.run(inputs) if training.moments else {}
        for node in base.nodes:
            name = node.outputs[0]
            if name in training.moments:
                mean, var, count = training.moments[name]
                here = values[mean], values[var] * (count / (count - 1.0))
                statistics[name] = _moved(node, statistics[name], here)
        seen += max((len(array) for array in inputs.values() if array.ndim), default=1)
        if seen >= samples:
            break
    if not models:
        raise ArgumentError("batches", "none", "one at least")
    told = []
    if statistics and seen < samples:
        told.append(f"batch norms: statistics of {seen} samples, {samples} were asked for")
    told += [
        f"{node.name}: statistics as the model has them, of one value of a channel in a batch"
        for node in base.nodes
        if node.outputs[0] in skipped - statistics.keys()
    ]
    return _with(base, statistics), chain(held, batches), tuple(told)


def _training(plain: Graph, skipped: set[str]) -> _Training:
    """Return a model of certain lengths that normalizes by its batch; note norms that cannot."""
    edit = GraphEdit(plain)
    moments: dict[str, tuple[str, str, int]] = {}
    for node in plain.nodes:
        dims = plain.dims(node.input(0))
        if node.row is not kinds.BATCH_NORM or not _is_constant(node, plain) or not dims:
            edit.nodes.append(node)
            continue
        count = prod(dims) // plain.constants[node.inputs[_MEAN]].size
        if count < 2:
            skipped.add(node.outputs[0])
            edit.nodes.append(node)
            continue
        mean, var = (edit.free(f"{node.outputs[0]}:{part}") for part in ("mean", "var"))
        # At a momentum of 0 what it gives are the moments of the batch.
        attributes = {**node.attributes, "training_mode": 1, "momentum": 0.0}
        edit.nodes.append(
            replace(node, outputs=(node.outputs[0], mean, var), attributes=attributes)
        )
        moments[node.outputs[0]] = (mean, var, count)
    # Between 13 and 14 no other operator changed its meaning.
    changed = edit.result({**plain.opsets, "": max(plain.opset, _TRAINS_SINCE)})
    wanted = {name: changed.tensors[name] for pair in moments.values() for name in pair[:2]}
    return _Training(float_model(replace(changed, outputs=wanted or plain.outputs)), moments)


def _is_constant(node: GraphNode, graph: Graph) -> bool:
    """Return whether a norm has constant statistics and is not in training mode."""
    parts = [graph.constants.get(node.input(at)) for at in (_MEAN, _VAR)]
    trains = node.attributes.get("training_mode", 0) or any(node.outputs[1:])
    return not trains and all(part is not None and part.ndim == 1 for part in parts)


def _known(plain: Graph, names: Iterable[str]) -> dict[str, tuple[Array, Array]]:
    """Return the statistics that norms have, by their results."""
    wanted = frozenset(names)
    return {
        node.outputs[0]: (plain.constants[node.inputs[_MEAN]], plain.constants[node.inputs[_VAR]])
        for node in plain.nodes
        if node.outputs[0] in wanted
    }


def _moved(
    node: GraphNode, old: tuple[Array, Array], here: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the statistics after one step, in float64."""
    rest = node.attributes.get("momentum", _MOMENTUM)
    mean, var = (rest * one + (1.0 - rest) * other for one, other in zip(old, here, strict=True))
    return mean, var


def _with(base: Graph, statistics: Mapping[str, tuple[Array, Array]]) -> Graph:
    """Return a graph with other statistics; norms may have shared theirs, and do not any more."""
    edit = GraphEdit(base)
    for node in base.nodes:
        inputs = list(node.inputs)
        if node.outputs[0] not in statistics:
            edit.nodes.append(node)
            continue
        for at, value in zip((_MEAN, _VAR), statistics[node.outputs[0]], strict=True):
            name = f"{node.outputs[0]}:{'mean' if at == _MEAN else 'var'}"
            inputs[at] = edit.constant(name, value.astype(np.float32))
        edit.nodes.append(replace(node, inputs=tuple(inputs)))
    return edit.result()
