"""Types and dims of a graph's tensors, by onnx's inference on nodes without large constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyonednn_q.graph.graph import Graph, GraphNode, Value

if TYPE_CHECKING:
    from onnx import NodeProto

Array = np.ndarray[Any, Any]

_SMALL = 64  # elements of a constant that may say a shape


def with_dims(graph: Graph) -> Graph:
    """Infer the types and dims that follow from inputs and constants, where some are not known.

    Parameters
    ----------
    graph : Graph
    """
    names = {name for node in graph.nodes for name in node.outputs if name}
    if names <= graph.tensors.keys():
        return graph
    own = graph.nodes, graph.constants, graph.inputs, graph.outputs, graph.opsets
    tensors = inferred(*own)
    outputs = {name: tensors.get(name, info) for name, info in graph.outputs.items()}
    return replace(graph, outputs=outputs, tensors=tensors)


def inferred(
    nodes: Iterable[GraphNode],
    constants: Mapping[str, Array],
    inputs: Mapping[str, Value],
    outputs: Iterable[str],
    opsets: Mapping[str, int],
) -> Mapping[str, Value]:
    """Return type and dims of every tensor for which they follow from inputs and constants.

    What the model says of its own tensors is not looked at.

    Parameters
    ----------
    nodes, constants, inputs, outputs, opsets
        As in `Graph`.
    """
    import onnx
    from onnx import helper, numpy_helper, shape_inference

    infos = dict(inputs)
    infos |= {name: Value(each.dtype.name, each.shape) for name, each in constants.items()}
    number = helper.np_dtype_to_tensor_dtype
    small = {name for name, each in constants.items() if each.size <= _SMALL}
    values = [
        helper.make_tensor_value_info(name, number(_dtype(info.dtype)), info.dims)
        for name, info in infos.items()
        if name not in small
    ]
    graph = helper.make_graph(
        [node_proto(each) for each in nodes],
        "graph",
        values,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(constants[name], name) for name in small],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports)
    try:
        known = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # of onnx: a graph that contradicts itself has no dims
        return MappingProxyType(infos)
    for each in (*known.value_info, *known.output):
        tensor = each.type.tensor_type
        try:
            dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except (KeyError, ValueError):
            continue
        dims = tuple(dim.dim_value for dim in tensor.shape.dim)
        is_known = tensor.HasField("shape") and all(
            dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
            for dim in tensor.shape.dim
        )
        if each.type.WhichOneof("value") == "tensor_type":
            infos.setdefault(each.name, Value(dtype.name, dims if is_known else None))
    assert isinstance(known, onnx.GraphProto)
    return MappingProxyType(infos)


def node_proto(node: GraphNode) -> NodeProto:
    """Return a node as the package onnx has it."""
    from onnx import AttributeProto, helper, numpy_helper

    proto = helper.make_node(node.operator, node.inputs, node.outputs, node.name, None, node.domain)
    for name, value in node.attributes.items():
        stored = numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
        kind = AttributeProto.INTS if stored == () else None
        proto.attribute.append(helper.make_attribute(name, stored, attr_type=kind))
    return proto


def _dtype(name: str) -> np.dtype[Any]:
    if hasattr(np, name):
        return np.dtype(name)
    import ml_dtypes

    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype
