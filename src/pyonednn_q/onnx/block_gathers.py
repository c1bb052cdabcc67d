"""GatherBlockQuantized as nodes of ONNX: rows of a table of codes in blocks, as float32.

    y[..., k] = (code[row, k] - zero_point[row, k // block]) · scale[row, k // block]

Codes stay a byte each, and less their zero points: embeddings of language models, whose table is
too large for floats. Source: onnxruntime, docs/ContribOperators.md.
"""

from __future__ import annotations

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.element_types import FLOAT32
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.quantize.packed_blocks import block_parts

__all__ = ["gathered_blocks"]

_FORM = {"gather_axis": 0, "quantize_axis": 1}


def gathered_blocks(node: GraphNode, edit: GraphEdit) -> bool:
    """Write one out; tell whether its table is a constant of two dims, of bytes.

    Parameters
    ----------
    node : GraphNode
        A GatherBlockQuantized.
    edit : GraphEdit
        The graph in the making, which gets constants.
    """
    data, rows, scales = node.inputs[:3]
    codes = _codes(node, edit.graph)
    indices = edit.graph.tensors.get(rows)
    dims = None if indices is None else indices.lengths or indices.dims
    if codes is None or dims is None:
        return False
    count, blocks, size = codes.shape
    name, outer = node.outputs[0], [0] * len(dims)
    table = edit.constant(f"{data}:codes", codes.reshape(count, -1))
    apart, one, flat = (
        edit.constant(f"{name}:dims", np.array([*outer, *last], np.int64))
        for last in ((blocks, size), (blocks, 1), (blocks * size,))
    )
    dst, factor = (edit.part(node, kinds.GATHER, each, rows, axis=0) for each in (table, scales))
    dst = edit.part(node, kinds.CAST, dst, to=FLOAT32)
    dst = edit.part(node, kinds.RESHAPE, dst, apart)
    factor = edit.part(node, kinds.RESHAPE, factor, one)
    dst = edit.part(node, kinds.MUL, dst, factor)
    edit.part(node, kinds.RESHAPE, dst, flat, dst=name)
    return True


def _codes(node: GraphNode, graph: Graph) -> Array | None:
    """Return codes (rows, blocks, size) less their zero points: of int8, or float32 of more."""
    data, scale = _constant(graph, node.input(0)), graph.constants.get(node.input(2))
    point = graph.constants.get(node.input(3))
    told = {**_FORM, "bits": 4, "block_size": 128, **node.attributes}
    is_known = data is not None and scale is not None and not (node.input(3) and point is None)
    if not is_known or any(told[name] != value for name, value in _FORM.items()):
        return None
    assert data is not None
    assert scale is not None
    if data.dtype != np.uint8 or scale.ndim != 2 or scale.dtype != np.float32:
        return None
    (rows, blocks), bits, size = scale.shape, told["bits"], told["block_size"]
    if data.size * 8 != rows * blocks * size * bits:  # a last block that is cut short
        return None
    try:
        codes, _, zero = block_parts(data, scale, point, blocks * size, rows, bits, size)
    except ArgumentError:
        return None
    less = codes.astype(np.int16) - zero[..., None]
    fits = less.min() >= -128 and less.max() <= 127
    return less.astype(np.int8 if fits else np.float32)


def _constant(graph: Graph, name: str) -> Array | None:
    """Return a constant, or one that a Reshape gives other dims."""
    makers = (each for each in graph.nodes if name in each.outputs)
    maker = next(makers, None)
    is_shaped = maker is not None and maker.row is kinds.RESHAPE
    return graph.constants.get(maker.inputs[0] if maker is not None and is_shaped else name)
