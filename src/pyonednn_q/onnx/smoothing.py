"""smoothed: channels of a layer's source made alike, and its weights what makes up for it.

    src' = src / s,  wei' = wei · s                       s: of each input channel, a power of two
    s = 2^round(log2(max|src|^alpha / max|wei|^(1 - alpha)))

One scale for a tensor has room for its widest channel; of one that is a thousandth of it, nothing
is left. The division joins the chain of the layer before, or the gains of a LayerNormalization.
By powers of two float32 results stay as they are, bit for bit. Source: "SmoothQuant" (Xiao et al.,
2023), equations 3 and 4; the powers of two are ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from pyonednn_q.argument import each, instance, real
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.choices import Bindings, Key, is_open
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import prepared
from pyonednn_q.onnx.quantized_form import (
    QuantizerPlacement,
    channels_axis,
    with_norms_as_layers,
)
from pyonednn_q.quantize.corrections import smoothed as smoothed_weights

__all__ = ["smoothed"]

Array = np.ndarray[Any, Any]
_GAIN, _SHIFT = 1, 2  # inputs of a LayerNormalization


def smoothed(graph: Graph, batches: Iterable[Any], alpha: float = 0.5) -> Graph:
    """Return a float graph of the same results, easier to quantize: SmoothQuant's.

    Convolutions of one group, and products whose weights are a matrix, where all that reads their
    source is such a layer, and what computes it a layer's chain or a LayerNormalization.

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs, as `calibrate` takes them. Read once, and not kept.
    alpha : float
        How much of the difficulty moves from sources to weights: 0 to 1.

    Returns
    -------
    Graph
        For `calibrate`. Its float32 results are the same bit for bit, but where a divided channel
        or its weights leave the normal numbers of float32.

    Raises
    ------
    ArgumentError
        No batches; a graph with quantizers.
    """
    instance("graph", graph, Graph)
    share = real("alpha", alpha)
    if not 0.0 <= share <= 1.0:
        raise ArgumentError("alpha", f"{share}", "a number from 0 to 1")
    if any(node.row.is_quantizer for node in graph.nodes):
        raise ArgumentError("graph", "quantizers", "a graph of floats")
    base = graph if graph.symbols else prepared(graph)
    bindings = Bindings(base)
    groups: dict[str, list[GraphNode]] = {}
    tops: dict[str, Array] = {}
    models: dict[Key, Model] = {}
    for batch in each("batches", batches):
        inputs = named_inputs(tuple(graph.inputs), batch)
        key, known = bindings.of(inputs)
        if key not in models:
            plain = with_norms_as_layers(prepared(known())) if is_open(base) else base
            groups = groups or _groups(plain, base)
            models = {key: _observing(plain, tuple(groups))}  # weights are as large as the model
        values = models[key].run(inputs)
        for name, layers in groups.items():
            widest = _tops(values[name], layers[0])
            tops[name] = np.maximum(widest, tops.get(name, widest))
    if not models:
        raise ArgumentError("batches", "none", "one at least")
    return _divided(base, groups, tops, share)


def _groups(plain: Graph, base: Graph) -> dict[str, list[GraphNode]]:
    """Return the layers of `base` that read each source that may be divided."""
    placement, view = QuantizerPlacement(plain, frozenset()), GraphView(plain)
    layers = {id(node) for node in placement.layers}
    own = {node.name: node for node in base.nodes}
    base_view = GraphView(base)
    groups = {}
    for name in placement.tensors:
        producer, readers = view.producer.get(name), view.readers.get(name, [])
        if producer is None or view.reads(name) != len(readers) or not readers:
            continue
        around = base_view.readers.get(name, [])
        if name not in base_view.producer or any(node.row is kinds.IF for node in around):
            continue  # other samples may choose a branch that reads it, or does not make it
        is_dividing = placement.is_in_chain(producer) or _is_norm(producer, base)
        if not is_dividing or not all(id(node) in layers for node in readers):
            continue
        same = [own.get(node.name) for node in readers]
        group = [one for one in same if one is not None and _is_divisible(one, base)]
        if len(group) == len(same) and len({one.row is kinds.CONV for one in group}) == 1:
            groups[name] = group
    return groups


def _is_norm(node: GraphNode, graph: Graph) -> bool:
    """Tell whether a node is a norm of the last dimension whose gains are constants."""
    parts = [graph.constants.get(node.input(at)) for at in (_GAIN, _SHIFT) if node.input(at)]
    is_last = node.attributes.get("axis", -1) == -1 and not any(node.outputs[1:])
    return (
        node.row in {kinds.LAYER_NORM, kinds.RMS_NORM}
        and is_last
        and bool(parts)
        and all(one is not None and one.ndim == 1 for one in parts)
    )


def _is_divisible(node: GraphNode, graph: Graph) -> bool:
    """Tell whether a layer's weights have a dimension that all channels of its source run along."""
    wei = graph.constants.get(node.inputs[1])
    if wei is None or wei.dtype != np.float32:
        return False
    if node.row is kinds.CONV:
        return bool(node.attributes.get("group", 1) == 1)
    is_matrix = node.row is kinds.MATMUL and wei.ndim == 2
    return is_matrix or (node.row is kinds.GEMM and not node.attributes.get("transA", 0))


