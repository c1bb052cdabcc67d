"""A graph with quantizers as one with FakeQuantize, as the training tool and OpenVINO have it.

    DequantizeLinear(QuantizeLinear(x, s, z), s, z)   FakeQuantize(x, lo, hi, lo, hi), levels 256
    DequantizeLinear(codes, s, z), of constants       FakeQuantize(wei, lo, hi, lo, hi)

with lo = (qmin - z)·s and hi = (qmax - z)·s; wei are the real values of the codes. What reads codes
by themselves keeps its quantizers.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import MappingProxyType

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.linear import dequantize_linear
from pyonednn_q.qparams import along

_DOMAIN, _, _OPERATOR = kinds.FAKE_QUANTIZE.name.rpartition(".")
_LEVELS = 256


def fake_quantize_form(graph: Graph) -> Graph:
    """Return a graph whose pairs of quantizers, and dequantized weights, are FakeQuantize.

    Parameters
    ----------
    graph : Graph
        Graph with QuantizeLinear and DequantizeLinear of 8 bits and constant scales.
    """
    constants: dict[str, Array] = dict(graph.constants)
    readers: dict[str, list[GraphNode]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    stores = {
        node.outputs[0]: node
        for node in graph.nodes
        if node.row is kinds.QUANTIZE
        and node.outputs[0] not in graph.outputs
        and all(_is_back(each, node, constants) for each in readers.get(node.outputs[0], []))
    }
    nodes: list[GraphNode] = []
    for node in graph.nodes:
        if node.outputs[0] in stores:
            continue
        is_known = node.row is kinds.DEQUANTIZE and _is_known(node, constants)
        if is_known and node.inputs[0] in stores:
            nodes.append(_fake(node, stores[node.inputs[0]].inputs[0], constants))
        elif is_known and node.inputs[0] in constants:
            real = f"{node.outputs[0]}:float"
            known = [constants[name] for name in node.inputs if name]
            constants[real] = dequantize_linear(*known, **node.attributes).astype(np.float32)
            nodes.append(_fake(node, real, constants))
        else:
            nodes.append(node)
    opsets = MappingProxyType({**graph.opsets, _DOMAIN: 1})
    return replace(graph, nodes=tuple(nodes), constants=MappingProxyType(constants), opsets=opsets)


def _is_known(node: GraphNode, constants: dict[str, Array]) -> bool:
    numbers = [constants.get(name) for name in node.inputs[1:3]]
    has_two = len(numbers) == 2 and all(each is not None for each in numbers)
    return has_two and numbers[1] is not None and numbers[1].dtype.itemsize == 1


def _is_back(back: GraphNode, store: GraphNode, constants: dict[str, Array]) -> bool:
    """Tell whether a DequantizeLinear undoes a QuantizeLinear."""
    same = back.row is kinds.DEQUANTIZE and back.inputs[1:] == store.inputs[1:]
    return same and _is_known(back, constants)


def _ends(scale: Array, point: Array) -> tuple[Array, Array]:
    """Return low and high: the nearest to (code - z)·s that give the same float32 scale again.

    Rounded by themselves they give its neighbour for one scale in thirty.
    """
    ends = np.iinfo(point.dtype)
    low, high = (
        np.asarray((float(code) - point.astype(np.float64)) * scale, np.float32)
        for code in (ends.min, ends.max)
    )
    lows, highs = ([each, *_neighbours(each)] for each in (low, high))
    for one, other in sorted(product(range(5), repeat=2), key=sum):
        gives = np.float32((highs[other].astype(np.float64) - lows[one]) / (_LEVELS - 1))
        missed = np.float32((high.astype(np.float64) - low) / (_LEVELS - 1)) != scale
        low = np.where(missed & (gives == scale), lows[one], low)
        high = np.where(missed & (gives == scale), highs[other], high)
    return low, high


def _neighbours(end: Array) -> list[Array]:
    """Return the neighbours one and two units in the last place away; 0 is unchanged."""
    neighbours: list[Array] = []
    for toward in (np.float32(np.inf), np.float32(-np.inf)):
        each = end
        for _ in range(2):
            each = np.where(end == 0, end, np.nextafter(each, toward))
            neighbours.append(each)
    return neighbours[::2] + neighbours[1::2]


def _fake(back: GraphNode, src: str, constants: dict[str, Array]) -> GraphNode:
    scale, point = (constants[name] for name in back.inputs[1:3])
    axis, ndim = 0, 1
    if scale.ndim:
        axis, ndim = int(back.attributes.get("axis", 1)), constants[src].ndim
    names = []
    for end, real in zip(("low", "high"), _ends(scale, point), strict=True):
        name = f"{back.outputs[0]}:{end}"
        constants[name] = along(real, axis, ndim)
        names.append(name)
    attributes = MappingProxyType({"levels": _LEVELS})
    return GraphNode(
        back.outputs[0],
        _OPERATOR,
        (src, *names, *names),
        back.outputs,
        attributes,
        domain=_DOMAIN,
    )
