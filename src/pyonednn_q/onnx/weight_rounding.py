"""rounded: weights of a graph on the codes that lose least of its layers' results.

Each layer by itself, of the float network's sources: `quantize.searched_rounding` over the rows
that its weights are multiplied with, patches of a convolution. What comes out are the real values
of the codes, of which `calibrate` makes the same codes again: the largest weight of a channel
stays, and with it the scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil, prod
from typing import Any

import numpy as np

from pyonednn_q.argument import each, instance, whole
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.calibration_options import named_inputs
from pyonednn_q.onnx.choices import Bindings, Key, is_open
from pyonednn_q.onnx.float_model import float_model
from pyonednn_q.onnx.float_types import usual_wei_bits
from pyonednn_q.onnx.geometry import convolution
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.onnx.model import Model
from pyonednn_q.onnx.passes import prepared, settled
from pyonednn_q.onnx.quantized_form import channels_axis, layers_of
from pyonednn_q.quantize.quantizers import Quantizers
from pyonednn_q.quantize.rounding_search import searched_by_products

__all__ = ["rounded"]

Array = np.ndarray[Any, Any]
_PLACES = 4096  # of a batch that a convolution's patches are taken from, about, evenly apart


def rounded(graph: Graph, batches: Iterable[Any], wei_bits: int | None = None) -> Graph:
    """Return a float graph whose weights are those of codes, rounded by the error of results.

    Convolutions, and products whose weights are a matrix. Each takes 8 · K² bytes while samples are
    read, K being how many weights make one result (of depthwise layers for each channel).

    Parameters
    ----------
    graph : Graph
        Graph of floats, as `load` returns it.
    batches : iterable of (mapping of str to array_like, or array_like)
        Inputs, as `calibrate` takes them. Read once, and not kept.
    wei_bits : int, optional
        Width of the weights, as `calibrate` is told.

    Returns
    -------
    Graph
        For `calibrate` without a configuration, of the same width: weights have a scale for each
        channel.

    Raises
    ------
    ArgumentError
        No batches; a graph with quantizers.
    """
    instance("graph", graph, Graph)
    bits = usual_wei_bits() if wei_bits is None else whole("wei_bits", wei_bits, lo=2, hi=8)
    if any(node.row.is_quantizer for node in graph.nodes):
        raise ArgumentError("graph", "quantizers", "a graph of floats")
    base = settled(graph)
    bindings = Bindings(base)
    products: dict[str, Array] = {}
    models: dict[Key, tuple[Model, tuple[GraphNode, ...]]] = {}
    for batch in each("batches", batches):
        inputs = named_inputs(tuple(graph.inputs), batch)
        key, known = bindings.of(inputs)
        if key not in models:
            plain = prepared(known())[0] if is_open(base) else base
            models = {key: _observing(plain)}  # weights are as large as the model
        model, layers = models[key]
        values = {**inputs, **model.run(inputs)}
        for node in layers:
            name = node.outputs[0]
            rows = _rows(node, values[node.inputs[0]], _weights(plain, node))
            total = np.matmul(rows.transpose(0, 2, 1), rows)
            products[name] = products.get(name, 0.0) + total.astype(np.float64)
    if not models:
        raise ArgumentError("batches", "none", "one at least")
    return _with(base, products, bits)


def _weights(graph: Graph, node: GraphNode) -> Array:
    return graph.constants[node.inputs[1]]


def _observing(plain: Graph) -> tuple[Model, tuple[GraphNode, ...]]:
    """Return a model whose results are the sources of layers, and these."""
    layers = tuple(node for node in layers_of(plain) if _is_searched(node, plain))
    names = dict.fromkeys(node.inputs[0] for node in layers if node.inputs[0] in plain.tensors)
    outputs = {name: plain.tensors[name] for name in names if name not in plain.inputs}
    return float_model(replace(plain, outputs=outputs or plain.outputs)), layers


def _is_searched(node: GraphNode, graph: Graph) -> bool:
    """Tell whether a layer is a convolution, or a product whose weights are a matrix."""
    wei = _weights(graph, node)
    if wei.dtype != np.float32 or node.inputs[0] in graph.constants:
        return False
    if node.row is kinds.GEMM:
        return not node.attributes.get("transA", 0)
    return node.row is kinds.CONV or (node.row is kinds.MATMUL and wei.ndim == 2)


def _rows(node: GraphNode, src: Array, wei: Array) -> Array:
    """Return what each group's weights are multiplied with, (groups, places, K)."""
    if node.row is not kinds.CONV:
        return src.reshape(1, -1, src.shape[-1])
    told = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    defaults: dict[str, Any] = {"auto_pad": "NOTSET", "group": 1}
    attributes = (node.attributes.get(name, defaults.get(name)) for name in told)
    how = convolution(("src", "wei"), src.shape, wei.shape, *attributes)
    sides = ((0, 0), (0, 0), *zip(how.lo, how.hi, strict=True))
    spatial = len(how.dst)
    axes = tuple(range(2, 2 + spatial))
    reach = [(k - 1) * d + 1 for k, d in zip(wei.shape[2:], how.dilation, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(src, sides), reach, axes)
    few = ceil((len(src) * prod(how.dst) / _PLACES) ** (1 / spatial))
    places = tuple(slice(None, None, step * few) for step in how.stride)
    taps = tuple(slice(None, None, step) for step in how.dilation)
    every = (slice(None), slice(None))
    taken = windows[every + places + taps]
    by_group = taken.reshape(len(src), how.groups, -1, *taken.shape[2:])
    last = tuple(range(3, 3 + spatial))
    kernel = tuple(range(3 + spatial, 3 + 2 * spatial))
    moved = by_group.transpose(1, 0, *last, 2, *kernel)
    return np.ascontiguousarray(moved).reshape(how.groups, -1, prod(wei.shape[1:]))


def _with(base: Graph, products: Mapping[str, Array], bits: int) -> Graph:
    edit, quantizers = GraphEdit(base), Quantizers(bits)
    most = 2 ** (bits - 1) - 1
    for node in base.nodes:
        if node.outputs[0] not in products or node.inputs[1] not in base.constants:
            edit.nodes.append(node)
            continue
        wei, grams = _weights(base, node), products[node.outputs[0]]
        axis = channels_axis(node, wei) or 0
        _, q = quantizers.weights(node.name, wei, axis)
        rows = np.moveaxis(wei, axis, 0)
        flat = rows.reshape(len(grams), -1, grams.shape[-1])
        scales = np.broadcast_to(np.asarray(q.scale), (len(rows),)).reshape(len(grams), -1)
        codes = np.stack(
            [
                searched_by_products(gram, own, scale, qmin=-most, qmax=most)
                for gram, own, scale in zip(grams, flat, scales, strict=True)
            ]
        )
        whole_codes = np.moveaxis(codes.reshape(rows.shape), 0, axis)
        value = q.dequantize(whole_codes)
        name = edit.constant(f"{node.inputs[1]}:rounded", value.astype(np.float32))
        edit.nodes.append(replace(node, inputs=(node.inputs[0], name, *node.inputs[2:])))
    return edit.result()
