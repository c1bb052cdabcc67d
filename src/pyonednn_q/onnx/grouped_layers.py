"""Products with constant weights in blocks as layers of groups, on sources that become s8 codes.

Each block of a row is quantized by its own range, as onnxruntime's MatMulNBits does at accuracy
level 4. Where a model does not say so, that is for the caller to allow.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import GraphNode
from pyonednn_q.onnx.fused_node import FusedNode
from pyonednn_q.onnx.graph_view import GraphView
from pyonednn_q.onnx.layer_reader import NoLayer
from pyonednn_q.ops.dense import MatMul
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.exchange import from_onnx
from pyonednn_q.quantize.packed_blocks import from_matmul_nbits
from pyonednn_q.quantize.packed_codes import BITS
from pyonednn_q.quantize.ranges import Dynamic
from pyonednn_q.shown import shortened

BLOCKS = ("model", "s8", "f32")
_LEVEL_OF_CODES = 4  # accuracy_level of MatMulNBits: sources of 8 bits will do
_B, _SCALES, _POINTS, _ORDER, _BIAS = range(1, 6)  # inputs of MatMulNBits
_NO_CODES = (
    "weights of few bits in blocks, which become float32: blocks='s8' makes codes of the source"
)


def allows_codes(node: GraphNode, blocks: str) -> bool:
    """Tell whether the source of a product with weights in blocks may become codes.

    Parameters
    ----------
    node : GraphNode
        A MatMulNBits, or a product with a dequantized constant.
    blocks : str
        One of `BLOCKS`, as `fuse` takes it.
    """
    is_told = node.attributes.get("accuracy_level", 0) == _LEVEL_OF_CODES
    return blocks == "s8" or (blocks == "model" and node.row is kinds.MATMUL_BITS and is_told)


def has_groups(node: GraphNode, constants: Mapping[str, Array]) -> bool:
    """Tell whether a MatMulNBits is a product with groups of constant codes.

    Parameters
    ----------
    node : GraphNode
        A MatMulNBits.
    constants : mapping of str to ndarray
        Constants of the graph.
    """
    told = node.attributes
    inner, columns, block = (told.get(name, 0) for name in ("K", "N", "block_size"))
    bits = told.get("bits", 4)
    known = [constants.get(node.input(at)) for at in (_B, _SCALES, _POINTS, _BIAS)]
    is_open = any(each is None and node.input(at) for each, at in zip(known, _PLACES, strict=True))
    codes, scales, points, bias = known
    if is_open or codes is None or scales is None or node.input(_ORDER) or bits not in BITS:
        return False
    if min(inner, columns, block) < 1 or inner % block or codes.dtype != np.uint8:
        return False
    blocks = inner // block
    if codes.size * 8 != columns * inner * bits or block * bits % 8:
        return False
    if scales.dtype != np.float32 or scales.size != columns * blocks:
        return False
    if not np.isfinite(scales).all() or (bias is not None and bias.shape != (columns,)):
        return False
    if points is None or points.dtype == np.uint8:
        of_column = -(-blocks * bits // 8)
        return points is None or points.size == columns * of_column
    is_whole = points.dtype == np.float32 and bool((points == np.rint(points)).all())
    return is_whole and points.size == scales.size and 0 <= points.min() <= points.max() < 1 << bits


_PLACES = (_B, _SCALES, _POINTS, _BIAS)


def grouped_layer(view: GraphView, node: GraphNode, blocks: str) -> FusedNode | NoLayer:
    """Return a layer of weights in groups, or why there is none.

    Parameters
    ----------
    view : GraphView
        View of the graph.
    node : GraphNode
        A MatMulNBits; or a MatMul, whose weights a DequantizeLinear of blocks makes of constants.
    blocks : str
        One of `BLOCKS`, as `fuse` takes it.
    """
    if not (allows_codes(node, blocks) and node.row in {kinds.MATMUL, kinds.MATMUL_BITS}):
        return NoLayer("no product with weights in blocks whose source may become codes")
    if view.dtype(node.inputs[0]) != "float32":
        return NoLayer("a source that is not float32")
    try:
        if node.row is kinds.MATMUL_BITS:
            (codes, wei_q), bias = _of_bits(node, view.constants), _bias(node, view.constants)
        else:
            read = _dequantized(view, node.input(1))
            if read is None:
                return NoLayer("weights that no DequantizeLinear of blocks makes of constants")
            (codes, wei_q), bias = read, None
        layer = MatMul(codes, bias, src_q=Dynamic("s8", "per_group"), wei_q=wei_q)
    except ArgumentError as error:
        return NoLayer(shortened(str(error), 300))
    return FusedNode.of(node, layer, node.inputs[:1], node.outputs[:1], (node,))


def why_floats(view: GraphView, node: GraphNode) -> str:
    """Return a note if the product has weights in blocks that run as floats; else nothing."""
    if node.row is not kinds.MATMUL:
        return ""
    changes = (each for each in view.graph.changes if kinds.MATMUL_BITS.name in each.before)
    had_blocks = not {name for each in changes for name in each.originals}.isdisjoint(
        node.originals
    )
    return _NO_CODES if had_blocks or _dequantized(view, node.input(1)) is not None else ""


def _of_bits(node: GraphNode, constants: Mapping[str, Array]) -> tuple[Array, QParams]:
    told = node.attributes
    return from_matmul_nbits(
        constants[node.input(_B)],
        constants[node.input(_SCALES)],
        constants.get(node.input(_POINTS)),
        k=told["K"],
        n=told["N"],
        bits=told.get("bits", 4),
        block_size=told["block_size"],
    )


def _bias(node: GraphNode, constants: Mapping[str, Array]) -> Array | None:
    return constants.get(node.input(_BIAS))


def _dequantized(view: GraphView, name: str) -> tuple[Array, QParams] | None:
    """Return codes (K, N) of 4 or 8 bits and their QParams; None where they are none of blocks."""
    maker = view.producer.get(name)
    block = 0 if maker is None else maker.attributes.get("block_size", 0)
    if maker is None or maker.row is not kinds.DEQUANTIZE or not block:
        return None
    codes, scale = (view.constants.get(maker.input(at)) for at in (0, 1))
    point = view.constants.get(maker.input(2))
    if codes is None or scale is None or (point is None and maker.input(2)):
        return None
    axis = maker.attributes.get("axis", 1) % max(codes.ndim, 1)
    if codes.ndim != 2 or axis != 0 or scale.dtype != np.float32:
        return None
    if point is None:
        point = np.zeros(scale.shape, codes.dtype)
    try:
        return codes, from_onnx(scale, point, axis=0, block_size=block)
    except ArgumentError:
        return None
