"""Sources of layers divided channel by channel, and weights that make up for it.

    src' = src / d,  wei' = wei · d                       d: of each input channel

The division joins the chain of the layer before, or the gains of a norm. So it needs a source that
such layers alone read, and that one of those two makes: what the algebra does not allow stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.quantized_form import QuantizerPlacement, channels_axis

__all__ = ["divisible_sources", "input_axis", "with_sources_divided"]

_GAIN, _SHIFT = 1, 2  # inputs of a LayerNormalization


def divisible_sources(plain: Graph, base: Graph) -> dict[str, list[GraphNode]]:
    """Return the layers of a graph that read each source that may be divided.

    Parameters
    ----------
    plain : Graph
        Form of the graph at certain lengths, norms as layers.
    base : Graph
        Graph whose nodes are returned, convolutions and products with constant weights.
    """
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


def input_axis(node: GraphNode, wei: Array) -> int:
    """Return the dimension of a layer's weights that its source's channels run along."""
    return 1 - (channels_axis(node, wei) or 0)


def with_sources_divided(
    graph: Graph, groups: Mapping[str, list[GraphNode]], divisors: Mapping[str, Array]
) -> Graph:
    """Divide channels of sources, and multiply the weights that read them.

    Parameters
    ----------
    graph : Graph
        Graph of floats.
    groups : mapping of str to list of GraphNode
        The layers that read each source, as `divisible_sources` returns them.
    divisors : mapping of str to (IC,) ndarray
        Divisors of each source; ones change nothing.
    """
    edit, view = GraphEdit(graph), GraphView(graph)
    changed: dict[int, tuple[str, ...]] = {}  # inputs of nodes
    between: dict[str, tuple[str, str]] = {}  # the constant and the name of what is divided
    for name, layers in groups.items():
        divisor = divisors[name]
        if (divisor == 1.0).all():
            continue
        norm = view.producer[name]
        source = name
        if _is_norm(norm, graph):
            parts = {at: norm.input(at) for at in (_GAIN, _SHIFT) if norm.input(at)}
            reads = list(norm.inputs)
            for at, part in parts.items():
                value = (graph.constants[part] / divisor).astype(np.float32)
                reads[at] = edit.constant(f"{part}:divided", value)
            changed[id(norm)] = tuple(reads)
        else:
            of_first = graph.constants[layers[0].inputs[1]]
            places = of_first.ndim - 2 if layers[0].row is kinds.CONV else 0
            factor = (1.0 / divisor).astype(np.float32).reshape(-1, *(1,) * places)
            source = edit.free(f"{name}:divided")
            between[name] = edit.constant(f"{name}:divisors", factor), source
        for node in layers:
            wei = graph.constants[node.inputs[1]]
            along = divisor.reshape(-1, *(1,) * (wei.ndim - 1 - input_axis(node, wei)))
            value = (wei * along).astype(np.float32)
            own = edit.constant(f"{node.inputs[1]}:divided", value)
            changed[id(node)] = (source, own, *node.inputs[2:])
    for node in graph.nodes:
        inputs = changed.get(id(node), node.inputs)
        edit.nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
        for name in node.outputs:
            if name in between:
                factor_name, source = between[name]
                edit.add(node, kinds.MUL.name, (name, factor_name), source)
    return edit.result()