def _input_axis(node: GraphNode, wei: Array) -> int:
    """Return the dimension of a layer's weights that its source's channels run along."""
    return 1 - (channels_axis(node, wei) or 0)


def _observing(plain: Graph, names: tuple[str, ...]) -> Model:
    return float_model(replace(plain, outputs={name: plain.tensors[name] for name in names}))


def _tops(values: Array, layer: GraphNode) -> Array:
    """Return the largest magnitude of each channel of a layer's source."""
    axis = 1 if layer.row is kinds.CONV else values.ndim - 1
    others = tuple(at for at in range(values.ndim) if at != axis)
    return np.asarray(np.abs(values).max(axis=others, initial=0.0), np.float64)


def _divided(
    graph: Graph, groups: dict[str, list[GraphNode]], tops: dict[str, Array], alpha: float
) -> Graph:
    edit, view = GraphEdit(graph), GraphView(graph)
    changed: dict[int, tuple[str, ...]] = {}  # inputs of nodes
    between: dict[str, tuple[str, str]] = {}  # the constant and the name of what is divided
    for name, layers in groups.items():
        divisor = _divisor(layers, graph, tops[name], alpha)
        if (divisor == 1.0).all():
            continue
        norm = view.producer[name]
        source = name
        if _is_norm(norm, graph):
            parts = {at: norm.input(at) for at in (_GAIN, _SHIFT) if norm.input(at)}
            reads = list(norm.inputs)
            for at, part in parts.items():
                value = (graph.constants[part] / divisor).astype(np.float32)
                reads[at] = edit.constant(f"{part}:smoothed", value)
            changed[id(norm)] = tuple(reads)
        else:
            of_first = graph.constants[layers[0].inputs[1]]
            places = of_first.ndim - 2 if layers[0].row is kinds.CONV else 0
            factor = (1.0 / divisor).astype(np.float32).reshape(-1, *(1,) * places)
            source = edit.free(f"{name}:smoothed")
            between[name] = edit.constant(f"{name}:divisors", factor), source
        for node in layers:
            wei = graph.constants[node.inputs[1]]
            along = divisor.reshape(-1, *(1,) * (wei.ndim - 1 - _input_axis(node, wei)))
            value = (wei * along).astype(np.float32)
            own = edit.constant(f"{node.inputs[1]}:smoothed", value)
            changed[id(node)] = (source, own, *node.inputs[2:])
    for node in graph.nodes:
        inputs = changed.get(id(node), node.inputs)
        edit.nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        for name in node.outputs:
            if name in between:
                factor_name, source = between[name]
                edit.add(node, kinds.MUL.name, (name, factor_name), source)
    return edit.result()


def _divisor(layers: list[GraphNode], graph: Graph, tops: Array, alpha: float) -> Array:
    """Return the powers of two that a source's channels are divided by."""
    rows = []
    for node in layers:
        wei = graph.constants[node.inputs[1]]
        rows.append(np.moveaxis(wei, _input_axis(node, wei), -1).reshape(-1, len(tops)))
    divisor, _ = smoothed_weights(tops, np.concatenate(rows), alpha)
    return np.asarray(np.exp2(np.round(np.log2(divisor))), np.float64)
