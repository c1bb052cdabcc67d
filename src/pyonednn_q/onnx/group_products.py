"""Products with constant weights, and the same with weights in groups as ONNX writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pyonednn_q import dtypes
from pyonednn_q.dtypes import Array
from pyonednn_q.errors import ArgumentError
from pyonednn_q.graph import kinds
from pyonednn_q.graph.graph import Graph, GraphNode
from pyonednn_q.onnx.graph_edit import GraphEdit
from pyonednn_q.qparams import QParams
from pyonednn_q.quantize.packed_blocks import to_matmul_nbits

__all__ = ["FORMS", "ConstantProduct", "product_of", "with_groups"]

Codes = tuple[Array, QParams]

FORMS = ("matmul_nbits", "dequantize")
_BLOCKS_SINCE = 21  # opset of a DequantizeLinear of blocks
_DOMAIN, _, _OPERATOR = kinds.MATMUL_BITS.name.rpartition(".")


@dataclass(frozen=True, eq=False)
class ConstantProduct:
    """A float product with constant weights.

    Attributes
    ----------
    name : str
        Name of its node.
    source : str
        Name of what it multiplies.
    wei : ndarray of float32
        Weights, (K, N) if they are a matrix.
    bias : ndarray of float32 or None
        (N,).
    is_plain : bool
        Whether it is src · wei + bias, without factors or a transposed source.
    """

    name: str
    source: str
    wei: Array
    bias: Array | None
    is_plain: bool

    @property
    def dims(self) -> tuple[int, ...]:
        """Dims of the weights."""
        return tuple(self.wei.shape)

    def why(self, groups: int) -> str:
        """Say why its weights are not in groups of a size; nothing where they may be."""
        if self.wei.ndim != 2:
            return f"weights of {self.wei.ndim} dimensions"
        if not self.is_plain:
            return "factors, a transposed source, or a bias of other dims"
        if not np.isfinite(self.wei).all():
            return "weights that are not finite"
        inner = self.dims[0]
        return f"{inner} inputs, no multiple of {groups}" if inner % groups else ""


def product_of(node: GraphNode, graph: Graph) -> ConstantProduct | None:
    """Return the product that a node is, if its weights alone are constants of float32.

    Parameters
    ----------
    node : GraphNode
        Any node of the graph.
    graph : Graph
        Graph of floats.
    """
    if node.row not in {kinds.MATMUL, kinds.GEMM} or node.inputs[0] in graph.constants:
        return None
    wei = graph.constants.get(node.inputs[1])
    if wei is None or wei.dtype != np.float32 or not wei.size:
        return None
    if node.row is kinds.MATMUL:
        return ConstantProduct(node.name, node.inputs[0], wei, None, is_plain=True)
    told = node.attributes
    wei = wei.T if told.get("transB", 0) else wei
    bias = graph.constants.get(node.input(2))
    fits = bias is not None and bias.size == wei.shape[1] and bias.shape[-1:] == wei.shape[1:]
    is_plain = (
        not told.get("transA", 0)
        and told.get("alpha", 1.0) == 1.0
        and (not node.input(2) or (fits and told.get("beta", 1.0) == 1.0))
    )
    flat = None if bias is None or not is_plain else bias.reshape(-1)
    return ConstantProduct(node.name, node.inputs[0], wei, flat, is_plain=is_plain)


def with_groups(
    graph: Graph,
    products: Mapping[str, ConstantProduct],
    codes: Mapping[str, Codes],
    form: str,
    accuracy_level: int,
) -> Graph:
    """Write products with weights in groups.

    Parameters
    ----------
    graph : Graph
        Graph of floats.
    products : mapping of str to ConstantProduct
        Products by the names of their nodes.
    codes : mapping of str to (ndarray, QParams)
        Codes (K, N) of each, and what they are worth.
    form : {"matmul_nbits", "dequantize"}
        ONNX form of the products.
    accuracy_level : int
        Attribute of MatMulNBits.

    Raises
    ------
    ArgumentError
        An opset without blocks.
    """
    if form == "dequantize" and graph.opset < _BLOCKS_SINCE:
        wanted = f"'matmul_nbits', or a model of opset {_BLOCKS_SINCE}"
        raise ArgumentError("form", f"'dequantize' in opset {graph.opset}", wanted)
    edit = GraphEdit(graph)
    for node in graph.nodes:
        if node.name not in codes:
            edit.nodes.append(node)
        elif form == "dequantize":
            _dequantized(edit, node, products[node.name], *codes[node.name])
        else:
            _of_bits(edit, node, products[node.name], *codes[node.name], accuracy_level)
    own = {_DOMAIN: 1} if form == "matmul_nbits" else {}
    return _without_unread(edit.result({**own, **graph.opsets}))


def _of_bits(
    edit: GraphEdit,
    node: GraphNode,
    product: ConstantProduct,
    codes: Array,
    wei_q: QParams,
    level: int,
) -> None:
    packed, scales, points = to_matmul_nbits(codes, wei_q)
    base = node.inputs[1]
    inputs = [product.source, edit.constant(f"{base}:codes", packed)]
    inputs.append(edit.constant(f"{base}:scales", scales.reshape(-1)))
    if points is not None:
        inputs.append(edit.constant(f"{base}:zero_points", points.reshape(-1)))
    if product.bias is not None:
        inputs += [""] * (5 - len(inputs))
        inputs.append(edit.constant(f"{base}:bias", product.bias))
    attributes = {
        "K": product.dims[0],
        "N": product.dims[1],
        "bits": 8 if wei_q.dtype in {"s8", "u8"} else 4,
        "block_size": wei_q.block[0],
        "accuracy_level": level,
    }
    own: dict[str, Any] = {"operator": _OPERATOR, "domain": _DOMAIN, "attributes": attributes}
    edit.nodes.append(replace(node, inputs=tuple(inputs), **own))


def _dequantized(
    edit: GraphEdit, node: GraphNode, product: ConstantProduct, codes: Array, wei_q: QParams
) -> None:
    base = node.inputs[1]
    held = dtypes.numpy_dtype(wei_q.dtype)
    inputs = [edit.constant(f"{base}:codes", codes.astype(held))]
    inputs.append(edit.constant(f"{base}:scales", np.asarray(wei_q.scale, np.float32)))
    point = np.asarray(wei_q.zero_point)
    if point.any():
        inputs.append(edit.constant(f"{base}:zero_points", point.astype(held)))
    wei = edit.free(f"{base}:real")
    blocks = {"axis": 0, "block_size": wei_q.block[0]}
    edit.add(node, kinds.DEQUANTIZE.name, tuple(inputs), wei, blocks)
    bias = product.bias
    dst = node.outputs[0] if bias is None else edit.free(f"{node.outputs[0]}:product")
    edit.nodes.append(
        replace(
            node,
            operator=kinds.MATMUL.name,
            inputs=(product.source, wei),
            outputs=(dst,),
            attributes={},
        )
    )
    if bias is not None:
        name = edit.constant(f"{base}:bias", bias)
        edit.add(node, kinds.ADD.name, (dst, name), node.outputs[0])


def _without_unread(graph: Graph) -> Graph:
    """Leave out constants that nothing reads any more: the float weights."""
    from pyonednn_q.onnx.subgraphs import graphs_of

    if any(graphs_of(node.attributes) for node in graph.nodes):
        return graph
    read = {name for node in graph.nodes for name in node.inputs} | set(graph.outputs)
    kept = {name: value for name, value in graph.constants.items() if name in read}
    return replace(graph, constants=kept)
